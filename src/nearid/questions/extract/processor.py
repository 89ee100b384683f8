"""How a model wants its pictures: its image processor's configuration, read without torch and without running code."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from nearid.arrays.formats.registry import suffixes
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.questions.extract.pictures import BICUBIC, BILINEAR, Shaping, Size

FILE = "preprocessor_config.json"
# Processors for which a size that is one number means the shorter side; for the others both.
SHORTER = ("CLIP", "ConvNext", "Bit", "Blip", "ChineseCLIP")
# What some processors do besides, and nearid does not.
STRANGE = ("do_pad", "do_split_image", "do_image_splitting", "do_reduce_labels", "do_thumbnail", "do_align_long_axis")
# Filters that Pillow has.
FILTERS = 6
# ConvNext resizes to more than it keeps, below this size.
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
    """The processor of a folder of a transformers model, or of a model on the hub; None where it has none."""
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
            told = json.load(file)
        return _processor(told)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(
            f"{FILE} of {os.fspath(model)} says {error}, which nearid does not know. Give resize, crop, mean and std "
            "(--resize --crop --mean --std)."
        ) from None


def _of_hub(name: str, revision: str | None) -> str | None:
    # A file of weights, or a function that makes the model.
    if os.path.exists(name) or ":" in name or name.lower().endswith(tuple(suffixes("weights"))):
        return None
    try:
        from huggingface_hub import hf_hub_download

        return str(hf_hub_download(name, FILE, revision=revision))
    except Exception:  # no library, network, model or file; whether there is a model is told when it is loaded
        return None


def _processor(told: Mapping[str, Any]) -> Processor:
    kind = str(told.get("image_processor_type") or told.get("feature_extractor_type") or "")
    strange = next((name for name in STRANGE if told.get(name)), None)
    if strange is not None:
        raise ValueError(f"{strange}: {told[strange]!r}")
    resize = _size(told["size"], kind.startswith(SHORTER)) if told.get("do_resize", "size" in told) else None
    crop = _size(told["crop_size"], False) if told.get("do_center_crop", False) else None
    if resize is not None and told.get("crop_pct") is not None:
        resize, crop = _cropped(resize, float(told["crop_pct"]))
    filter_ = int(told.get("resample", BICUBIC if kind.startswith(SHORTER) else BILINEAR))
    if filter_ not in range(FILTERS):
        raise ValueError(f"the resample {filter_}")
    shaping = Shaping(resize, None if isinstance(crop, int) else crop, filter_)
    scale = 1 / float(told.get("rescale_factor", 1 / BYTE)) if told.get("do_rescale", True) else 1.0
    normal = told.get("do_normalize", "image_mean" in told)
    mean, std = (tuple(map(float, told[name])) if normal else None for name in ("image_mean", "image_std"))
    return Processor(shaping, None if abs(scale - BYTE) < 1e-6 else scale, mean, std)


def _size(told: Any, shorter: bool) -> int | Size:
    """The shorter side, or height and width."""
    match told:
        case int(side):
            return side if shorter else (side, side)
        case {"height": int(height), "width": int(width)}:
            return height, width
        case {"shortest_edge": int(side), **more} if not more:
            return side
    raise ValueError(f"the size {told!r}")


def _cropped(resize: int | Size, share: float) -> tuple[int | Size, Size | None]:
    """How ConvNext does it: small pictures lose their margins, large ones are squeezed."""
    side = resize if isinstance(resize, int) else resize[0]
    return ((side, side), None) if side >= LARGE else (int(side / share), (side, side))
