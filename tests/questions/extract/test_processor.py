"""Sizes and colours of a model's image processor, beside what transformers makes of the same pictures."""

import json

import numpy as np
import pytest
import torch

from nearid import InputError, extract
from nearid.questions.extract.processor import open_processor

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
    "told", ["{", "[]", {**VIT, "size": {"longest_edge": 9}}, {**VIT, "do_pad": True}, {**VIT, "resample": 9}]
)
def test_what_is_not_known_is_told(tmp_path, told):
    with pytest.raises(InputError, match="which nearid does not know"):
        read(tmp_path, told)


def test_models_without_one(tmp_path):
    assert open_processor(tmp_path) is None and open_processor(torch.nn.Linear(1, 1)) is None
    assert open_processor("package.module:make") is None and open_processor("weights.pt") is None
