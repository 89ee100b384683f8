"""Influences against derivatives by hand, and intervals against what they claim to cover."""

import numpy as np
import pytest
from scipy.stats import t

import nearid.questions.compare.intervals as room
from nearid.arrays import open_rows, pair_rows
from nearid.base.progress import silent
from nearid.engines.local import LOCAL
from nearid.folds import Blocks
from nearid.groups.fits import apply
from nearid.groups.ladder import GROUPS
from nearid.moments import PairMoments
from nearid.questions.compare.errors import evaluate, fit_held_out, gather
from nearid.questions.compare.intervals import Influences, Interval, influences, intervals, on_log_scale, student

LADDER = [group for group in GROUPS.values() if group.prepare is None]


def judged(x, y, blocks=None, groups=LADDER, seed=0, **options):
    """Moments and fits, the rows' errors, and influences."""
    options = {"translation": True, "scale": True, "ridge": 0.0} | options
    gathered = gather(
        pair_rows(open_rows(x), open_rows(y)),
        5,
        options,
        seed,
        together=blocks,
        drop_nonfinite=False,
        prepare=(),
        engine=LOCAL,
        progress=silent,
    )
    fits = fit_held_out(gathered, groups, None)
    seen = evaluate(gathered, fits)
    return gathered, seen, influences(gathered, groups, fits, seen.errors, seen.spread)


def weighted(x, y, weights):
    n = weights.sum()
    mean_x, mean_y = weights @ x / n, weights @ y / n
    a, b = x - mean_x, y - mean_y
    xx, xy, yy = (u.T @ (weights[:, None] * v) for u, v in ((a, a), (a, b), (b, b)))
    return PairMoments(n, mean_x, mean_y, xx, xy, yy)


def sums(x, y, weights, gathered, group):
    """Weighted sums over held-out rows of squared errors, errors, and squared errors of the constant guess."""
    found = np.zeros(3)
    for k, options in enumerate(gathered.without_fold):
        rows, at = gathered.fold != k, gathered.fold == k
        moments = weighted(x[rows], y[rows], weights[rows])
        missed = np.linalg.norm(y[at] - apply(group.fitted(moments, options), x[at]), axis=1)
        guessed = np.sum((y[at] - moments.mean_y) ** 2, axis=1)
        found += [weights[at] @ missed**2, weights[at] @ missed, weights[at] @ guessed]
    return found


