"""Recovery by autoencoder and ICA: sources and process, an isometry is recovered, and claims decide."""

import numpy as np
import pytest

from nearid.lab.framework.cells import Finished, cells_of
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import changed, parameters_for
from nearid.lab.papers.nelson.bilipschitz_recovery import (
    BILIPSCHITZ_RECOVERY as E,
    Parameters,
    cell,
    constants,
    draw,
    process,
    rows,
    unmix,
)

torch = pytest.importorskip("torch", reason="the extra `lab` is not installed")
SMOKE = parameters_for(E, "smoke")


@pytest.mark.parametrize(("law", "kurtosis"), [("uniform", -1.2), ("laplace", 3.0), ("normal", 0.0)])
def test_sources_are_standard(law, kurtosis, rng):
    u = draw(Parameters(sources=law), 100_000, rng)
    np.testing.assert_allclose(np.cov(u.T), np.eye(4), atol=0.05)
    assert np.abs(u.mean(axis=0)).max() < 0.02
    assert (u**4).mean() - 3 == pytest.approx(kurtosis, abs=0.3)


def test_leaks_share_a_process_and_bound_its_constants(rng):
    made = [process(Parameters(leak=a), np.random.default_rng(3)) for a in (1.0, 0.5)]
    np.testing.assert_array_equal(made[0].weights[1], made[1].weights[1])
    z = draw(Parameters(), 200, rng)
    assert constants(made[0], z) == pytest.approx((1, 1))
    mean, maximum = constants(made[1], z)
    assert 1.05 < mean < maximum <= made[1].bound == 2


def test_components_are_fitted_to_other_rows(rng):
    u = draw(Parameters(), 4000, rng)
    mixed = u @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    found = unmix(mixed[2000:], mixed[:2000], 0)
    matrix = np.abs(np.corrcoef(found.T, u[:2000].T)[:4, 4:])
    assert matrix.max(axis=0).min() > 0.97


def test_an_isometry_is_recovered_by_ica(tmp_path):
    p = changed(SMOKE, {"steps": 500, "batch": 128, "held_out": 1000, "leak": 1.0})
    found = cell(p, 0, tmp_path)
    s = found["scores"]
    assert s["lipschitz_max"] == pytest.approx(1, abs=1e-5) and s["unexplained"] < 1
    assert s["rigid"] < 0.02 and s["mcc"] > 0.97 and s["matched"] < 0.05
    assert np.asarray(found["views"]["after"]).max(axis=0).min() > 0.95


def test_the_larger_constant_counts(tmp_path_factory):
    p = changed(SMOKE, {"steps": 10, "leak": 0.3})
    first = cell(p, 0, tmp_path_factory.mktemp("work"))
    s = first["scores"]
    assert s["lipschitz"] == max(s["process"], s["decoder"]) > 1.05


def test_rows_are_leaks_and_other_sources():
    made = {r.key: r.changes for r in rows(Parameters())}
    assert made["leak-0.2"] == {"leak": 0.2} and made["normal"] == {"leak": 1.0, "sources": "normal"}


def claims(**given):
    """What claims say of a result as the theorem has it, apart from scores given as functions of a cell's leak."""
    p = parameters_for(E, "cpu")
    finished = []
    for c in cells_of(E, p, range(3)):
        leak, normal = c.parameters.leak, c.parameters.sources == "normal"
        error = 0.01 + 0.1 * (1 - leak) + 0.001 * c.seed
        value = {"lipschitz": 2 - leak, "rigid": error, "matched": error, "mcc_before": 0.7}
        value["mcc"] = 0.7 if normal else 0.99
        value |= {k: f(leak) for k, f in given.items()}
        finished.append(Finished(c, {"scores": value}, 1.0, 1.0, {}))
    found = ExperimentResult(E, "cpu", p, range(3), finished, (), {})
    return [str(o.status) == "reproduced" for _, o in found.outcomes]


def test_claims_decide():
    assert claims() == [True] * 4
    assert claims(mcc=lambda a: 0.75) == [False, False, True, True]
    assert claims(mcc_before=lambda a: 0.95) == [True, False, True, True]
    assert claims(matched=lambda a: a) == [True, True, False, True]
    assert claims(rigid=lambda a: 0.1) == [True, True, False, True]
    assert claims(mcc=lambda a: 0.99) == [True, True, True, False]
