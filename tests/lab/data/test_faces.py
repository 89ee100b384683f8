import numpy as np
import pytest
from scipy.io import savemat

from canonical_files import compress
from nearid.base.errors import InputError
from nearid.lab.data.load import load


def write(folder, rng, side=8, n=5):
    faces, poses, lights = rng.random((n, side, side)), rng.normal(size=(2, n)), rng.normal(size=(1, n))
    # A column per face, itself by columns.
    images = faces.transpose(0, 2, 1).reshape(n, -1).T
    savemat(folder / "face_data.mat", {"images": images, "image_pcs": poses, "poses": poses, "lights": lights})
    return faces, np.concatenate([lights, poses]).T


@pytest.mark.parametrize("packed", [False, True])
def test_the_original(home, rng, packed):
    folder = home("faces")
    faces, factors = write(folder, rng)
    if packed:
        mat = folder / "face_data.mat"
        (folder / "face_data.mat.Z").write_bytes(compress(mat.read_bytes()))
        mat.unlink()
    found = load("faces")
    np.testing.assert_allclose(found.images.read()[..., 0], faces, rtol=1e-6)
    np.testing.assert_allclose(found.table, factors)
    assert [f.name for f in found.factors] == ["light", "pan", "tilt"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x1f\x8b\x90", r"not a \.Z file"),
        (b"\x1f\x9d\x90\xff\xff\xff", "is damaged"),
        (compress(bytes(100_000)), "contains more than 99999 bytes"),
    ],
)
def test_damage_and_bombs_are_told(home, monkeypatch, data, message):
    monkeypatch.setattr("nearid.lab.data.faces.MOST", 99_999)
    (home("faces") / "face_data.mat.Z").write_bytes(data)
    with pytest.raises(InputError, match=message):
        load("faces")
