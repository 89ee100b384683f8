import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.load import load
from nearid.lab.data.mpi3d import COMPLEX, REAL, TOY


def test_factors_follow_from_the_order(home):
    # Each pixel tells its place, so that images and factors can be compared.
    n = 460_800
    place = np.arange(n)
    images = np.stack([place % 251, place % 241, place % 239], axis=1).astype(np.uint8)[:, None, None]
    np.savez_compressed(home("mpi3d-complex") / COMPLEX.files[0].name, images=images)
    found = load("mpi3d-complex")
    assert found.images.shape == (n, 1, 1, 3)
    some = np.array([400_000, 5, 123_456])
    np.testing.assert_array_equal(found.images.take(some), images[some])
    # The source's own formula.
    weights = [115_200, 28_800, 14_400, 4_800, 1_600, 40, 1]
    np.testing.assert_array_equal(found.codes @ weights, place)
    assert [f.size for f in found.factors] == [4, 4, 2, 3, 3, 40, 40]


def test_sizes_of_the_others():
    for dataset in (TOY, REAL):
        assert dataset.images == 1_036_800 and [f.size for f in dataset.factors] == [6, 6, 2, 3, 3, 40, 40]


def test_another_number_of_images_is_refused(home):
    np.savez_compressed(home("mpi3d-toy") / "mpi3d_toy.npz", images=np.zeros((460_800, 1, 1, 3), np.uint8))
    with pytest.raises(InputError, match="460800 images, but all 1036800"):
        load("mpi3d-toy")
