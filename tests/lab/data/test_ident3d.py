import numpy as np
import pytest

from canonical_files import write_ident3d
from nearid.base.errors import InputError
from nearid.lab.data.load import load


def test_box_latents(home, rng):
    held = write_ident3d(home("3dident"), rng)
    found = load("3dident")
    np.testing.assert_allclose(found.table, np.concatenate([held["train"][0], held["test"][0]]))
    assert set(found.kinds.values()) == {"continuous"} and len(found.factors) == 10
    # From both folders, without their alpha channel.
    some = np.array([23, 0, 12, 11])
    expected = np.concatenate([held["train"][1], held["test"][1]])[some][..., :3]
    np.testing.assert_array_equal(found.images.take(some), expected)


def test_one_split(home, rng):
    held = write_ident3d(home("3dident"), rng)
    np.testing.assert_array_equal(load("3dident", split="test").images.read(), held["test"][1][..., :3])


def test_latents_on_a_sphere_give_angles(home, rng):
    held = write_ident3d(home("3dident"), rng, columns=11)
    found = load("3dident", split="train")
    np.testing.assert_allclose(found.table, held["train"][0][:, :10] * 3)
    assert found.kinds["x"] == "continuous" and found.kinds["object_hue"] == "circular"
    assert found.periods["spotlight"] == pytest.approx(2 * np.pi)


def test_other_latents_are_refused(home, rng):
    write_ident3d(home("3dident"), rng, columns=9)
    with pytest.raises(InputError, match="10 or 11"):
        load("3dident")
