"""Stability of whitening and ICA: the Hessian by finite differences, the bounds on data that really moves."""

import warnings

import numpy as np
import pytest
from scipy.linalg import expm, inv, sqrtm

from nearid import ICA
from nearid.base.errors import InputError
from nearid.geometry.ica_stability import contrast_hessian, ica_stability
from nearid.ica.contrast import CONTRASTS


def sources(rng, n=4000, k=3):
    return np.column_stack([rng.laplace(size=n), rng.uniform(-2, 2, n), rng.standard_t(6, size=n)][:k])


def mixed(rng, n=4000):
    return sources(rng, n) @ rng.normal(size=(3, 3)) + 5


def fitted(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ICA(tol=1e-8, dtype="float64", **options).fit(x)


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube"])
def test_the_hessian_is_that_of_finite_differences(rng, contrast):
    x = mixed(rng)
    ica = fitted(x, contrast=contrast)
    y = (x - ica.mean_) @ ica.components_.T
    signs, values = np.sign(ica.kappa_), CONTRASTS[contrast].values

    def objective(angles):
        a = np.zeros((3, 3))
        a[np.triu_indices(3, 1)] = angles
        return float(values(y @ expm(a - a.T).T).mean(axis=0) @ signs)

    h, e = 1e-3, np.eye(3)

    def second(p, q):
        corners = [(1, 1, 1), (1, -1, -1), (-1, 1, -1), (-1, -1, 1)]
        return sum(sign * objective(h * (s * e[p] + t * e[q])) for s, t, sign in corners) / (4 * h * h)

    numeric = [[second(p, q) for q in range(3)] for p in range(3)]
    found = contrast_hessian(ica, y)
    np.testing.assert_allclose(found, numeric, atol=2e-3 * np.abs(found).max())
    # Its diagonal is the curvature that the fit tells of single pairs.
    pairs = list(zip(*np.triu_indices(3, 1), strict=True))
    for i, j, curvature in ica.diagnostics_.curvature:
        assert found[pairs.index((i, j)), pairs.index((i, j))] == pytest.approx(curvature, rel=1e-4)


def test_whitening_moves_no_more_than_its_factor(rng):
    x = mixed(rng, 1000)
    x -= x.mean(axis=0)
    found = ica_stability(fitted(x), x)
    assert found.smallest_eigenvalue == pytest.approx(np.linalg.eigvalsh(np.cov(x.T, bias=True))[0])
    assert found.radius == pytest.approx(np.linalg.norm(x, axis=1).max())
    for seed in range(5):
        e = np.random.default_rng(seed).normal(size=x.shape)
        e -= e.mean(axis=0)
        e *= 1e-3 / np.linalg.norm(e, axis=1).max()
        w, v = (np.real(inv(sqrtm(np.cov(r.T, bias=True)))) for r in (x, x + e))
        moved = np.linalg.norm(x @ w - (x + e) @ v, axis=1).max()
        assert moved <= found.whitening * 1e-3


def test_components_move_no_more_than_the_total(rng):
    x = mixed(rng, 1500)
    ica = fitted(x)
    found = ica_stability(ica, x)
    assert found.whole_hessian and found.curvature > 0 and found.total == pytest.approx(found.whitening * found.ica)
    e = rng.normal(size=x.shape)
    e *= 1e-4 / np.linalg.norm(e, axis=1).max()
    # The other run is seen through a linear map besides, which whitening undoes.
    y = (x + e) @ rng.normal(size=(3, 3))
    a, b = ica.transform(x), fitted(y).transform(y)
    alike = a.T @ b / len(a)
    b = b[:, np.abs(alike).argmax(axis=1)] * np.sign(alike[range(3), np.abs(alike).argmax(axis=1)])
    moved = np.linalg.norm(a - b, axis=1).max()
    assert 1e-6 < moved <= found.total * 1e-4


def test_a_flat_contrast_promises_nothing(rng):
    x = rng.normal(size=(2000, 2))
    ica = fitted(x)
    ica.kappa_ = -ica.kappa_
    found = ica_stability(ica, x)
    assert found.curvature <= 0 and found.ica == np.inf and found.total == np.inf


def test_what_the_theorem_does_not_cover_is_told(rng):
    x = mixed(rng, 500)
    for options in ({"n_components": 2}, {"whiten": False}):
        with pytest.raises(InputError, match="whitening and all components"):
            ica_stability(fitted(x, **options), x)


def test_rows_without_full_rank_are_told(rng):
    x = mixed(rng, 500)
    ica = fitted(x)
    flat = x.copy()
    flat[:, 2] = flat[:, 0] - flat[:, 1]
    for rows in (flat, x[:2], x[:3]):
        # As centred by the fit: few rows keep their distance from its mean.
        ica.mean_ = rows.mean(axis=0)
        with pytest.raises(InputError, match=f"covariance of {len(rows)} rows of 3 columns does not have full rank"):
            ica_stability(ica, rows)
