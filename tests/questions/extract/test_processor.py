"""Sizes and colours of a model's image processor, beside what transformers makes of the same pictures."""

import json

import numpy as np
import pytest
import torch

from nearid import InputError, extract
from nearid.questions.extract.forward import Preprocess
from nearid.questions.extract.processor import KNOWN, open_processor

Image = pytest.importorskip("PIL.Image")

VIT = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 16, "width": 16},
    "resample": 2,
    "image_mean": [0.5, 0.4, 0.3],
    "image_std": [0.2, 0.3, 0.4],
    "do_normalize": True,
    "do_resize": True,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
}
CLIP = {
    **VIT,
    "image_processor_type": "CLIPImageProcessor",
    "size": {"shortest_edge": 20},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 16, "width": 16},
}


@pytest.fixture
def pictures(tmp_path, rng):
    place = tmp_path / "set"
    place.mkdir()
    for at in range(5):
        Image.fromarray(rng.integers(0, 256, (30 + at, 41, 3), dtype=np.uint8)).save(place / f"{at}.png")
    return place


@pytest.mark.parametrize("told", [VIT, CLIP])
def test_pixels_are_those_of_transformers(tmp_path, pictures, told):
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, image_size=16, patch_size=4
    )
    model = transformers.ViTModel(config, add_pooling_layer=False)
    model.save_pretrained(tmp_path / "model")
    (tmp_path / "model" / "preprocessor_config.json").write_text(json.dumps(told))
    found = extract(str(tmp_path / "model"), pictures, layers="hidden_states.1", batch_size=2)
    processor = transformers.AutoImageProcessor.from_pretrained(tmp_path / "model", use_fast=False)
    images = [Image.open(pictures / f"{at}.png") for at in range(5)]
    with torch.no_grad():
        states = model.eval()(**processor(images, return_tensors="pt"), output_hidden_states=True).hidden_states[1]
    np.testing.assert_allclose(found["hidden_states.1"].read(0, 5), states.mean(1), rtol=1e-4, atol=1e-5)
    assert found.provenance["options"]["processor"] is True
    # A model in memory says where it comes from.
    loaded = transformers.AutoModel.from_pretrained(tmp_path / "model", add_pooling_layer=False)
    again = extract(loaded, pictures, layers="hidden_states.1", batch_size=2)
    np.testing.assert_array_equal(again["hidden_states.1"].read(0, 5), found["hidden_states.1"].read(0, 5))
    # The model's own way is no difference between inputs; what somebody chose is.
    assert found["hidden_states.1"].preprocess is None
    chosen = extract(str(tmp_path / "model"), pictures, layers="hidden_states.1", mean=0.1, resize="16,16")
    told = chosen["hidden_states.1"].preprocess
    assert told["mean"] == [0.1] and list(told["resize"]) == [16, 16] and told["std"] == [0.2, 0.3, 0.4]


def read(tmp_path, told):
    (tmp_path / "preprocessor_config.json").write_text(told if isinstance(told, str) else json.dumps(told))
    return open_processor(tmp_path)


