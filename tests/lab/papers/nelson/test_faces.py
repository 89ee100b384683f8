"""Faces: principal components and an autoencoder on pictures with known factors."""

import json

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.data.base import FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages
from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import Result
from nearid.lab.framework.run import reproduce
from nearid.lab.framework.settings import settle
from nearid.lab.papers.nelson.faces import FACES, Parameters, _principal, cell

E = FACES
NAMES = ("light", "pan", "tilt")


@pytest.fixture
def faces(monkeypatch):
    """Pictures that are linear in three uniform factors of different sizes, in the place of the faces."""

    def load(name, size):
        rng = np.random.default_rng(0)
        table = rng.uniform(-1, 1, size=(300, 3))
        directions = np.linalg.qr(rng.normal(size=(size * size, 3)))[0].T * [[1.0], [0.99], [0.98]]
        pixels = (0.5 + size / 16 * table @ directions).astype(np.float32).reshape(-1, size, size)
        assert pixels.min() > 0 and pixels.max() < 1
        factors = tuple(FactorInfo(n, "continuous") for n in NAMES)
        return LabelledImages(name, ArrayImages(name, pixels), factors, table)

    monkeypatch.setattr("nearid.lab.data.load.load", load)


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


def test_an_autoencoder_learns_and_repeats_itself(faces, tmp_path):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    p = settle(E, "smoke", {"steps": 4})
    first, again, other = (cell(p, seed, tmp_path / name) for seed, name in ((0, "a"), (0, "b"), (1, "c")))
    assert first == again and first["scores"]["r2"] != other["scores"]["r2"]
    json.dumps(first, allow_nan=False)


def result(**changes):
    p = settle(E, "cpu")
    scores = {"r2": 0.5, "mcc": 0.5, "mcc_ica": 0.5}
    like = {"ae": {"r2": 0.8, "mcc_ica": 0.7}, "ae-wide": {"r2": 0.8, "mcc_ica": 0.7}}
    told = [
        Finished(c, {"scores": scores | like.get(c.row.key, {}) | changes.get(c.row.key, {})}, 1.0, 1.0, {})
        for c in cells_of(E, p, range(3))
    ]
    return [str(o.status) for _, o in Result(E, "cpu", p, range(3), told, (), {}).outcomes]


def test_claims_decide():
    assert result() == ["reproduced", "reproduced"]
    assert result(ae={"r2": 0.4}) == ["not reproduced", "reproduced"]
    assert result(ae={"mcc_ica": 0.52}) == ["reproduced", "not reproduced"]


@pytest.mark.parametrize("wrong", [{"latents": 0}, {"model": "vae"}])
def test_impossible_parameters_get_a_sentence(wrong):
    with pytest.raises(InputError, match=r"must be .*, not"):
        Parameters(**wrong)


def test_the_smoke_preset_runs_with_figures(faces, tmp_path, inline):
    pytest.importorskip("torch", reason="the extra `lab` is not installed")
    found = reproduce(E, tmp_path / "out", preset="smoke", seeds=1)
    assert len(found.cells) == 4 and not found.failures and len(E.figures(found)) == 16
