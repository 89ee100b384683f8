import os

import numpy as np
import pytest

from canonical_files import write_dsprites
from nearid.base.errors import InputError
from nearid.lab.data.images import ArrayImages
from nearid.lab.data.load import load
from nearid.lab.data.unpack import unpacked


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
        with pytest.raises(InputError, match="36 bytes unpacked, but 10 bytes are free"):
            unpacked(images, tmp_path, "o")
    unpacked(images, tmp_path, "o")
    (path,) = tmp_path.glob("*.npy")
    np.save(path, np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="Remove it"):
        unpacked(images, tmp_path, "o")
