"""Checkpoints on disk: exact round trips, written no more often than needed, refused for anything else."""

import json
import os
import pickle

import numpy as np
import pytest
from safetensors.numpy import load_file, save

import nearid.questions.unmix.checkpoint as module
from nearid import InputError
from nearid.ica.solver import Checkpoint
from nearid.questions.unmix.checkpoint import Keeper

IDENTITY = {
    "input": {"shape": [500, 4], "dtype": "float32", "digest": "0123456789abcdef"},
    "options": {"n_components": None, "whiten": True, "contrast": "logcosh", "dtype": None, "random_state": 0},
}


@pytest.fixture
def point(rng):
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    return Checkpoint(turn, np.array([1.0, -1.0, 1.0]), [0.5, 0.25, 0.1], "fixed point")


@pytest.fixture
def keeper(tmp_path):
    return Keeper(tmp_path, IDENTITY)


def test_a_checkpoint_comes_back_exactly(keeper, point, tmp_path):
    assert keeper.read() is None
    keeper.keep(point)
    found = Keeper(tmp_path, IDENTITY).read()
    np.testing.assert_array_equal(found.rotation, point.rotation)
    np.testing.assert_array_equal(found.signs, point.signs)
    assert found.gradients == point.gradients and found.stage == point.stage
    assert os.listdir(tmp_path) == ["checkpoint.safetensors"]
    keeper.remove()
    assert os.listdir(tmp_path) == []


def test_fast_passes_are_not_all_written_but_the_last_can_be(keeper, point, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    seen = []
    for passes, now in enumerate((0.0, 0.1, 0.5, 1.2, 1.3), start=1):
        clock[0] = now
        keeper.keep(Checkpoint(point.rotation, point.signs, [0.5] * passes, point.stage))
        seen.append(len(keeper.read().gradients))
    assert seen == [1, 1, 1, 4, 4]
    keeper.flush()
    assert len(keeper.read().gradients) == 5


@pytest.mark.parametrize(
    ("part", "name", "value", "words"),
    [
        ("input", "digest", "fedcba9876543210", "input digest was '0123456789abcdef'"),
        ("input", "shape", [501, 4], r"input shape was \[500, 4\], now \[501, 4\]"),
        ("options", "contrast", "cube", "options contrast was 'logcosh', now 'cube'"),
        ("options", "random_state", 1, "options random_state was 0, now 1"),
        ("options", "whiten", False, "options whiten was True, now False"),
    ],
)
def test_another_fit_is_refused(keeper, point, tmp_path, part, name, value, words):
    keeper.keep(point)
    other = {**IDENTITY, part: {**IDENTITY[part], name: value}}
    with pytest.raises(InputError, match=f"unfinished fit of something else: {words}.*--restart"):
        Keeper(tmp_path, other).read()


def rewrite(keeper, change=lambda tensors: None, **metadata):
    """Write the checkpoint again with other numbers or texts."""
    tensors = load_file(keeper.path)
    change(tensors)
    told = {"nearid_checkpoint": "1", "identity": json.dumps(IDENTITY), "stage": "fixed point"}
    keeper.path.write_bytes(save(tensors, {**told, **metadata}))


def spoil(tensors):
    tensors["gradients"][1] = np.inf


def shear(tensors):
    tensors["rotation"][0] *= 1.5


def dim(tensors):
    tensors["signs"][0] = 0


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda k: k.path.write_bytes(k.path.read_bytes()[:50]), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: k.path.write_bytes(k.path.read_bytes()[:-8]), "not a whole safetensors file"),
        (lambda k: k.path.write_bytes(b""), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: k.path.write_bytes(pickle.dumps(os.system)), "not a checkpoint of nearid unmix, or it is damaged"),
        (lambda k: os.truncate(k.path, 1 << 40), "truncated, or another file"),
        (lambda k: rewrite(k, nearid_checkpoint="2"), "not a checkpoint that this nearid can read"),
        (lambda k: rewrite(k, stage="coffee"), "not a checkpoint that this nearid can read"),
        (lambda k: rewrite(k, identity="[]"), "does not say of what"),
        (lambda k: rewrite(k, identity="{"), "does not say of what"),
        (lambda k: rewrite(k, lambda t: t.update(signs=np.ones(2))), "do not fit together"),
        (lambda k: rewrite(k, lambda t: t.pop("signs")), "do not fit together"),
        (lambda k: rewrite(k, lambda t: t.update(rotation=np.eye(5), signs=np.ones(5))), "holds no rotation"),
        (lambda k: rewrite(k, lambda t: t.update(rotation=np.full((3, 3), 1e300))), "holds no rotation"),
        (lambda k: rewrite(k, spoil), "NaN or infinity in gradients"),
        (lambda k: rewrite(k, shear), "holds no rotation"),
        (lambda k: rewrite(k, dim), "holds no rotation"),
    ],
)
def test_damaged_checkpoints_are_told(keeper, point, damage, words):
    keeper.keep(point)
    damage(keeper)
    with pytest.raises(InputError, match=words):
        keeper.read()