def test_sizes_in_all_spellings(tmp_path):
    assert read(tmp_path, {**VIT, "size": 24}).shaping.resize == (24, 24)
    found = read(tmp_path, {**CLIP, "size": 24, "crop_size": 20})
    assert found.shaping.resize == 24 and found.shaping.crop == (20, 20)
    small = {**VIT, "image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 224}, "crop_pct": 0.875}
    found = read(tmp_path, small)
    assert found.shaping.resize == 256 and found.shaping.crop == (224, 224)
    assert read(tmp_path, {**small, "size": {"shortest_edge": 384}}).shaping.resize == (384, 384)
    found = read(tmp_path, {**VIT, "do_resize": False, "do_normalize": False, "do_rescale": False})
    assert found.shaping.resize is None and found.mean is None and found.std is None and found.scale == 1.0


@pytest.mark.parametrize(
    "told",
    [
        "{",
        "[]",
        {**VIT, "size": {"longest_edge": 9}},
        {**VIT, "do_pad": True},
        {**VIT, "resample": 9},
        {**VIT, "image_processor_type": None},
        {**VIT, "image_processor_type": "LevitImageProcessor"},
        {**VIT, "do_flip_channel_order": True},
        {**VIT, "rescale_offset": True},
        {**VIT, "size_divisor": 32},
        {**VIT, "crop_pct": 0.9},
        {**CLIP, "crop_size": {"shortest_edge": 16}},
        {**CLIP, "crop_size": None},
    ],
)
def test_what_is_not_known_is_told(tmp_path, told):
    with pytest.raises(InputError, match="which nearid does not support"):
        read(tmp_path, told)


def test_what_makes_no_difference_passes(tmp_path):
    more = {"rescale_offset": False, "do_pad": None, "processor_class": "X", "data_format": "channels_first"}
    assert read(tmp_path, {**VIT, **more, "_valid_processor_keys": ["images"]}) == read(tmp_path, VIT)
    older = {**VIT, "image_processor_type": None, "feature_extractor_type": "ViTFeatureExtractor"}
    assert read(tmp_path, older) == read(tmp_path, VIT)


def slow(name):
    """The processor that works with Pillow, as nearid does; its name has changed over the versions."""
    import transformers

    return getattr(transformers, f"{name}Pil", None) or getattr(transformers, name)


@pytest.fixture(scope="module")
def picture():
    return Image.fromarray(np.random.default_rng(0).integers(0, 256, (300, 400, 3), dtype=np.uint8))


def assert_equal(found, processor, picture):
    pixels = torch.from_numpy(found.shaping(picture).copy())[None]
    ours = Preprocess.of(found.scale, found.mean, found.std, None)(pixels, torch.float32)[0].numpy()
    np.testing.assert_allclose(ours, processor(picture, return_tensors="np")["pixel_values"][0], atol=1e-5)


def test_every_processor_of_transformers_is_equal_or_refused(tmp_path, picture):
    transformers = pytest.importorskip("transformers")
    equal, refused = set(), set()
    for name in (name for name in dir(transformers) if name.endswith("ImageProcessor")):
        try:
            processor = slow(name)()
        except Exception:  # no torchvision, or values that only a model has
            continue
        told = {**processor.to_dict(), "image_processor_type": name}
        try:
            found = read(tmp_path, json.dumps(told, default=str))
        except InputError:
            refused.add(name.removesuffix("ImageProcessor"))
        else:
            assert_equal(found, processor, picture)
            equal.add(name.removesuffix("ImageProcessor"))
    assert equal == set(KNOWN) and {"MobileViT", "EfficientNet", "Levit", "Perceiver", "TextNet"} <= refused


@pytest.mark.parametrize("kind", KNOWN)
@pytest.mark.parametrize("size", [56, {"height": 40, "width": 50}, {"shortest_edge": 56}, {"shortest_edge": 384}])
@pytest.mark.parametrize("more", [{}, {"do_center_crop": True}, {"do_resize": False, "do_rescale": False}])
def test_what_a_configuration_leaves_out_is_as_in_transformers(tmp_path, picture, kind, size, more):
    pytest.importorskip("transformers")
    colours = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}
    told = {"image_processor_type": f"{kind}ImageProcessor", "size": size, "crop_size": 32, **colours, **more}
    if kind == "ConvNext" and size == {"height": 40, "width": 50} and "do_resize" not in more:
        # Of which transformers makes nothing, either.
        with pytest.raises(InputError, match="the size"):
            read(tmp_path, told)
        return
    found = read(tmp_path, told)
    assert_equal(found, slow(told["image_processor_type"]).from_pretrained(tmp_path), picture)


def test_models_without_one(tmp_path):
    assert open_processor(tmp_path) is None and open_processor(torch.nn.Linear(1, 1)) is None
    assert open_processor("package.module:make") is None and open_processor("weights.pt") is None
