import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearid.base import limits as memory
from nearid.base.errors import InputError
from nearid.lab.data.images import ArrayImages, Images, ResizedImages, area_weights


class Counted(Images):
    """Images whose values tell their place, and that remember what was read."""

    window = 10

    def __init__(self, n=100):
        super().__init__("counted", (n, 1, 2, 1), np.dtype(np.uint8))
        self.reads = []

    def _read(self, start, stop):
        self.reads.append((start, stop))
        return np.repeat(np.arange(start, stop, dtype=np.uint8), 2).reshape(-1, 1, 2, 1)


@given(st.lists(st.integers(0, 99), max_size=40))
def test_take_gives_each_in_its_place_and_reads_a_window_once(wanted):
    images = Counted()
    taken = images.take(np.array(wanted, dtype=int))
    np.testing.assert_array_equal(taken[:, 0, 1, 0], wanted)
    assert len(images.reads) == len({at // 10 for at in wanted})


def test_places_that_do_not_exist():
    for images in (Counted(), ArrayImages("a", np.zeros((100, 2, 2), np.uint8))):
        for wanted in ([-1], [100], [3, 100]):
            with pytest.raises(IndexError):
                images.take(np.array(wanted))
    with pytest.raises(IndexError):
        Counted().read(5, 101)
    with pytest.raises(IndexError):
        Counted().take(np.array([0.5]))


def test_blocks_are_all_images_in_order(monkeypatch):
    monkeypatch.setattr("nearid.lab.data.images.BLOCK", 14)
    images = Counted()
    blocks = list(images.blocks())
    assert {len(block) for block in blocks[:-1]} == {7}
    np.testing.assert_array_equal(np.concatenate(blocks)[:, 0, 0, 0], np.arange(100))


def test_more_than_fits_is_refused_before_it_is_read(monkeypatch):
    monkeypatch.setattr("nearid.lab.data.images.BLOCK", 14)
    monkeypatch.setattr(memory, "available_memory", lambda: 100)
    images = Counted()
    with pytest.raises(InputError, match="100 images of counted needs 200 bytes"):
        images.read()
    assert images.reads == []


def test_shapes_and_types_of_images():
    with pytest.raises(InputError, match="shape"):
        ArrayImages("a", np.zeros((2, 3), np.uint8))
    with pytest.raises(InputError, match="float64"):
        ArrayImages("a", np.zeros((2, 3, 3)))


@given(st.integers(1, 20), st.integers(1, 20))
def test_weights_are_the_mean_over_the_area(old, new):
    # Brute force: both sizes divide a finer grid, on which a mean is a mean of equal cells.
    weights = area_weights(old, new)
    fine = np.repeat(np.eye(old), new, axis=0).reshape(new, old, old).mean(axis=1)
    np.testing.assert_allclose(weights, fine, atol=1e-6)


def test_resized_images(rng):
    pixels = rng.integers(0, 256, (5, 8, 12, 3), dtype=np.uint8)
    small = ResizedImages(ArrayImages("a", pixels), 4)
    expected = np.rint(pixels.reshape(5, 4, 2, 4, 3, 3).astype(float).mean(axis=(2, 4)))
    assert small.dtype == np.uint8 and small.shape == (5, 4, 4, 3)
    assert np.abs(small.read() - expected).max() <= 1  # a half may round either way in single precision
    np.testing.assert_array_equal(small.take(np.array([3, 1])), small.read()[[3, 1]])
    with pytest.raises(InputError, match="at least 1"):
        ResizedImages(ArrayImages("a", pixels), 0)
