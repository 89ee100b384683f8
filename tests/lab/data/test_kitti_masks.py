import numpy as np
import pytest

from canonical_files import write_kitti
from nearid.base.errors import InputError
from nearid.lab.data.load import load


@pytest.mark.parametrize("protocol", [3, 4])
def test_films_follow_each_other(home, rng, protocol):
    films, latents = write_kitti(home("kitti-masks"), rng, protocol=protocol)
    found = load("kitti-masks")
    np.testing.assert_array_equal(found.images.read()[..., 0], np.concatenate(films) * 255)
    np.testing.assert_allclose(found.table, np.concatenate(latents))
    np.testing.assert_array_equal(found.sequence, [0, 0, 0, 1, 1, 1, 1, 1, 2, 2])
    assert set(found.kinds.values()) == {"continuous"}
    with pytest.raises(InputError, match="no levels"):
        _ = found.codes


def test_odd_content_is_refused(home, rng):
    import pickle

    folder = home("kitti-masks")
    film, z = np.zeros((2, 4, 4), bool), np.zeros((2, 3), np.float32)
    for held, message in (
        ({"pedestrians": [film]}, "does not contain"),
        ([film], "does not contain"),
        ({"pedestrians": [film], "pedestrians_latents": [z[:1]]}, "do not match"),
        ({"pedestrians": [film.astype(float)], "pedestrians_latents": [z]}, "do not match"),
        ({"pedestrians": [], "pedestrians_latents": []}, "do not match"),
        ({"pedestrians": [film], "pedestrians_latents": [z * np.nan]}, "finite"),
        ({"pedestrians": film, "pedestrians_latents": z}, "do not match"),
        ({"pedestrians": 3, "pedestrians_latents": None}, "do not match"),
        ({"pedestrians": [3], "pedestrians_latents": ["x"]}, "do not match"),
        (
            {"pedestrians": [film, film[:, :3]], "pedestrians_latents": [z, z]},
            r"films of \(3, 4\) and of \(4, 4\) pixels",
        ),
    ):
        (folder / "kitti_peds_v2.pickle").write_bytes(pickle.dumps(held, protocol=4))
        with pytest.raises(InputError, match=message):
            load("kitti-masks")


def test_memory_is_asked_for_before_films_are_joined(home, rng, monkeypatch):
    import pickle

    film, z = np.zeros((2, 64, 64), bool), np.zeros((2, 3), np.float32)
    held = {"pedestrians": [film] * 1000, "pedestrians_latents": [z] * 1000}
    path = home("kitti-masks") / "kitti_peds_v2.pickle"
    path.write_bytes(pickle.dumps(held, protocol=4))
    assert path.stat().st_size < 100_000
    monkeypatch.setattr("nearid.base.limits.available_memory", lambda: 1_000_000)
    with pytest.raises(InputError, match=r"needs 8\.19 MB of memory, but 1 MB are available"):
        load("kitti-masks")
