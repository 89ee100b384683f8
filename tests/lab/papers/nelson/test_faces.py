"""Faces: principal components and an autoencoder on pictures with known factors."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import parameters_for
from nearid.lab.papers.nelson.faces import FACES, Parameters, _principal, cell

E = FACES
NAMES = ("light", "pan", "tilt")


def test_ica_turns_principal_components_to_factors(faces, tmp_path):
    found = cell(Parameters(model="pca"), 0, tmp_path)
    s = found["scores"]
    assert s["r2"] == pytest.approx(1, abs=1e-4) == s["explained"]
    assert s["mcc_ica"] > 0.98 and s["mcc_ica"] > s["mcc"] and s["spearman_ica"] > 0.98
    assert s["mcc_ica"] == pytest.approx(np.mean([s[name] for name in NAMES]))
    v = found["views"]
    true, recovered = np.asarray(v["true"]), np.asarray(v["recovered"])
    # Columns are in the order of their factors.
    assert np.abs(np.diag(np.corrcoef(true.T, recovered.T)[:3, 3:])).min() > 0.98


def test_principal_components_lead_back():
    x = np.random.default_rng(0).uniform(size=(20, 1, 2, 2)).astype(np.float32)
    z, decode = _principal(x, 4)
    np.testing.assert_allclose(decode(z), x, atol=1e-6)
    np.testing.assert_allclose(z.T @ z / 20, np.eye(4), atol=1e-6)


def result(**changes):
    p = parameters_for(E, "cpu")
    scores = {"r2": 0.5, "mcc": 0.5, "mcc_ica": 0.5}
    like = {"ae": {"r2": 0.8, "mcc_ica": 0.7}, "ae-wide": {"r2": 0.8, "mcc_ica": 0.7}}
    told = [
        Finished(c, {"scores": scores | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in ExperimentResult(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    assert result() == ["reproduced", "reproduced"]
    assert result(ae={"r2": 0.4}) == ["not reproduced", "reproduced"]
    assert result(ae={"mcc_ica": 0.52}) == ["reproduced", "not reproduced"]
