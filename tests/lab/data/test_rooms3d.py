import numpy as np
import pytest

from canonical_files import picture
from nearid.base.errors import InputError
from nearid.lab.data.base import grid
from nearid.lab.data.load import load
from nearid.lab.data.rooms3d import ISAAC3D, KITCHEN, LIVING_ROOM


def labels(factors):
    """Values from 0 to 1 in equal steps, all a little too small, as rounding may make them: truncation would fail."""
    steps = np.array([f.size - 1 for f in factors])
    return (grid(factors) / steps - 1e-6).astype(np.float32)


@pytest.fixture
def falcor(home, rng):
    folder = home("falcor3d") / "Falcor3D_down128"
    (folder / "images").mkdir(parents=True)
    with open(folder / "train-rec.labels", "wb") as file:
        np.save(file, labels(LIVING_ROOM))
    pixels = rng.integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
    for at, place in enumerate((0, 7, 233_279)):
        (folder / "images" / f"{place:06}.png").write_bytes(picture(pixels[at]))
    return folder, pixels


def test_pictures_by_number(falcor):
    _, pixels = falcor
    found = load("falcor3d")
    assert found.images.shape == (233_280, 16, 16, 3)
    np.testing.assert_array_equal(found.images.take(np.array([233_279, 0, 7])), pixels[[2, 0, 1]])
    np.testing.assert_array_equal(found.codes[-1], [4, 5, 5, 5, 5, 5, 5])
    # The home page's own formula.
    np.testing.assert_array_equal(found.codes @ [46656, 7776, 1296, 216, 36, 6, 1], np.arange(233_280))


def test_a_missing_or_odd_picture_is_told(falcor):
    folder, _ = falcor
    found = load("falcor3d")
    with pytest.raises(InputError, match=r"000003.png could not be read"):
        found.images.read(3, 4)
    (folder / "images" / "000003.png").write_bytes(picture(np.zeros((8, 16, 3), np.uint8)))
    with pytest.raises(InputError, match=r"\(8, 16\)"):
        found.images.read(3, 4)
    (folder / "images" / "000003.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match="not a whole picture"):
        found.images.read(3, 4)


def test_labels_in_another_order_are_refused(falcor):
    folder, _ = falcor
    with open(folder / "train-rec.labels", "wb") as file:
        np.save(file, labels(LIVING_ROOM)[:, ::-1])
    with pytest.raises(InputError, match="follow from its number"):
        load("falcor3d")


def test_isaac_has_the_order_of_its_labels():
    # The steps that the home page tells.
    np.testing.assert_array_equal(grid(KITCHEN)[[245_760, 30_720, 6_144, 1_536, 384, 96, 16, 4, 1]], np.eye(9))
    assert ISAAC3D.images == 737_280