@pytest.mark.parametrize("blocked", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"ridge": 5.0}, {"ridge": "auto"}, {"translation": False}, {"scale": False}], ids=str
)
def test_influences_are_derivatives_of_the_cross_validation(rng, options, blocked):
    n, d = 60, 3
    x = rng.normal(size=(n, d)) * [1, 2, 3] + 1
    y = x @ (np.eye(d) + 0.2 * rng.normal(size=(d, d))) + 0.5 * rng.normal(size=(n, d)) - 1
    blocks = Blocks(np.arange(n) // 4) if blocked else None
    gathered, _, found = judged(x, y, blocks, **options)
    step = 1e-4
    for row in (0, 17, 41):
        ends = []
        for change in (step, -step):
            weights = np.ones(n)
            weights[row] += change
            ends.append([sums(x, y, weights, gathered, group) for group in LADDER])
        slopes = np.subtract(*ends) / (2 * step)
        np.testing.assert_allclose(found.squares[:, row], slopes[:, 0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.errors[:, row], slopes[:, 1], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.spread[row], slopes[0, 2], rtol=1e-5, atol=1e-7)


def test_with_few_rows_there_is_no_interval_and_with_many_the_fits_no_longer_count(rng):
    x = rng.normal(size=(500, 4))
    y = x + rng.normal(size=(500, 4))
    assert judged(x[:39], y[:39])[2] is None and judged(x[:40], y[:40])[2] is not None
    assert not intervals(None, 0, np.ones(3), np.ones(3)).r2.known
    # The wider side counts.
    assert judged(x[:79], np.hstack([y, y])[:79])[2] is None
    _, seen, found = judged(x, y)
    np.testing.assert_array_equal(found.squares, seen.errors**2)
    np.testing.assert_array_equal(found.spread, seen.spread**2)


def test_influences_of_a_sample_stand_for_all_rows(rng, monkeypatch):
    monkeypatch.setattr(room, "MANY", 10**9)
    x = rng.normal(size=(3000, 3))
    y = x @ rng.normal(size=(3, 3)) + rng.normal(size=(3000, 3))
    _, seen, whole = judged(x, y)
    monkeypatch.setattr(room, "SAMPLE", 1000)
    part = judged(x, y)[2]
    assert part.squares.shape == (len(LADDER), 1000) and part.n == whole.n == 3000
    for g in range(len(LADDER)):
        ends = [intervals(found, g, seen.errors[g], seen.spread).r2 for found in (whole, part)]
        widths = [end.high - end.low for end in ends]
        assert widths[1] == pytest.approx(widths[0], rel=0.2)


def test_copies_in_blocks_add_nothing(rng, monkeypatch):
    """Rows that are there four times, each time in one block, tell as much as once."""
    monkeypatch.setattr(room, "MANY", 10**9)
    x = rng.normal(size=(90, 3))
    y = x @ rng.normal(size=(3, 3)) + rng.normal(size=(90, 3))
    once = judged(x, y, Blocks(np.arange(90)))
    copies = np.repeat(np.arange(90), 4)
    often = judged(x[copies], y[copies], Blocks(copies))
    np.testing.assert_array_equal(often[0].fold, once[0].fold[copies])
    for g in range(len(LADDER)):
        single, repeated = (intervals(found, g, seen.errors[g], seen.spread) for _, seen, found in (once, often))
        for name in ("error", "relative", "r2"):
            one, other = getattr(single, name), getattr(repeated, name)
            assert (one.low, one.high) == pytest.approx((other.low, other.high), rel=1e-6)
    # As independent rows they would seem to.
    alone = Influences(often[2].squares, often[2].errors, often[2].spread, None, often[2].n)
    narrow = intervals(alone, 0, often[1].errors[0], often[1].spread).r2
    wide = intervals(often[2], 0, often[1].errors[0], often[1].spread).r2
    assert narrow.high - narrow.low < 0.6 * (wide.high - wide.low)


def test_the_spread_of_a_mean_is_the_textbooks(rng):
    values = rng.normal(size=400)
    values -= values.mean()
    found = Influences(np.empty((0, 0)), np.empty((0, 0)), np.empty(0), None, 400)
    spread, freedom = found.relative_spread(values)
    assert spread == pytest.approx(values.std(ddof=1) / 20)
    # A sum of 400 squares of Gaussians has about as many degrees of freedom.
    assert student(freedom) == pytest.approx(t.ppf(0.975, 400), rel=0.01)
    assert found.relative_spread(np.zeros(400)) == (0.0, np.inf)
    # One row decides all: hardly any degree of freedom is left.
    outlier = np.zeros(400)
    outlier[3] = 1.0
    assert student(found.relative_spread(outlier)[1]) > 4


@pytest.mark.parametrize("freedom", [1.0, 3.7, 999.0, 1001.0, 1e5, np.inf])
def test_quantiles_are_scipys(freedom):
    assert student(freedom) == pytest.approx(t.ppf(0.975, freedom), abs=2e-5)
    assert student(freedom, 0.999) == pytest.approx(t.ppf(0.9995, freedom), abs=5e-5)


def test_intervals_on_a_log_scale():
    found = on_log_scale(2.0, 0.1, np.inf)
    assert found.low * found.high == pytest.approx(4.0) and found.high == pytest.approx(2 * np.exp(0.098), rel=1e-5)
    assert on_log_scale(2.0, 0.1, 7.0, 0.99).high == pytest.approx(2 * np.exp(0.05 * t.ppf(0.995, 7)))
    assert on_log_scale(0.0, 0.1, 2.0) == Interval(0.0, 0.0) and on_log_scale(0.0, 0.1, 2.0).known
    assert np.isfinite(on_log_scale(1e-300, 1e5, 2.0).high)


@pytest.mark.parametrize("tails", ["gaussian", "t3"])
@pytest.mark.parametrize(("n", "d"), [(60, 4), (300, 4)])
def test_intervals_cover_what_they_are_of(rng, n, d, tails):
    """The mean figure of a fit on so many rows, over data sets; in units of the target's spread also the error's."""
    groups, runs = [GROUPS["rigid"], GROUPS["linear"]], 200
    truth, ends = np.empty((runs, 2, 2)), np.empty((runs, 2, 2, 2))
    mixing = np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag(np.linspace(0.7, 1.3, d))
    for run in range(runs):
        x = rng.normal(size=(n, d)) if tails == "gaussian" else rng.standard_t(3, size=(n, d))
        y = x @ mixing + rng.normal(size=(n, d))
        _, seen, found = judged(x, y, groups=groups, seed=run)
        for g in range(2):
            own = intervals(found, g, seen.errors[g], seen.spread)
            share = np.sum(seen.errors[g] ** 2) / np.sum(seen.spread**2)
            truth[run, g] = 1 - share, seen.errors[g].mean()
            ends[run, g] = (own.r2.low, own.r2.high), (own.error.low, own.error.high)
    means = truth.mean(axis=0)
    covered = np.mean((ends[..., 0] <= means) & (means <= ends[..., 1]), axis=0)
    # 200 runs tell a share of 95% to 1.5 points; R2 of heavy tails has a skewed distribution itself.
    assert covered[:, 1].min() > 0.905 and covered[:, 0].min() > (0.905 if tails == "gaussian" else 0.85), covered
