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
        (b"\x1f\x8b\x90", "no .Z file"),
        (b"\x1f\x9d\x90\xff\xff\xff", "is damaged"),
        (compress(bytes(100_000)), "holds more than 99999 bytes"),
    ],
)
def test_damage_and_bombs_are_told(home, monkeypatch, data, message):
    monkeypatch.setattr("nearid.lab.data.faces.MOST", 99_999)
    (home("faces") / "face_data.mat.Z").write_bytes(data)
    with pytest.raises(InputError, match=message):
        load("faces")


def test_without_gzip_there_is_a_sentence(home, monkeypatch, tmp_path):
    (home("faces") / "face_data.mat.Z").write_bytes(b"\x1f\x9d\x90")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="with the program gzip, which is not here"):
        load("faces")


def test_odd_files_are_refused(home, rng):
    folder = home("faces")
    ones = {"poses": np.zeros((2, 3)), "lights": np.zeros((1, 3))}
    for held, message in (
        ({"images": np.zeros((10, 3)), **ones}, "square"),
        ({"images": np.full((4, 3), 2.0), **ones}, "0 to 1"),
        ({"images": np.zeros((4, 4)), **ones}, "poses"),
        ({"pictures": np.zeros((4, 3)), **ones}, "no array 'images'"),
    ):
        savemat(folder / "face_data.mat", held)
        with pytest.raises(InputError, match=message):
            load("faces")
    (folder / "face_data.mat").write_bytes(b"MATLAB 5.0 MAT-file" + b" " * 200)
    with pytest.raises(InputError, match="MATLAB file"):
        load("faces")


def test_the_real_ones(real_data):
    if not (real_data / "isomap_faces").is_dir():
        pytest.skip(f"the faces are not in {real_data}")
    found = load("faces")
    assert found.images.shape == (698, 32, 32, 1) and found.table.shape == (698, 3)
    np.testing.assert_allclose(found.table.mean(axis=0), 0, atol=1e-6)
    # Upright: a face that turns moves its brightness across. Of transposed images it would move up and down.
    images = found.images.read()[..., 0].astype(float)
    weight = images.sum(axis=(1, 2))
    across = (images.sum(axis=1) @ np.arange(32)) / weight
    down = (images.sum(axis=2) @ np.arange(32)) / weight
    pan = found.table[:, 1]
    assert abs(np.corrcoef(across, pan)[0, 1]) > 2 * abs(np.corrcoef(down, pan)[0, 1])
