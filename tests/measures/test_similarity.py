"""CCA, SVCCA and CKA against textbook forms and oracles; honest on noise; invariant where they claim to be."""

import numpy as np
import pandas as pd
import pytest
from scipy.linalg import qr
from sklearn.cross_decomposition import CCA

from nearid import InputError, cca, compare, linear_cka, svcca


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def shared(rng, n=2000, d=5):
    """Two views with canonical correlations 1/(1 + s^2) for noise levels s."""
    common = rng.normal(size=(n, d))
    noise = np.linspace(0.1, 2, d)
    return common + noise * rng.normal(size=(n, d)), common + noise * rng.normal(size=(n, d)), 1 / (1 + noise**2)


def textbook_cca(x, y):
    """Singular values of Q_x^T Q_y (Bjorck & Golub 1973)."""
    qx, qy = (qr(z - z.mean(axis=0), mode="economic")[0] for z in (x, y))
    return np.linalg.svd(qx.T @ qy, compute_uv=False)


def unbiased_hsic(k, l):
    """Song et al. 2012, equation 5, on full kernel matrices."""
    n = len(k)
    k, l = k - np.diag(np.diag(k)), l - np.diag(np.diag(l))
    one = np.ones(n)
    mixed = (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2)) - 2 * (one @ k @ l @ one) / (n - 2)
    return (np.trace(k @ l) + mixed) / (n * (n - 3))


def test_in_sample_cca_is_the_textbooks(rng):
    x, y, _ = shared(rng)
    np.testing.assert_allclose(cca(x, y, folds=1).correlations, textbook_cca(x, y), atol=1e-10)


def test_in_sample_cca_agrees_with_scikit_learn(rng):
    x, y, _ = shared(rng, d=3)
    a, b = CCA(n_components=3, max_iter=5000, tol=1e-12).fit_transform(x, y)
    np.testing.assert_allclose(
        cca(x, y, folds=1).correlations, [np.corrcoef(a[:, k], b[:, k])[0, 1] for k in range(3)], atol=1e-5
    )


def test_held_out_cca_finds_the_true_correlations(rng):
    x, y, truth = shared(rng, n=20_000)
    np.testing.assert_allclose(cca(x, y).correlations, truth, atol=0.03)


def test_independent_rows_are_at_chance_although_in_sample_cca_is_one(rng):
    x, y = rng.normal(size=(500, 1000)), rng.normal(size=(500, 1000))
    assert cca(x, y, folds=1).value == pytest.approx(1, abs=1e-9)
    assert abs(cca(x, y).value) < 0.02
    assert abs(svcca(x, y).value) < 0.02
    assert linear_cka(x, y, debiased=False).value > 0.6
    assert abs(linear_cka(x, y).value) < 0.02


def test_cca_is_invariant_to_invertible_maps(rng):
    x, y, _ = shared(rng)
    moved = x @ (rng.normal(size=(5, 5)) + 3 * np.eye(5)) * 1e-6 + 100
    np.testing.assert_allclose(cca(moved, y).correlations, cca(x, y).correlations, atol=1e-8)


def test_cca_of_rank_deficient_sides_uses_their_rank(rng):
    x, y, _ = shared(rng)
    np.testing.assert_allclose(cca(np.hstack([x, x[:, :2]]), y).correlations, cca(x, y).correlations, atol=1e-8)


def test_svcca_is_cca_of_the_leading_components(rng):
    x, y, _ = shared(rng, d=6)
    x, y = x * [9, 7, 5, 1, 0.5, 0.1], y * [9, 7, 5, 1, 0.5, 0.1]

    def leading(z, k):
        u, s, _ = np.linalg.svd(z - z.mean(axis=0), full_matrices=False)
        return u[:, :k] * s[:k]

    assert svcca(x, y, k=3, folds=1).value == pytest.approx(np.mean(textbook_cca(leading(x, 3), leading(y, 3))))
    assert svcca(x, y, k=99).value == pytest.approx(cca(x, y).value)


def test_cka_is_the_kernel_formula(rng):
    x, y, _ = shared(rng, n=80)
    x = x + 7
    k, l = (z @ z.T for z in (x - x.mean(axis=0), y - y.mean(axis=0)))
    classical = np.sum(k * l) / np.sqrt(np.sum(k * k) * np.sum(l * l))
    assert linear_cka(x, y, debiased=False).value == pytest.approx(classical)
    # The unbiased form does not need centred rows, so the oracle gets raw ones.
    raw_k, raw_l = x @ x.T, y @ y.T
    unbiased = unbiased_hsic(raw_k, raw_l) / np.sqrt(unbiased_hsic(raw_k, raw_k) * unbiased_hsic(raw_l, raw_l))
    assert linear_cka(x, y).value == pytest.approx(unbiased, rel=1e-9)


@pytest.mark.parametrize("debiased", [True, False])
def test_cka_is_invariant_to_rotation_scale_and_shift_and_symmetric(rng, debiased):
    x, y, _ = shared(rng)
    base = linear_cka(x, y, debiased=debiased).value
    assert linear_cka(1e-20 * (x @ rotation(rng, 5)), y + 3, debiased=debiased).value == pytest.approx(base, rel=1e-9)
    assert linear_cka(y, x, debiased=debiased).value == pytest.approx(base, rel=1e-12)
    assert linear_cka(x, x, debiased=debiased).value == pytest.approx(1)


def test_cka_of_too_few_rows_is_nan_and_not_a_plausible_number(rng):
    assert np.isnan(linear_cka(rng.normal(size=(3, 2)), rng.normal(size=(3, 2))).value)


@pytest.mark.parametrize("folds", [0, 300, 1500])
def test_impossible_folds_are_refused(rng, folds):
    x, y, _ = shared(rng)
    with pytest.raises(InputError, match="folds"):
        cca(x, y, folds=folds)


def test_a_side_that_varies_in_one_fold_only_correlates_with_nothing(rng):
    y = np.zeros((60, 2))
    y[7] = 1
    found = compare(rng.normal(size=(60, 3)), y, permutations=2)
    assert found.verdict.group == "none" and not found.similarity.correlations.any() and found.similarity.svcca == 0


@pytest.mark.parametrize("measure", [cca, svcca, linear_cka])
def test_a_constant_side_is_refused(rng, measure):
    with pytest.raises(InputError, match="constant"):
        measure(np.ones((50, 2)), rng.normal(size=(50, 2)))


def test_correlations_do_not_shrink_with_the_rows_of_a_fold(rng):
    x = rng.normal(size=(400, 1))
    y = x + 0.75 * rng.normal(size=x.shape)
    # Over draws the difference has a standard deviation of .005 and .017; the mean of correlations within folds of two
    # rows is too low by .2.
    for folds, near in ((50, 0.03), (200, 0.1)):
        assert cca(x, y, folds=folds).value == pytest.approx(cca(x, y).value, abs=near)
        assert svcca(x, y, folds=folds).value == pytest.approx(svcca(x, y).value, abs=near)


@pytest.mark.parametrize("k", [0, -1])
def test_svcca_of_no_components_is_refused(rng, k):
    x = rng.normal(size=(40, 2))
    with pytest.raises(InputError, match=r"k is .*at least 1"):
        svcca(x, x, k=k)


@pytest.mark.parametrize("measure", [cca, svcca, linear_cka])
def test_rows_without_a_partner_are_told(measure, rng):
    x = pd.DataFrame(rng.normal(size=(60, 2)))
    assert "30 of the 60 rows" in measure(x.iloc[:30], x).alerts[0].message
    assert not measure(x, x).alerts
