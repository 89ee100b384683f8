import numpy as np
import pytest
from scipy.io import savemat

from canonical_files import write_cars3d
from nearid.base.errors import InputError
from nearid.lab.data.load import load


def test_images_and_factors(home, rng):
    stored = write_cars3d(home("cars3d"), rng)
    found = load("cars3d")
    assert found.images.shape == (5 * 96, 6, 5, 3)
    elevation, azimuth, car = found.codes.T
    np.testing.assert_array_equal(found.images.read(), stored[car, :, :, :, azimuth, elevation])
    # Across the border of two files, and in any order.
    np.testing.assert_array_equal(found.images.read(90, 200), found.images.read()[90:200])
    some = np.array([479, 96, 95, 3])
    np.testing.assert_array_equal(found.images.take(some), found.images.read()[some])
    np.testing.assert_array_equal(found.columns["azimuth"], azimuth * 15)


def test_every_car_is_a_class_of_its_own(home):
    folder = home("cars3d") / "data" / "cars"
    folder.mkdir(parents=True)
    for car in range(183):
        savemat(folder / f"car_{car}_mesh.mat", {"im": np.full((1, 1, 3, 24, 4), car, np.uint8)})
    found = load("cars3d")
    assert len(np.unique(found.codes[:, 2])) == 183
    # Without list.txt files are ordered by their numbers: car_10 after car_9.
    np.testing.assert_array_equal(found.images.read()[:, 0, 0, 0], found.codes[:, 2])
    # The trap: stored as fractions in single precision and truncated, a quarter of the classes falls together.
    fractions = (np.arange(183) / 182).astype(np.float32)
    assert len(np.unique((fractions.astype(float) * 182).astype(int))) == 138


def test_odd_files_are_refused(home, rng):
    folder = home("cars3d")
    write_cars3d(folder, rng)
    cars = folder / "data" / "cars"
    (cars / "list.txt").write_text("../../outside\n")
    with pytest.raises(InputError, match="not a file name in this folder"):
        load("cars3d")
    (cars / "list.txt").write_text("car_000_mesh\ncar_999_mesh\n")
    with pytest.raises(InputError, match="car_999_mesh"):
        load("cars3d")
    (cars / "list.txt").write_text("car_000_mesh\ncar_001_mesh\n")
    savemat(cars / "car_001_mesh.mat", {"im": np.zeros((2, 2, 3, 24, 4), np.uint8)})
    with pytest.raises(InputError, match=r"\(2, 2, 3, 24, 4\)"):
        load("cars3d").images.read()
    savemat(cars / "car_000_mesh.mat", {"im": np.zeros((2, 2, 3, 4, 24), np.uint8)})
    with pytest.raises(InputError, match="is expected"):
        load("cars3d")
