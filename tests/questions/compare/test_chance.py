"""Chance against explicit cross-validations of reordered rows."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.signal import lfilter

import nearid.questions.compare.chance as room
from judged_rows import LADDER, gathered_of
from nearid import compare
from nearid.arrays import open_rows, pair_rows
from nearid.base.progress import silent
from nearid.folds import Blocks, assign, fold_moments, reordered
from nearid.groups.fits import apply
from nearid.groups.ridge import choose_penalties
from nearid.moments import PairMoments
from nearid.questions.compare.chance import CrossFolds, Orders, chance_level
from nearid.questions.compare.errors import fit_held_out


def pair(x, y):
    return pair_rows(open_rows(x), open_rows(y))


def found(x, y, blocks=None, folds=5, seed=0, permutations=3, **options):
    """Moments, and the level of chance."""
    gathered = gathered_of(x, y, blocks, folds, seed, **{"ridge": "auto"} | options)
    fits = fit_held_out(gathered, LADDER, None)
    return gathered, chance_level(gathered, LADDER, fits, permutations, seed, silent)


def explicit(x, y, fold, blocks, options, seed=0, repeats=3, turned=False):
    """R2 of whole cross-validations of rows in the orders that the seed gives; the second ones are turns of all."""
    figures = []
    for own in np.random.SeedSequence([seed, 4]).spawn(repeats):
        draw = np.random.default_rng(own)
        mixed = y[reordered(len(x), blocks, draw)]
        if turned:
            mixed = y[reordered(len(x), replace(blocks, serial=True), draw)]
        figures.append(cross_validated(x, mixed, fold, options))
    return np.array(figures)


def cross_validated(x, y, fold, options):
    """R2 of every group on rows that it was not fitted on."""
    folds = int(fold.max()) + 1
    given = {"translation": True, "scale": True} | options
    penalties = [given.get("ridge", 0.0)] * folds
    if given["ridge"] == "auto":
        parts = fold_moments(pair(x, y), fold, folds)
        penalties = choose_penalties(parts, translation=given["translation"]).folds
    error, spread = np.zeros(len(LADDER)), 0.0
    for k, penalty in enumerate(penalties):
        rows, at = fold != k, fold == k
        moments = PairMoments.of(x[rows], y[rows])
        for g, group in enumerate(LADDER):
            fitted = group.fitted(moments, given | {"ridge": penalty})
            error[g] += np.sum((apply(fitted, x[at]) - y[at]) ** 2)
        spread += np.sum((y[at] - y[rows].mean(axis=0)) ** 2)
    return 1 - error / spread


@pytest.mark.parametrize("blocked", [False, True])
def test_moments_of_folds_are_those_of_reordered_rows(rng, blocked):
    x, y = rng.normal(size=(200, 4)) + 100, rng.normal(size=(200, 3)) * [1, 1e3, 1] - 50
    fold = assign(200, 5, 0)
    base = CrossFolds(x, y, fold, 5)
    orders = [reordered(200, Blocks(np.arange(200) // 7) if blocked else None, rng) for _ in range(3)]
    mixed = base.given(orders)
    for cross, at, target in ((base, 0, y), (mixed, 0, y[orders[0]]), (mixed, 2, y[orders[2]])):
        whole = fold_moments(pair(x, target), fold, 5)
        assert cross.counts == whole.counts
        for mine, theirs in (
            (cross.all, whole.all),
            (cross.part(2), whole.part(2)),
            (cross.without([1, 3]), whole.without([1, 3])),
        ):
            assert mine.n == theirs.n
            for name in ("mean_x", "xx"):
                np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), rtol=1e-9, atol=1e-7)
            for name in ("mean_y", "xy"):
                np.testing.assert_allclose(getattr(mine, name)[at], getattr(theirs, name), rtol=1e-9, atol=1e-7)
            np.testing.assert_allclose(np.diag(mine.yy[at]), np.diag(theirs.yy), rtol=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"ridge": "auto"}, {"ridge": 0.0}, {"ridge": 3.0, "translation": False}, {"ridge": "auto", "scale": False}],
    ids=str,
)
@pytest.mark.parametrize("blocked", [False, True])
def test_repetitions_are_whole_cross_validations(rng, options, blocked):
    x = rng.normal(size=(120, 5)) + 1
    y = x @ rng.normal(size=(5, 4)) + rng.normal(size=(120, 4))
    blocks = Blocks(np.arange(120) // 6) if blocked else None
    gathered, chance = found(x, y, blocks, **options)
    assert chance.rows == 120
    np.testing.assert_allclose(chance.r2, explicit(x, y, gathered.fold, blocks, options), atol=1e-8)


def test_two_folds_choose_their_penalty_anew_in_each_repetition(rng):
    """The penalty that suits the true relation would let noise be fitted."""
    x = rng.normal(size=(60, 20))
    y = x @ rng.normal(size=(20, 4))
    gathered, chance = found(x, y, folds=2)
    np.testing.assert_allclose(chance.r2, explicit(x, y, gathered.fold, None, {"ridge": "auto"}), atol=1e-8)


def test_wide_sides_are_reduced_to_leading_components(rng, monkeypatch):
    monkeypatch.setattr(room, "LEADING", 3)
    x = rng.normal(size=(150, 8)) * np.geomspace(9, 1, 8) @ np.linalg.qr(rng.normal(size=(8, 8)))[0] + 4
    y = rng.normal(size=(150, 6)) * np.geomspace(9, 1, 6)
    gathered, chance = found(x, y)
    a, b = (z @ np.linalg.svd(z - z.mean(axis=0))[2][:3].T for z in (x, y))
    linear = [group.name for group in LADDER].index("linear")
    # Signs of components are arbitrary, and no fit depends on them.
    expected = explicit(a, b, gathered.fold, None, {"ridge": "auto"})
    np.testing.assert_allclose(chance.r2, expected, atol=1e-8)
    assert not np.allclose(chance.r2[:, linear], explicit(x, y, gathered.fold, None, {"ridge": "auto"})[:, linear])


@pytest.mark.parametrize("blocked", [False, True])
def test_many_rows_are_sampled_and_held_down_to_the_guess(rng, monkeypatch, blocked):
    monkeypatch.setattr(room, "ROWS", 100)
    x, y = rng.normal(size=(1000, 4)), rng.normal(size=(1000, 4))
    blocks = Blocks(np.arange(1000) // 5) if blocked else None
    chance = found(x, y, blocks, permutations=20)[1]
    # Of blocks at least 100, with at least two rows each.
    assert chance.rows == (200 if blocked else 100) and chance.r2.shape == (20, len(LADDER))
    assert chance.r2.min() == 0 and chance.r2.max() < 0.2
    fixed = found(x, y, blocks, permutations=20, scale=False)[1].r2
    scaled = np.array(["scale" not in group.options for group in LADDER])
    # Without a scale no fit can shrink to the guess.
    assert fixed[:, scaled].min() == 0 and fixed[:, ~scaled].max() < -0.3


def test_blocks_that_follow_each_other_take_the_worse_of_two_orders(rng):
    x, y = (np.cumsum(rng.normal(size=(240, 3)), axis=0) for _ in range(2))
    blocks = Blocks(np.arange(240) // 6)
    gathered, chance = found(x, y, replace(blocks, chained=True), ridge=0.0)
    swapped, turned = (explicit(x, y, gathered.fold, blocks, {"ridge": 0.0}, turned=way) for way in (False, True))
    np.testing.assert_allclose(found(x, y, blocks, ridge=0.0)[1].r2, swapped, atol=1e-8)
    np.testing.assert_allclose(chance.r2, np.maximum(swapped, turned), atol=1e-8)
    assert np.any(turned > swapped)


def test_similarities_of_unrelated_rows_are_about_zero(rng):
    x = rng.normal(size=(2000, 4))
    similar = found(x, x)[1].similarity
    assert max(abs(value.value) for value in (similar.cca, similar.svcca, similar.cka)) < 0.1


def test_ninety_nine_repetitions_by_default(rng):
    x = rng.normal(size=(40, 2))
    assert found(x, x, permutations=None)[1].r2.shape == (99, len(LADDER))


@pytest.mark.parametrize(("blocks", "repetitions"), [(3, 5), (5, 99), (20, 99)])
def test_repetitions_differ_and_few_blocks_have_few(rng, blocks, repetitions):
    x = rng.normal(size=(120, 2))
    own = Blocks(np.arange(120) % blocks)
    r2 = found(x, x + rng.normal(size=x.shape), own, folds=min(blocks, 5), permutations=99)[1].r2
    assert len(r2) == len(np.unique(r2, axis=0)) == repetitions


def series(rng, n, columns=2, rho=0.6):
    drive = rng.normal(size=(n + 100, columns))
    return lfilter([np.sqrt(1 - rho**2)], [1, -rho], drive, axis=0)[100:]


def test_a_short_series_is_turned_by_every_lag(rng):
    x, y = series(rng, 60), series(rng, 60)
    gathered, chance = found(x, y, Blocks.cut(60, 6, 5), permutations=None, ridge=0.0)
    # From six rows up to six before the end.
    expected = [cross_validated(x, np.roll(y, -lag, axis=0), gathered.fold, {"ridge": 0.0}) for lag in range(6, 55)]
    np.testing.assert_allclose(chance.r2, expected, atol=1e-8)


def test_a_short_series_has_a_verdict(rng, monkeypatch):
    """With fewer than 99 lags R2 had to be .9: series of up to 120 rows had no verdict."""
    x = series(rng, 80)
    y = x + 0.6 * series(rng, 80)
    cut = Blocks.cut(80, 8, 5)
    monkeypatch.setattr("nearid.questions.compare.run.rows_together", lambda *given, **options: (cut, []))
    related, unrelated = compare(x, y), compare(x, series(rng, 80))
    assert len(related.by_chance) == 65 and related.groups["linear"].r2.value < 0.9
    assert related.verdict.group == "permutation" and related.verdict.p_value == pytest.approx(1 / 66)
    assert unrelated.verdict.group == "none" and "cannot be measured" not in unrelated.verdict.reason
    # Seventeen lags are too few for a p of .05.
    monkeypatch.setattr(
        "nearid.questions.compare.run.rows_together", lambda *given, **options: (Blocks.cut(20, 2, 5), [])
    )
    found = compare(x[:20], y[:20])
    assert "A series of 20 rows can be turned by so few lags that chance cannot be measured" in found.verdict.reason
    # A p-value that cannot be measured is not printed.
    assert np.isnan([found.verdict.p_value, *(g.p_value for g in found.groups.values())]).all()
    assert "There is no p. A series of 20 rows" in found.view.tables[0].note


def test_orders_are_not_held_in_memory(rng):
    """A permutation of 10,000 rows took 150 KB, and there may be 100,000."""
    for blocks in (None, Blocks(np.arange(10_000) // 4)):
        tracemalloc.start()
        orders = Orders(10_000, blocks, 50, np.random.SeedSequence(0))
        held = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        assert len(orders) == 50 and held < 100_000
        for at in (0, 7):
            (order,), (again,) = orders[at], orders[at]
            np.testing.assert_array_equal(order, again)
        assert not np.array_equal(orders[0][0], orders[1][0])


def test_orders_of_few_rows_differ():
    orders = Orders(4, None, 99, np.random.SeedSequence(0))
    seen = [tuple(orders[at][0]) for at in range(len(orders))]
    assert len(seen) == len(set(seen)) == 24


def test_cka_by_chance_counts_as_many_blocks_as_cka(rng):
    """On one fold, with a fifth of the blocks, unrelated wells seemed alike by chance: .47, where all give .05."""
    well = np.repeat(np.arange(40), 10)
    x, y = (rng.normal(size=(40, 6))[well] + 0.3 * rng.normal(size=(400, 6)) for _ in range(2))
    assert found(x, y, Blocks(well))[1].similarity.cka.value < 0.2


def test_series_in_blocks_that_do_not_follow_them_are_unrelated(rng):
    """Rows of a series were dealt to blocks in turn: 26 of 30 unrelated pairs were called related."""
    verdicts = []
    for _ in range(6):
        x, y = (lfilter([np.sqrt(1 - 0.97**2)], [1, -0.97], rng.normal(size=(1200, 6)), axis=0)[200:] for _ in range(2))
        verdicts.append(compare(x, y, blocks=np.arange(1000) % 50).verdict.group)
    assert verdicts.count("none") >= 5


def tied_blocks(seed, count=6):
    """Blocks of two kinds, the kinds of each side in an order of their own: many orders of them are the same rows."""
    rng = np.random.default_rng(seed)
    x, y = (rng.normal(size=(2, 4, 2))[rng.permutation(np.arange(count) % 2)].reshape(-1, 2) for _ in range(2))
    return x, y, np.repeat(np.arange(count), 4)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_repetitions_that_reach_the_same_value_all_count(dtype):
    """By rounding such orders fell above or below the observed one: p was up to .04 too small."""
    seen = 0
    for seed in range(8):
        x, y, blocks = tied_blocks(seed)
        x, y = x.astype(dtype), y.astype(dtype)
        found = compare(x, y, blocks=blocks, folds=3)
        for g, own in enumerate(found.groups.values()):
            reached = found.by_chance[:, g]
            ties = np.abs(reached - own.r2.value) < 1e-5
            seen += int(ties.sum())
            assert own.p_value == (1 + np.sum(ties | (reached > own.r2.value))) / (1 + len(reached))
        best = found.by_chance.max(axis=1)
        most = max(own.r2.value for own in found.groups.values())
        assert found.verdict.p_value == (1 + np.sum(best >= most - 1e-5)) / (1 + len(best))
    assert seen > 100


def test_wide_rows_of_few_dimensions_tie_too():
    """Chance is that of leading components, the figure that of all columns in the rows' precision."""
    seen = 0
    for seed in range(6):
        x, y, blocks = tied_blocks(seed)
        x, y = (np.pad(side, ((0, 0), (0, 68))).astype(np.float32) for side in (x, y))
        found = compare(x, y, blocks=blocks, folds=3, groups="rigid", permutations=49)
        value, reached = found.groups["rigid"].r2.value, found.by_chance[:, 0]
        seen += np.sum(np.abs(reached - value) < 1e-5)
        assert found.groups["rigid"].p_value == (1 + np.sum(reached >= value - 1e-5)) / 50
    assert seen > 10


def test_the_best_of_several_pairs_counts_ties():
    runs = [side.astype(np.float32) for seed in (1, 2) for side in tied_blocks(seed)[:2]]
    found = compare(*runs, blocks=tied_blocks(0)[2], folds=3)
    for g, group in enumerate(found[0].groups):
        best = found.best(group)
        reached = np.max([c.by_chance[:, g] for c in found], axis=0)
        assert best.p_value == (1 + np.sum(reached >= best.value.value - 1e-5)) / (1 + len(reached))
