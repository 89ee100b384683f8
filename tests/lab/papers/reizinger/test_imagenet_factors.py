"""Factors in features of known decodability: what is decoded, which rows belong together, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages
from nearid.lab.framework.claims import Status
from nearid.lab.framework.experiment import experiment
from nearid.lab.framework.run import plan, reproduce
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.reizinger import imagenet_factors
from nearid.lab.papers.reizinger.imagenet_factors import KINDS, Parameters, cell, features_of, ready, rows

E = experiment("imagenet-factors")
FACES, OBJECTS, POSES = 150, 6, 36
WIDTH = 12


def known(columns, rng, noise=0.05):
    """Features in which each column has a direction of its own, at right angles to the others."""
    standard = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    return standard @ np.linalg.qr(rng.normal(size=(WIDTH, columns.shape[1])))[0].T + noise * rng.normal(
        size=(len(columns), WIDTH)
    )


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file of features, and small images in the place of the faces and of COIL-20."""
    rng = np.random.default_rng(0)
    table = rng.uniform(-1, 1, (FACES, 3))
    # COIL-20's own order is by object and pose; the file has another one.
    objects, degrees = (a.ravel() for a in np.indices((OBJECTS, POSES)))
    shuffled = rng.permutation(OBJECTS * POSES)
    objects, degrees = objects[shuffled] + 1, 10 * degrees[shuffled]
    angle = np.radians(degrees)
    shown = np.column_stack([np.cos(angle), np.sin(angle), np.eye(OBJECTS)[objects - 1]])
    held = {"coil_object": objects.astype(np.int16), "coil_degrees": degrees.astype(np.int16)}
    for name in ("lite0", "lite1"):
        held[f"faces_{name}"], held[f"coil_{name}"] = known(table, rng), known(shown, rng)
    held["faces_untrained"], held["coil_untrained"] = (
        rng.normal(size=(FACES, WIDTH)),
        rng.normal(size=(len(shown), WIDTH)),
    )
    np.savez(tmp_path / "features.npz", **{k: v.astype(np.float16) if v.dtype == float else v for k, v in held.items()})

    def load(name, size=8):
        names = ("light", "pan", "tilt") if name == "faces" else ("object", "pose")
        # A picture of COIL-20 shows its place.
        n = FACES if name == "faces" else 20 * 72
        pixels = (
            rng.random((n, size, size)) if name == "faces" else np.ones((n, size, size)) * np.arange(n)[:, None, None]
        )
        factors = tuple(FactorInfo(n, "continuous") for n in names)
        truth = table if name == "faces" else np.zeros((n, 2))
        return LabelledImages(name, ArrayImages(name, pixels.astype(np.float32)), factors, truth)

    monkeypatch.setattr("nearid.lab.data.load.load", load)
    monkeypatch.setattr(imagenet_factors, "locate", lambda dataset: tmp_path)
    return str(tmp_path / "features.npz")


def test_what_is_linear_is_decoded_and_what_is_not_is_not(files, tmp_path, inline):
    result = reproduce(E, tmp_path / "out", preset="smoke", parameters={"features": files})
    assert not result.failures and len(result.rows) == 4 * len(KINDS)
    for row, factor in (("faces", "tilt"), ("coil", "pose"), ("coil", "object")):
        scores = {name: result.estimate(f"{row}-{name}", factor).value for name in ("lite0", "lite1", "untrained")}
        assert min(scores["lite0"], scores["lite1"]) > 0.95 > 0.2 > scores["untrained"]
    # The angle is the same on objects that were never seen, as the features say nothing else of it.
    assert result.estimate("coil-objects-lite0", "pose").value > 0.9
    assert (
        result.estimate("faces-lite0", "linear").value > 0.9 > 0.2 > result.estimate("faces-untrained", "linear").value
    )
    assert [f.title.partition(":")[0] for f in E.figures(result)] == [
        "faces",
        "COIL-20",
        "COIL-20, whole objects held out",
    ]
    judged = replace(result, preset="cpu")
    statuses = [o.status for claim, o in judged.outcomes if not claim.late]
    # Directions of objects that were not seen are mapped by no linear map.
    assert statuses[:-1] == [Status.REPRODUCED] * 7 and statuses[-1] is not Status.NOT_REPRODUCED
    assert next(o.status for claim, o in judged.outcomes if claim.late) is Status.REPRODUCED
    drawn = E.section.figure(result)
    assert drawn.rows[0] == "faces: light" and list(drawn.groups)[-1] == "pixels"
    assert drawn.groups["pixels"][0] == result.estimate("faces-pixels", "light")


def test_a_network_that_is_no_better_fails_the_claims(files, tmp_path, inline):
    options = {"features": files, "trained": "lite0,untrained", "untrained": "lite1"}
    result = replace(reproduce(E, tmp_path / "out", preset="smoke", parameters=options), preset="cpu")
    assert Status.REPRODUCED not in {o.status for claim, o in result.outcomes if not claim.late}


def test_pixels_have_the_order_of_the_file(files):
    p = Parameters(features=files, side=8)
    held = np.load(files)
    places = (held["coil_object"].astype(int) - 1) * 72 + held["coil_degrees"] // 5
    np.testing.assert_array_equal(features_of(p, "coil", "pixels")[:, 0], places)


def test_a_cell_is_of_the_contents_of_its_file(files, tmp_path):
    p = parameters_for(E, "smoke", {"features": files})
    names = [c.name for c in plan(E, tmp_path, preset="smoke", parameters={"features": files}).cells]
    held = dict(np.load(files))
    np.savez(files, **(held | {"faces_lite0": held["faces_lite0"] + 1}))
    assert not set(names) & {c.name for c in plan(E, tmp_path, preset="smoke", parameters={"features": files}).cells}
    assert rows(p)[0].changes["contents"]
    scores = cell(changed(p, rows(p)[0].changes), 0, tmp_path)["scores"]
    assert set(scores) == {"light", "pan", "tilt", "linear"}


def test_what_is_missing_is_named(files, tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"has no array faces_lite2. Its arrays are .*faces_lite0"):
        ready(Parameters(features=files, trained="lite0,lite2"))
    with pytest.raises(InputError, match="at least 2 networks"):
        ready(Parameters(features=files, trained="lite0"))
    (tmp_path / "text.npz").write_text("no arrays")
    with pytest.raises(InputError, match=r"cannot be read as a file of arrays"):
        ready(Parameters(features=str(tmp_path / "text.npz")))
    monkeypatch.setenv("NEARID_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"needs features of the faces .* NEARID_DATA .* --set features=FILE.npz"):
        reproduce(E, tmp_path / "out", preset="smoke")
