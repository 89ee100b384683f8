import gzip
import struct

import numpy as np
import pytest

from canonical_files import write_norb
from nearid.base.errors import InputError
from nearid.lab.data.load import load
from nearid.lab.data.smallnorb import STEMS


def test_first_camera_and_labels(home, rng):
    held = write_norb(home("smallnorb"), rng)
    found = load("smallnorb")
    np.testing.assert_array_equal(found.images.read()[..., 0], np.concatenate([held[s][0][:, 0] for s in held]))
    category, info = (np.concatenate([held[s][k] for s in held]) for k in (1, 2))
    np.testing.assert_array_equal(found.codes, np.column_stack([category, info // [1, 1, 2, 1]]))
    np.testing.assert_array_equal(found.columns["azimuth"], info[:, 2] * 10)


def test_splits(home, rng):
    held = write_norb(home("smallnorb"), rng)
    np.testing.assert_array_equal(load("smallnorb", split="test").images.read()[..., 0], held["test"][0][:, 0])
    with pytest.raises(InputError, match="train, test"):
        load("smallnorb", split="training")


@pytest.mark.parametrize(
    "data, message",
    [
        (struct.pack("<ii4i", 0x1E3D4C55, 4, 7, 2, 96, 96) + b"x" * 100, "fewer numbers"),
        (struct.pack("<ii4i", 0x1E3D4C55, 4, 1, 2, 1, 1) + b"xxx", "more numbers"),
        (struct.pack("<ii4i", 0x1E3D4C55, 4, 2**31 - 1, 2, 2**20, 2**20), "memory"),
        (struct.pack("<ii4i", 0x1E3D4C55, 4, -7, 2, 96, 96), "damaged"),
        (struct.pack("<ii4i", 0x1E3D4C51, 4, 7, 2, 96, 96), "does not begin"),
        (struct.pack("<ii3i", 0x1E3D4C55, 1, 7, 1, 1), "pairs of pictures"),
        (b"\1", "not a whole"),
    ],
)
def test_damage_is_told(home, rng, data, message):
    folder = home("smallnorb")
    write_norb(folder, rng)
    with gzip.open(folder / f"{STEMS['train']}-dat.mat.gz", "wb") as file:
        file.write(data)
    with pytest.raises(InputError, match=message):
        load("smallnorb", split="train")
