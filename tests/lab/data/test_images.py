"""X"""

import io
import os

import numpy as np
import pytest
from hypothesis import given, strategies as st
from PIL import Image

from canonical_files import picture, write_dsprites
from nearid.base import limits as memory
from nearid.base.errors import InputError
from nearid.lab.data.images import ArrayImages, Images, ResizedImages, area_weights, decode, unpacked
from nearid.lab.data.load import load


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


def test_a_picture_comes_as_it_is(rng):
    pixels = rng.integers(0, 256, (5, 4, 4), dtype=np.uint8)
    np.testing.assert_array_equal(decode(picture(pixels), "a.png", 3), pixels[..., :3])
    np.testing.assert_array_equal(decode(picture(pixels[..., 0]), "a.png", 1, (5, 4))[..., 0], pixels[..., 0])


@pytest.mark.parametrize("kind", ["EPS", "BMP", "TIFF", "GIF"])
def test_other_formats_are_refused(kind):
    file = io.BytesIO()
    Image.fromarray(np.zeros((4, 4), np.uint8)).save(file, kind)
    with pytest.raises(InputError, match=r"a\.png is not a whole picture"):
        decode(file.getvalue(), "a.png", 1)


def test_more_than_eight_bits_are_refused_rather_than_cut_off():
    with pytest.raises(InputError, match=r"a\.png is a picture of 16 bits, but 8 bits are expected"):
        decode(picture(np.full((4, 4), 1000, np.uint16)), "a.png", 1)


def test_another_size_is_refused_before_it_is_decoded():
    with pytest.raises(InputError, match=r"\(4, 4\) pixels, but \(5, 5\) are expected"):
        decode(picture(np.zeros((4, 4), np.uint8))[:-20], "a.png", 1, (5, 5))


def test_a_map_of_the_same_images_written_once(home, rng, tmp_path):
    imgs, _ = write_dsprites(home("dsprites"), rng)
    first = load("dsprites", unpack=True)
    assert isinstance(first.images, ArrayImages) and isinstance(first.images.array, np.memmap)
    np.testing.assert_array_equal(first.images.read()[..., 0], imgs * 255)
    files = list((tmp_path / "cache" / "nearid" / "data" / "dsprites").glob("*.npy"))
    assert len(files) == 1
    before = os.stat(files[0]).st_mtime_ns
    again = load("dsprites", unpack=True)
    assert os.stat(files[0]).st_mtime_ns == before
    np.testing.assert_array_equal(again.images.take(np.array([7, 0]))[..., 0], imgs[[7, 0]] * 255)


def test_another_file_of_the_same_name_is_unpacked_anew(home, rng):
    folder = home("dsprites")
    write_dsprites(folder, rng)
    load("dsprites", unpack=True)
    imgs, _ = write_dsprites(folder, rng)
    np.testing.assert_array_equal(load("dsprites", unpack=True).images.read()[..., 0], imgs * 255)


def test_a_smaller_size_is_unpacked_at_that_size(home, rng):
    imgs, _ = write_dsprites(home("dsprites"), rng)
    small = load("dsprites", size=32, unpack=True)
    assert small.images.shape == (30, 32, 32, 1)
    expected = np.rint(255.0 * imgs.reshape(30, 32, 2, 32, 2).mean(axis=(2, 4)))
    np.testing.assert_allclose(small.images.read()[..., 0], expected, atol=1)


def test_no_room_is_told_and_a_wrong_file_refused(tmp_path, monkeypatch, rng):
    images = ArrayImages("a", rng.integers(0, 256, (4, 3, 3), dtype=np.uint8))
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda path: type("U", (), {"free": 10})())
        with pytest.raises(InputError, match="a unpacked needs 36 bytes, but 10 bytes are free"):
            unpacked(images, tmp_path, "o")
    unpacked(images, tmp_path, "o")
    (path,) = tmp_path.glob("*.npy")
    np.save(path, np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="Delete the file"):
        unpacked(images, tmp_path, "o")
