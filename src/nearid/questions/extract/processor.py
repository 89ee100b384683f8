"""Preprocessing of a model's pictures: the configuration of its image processor, read without torch or its code."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from nearid.arrays.formats.registry import suffixes
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.questions.extract.pictures import BICUBIC, BILINEAR, Shaping, Size

FILE = "preprocessor_config.json"


class Habits(NamedTuple):
    """Defaults of a kind of processor for what its configuration does not say.

    Attributes
    ----------
    resample : int
        Pillow's filter for resizing.
    crop : bool or None
        Whether it crops the centre. None: it never does, whatever its configuration says.
    shorter : bool
        Whether a size that is one number means the shorter side; otherwise both.
    """

    resample: int
    crop: bool | None = False
    shorter: bool = False


# Processors that nearid reproduces exactly. For others, the same keys may have another meaning.
KNOWN = {
    "Beit": Habits(BICUBIC),
    "Bit": Habits(BICUBIC, crop=True, shorter=True),
    "Blip": Habits(BICUBIC),
    "ChineseCLIP": Habits(BICUBIC, crop=True, shorter=True),
    "CLIP": Habits(BICUBIC, crop=True, shorter=True),
    "ConvNext": Habits(BICUBIC, shorter=True),
    "DeiT": Habits(BICUBIC, crop=True),
    "MobileNetV1": Habits(BILINEAR, crop=True, shorter=True),
    "MobileNetV2": Habits(BILINEAR, crop=True, shorter=True),
    "Pvt": Habits(BICUBIC),
    "Segformer": Habits(BILINEAR, crop=None),
    "Siglip": Habits(BICUBIC, shorter=True),
    "ViT": Habits(BILINEAR),
}
# The only one that crops by a share of the size, and its share.
SHARED, SHARE = "ConvNext", 224 / 256
TYPES = ("image_processor_type", "feature_extractor_type")
# The steps that nearid does, and what they take.
STEPS = ("do_resize", "do_center_crop", "do_rescale", "do_normalize", "do_convert_rgb")
VALUES = ("size", "crop_size", "resample", "rescale_factor", "image_mean", "image_std")
# Keys that do not change pixels.
HARMLESS = (*TYPES, "processor_class", "_valid_processor_keys", "model_input_names", "return_tensors", "device")
FIRST = ("channels_first", "ChannelDimension.FIRST")
# Filters that Pillow has.
FILTERS = 6
# Below this size, ConvNext resizes to a larger size and crops.
LARGE = 384
BYTE = 255.0


@dataclass(frozen=True)
class Processor:
    """Sizes and colours that a model was trained with.

    Attributes
    ----------
    shaping : Shaping
    scale, mean, std
        As options of `extract`.
    """

    shaping: Shaping
    scale: float | None = None
    mean: tuple[float, ...] | None = None
    std: tuple[float, ...] | None = None


def open_processor(model: Any, revision: str | None = None) -> Processor | None:
    """The processor of a transformers model in a folder or on the hub; None if it has none."""
    if not isinstance(model, str | os.PathLike):
        # A transformers model in memory says where it comes from.
        model = getattr(model, "name_or_path", None)
    if not model or not isinstance(model, str | os.PathLike):
        return None
    folder = local_path(model)
    path = str(folder / FILE) if folder.is_dir() else _of_hub(os.fspath(model), revision)
    if path is None or not os.path.isfile(path):
        return None
    try:
        with open(path, encoding="utf-8") as file:
            config = json.load(file)
        return _processor(config)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{FILE} of {os.fspath(model)} contains {error}, which nearid does not support. Give resize, crop, mean "
            f"and std "
            "(--resize --crop --mean --std)."
        ) from None


def _of_hub(name: str, revision: str | None) -> str | None:
    # A file of weights, or a function that makes the model.
    if os.path.exists(name) or ":" in name or name.lower().endswith(tuple(suffixes("weights"))):
        return None
    try:
        from huggingface_hub import hf_hub_download

        return str(hf_hub_download(name, FILE, revision=revision))
    except Exception:  # no library, network, model or file; loading the model reports a missing one
        return None


def _processor(config: Mapping[str, Any]) -> Processor:
    name = next((str(config[key]) for key in TYPES if config.get(key)), None)
    if name is None:
        raise ValueError(f"nothing of {TYPES[0]}")
    kind = re.sub("(ImageProcessor(Fast|Pil)?|FeatureExtractor)$", "", name)
    if kind not in KNOWN:
        raise ValueError(f"{TYPES[0]}: {name}")
    _refuse_strange(config, kind)
    habits, resize, crop = KNOWN[kind], None, None
    if config.get("do_resize", True):
        resize = _size(_value(config, "size"), habits.shorter)
        if kind == SHARED:
            resize, crop = _cropped(resize, float(config.get("crop_pct") or SHARE))
    if habits.crop is not None and config.get("do_center_crop", habits.crop):
        crop = _square(_size(_value(config, "crop_size"), False))
    filter_ = int(config.get("resample", habits.resample))
    if filter_ not in range(FILTERS):
        raise ValueError(f"the resample {filter_}")
    scale = 1 / float(config.get("rescale_factor", 1 / BYTE)) if config.get("do_rescale", True) else 1.0
    normal = config.get("do_normalize", True)
    mean, std = (tuple(map(float, _value(config, key))) if normal else None for key in ("image_mean", "image_std"))
    return Processor(Shaping(resize, crop, filter_), None if abs(scale - BYTE) < 1e-6 else scale, mean, std)


def _refuse_strange(config: Mapping[str, Any], kind: str) -> None:
    """Refuse unknown steps that are switched on: they may change pixels."""
    for key, value in config.items():
        known = key in (*STEPS, *VALUES, *HARMLESS) or (key == "crop_pct" and kind == SHARED)
        if value and not known and not (key == "data_format" and value in FIRST):
            raise ValueError(f"{key}: {value!r}")


def _value(config: Mapping[str, Any], key: str) -> Any:
    if config.get(key) is None:
        raise ValueError(f"nothing of {key}")
    return config[key]


def _size(given: Any, shorter: bool) -> int | Size:
    """The shorter side, or height and width."""
    match given:
        case int(side):
            return side if shorter else (side, side)
        case {"height": int(height), "width": int(width)}:
            return height, width
        case {"shortest_edge": int(side), **more} if not more:
            return side
    raise ValueError(f"the size {given!r}")


def _square(size: int | Size) -> Size:
    """Height and width; raise an error if only the shorter side is known."""
    if isinstance(size, int):
        raise ValueError(f"the crop_size {size}")
    return size


def _cropped(resize: int | Size, share: float) -> tuple[int | Size, Size | None]:
    """The rule of ConvNext: small pictures are cropped, large ones are resized to both sides."""
    if not isinstance(resize, int):
        raise ValueError(f"the size {resize}")
    return ((resize, resize), None) if resize >= LARGE else (int(resize / share), (resize, resize))
