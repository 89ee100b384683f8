"""Pairs of MNIST autoencoders: what a cell trains on, that it is deterministic, and isometric at leak 1."""

import json

import numpy as np
import pytest

from canonical_files import write_idx
from nearid.base.errors import InputError
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import changed, settle
from nearid.lab.papers.nelson.mnist_autoencoders import MNIST_AUTOENCODERS, Parameters, cell, images, rows, scaled

torch = pytest.importorskip("torch", reason="the extra `train` is not installed")


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def digits(tmp_path, monkeypatch):
    """Files in the layout of MNIST: images on a manifold of few dimensions, as many of each digit."""
    folder = tmp_path / "data" / "mnist"
    folder.mkdir(parents=True)
    rng, held = np.random.default_rng(0), {}
    basis = np.eye(3)[np.arange(784) % 3].T
    for split, stem, n in (("train", "train", 400), ("test", "t10k", 600)):
        pictures = (255 * rng.random((n, 3)) @ basis).astype(np.uint8).reshape(n, 28, 28)
        labels = (np.arange(n) % 10).astype(np.uint8)
        write_idx(folder / f"{stem}-images-idx3-ubyte.gz", pictures)
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", labels)
        held[split] = pictures
    monkeypatch.setenv("NEARID_DATA", str(tmp_path / "data"))
    return held


SMOKE = settle(MNIST_AUTOENCODERS, "smoke")


def test_images_of_all_digits_or_of_one(digits):
    np.testing.assert_array_equal(images("train", None), digits["train"].reshape(400, 784))
    np.testing.assert_array_equal(images("test", 7), digits["test"][7::10].reshape(60, 784))
    assert scaled(np.array([0, 255], np.uint8)).tolist() == [0, 1] and scaled(np.zeros(1, np.uint8)).dtype == np.float32


def test_without_mnist_the_cell_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    with pytest.raises(InputError, match="nearid data fetch mnist"):
        cell(SMOKE, 0, tmp_path)


def test_a_cell_depends_on_its_parameters_and_seed_alone(digits, tmp_path_factory):
    p = changed(SMOKE, {"leak": 0.2, "steps": 10})
    first, again, other = (cell(p, seed, tmp_path_factory.mktemp("work")) for seed in (0, 0, 1))
    assert first == again and first["scores"]["rigid"] != other["scores"]["rigid"]
    json.dumps(first, allow_nan=False)
    s = first["scores"]
    assert 1 < s["lipschitz"] < s["lipschitz_max"] <= 0.2**-2 and s["lipschitz"] < s["lipschitz_exact"]
    assert s["linear"] <= s["rigid"] * 1.05 and s["rigid"] > 0 and s["reconstruction"] == max(first["views"]["errors"])


def test_linear_runs_find_the_same_subspace_up_to_a_rotation(digits, tmp_path):
    # Images of three dimensions: principal components are all there is to find, and the decoder is an isometry.
    p = changed(SMOKE, {"leak": 1.0, "steps": 150, "rate": 1e-2})
    s = cell(p, 0, tmp_path)["scores"]
    assert s["lipschitz_max"] == pytest.approx(1, abs=1e-5) and s["rigid"] < 0.02 < 0.2 < s["chance"]
    x = scaled(images("test", None))
    values = np.linalg.eigvalsh(x.T @ x / len(x))
    # Two components leave more.
    assert values[:-3].sum() < 784 * s["reconstruction"] < 0.5 * values[:-2].sum()


def test_rows_are_leaks_with_all_digits_and_with_one():
    made = rows(Parameters())
    assert [r.key for r in made[:2]] == ["leak-0", "leak-0.2"] and len(made) == 12
    assert [r.changes for r in made[5:7]] == [{"leak": 1.0, "one_digit": False}, {"leak": 0.0, "one_digit": True}]


@pytest.mark.parametrize(
    "wrong", [{"latents": 1}, {"leak": 1.5}, {"leaks": (0.0, -0.1, 1.0)}, {"reference": 0.3}, {"leaks": (1.0, 1.0)}]
)
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def test_the_smoke_preset_runs_with_figures(digits, tmp_path, inline):
    found = reproduce(MNIST_AUTOENCODERS, tmp_path / "out", preset="smoke", changes={"steps": 5})
    assert len(found.cells) == 12 and not found.failures
    assert len(MNIST_AUTOENCODERS.figures(found)) == 8 and "Fig. 2" in str(found)
    assert (tmp_path / "out" / "smoke,steps=5" / "report.html").exists()
