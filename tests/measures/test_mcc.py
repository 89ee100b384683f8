"""MCC against scipy, its invariances, known answers, chance on noise, and bad input in words."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import linear_sum_assignment
from scipy.stats import spearmanr

import nearid
from nearid.base.errors import InputError
from nearid.measures.factors import open_factors
from nearid.measures.mcc import mcc

METHODS = ("pearson", "spearman", "piecewise")


def mixed(rng, n=400, d=5, m=3):
    """Latents that share something with the factors, unevenly."""
    u = rng.normal(size=(n, m))
    return u @ rng.normal(size=(m, d)) + rng.normal(size=(n, d)), u


def textbook(rho):
    rho = np.abs(rho)
    rows, columns = linear_sum_assignment(-rho)
    return rho[rows, columns].mean()


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def test_in_sample_values_are_the_textbooks(rng):
    z, u = mixed(rng)
    u[:, 1] = np.round(u[:, 1])  # ties
    pearson, spearman = mcc(z, u, folds=1), mcc(z, u, folds=1, method="spearman")
    rho = np.corrcoef(z.T, u.T)[:5, 5:]
    np.testing.assert_allclose(pearson.matrix, np.abs(rho), atol=1e-12)
    assert pearson.value == pytest.approx(textbook(rho), abs=1e-12)
    rho = spearmanr(z, u).statistic[:5, 5:]
    np.testing.assert_allclose(spearman.matrix, np.abs(rho), atol=1e-12)
    assert spearman.value == pytest.approx(textbook(rho), abs=1e-12)


def test_held_out_value_is_matched_on_other_folds(rng):
    from nearid.folds import assign

    z, u = mixed(rng, n=60)
    fold, found = assign(60, 5, 3), []
    for k in range(5):
        train, test = (np.corrcoef(z[at].T, u[at].T)[:5, 5:] for at in (fold != k, fold == k))
        rows, columns = linear_sum_assignment(-np.abs(train))
        found.append((np.sign(train) * test)[rows, columns].mean())
    assert mcc(z, u, random_state=3).value == pytest.approx(np.mean(found), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
@given(seed=st.integers(0, 1000))
def test_signed_permutations_scales_and_shifts_score_one(method, seed):
    rng = np.random.default_rng(seed)
    u = rng.uniform(size=(60, 3))
    order = rng.permutation(3)
    z = (u * rng.choice([-1, 1], 3) * 10 ** rng.uniform(-3, 3, 3) + 100 * rng.normal(size=3))[:, order]
    found = mcc(z, u + 5, method=method)
    assert found.value == pytest.approx(1, abs=1e-6)
    assert order[found.matched].tolist() == [0, 1, 2]


def test_monotone_and_crooked_latents(rng):
    u = rng.uniform(-1, 1, size=(2000, 2))
    assert mcc(np.exp(8 * u), u, method="spearman").value == pytest.approx(1, abs=1e-9)
    assert mcc(np.exp(8 * u), u).value < 0.8
    # u from |u|-shaped latents: only a fit that is not monotone sees the first factor's square.
    z = np.column_stack([u[:, 0], u[:, 1]])
    target = np.column_stack([u[:, 0] ** 2, u[:, 1]])
    assert mcc(z, target).value < 0.6
    assert mcc(z, target, method="piecewise").value > 0.98


def test_a_rotation_lowers_it(rng):
    u = rng.uniform(size=(2000, 2))
    half = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert mcc(u @ half, u).value == pytest.approx(np.sqrt(0.5), abs=0.02)


def test_noise_is_at_chance_held_out_and_not_in_sample(rng):
    z, u = rng.normal(size=(200, 2000)), rng.normal(size=(200, 40))
    # Forty correlations of 200 rows: a standard error of .011.
    assert abs(mcc(z, u).value) < 0.05
    assert 0.2 < mcc(z, u, folds=1).value < 0.3


def test_extra_latents_do_no_harm_and_missing_ones_count(rng):
    u = rng.normal(size=(500, 3))
    extra = mcc(np.hstack([rng.normal(size=(500, 4)), u]), u)
    assert extra.value == pytest.approx(1) and extra.matched.tolist() == [4, 5, 6] and not extra.alerts
    fewer = mcc(u[:, :2], u)
    assert fewer.value == pytest.approx(2 / 3) and fewer.matched.tolist() == [0, 1, -1]
    assert [alert.code for alert in fewer.alerts] == ["fewer_latents"]


@pytest.mark.parametrize("method", METHODS)
def test_circular_and_categorical_factors(rng, method):
    angle, kind = rng.uniform(0, 360, 2000), rng.integers(0, 3, 2000)
    factors = open_factors({"pan": angle, "kind": np.array(["a", "b", "c"])[kind]}, periods={"pan": 360})
    z = np.column_stack([np.array([5.0, -1, 2])[kind], np.sin(np.deg2rad(angle + 77))])
    found = mcc(z, factors, method=method)
    assert found.matched.tolist() == [1, 0] and found.factors == ("pan", "kind")
    if method == "pearson":
        # One latent is all of one combination of cosine and sine, and of the classes.
        np.testing.assert_allclose(found.per_factor, 1, atol=1e-9)
    assert found.per_factor.min() > 0.65


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_are_told(rng, method):
    u = rng.normal(size=(100, 2))
    found = mcc(np.hstack([np.full((100, 1), 0.1), u]), np.hstack([u, np.ones((100, 1))]), method=method)
    assert found.value == pytest.approx(1) and found.factors == ("0", "1") and np.isfinite(found.matrix).all()
    assert sorted(alert.code for alert in found.alerts) == ["constant_factor", "constant_latents"]


def test_a_factor_that_varies_in_one_fold_only_is_told(rng):
    u = np.zeros((50, 1))
    u[7] = 1
    found = mcc(u, u)
    assert found.value < 1 and [alert.code for alert in found.alerts] == ["repeated_rows", "constant_in_fold"]


def test_files_are_streamed_to_the_same_value(rng, tmp_path):
    z, u = mixed(rng)
    np.save(tmp_path / "z.npy", z)
    np.save(tmp_path / "u.npy", u)
    assert mcc(tmp_path / "z.npy", tmp_path / "u.npy").value == mcc(z, u).value == mcc(z, open_factors(u)).value


@pytest.mark.parametrize("method", METHODS)
def test_nan_is_refused_or_dropped(rng, method):
    z, u = mixed(rng)
    z[5, 2] = np.nan
    with pytest.raises(InputError, match="latents has nan at row 5, column 2"):
        mcc(z, u, method=method)
    found = mcc(z, u, method=method, drop_nonfinite=True)
    assert np.isfinite(found.value) and "dropped_rows" in [alert.code for alert in found.alerts]


def test_refused(rng):
    z, u = mixed(rng, n=20)
    with pytest.raises(InputError, match="method is 'kendall', but 'pearson' or"):
        mcc(z, u, method="kendall")
    with pytest.raises(InputError, match="too few for 15 folds"):
        mcc(z, u, folds=15)
    with pytest.raises(InputError, match="latents has 20 rows and factors has 19"):
        mcc(z, u[:-1])
    with pytest.raises(InputError, match="Every factor is constant"):
        mcc(z, np.ones((20, 2)))
    with pytest.raises(InputError, match="dtype <U1"):
        mcc(np.full((20, 2), "x"), u)


def test_folds_of_few_rows_are_reported(rng):
    u = rng.normal(size=(200, 2))
    z = u + 0.7 * rng.normal(size=u.shape)
    told = [a.message for a in mcc(z, u, folds=50).alerts if a.code == "few_rows_per_fold"]
    assert len(told) == 1 and "folds=20 (--folds 20)" in told[0]
    assert not mcc(z, u).alerts and not mcc(z, u, folds=1).alerts


def test_copies_of_held_out_rows_are_reported(rng):
    z, u = np.repeat(rng.normal(size=(60, 3)), 5, axis=0), np.repeat(rng.integers(0, 3, 60), 5)
    order = rng.permutation(300)
    for measure in (nearid.mcc, nearid.r2, nearid.sap, nearid.explicitness):
        assert "repeated_rows" in {a.code for a in measure(z[order], {"c": u[order]}).alerts}
        # In sample nothing is held out.
        assert "repeated_rows" not in {a.code for a in measure(z[order], {"c": u[order]}, folds=1).alerts}
    wide = np.repeat(rng.normal(size=(20, 80)), 2, axis=0)
    assert "repeated_rows" in {a.code for a in nearid.r2(wide, wide[:, :1]).alerts}
