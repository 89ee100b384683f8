import h5py
import numpy as np
import pytest

from canonical_files import write_shapes3d
from nearid.base.errors import InputError
from nearid.lab.data.load import load


def test_images_and_factors(home, rng):
    images, codes = write_shapes3d(home("shapes3d"), rng)
    found = load("shapes3d")
    np.testing.assert_array_equal(found.images.read(), images)
    np.testing.assert_array_equal(found.codes, codes)
    some = np.array([39, 2, 2, 17])
    np.testing.assert_array_equal(found.images.take(some), images[some])
    np.testing.assert_allclose(found.columns["wall_hue"], codes[:, 1] / 10)
    assert found.periods == {"floor_hue": 1, "wall_hue": 1, "object_hue": 1}
    assert found.kinds["orientation"] == "integer"


def test_values_that_are_no_levels_are_refused(home, rng):
    folder = home("shapes3d")
    write_shapes3d(folder, rng)
    with h5py.File(folder / "3dshapes.h5", "r+") as file:
        file["labels"][3, 3] = 0.79
    with pytest.raises(InputError, match=r"0\.79 for 'scale' at row 3"):
        load("shapes3d")


def test_images_never_written_are_refused(home, rng):
    folder = home("shapes3d")
    with h5py.File(folder / "3dshapes.h5", "w") as file:
        file.create_dataset("images", (10, 64, 64, 3), "u1", chunks=(1, 64, 64, 3))
        file.create_dataset("labels", data=np.tile([0, 0, 0, 0.75, 0, -30], (10, 1)))
    with pytest.raises(InputError, match="0 of its 10 chunks"):
        load("shapes3d")


def test_labels_of_another_shape_are_refused(home):
    with h5py.File(home("shapes3d") / "3dshapes.h5", "w") as file:
        file["labels"] = np.zeros((10, 5))
    with pytest.raises(InputError, match=r"\(10, 5\)"):
        load("shapes3d")
