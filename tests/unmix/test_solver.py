"""The solver on an oracle held in memory: both phases, the same stationary points."""

import numpy as np
import pytest

from nearid.groups.fits import polar
from nearid.unmix import solver
from nearid.unmix.contrast import CONTRASTS


def oracle(z):
    def at(rotation, with_values):
        y = z @ rotation.T
        found = CONTRASTS["logcosh"].evaluate(y.copy(), True)
        return solver.State(rotation, found.g.T @ y / len(z), found.slopes / len(z), found.values / len(z))

    return at


@pytest.fixture
def white(rng):
    s = np.hstack([rng.laplace(size=(5000, 3)), rng.uniform(-1, 1, size=(5000, 3))])
    s = s - s.mean(axis=0)
    values, vectors = np.linalg.eigh(s.T @ s / len(s))
    return s @ (vectors / np.sqrt(values)), s


@pytest.mark.parametrize("slow", [0.8, -1.0])
def test_both_phases_find_the_sources(white, monkeypatch, slow):
    # With a negative bar any progress counts as slow: L-BFGS takes over as soon as signs have settled.
    monkeypatch.setattr(solver, "SLOW", slow)
    monkeypatch.setattr(solver, "SETTLED", 1)
    monkeypatch.setattr(solver, "FALLEN", 2.0)
    z, s = white
    start = polar(np.random.default_rng(0).normal(size=(6, 6)))
    found = solver.solve(oracle(z), start, tol=1e-7, max_passes=300, n=len(z))
    assert found.converged and found.gradients[-1] <= 1e-7
    rho = np.abs(np.corrcoef(s.T, (z @ found.state.rotation.T).T)[:6, 6:])
    assert rho.max(axis=0).min() > 0.99
    np.testing.assert_allclose(found.state.rotation @ found.state.rotation.T, np.eye(6), atol=1e-9)


def test_the_gradient_is_the_derivative_along_rotations(white, rng):
    z, _ = white
    at, signs = oracle(z), np.array([1.0, 1, 1, -1, -1, -1])
    state = at(polar(rng.normal(size=(6, 6))), True)
    a = rng.normal(size=(6, 6))
    skew, h = a - a.T, 1e-5
    there, back = (at(solver._cayley(t * skew) @ state.rotation, True) for t in (h, -h))
    slope = (signs @ there.values - signs @ back.values) / (2 * h)
    assert slope == pytest.approx(np.sum(state.gradient(signs) * skew) / 2, rel=1e-5)
