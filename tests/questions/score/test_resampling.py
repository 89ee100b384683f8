"""Intervals and chance against classical statistics."""

import numpy as np
import pytest
from scipy import stats

import nearid
from nearid.base.errors import InputError
from nearid.measures.declarations import DECLARATIONS, Declaration, load
from nearid.measures.factors import open_factors
from nearid.measures.mcc import mcc
from nearid.measures.recovery import FactorRecovery
from nearid.questions.score.resampling import COSTLY_ROWS, GROUPS, estimates, figures

PLAIN = Declaration("toy", "", "", -1.0, 1.0, ())


def correlation(x, factors):
    """In-sample correlation of the first latent with each factor."""
    each = np.array([np.corrcoef(x[:, 0], f.values)[0, 1] for f in factors.items])
    return FactorRecovery(float(each.mean()), each[None], factors.names, (), each)


def resampled(measure, x, factors, declared=PLAIN, rows=None, permutations=4):
    found = measure(x, factors)
    return estimates(
        measure,
        declared,
        found,
        rows or len(x),
        x,
        factors,
        permutations=permutations,
        seed=0,
        tick=lambda: None,
    )


def correlated(rng, n, rho):
    u = rng.normal(size=n)
    return np.column_stack([rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)]), open_factors(u[:, None])


def test_intervals_cover_the_truth_as_often_as_they_say():
    covered = 0
    for seed in range(200):
        x, factors = correlated(np.random.default_rng(seed), 120, 0.6)
        overall, own = resampled(correlation, x, factors, permutations=1)
        assert overall == own
        covered += overall.low <= 0.6 <= overall.high
    # 95% of 200, and three standard deviations of that number.
    assert 0.95 * 200 - 3 * np.sqrt(200 * 0.95 * 0.05) <= covered <= 199


def test_width_is_that_of_the_closed_form_and_narrows_with_rows(rng):
    x, factors = correlated(rng, 2000, 0.5)
    here, more = (resampled(correlation, x, factors, rows=rows)[0] for rows in (2000, 200_000))
    closed = 2 * stats.t.ppf(0.975, GROUPS - 1) * (1 - 0.5**2) / np.sqrt(2000)
    assert closed / 2 < here.high - here.low < 2 * closed
    assert (more.high - more.low) * 10 == pytest.approx(here.high - here.low)


def test_chance_is_that_of_permuted_factors(rng):
    x, factors = correlated(rng, 1000, 0.9)
    assert abs(resampled(correlation, x, factors, permutations=20)[0].chance) < 0.05


def test_intervals_stay_in_the_declared_range(rng):
    u = rng.normal(size=(60, 2))
    x = u + 0.02 * rng.normal(size=u.shape)
    for estimate in resampled(lambda z, f: mcc(z, f, folds=2), x, open_factors(u), DECLARATIONS["mcc"]):
        assert estimate.low <= estimate.value <= estimate.high <= 1.0


def test_costly_measures_see_fewer_rows(rng):
    seen = []

    def watched(x, factors):
        seen.append(len(x))
        return correlation(x, factors)

    x, factors = correlated(rng, 3 * COSTLY_ROWS, 0.5)
    dear = Declaration("toy", "", "", -1.0, 1.0, (), costly=True)
    overall = resampled(watched, x, factors, dear)[0]
    assert seen[0] == 3 * COSTLY_ROWS and set(seen[1:]) == {COSTLY_ROWS * 9 // 10, COSTLY_ROWS}
    assert overall.value == correlation(x, factors).value


def test_a_measure_that_fails_without_some_rows_has_no_interval(rng):
    def brittle(x, factors):
        if len(x) < 100:
            raise InputError("too few")
        return correlation(x, factors)

    overall = resampled(brittle, *correlated(rng, 100, 0.5))[0]
    assert np.isnan(overall.low) and np.isnan(overall.high) and np.isfinite(overall.chance)


def test_figures_hold_parts_and_name_factors(rng):
    u = rng.integers(0, 4, size=(200, 1))
    found = load("infomec")(u + 0.1 * rng.normal(size=(200, 2)), {"a": u[:, 0]})
    value, infom, infoe, infoc, missing, a = figures(found, DECLARATIONS["infomec"], ["b", "a"])
    # InfoM is not defined for one factor.
    assert np.isnan([value, infom, missing]).all()
    assert (infoe, infoc, a) == (found.infoe, found.infoc, found.per_factor[0])


def test_classes_of_few_rows_leave_no_interval_rather_than_an_error(rng):
    with pytest.raises(InputError, match="classes seen once"):
        nearid.score(rng.normal(size=(200, 2)), {"k": ["x"] * 199 + ["y"]}, measures="mcc,r2")
    score = nearid.score(rng.normal(size=(200, 2)), {"k": ["x"] * 198 + ["y"] * 2}, measures="mcc,r2")
    assert np.isnan(score.measures["r2"].overall.low)
