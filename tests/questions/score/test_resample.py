"""Intervals and chance against classical statistics."""

import numpy as np
import pytest
from scipy import stats

import nearid
from nearid.base.errors import InputError
from nearid.measures.factors import open_factors
from nearid.measures.registry import Measure, Measured, measures
from nearid.questions.score.resample import COSTLY_ROWS, GROUPS, resample


def correlation(x, factors):
    """In-sample correlation of the first latent with each factor."""
    each = np.array([np.corrcoef(x[:, 0], f.values)[0, 1] for f in factors.items])
    return Measured(float(each.mean()), each[None], factors.names, each)


def toy(maths, **declaration):
    return Measure("toy", "toy", maths, maths, low=-1.0, each_low=-1.0, **declaration)


def resampled(measure, x, factors, rows=None, permutations=4, **options):
    measured, counted = measure.of_loaded(x, factors, **options), []
    shared = {"options": options, "permutations": permutations, "seed": 0, "tick": lambda: counted.append(1)}
    scored = resample(measure, measured, rows or len(x), x, factors, **shared)
    assert len(counted) == GROUPS + permutations
    return scored


def correlated(rng, n, rho):
    u = rng.normal(size=n)
    return np.column_stack([rho * u + np.sqrt(1 - rho**2) * rng.normal(size=n)]), open_factors(u[:, None])


def test_intervals_cover_the_truth_as_often_as_they_say():
    covered = 0
    for seed in range(200):
        x, factors = correlated(np.random.default_rng(seed), 120, 0.6)
        scored = resampled(toy(correlation), x, factors, permutations=1)
        overall = scored.overall
        assert overall == scored.factors["0"]
        covered += overall.low <= 0.6 <= overall.high
    # 95% of 200, and three standard deviations of that number.
    assert 0.95 * 200 - 3 * np.sqrt(200 * 0.95 * 0.05) <= covered <= 199


def test_width_is_that_of_the_closed_form_and_narrows_with_rows(rng):
    x, factors = correlated(rng, 2000, 0.5)
    here, more = (resampled(toy(correlation), x, factors, rows=rows).overall for rows in (2000, 200_000))
    closed = 2 * stats.t.ppf(0.975, GROUPS - 1) * (1 - 0.5**2) / np.sqrt(2000)
    assert closed / 2 < here.high - here.low < 2 * closed
    assert (more.high - more.low) * 10 == pytest.approx(here.high - here.low)


def test_chance_is_that_of_permuted_factors(rng):
    x, factors = correlated(rng, 1000, 0.9)
    assert abs(resampled(toy(correlation), x, factors, permutations=20).overall.chance) < 0.05


def test_intervals_stay_in_the_declared_range(rng):
    u = rng.normal(size=(60, 2))
    x = u + 0.02 * rng.normal(size=u.shape)
    scored = resampled(measures()["mcc"], x, open_factors(u), folds=2)
    for estimate in (scored.overall, *scored.factors.values()):
        assert estimate.low <= estimate.value <= estimate.high <= 1.0


def test_costly_measures_see_fewer_rows(rng):
    seen = []

    def watched(x, factors):
        seen.append(len(x))
        return correlation(x, factors)

    x, factors = correlated(rng, 3 * COSTLY_ROWS, 0.5)
    overall = resampled(toy(watched, costly=True), x, factors).overall
    assert seen[0] == 3 * COSTLY_ROWS and set(seen[1:]) == {COSTLY_ROWS * 9 // 10, COSTLY_ROWS}
    assert overall.value == correlation(x, factors).value


def test_a_measure_that_fails_without_some_rows_has_no_interval(rng):
    def brittle(x, factors):
        if len(x) < 100:
            raise InputError("too few")
        return correlation(x, factors)

    overall = resampled(toy(brittle), *correlated(rng, 100, 0.5)).overall
    assert np.isnan(overall.low) and np.isnan(overall.high) and np.isfinite(overall.chance)


def test_parts_and_factors_are_estimated_one_by_one(rng):
    u = rng.integers(0, 4, size=(200, 1))
    scored = resampled(measures()["infomec"], u + 0.1 * rng.normal(size=(200, 2)), open_factors({"a": u[:, 0]}))
    # InfoM is not defined for one factor.
    assert np.isnan([scored.value, scored.parts["infom"].value, scored.parts["infom"].low]).all()
    for estimate in (scored.parts["infoe"], scored.parts["infoc"], scored.factors["a"]):
        assert estimate.low <= estimate.value <= estimate.high
    assert scored.parts["infoe"] == scored.factors["a"] and scored.parts["infoc"].chance != scored.parts["infoe"].chance


def test_a_mean_over_other_factors_counts_for_the_factors_alone(rng):
    u = {"a": rng.normal(size=200), "rare": np.arange(200) < 2}
    scored = resampled(toy(correlation), rng.normal(size=(200, 1)), open_factors(u))
    scored_without = resampled(toy(correlation), rng.normal(size=(200, 1)), open_factors({"a": u["a"]}))
    assert np.isfinite(scored_without.overall.low) and np.isfinite(scored.factors["a"].low)
    lost = resampled(toy(correlation), rng.normal(size=(200, 1)), open_factors({**u, "rare": np.arange(200) == 7}))
    assert np.isnan(lost.overall.low) and np.isfinite(lost.factors["a"].low) and np.isnan(lost.factors["rare"].low)


def test_classes_of_few_rows_leave_no_interval_rather_than_an_error(rng):
    with pytest.raises(InputError, match="classes seen once"):
        nearid.score(rng.normal(size=(200, 2)), {"k": ["x"] * 199 + ["y"]}, measures="mcc,r2")
    score = nearid.score(rng.normal(size=(200, 2)), {"k": ["x"] * 198 + ["y"] * 2}, measures="mcc,r2")
    assert np.isnan(score.measures["r2"].overall.low)
