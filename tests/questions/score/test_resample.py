"""Intervals and chance against classical statistics."""

from dataclasses import replace

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


def test_every_interval_says_what_it_is_of(rng):
    x, factors = correlated(rng, 100, 0.5)
    held = resampled(measures()["r2"], x, factors, folds=4).overall
    assert held.of == "fits on 75 rows, judged on new rows; jackknife over ten groups of rows"
    assert resampled(measures()["mig"], x, factors).overall.of.startswith("the value of another sample of 100 rows")


def in_blocks(rng, count=60, size=5):
    """One latent and one factor that are the same in all rows of a block, apart from a little noise."""
    block = np.repeat(np.arange(count), size)
    u, noise = rng.normal(size=count), rng.normal(size=count)
    x = (0.6 * u + 0.8 * noise)[block] + 0.01 * rng.normal(size=count * size)
    factors = open_factors((u[block] + 0.01 * rng.normal(size=count * size))[:, None])
    return x[:, None], factors, replace(factors, blocks=block)


def test_intervals_over_blocks_cover_the_truth_and_those_over_rows_do_not():
    hits = {False: 0, True: 0}
    for seed in range(100):
        x, alone, together = in_blocks(np.random.default_rng(seed))
        for blocked, factors in ((False, alone), (True, together)):
            overall = resampled(toy(correlation), x, factors, permutations=1).overall
            hits[blocked] += overall.low <= 0.6 <= overall.high
    # 95% of 100, and three standard deviations of that number; five copies of a row are told apart by nothing.
    assert hits[True] >= 88 and hits[False] < 80


def test_chance_permutes_whole_blocks_and_keeps_their_order(rng):
    seen = []

    def watched(x, factors):
        seen.append((x[:, 0], factors.items[0].values, factors.blocks))
        return correlation(x, factors)

    block = np.repeat(np.arange(30), 4)
    x, u = np.arange(120.0)[:, None], np.arange(120.0)
    resampled(toy(watched), x, replace(open_factors(u[:, None]), blocks=block), permutations=3)
    whole = [(latent, factor, own) for latent, factor, own in seen[1:] if len(latent) == 120]
    assert len(whole) == 3
    for latent, factor, own in whole:
        assert (own == block).all() and (latent == x[:, 0]).all()
        given = factor.reshape(30, 4)
        assert (given == given[:, :1] + np.arange(4)).all() and (given[:, 0] % 4 == 0).all()
        assert (given[:, 0] // 4 != np.arange(30)).all()
    for latent, _, own in seen[1:]:
        # A group that is left out holds whole blocks.
        assert set(np.bincount(own)[np.unique(own)]) == {4} and len(latent) in (108, 120)


def test_fewer_blocks_than_groups_leave_no_interval(rng):
    x, _, factors = in_blocks(rng, count=GROUPS - 1, size=20)
    counted = []
    measure = toy(correlation)
    shared = {"options": {}, "permutations": 2, "seed": 0, "tick": lambda: counted.append(1)}
    overall = resample(measure, measure.of_loaded(x, factors), len(x), x, factors, **shared).overall
    assert np.isnan([overall.low, overall.high]).all() and np.isfinite(overall.chance) and len(counted) == 2


def test_a_sample_of_rows_does_not_narrow_intervals_over_blocks(rng):
    x, _, factors = in_blocks(rng)
    few, many = (resampled(toy(correlation), x, factors, rows=rows).overall for rows in (300, 30_000))
    assert (few.low, few.high) == (many.low, many.high)
