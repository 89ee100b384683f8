import zipfile

import numpy as np
import pytest

from canonical_files import write_dsprites
from nearid.base.errors import InputError
from nearid.lab.data.dsprites import FACTORS, FILE
from nearid.lab.data.load import load


def test_images_and_factors(home, rng):
    imgs, classes = write_dsprites(home("dsprites"), rng)
    found = load("dsprites")
    assert found.images.shape == (30, 64, 64, 1) and found.images.dtype == np.uint8
    np.testing.assert_array_equal(found.images.read()[..., 0], imgs * 255)
    np.testing.assert_array_equal(found.codes, classes[:, 1:])
    assert [f.name for f in found.factors] == ["shape", "scale", "orientation", "x", "y"]


def test_the_pickled_metadata_is_never_loaded(home, rng):
    # Unpickling it would fail the test; see `write_dsprites`.
    write_dsprites(home("dsprites"), rng)
    load("dsprites").images.take(np.array([29, 0, 3]))


def test_kinds_and_angles(home, rng):
    _, classes = write_dsprites(home("dsprites"), rng)
    found = load("dsprites")
    assert found.kinds == {
        "shape": "categorical",
        "scale": "integer",
        "orientation": "circular",
        "x": "integer",
        "y": "integer",
    }
    # The source's own values: 40 from 0 to 2 pi, both included.
    assert FACTORS[2].levels[0] == 0 and FACTORS[2].levels[-1] == pytest.approx(2 * np.pi)
    np.testing.assert_allclose(found.columns["orientation"], classes[:, 3] * 2 * np.pi / 39)


def test_labels_that_do_not_fit_are_refused(home, rng):
    folder = home("dsprites")
    for classes, message in (
        (np.zeros((3, 6), int), "3"),
        (np.zeros((2, 5), int), "six"),
        (np.full((2, 6), 3), "shape"),
        (np.zeros((2, 6)), "six"),
    ):
        np.savez(folder / FILE, imgs=np.zeros((2, 64, 64), np.uint8), latents_classes=classes)
        with pytest.raises(InputError, match=message):
            load("dsprites")


def test_a_header_that_promises_more_is_refused_before_allocating(home):
    folder = home("dsprites")
    with zipfile.ZipFile(folder / FILE, "w") as archive:
        with archive.open("latents_classes.npy", "w") as file:
            np.lib.format.write_array(file, np.zeros((2, 6), int))
        with archive.open("imgs.npy", "w") as file:
            np.lib.format.write_array_header_1_0(
                file, {"descr": "|u1", "fortran_order": False, "shape": (10**9, 64, 64)}
            )
            file.write(b"x" * 100)
    with pytest.raises(InputError, match="declares the shape"):
        load("dsprites")


def test_a_missing_member_and_a_truncated_file(home, rng):
    folder = home("dsprites")
    np.savez(folder / FILE, latents_classes=np.zeros((2, 6), int))
    with pytest.raises(InputError, match="nothing named 'imgs'"):
        load("dsprites")
    write_dsprites(folder, rng)
    whole = (folder / FILE).read_bytes()
    (folder / FILE).write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="not a whole"):
        load("dsprites")
