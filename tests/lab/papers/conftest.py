"""Small files in the place of the data sets that experiments read, and one thread for torch."""

import sys

import numpy as np
import pytest

from canonical_files import write_ident3d, write_idx
from nearid.lab.data.base import FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages


@pytest.fixture(autouse=True)
def one_thread():
    """As cells run: numbers depend on how sums are split, and small networks are quicker so."""
    torch = sys.modules.get("torch")
    if torch is None:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def photographs(home, rng):
    """CIFAR-10 of a few images, each of one colour but for some noise: the top tells the bottom."""
    from nearid.lab.papers.roeder.cpc import images_of

    images_of.cache_clear()
    place = home("cifar10") / "cifar-10-batches-bin"
    place.mkdir()
    for name in (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"):
        n = 400 if name == "test_batch" else 100
        colours = rng.integers(0, 256, (n, 3, 1))
        planes = np.clip(colours + rng.normal(0, 10, (n, 3, 1024)), 0, 255).astype(np.uint8).reshape(n, -1)
        rows_ = np.column_stack([np.zeros(n, np.uint8), planes])
        (place / f"{name}.bin").write_bytes(rows_.tobytes())
    yield
    images_of.cache_clear()


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


@pytest.fixture
def faces(monkeypatch):
    """Pictures that are linear in three uniform factors of different sizes, in the place of the faces."""

    def load(name, size):
        rng = np.random.default_rng(0)
        table = rng.uniform(-1, 1, size=(300, 3))
        directions = np.linalg.qr(rng.normal(size=(size * size, 3)))[0].T * [[1.0], [0.99], [0.98]]
        pixels = (0.5 + size / 16 * table @ directions).astype(np.float32).reshape(-1, size, size)
        assert pixels.min() > 0 and pixels.max() < 1
        factors = tuple(FactorInfo(n, "continuous") for n in ("light", "pan", "tilt"))
        return LabelledImages(name, ArrayImages(name, pixels), factors, table)

    monkeypatch.setattr("nearid.lab.data.load.load", load)


def blocks(latents):
    """Pictures of 8 x 8 that show the ten latents: blocks of 4 x 4 pixels, three colours each."""
    levels = np.rint((latents + 1) * 127.5).astype(np.uint8)
    pixels = np.zeros((len(latents), 2, 2, 4), dtype=np.uint8)
    pixels[..., :3] = np.pad(levels, ((0, 0), (0, 2))).reshape(-1, 2, 2, 3)
    return pixels.repeat(4, axis=1).repeat(4, axis=2)


@pytest.fixture
def scenes(home, rng):
    """3DIdent of a few pictures that show their latents."""
    return write_ident3d(home("3dident"), rng, n=120, drawn=blocks)
