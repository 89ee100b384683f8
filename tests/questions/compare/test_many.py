"""Very many rows: what is summed and sampled agrees with what all rows give, and little is held in memory."""

import numpy as np
import pytest

import nearid.folds as folds
import nearid.measures.diameter as diameters
import nearid.questions.compare.errors as errors
import nearid.questions.compare.many as many
from judged_rows import LADDER, gathered_of
from nearid import compare
from nearid.arrays import open_rows, pair_rows
from nearid.folds import Blocks, assign, fold_moments, repeated_rows, some_traits
from nearid.questions.compare.errors import Fits, evaluate, held_out_maps
from nearid.questions.compare.intervals import influences, intervals
from nearid.questions.compare.many import Farthest, Whole
from nearid.questions.compare.verdict import bootstrap


@pytest.fixture
def few_are_many(monkeypatch):
    """More than 4,000 rows are very many; folds are dealt as before, so that all numbers can be compared."""
    monkeypatch.setattr(errors, "EXACT", 4000)
    monkeypatch.setattr(many, "FARTHEST", 300)


@pytest.fixture
def sides(rng):
    x = rng.normal(size=(20_000, 4))
    return x, x @ np.linalg.qr(rng.normal(size=(4, 4)))[0] + 0.3 * rng.normal(size=x.shape)


def test_figures_of_all_rows_are_the_same_and_those_of_the_sample_are_near(sides, request):
    options = {"permutations": 9, "in_sample": True, "blocks": "none", "groups": "all"}
    exact = compare(*sides, **options)
    request.getfixturevalue("few_are_many")
    found = compare(*sides, **options)
    assert found.verdict.group == exact.verdict.group == "rigid"
    for name, one in exact.groups.items():
        other = found.groups[name]
        for figure in ("epsilon", "relative", "r2"):
            before, after = getattr(one, figure), getattr(other, figure)
            assert after.value == pytest.approx(before.value, rel=1e-9)
            if np.isfinite(before.low):
                # Variances of 4,000 rows.
                assert after.high - after.low == pytest.approx(before.high - before.low, rel=0.1)
        assert other.max == one.max
        assert (other.median, other.q95) == pytest.approx((one.median, one.q95), rel=0.05)
        assert found.in_sample[name].r2.value == pytest.approx(exact.in_sample[name].r2.value, rel=1e-9)
    assert found.diameter == exact.diameter
    assert found.efficiency.value == pytest.approx(exact.efficiency.value, rel=1e-9)


def test_the_bounds_of_a_diameter_are_the_same(sides, few_are_many, monkeypatch):
    monkeypatch.setattr(diameters.search, "__kwdefaults__", {**diameters.search.__kwdefaults__, "budget": 0})
    sides[0][7, 1] = np.nan
    options = {"permutations": 1, "drop_nonfinite": True, "blocks": "none"}
    found = compare(*sides, **options).diameter
    monkeypatch.setattr(errors, "EXACT", 10**6)
    exact = compare(*sides, **options).diameter
    assert not exact.exact and (found.pair, found.lower) == (exact.pair, exact.lower)
    assert found.upper == pytest.approx(exact.upper, rel=1e-9)


def test_rows_that_decide_are_found_and_the_sample_gives_no_interval_without_them(sides, few_are_many):
    x, y = sides
    x[5] *= 900
    y[77] *= 300
    found = compare(x, y, permutations=9, blocks="none")
    assert found.outlying_rows == (5, 77) and found.verdict.group == "rigid"
    assert {"outlying_source", "heavy_tails"} <= {alert.code for alert in found.alerts}
    assert np.isnan(found.groups["linear"].r2.low) and "one or two rows" in found.groups["linear"].no_interval
    assert found.bulk.groups["rigid"].r2.low < 1 / 1.09 < found.bulk.groups["rigid"].r2.high


def test_intervals_of_a_sample_are_those_of_all_rows_also_with_blocks_and_few_rows_for_each_column(rng, monkeypatch):
    x = rng.normal(size=(6000, 20)) + np.repeat(rng.normal(size=(600, 20)), 10, axis=0)
    y = x + np.repeat(rng.normal(size=(600, 20)), 10, axis=0)
    gathered = gathered_of(x, y, Blocks(np.repeat(np.arange(600), 10)))
    fits = Fits(*held_out_maps(gathered, LADDER), None, None)
    ends = []
    for most in (10**6, 3000):
        monkeypatch.setattr(errors, "EXACT", most)
        seen = evaluate(gathered, fits)
        moved = influences(gathered, LADDER, fits, seen.errors, seen.spread, seen.sample)
        ends.append(intervals(moved, 2, seen.errors[2], seen.spread, whole=seen.whole).r2)
    assert seen.sample is not None and len(seen.sample.rows) == 3000
    assert ends[1].high - ends[1].low == pytest.approx(ends[0].high - ends[0].low, rel=0.2)
    assert (ends[1].low + ends[1].high) / 2 == pytest.approx((ends[0].low + ends[0].high) / 2, abs=0.01)


def test_first_rows_of_long_blocks_stand_for_the_others(rng, few_are_many):
    """A third of the blocks is 20 times as long as the others, and there the groups fail."""
    sizes = np.repeat([100, 2000], [60, 30])
    blocks = np.repeat(np.arange(90), sizes)
    x = rng.normal(size=(len(blocks), 4))
    noise = np.where(sizes == 2000, 1.0, 0.1) * rng.uniform(0.7, 1.3, size=90)
    pair = x, x + noise[blocks][:, None] * rng.normal(size=x.shape)
    found = compare(*pair, permutations=9, blocks=blocks)
    errors.EXACT = 10**6
    exact = compare(*pair, permutations=9, blocks=blocks)
    for name, one in exact.groups.items():
        other = found.groups[name]
        assert (other.median, other.q95) == pytest.approx((one.median, one.q95), rel=0.1), name
        assert other.r2.high - other.r2.low == pytest.approx(one.r2.high - one.r2.low, rel=0.3)


def test_replicates_of_first_rows_are_spread_like_those_of_whole_blocks(rng):
    sizes = np.repeat([100, 2000], [60, 30])
    blocks = np.repeat(np.arange(90), sizes)
    noise = np.where(sizes == 2000, 1.0, 0.1) * rng.uniform(0.7, 1.3, size=90)
    missed = noise[blocks] * np.abs(rng.normal(size=(1, len(blocks))))
    spread = np.hypot(missed[0], np.where(sizes == 2000, 1.0, 5.0)[blocks] * np.abs(rng.normal(size=len(blocks))))
    first = np.concatenate([np.arange(50) + start for start in np.cumsum(sizes) - sizes])
    exact = bootstrap(missed, spread, 0, blocks)
    mean = float(np.sum(missed**2) / np.sum(spread**2))
    nothing = Farthest(np.empty(0, dtype=int), np.empty(0), 0.0)
    share = np.array([mean])
    whole = Whole(
        len(blocks),
        share,
        share * np.mean(spread**2),
        share,
        share[None],
        1.0,
        np.mean(spread**2) ** 0.5,
        *2 * [nothing],
    )
    sampled = missed[:, first], spread[first], 0, blocks[first], whole
    found = bootstrap(*sampled, sizes[blocks[first]] / 50)
    assert found.mean() == pytest.approx(mean, rel=0.02)
    assert found.std() == pytest.approx(exact.std(), rel=0.15)
    # Without weights, short blocks decide how replicates are spread.
    assert abs(bootstrap(*sampled).std() / exact.std() - 1) > 0.3


def test_random_rows_are_the_same_whether_or_not_all_numbers_are_written_down(sides):
    gathered = gathered_of(*sides)
    one, other = np.random.default_rng(3), np.random.default_rng(3)
    np.testing.assert_array_equal(gathered.random_rows(100, one), other.choice(gathered.used, 100, replace=False))


def test_folds_of_very_many_rows_are_dealt_in_portions(monkeypatch):
    few = assign(1000, 5, 0)
    monkeypatch.setattr(folds, "EXACT", 300)
    fold = assign(1000, 5, 0)
    np.testing.assert_array_equal(np.bincount(fold[:300]), 60)
    assert np.ptp(np.bincount(fold)) <= 4 and not np.array_equal(fold, few)


def test_copies_are_counted_among_some_of_very_many_rows(rng, monkeypatch):
    x = rng.normal(size=(20_000, 3))
    x[10_000:12_000] = x[:2000]
    pair = pair_rows(open_rows(x), open_rows(x * 2))
    monkeypatch.setattr(folds, "EXACT", 5000)
    traits = fold_moments(pair, np.arange(20_000, dtype=np.int64) % 4, 4).traits
    assert 4000 < len(traits) < 6000
    [alert] = repeated_rows(traits, 20_000)
    assert 1700 < int(alert.message.split()[1]) < 2300 and "of 20000 rows" in alert.message
    # A row with many copies is kept or left out with all of them, so copies of one row alone say little: zeros here.
    x[12_000:16_000] = 0
    zeros = fold_moments(pair_rows(open_rows(x), open_rows(x * 2)), np.arange(20_000) % 4, 4).traits
    [alert] = repeated_rows(zeros, 20_000)
    assert 5500 < int(alert.message.split()[1]) < 6500
    assert some_traits(x[:, 0], 5000) is not None and len(some_traits(x[:5000, 0], 5000)) == 5000
