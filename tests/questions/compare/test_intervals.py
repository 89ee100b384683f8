"""Influences against derivatives by hand, and intervals against what they claim to cover."""

import numpy as np
import pytest
from scipy.stats import t

import nearid.questions.compare.intervals as room
from judged_rows import LADDER, judged
from nearid import compare
from nearid.base.student import student
from nearid.folds import Blocks
from nearid.groups.fits import apply
from nearid.groups.ladder import GROUPS
from nearid.moments import PairMoments
from nearid.questions.compare.intervals import (
    SECOND_ROLE,
    Influences,
    Interval,
    Spread,
    intervals,
    on_log_scale,
    spread_of_mean,
)


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
    gathered, seen, found = judged(x, y, blocks, **options)
    step = 1e-4
    for row in (0, 17, 41):
        ends = []
        for change in (step, -step):
            weights = np.ones(n)
            weights[row] += change
            ends.append([sums(x, y, weights, gathered, group) for group in LADDER])
        slopes = np.subtract(*ends) / (2 * step)
        np.testing.assert_allclose(found.squares[:, row], slopes[:, 0], rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.spread[row], slopes[0, 2], rtol=1e-5, atol=1e-7)
        own = seen.errors[:, row]
        np.testing.assert_allclose(found.errors[:, row], own + SECOND_ROLE * (slopes[:, 1] - own), rtol=1e-5, atol=1e-7)


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
    values = rng.normal(size=400) + 3
    found = spread_of_mean(values, 400)
    assert found.error == pytest.approx(values.std(ddof=1) / 20)
    # A sum of 400 squares of Gaussians has about as many degrees of freedom.
    assert student(found.freedom, 0.95) == pytest.approx(t.ppf(0.975, 400), rel=0.01)
    assert spread_of_mean(np.ones(400), 400) == Spread(0.0, np.inf, 0.0)
    # One row decides all: hardly any degree of freedom is left.
    outlier = np.zeros(400)
    outlier[3] = -1.0
    found = spread_of_mean(outlier, 400)
    assert student(found.freedom, 0.95) > 4 and found.furthest == pytest.approx(-(1 - 1 / 400) / 400)


def test_the_spread_of_a_mean_of_blocks_and_of_a_sample(rng):
    """Blocks of ten equal rows; of some blocks, and of their first rows, the same on average."""
    own = rng.normal(size=2000)
    values, blocks = np.repeat(own, 10), np.repeat(np.arange(2000), 10)
    truth = own.std(ddof=1) / np.sqrt(2000)
    assert spread_of_mean(values, 20_000, blocks).error == pytest.approx(truth, rel=1e-9)
    assert spread_of_mean(values, 20_000).error == pytest.approx(truth / np.sqrt(10), rel=1e-3)
    some = np.flatnonzero((blocks < 500) & (np.arange(20_000) % 10 < 4))
    found = spread_of_mean(values[some], 20_000, blocks[some], np.full(2000, 2.5))
    assert found.error == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_that_are_rounding_have_intervals_of_rounding(rng, dtype):
    """The R2 of a run beside itself had an interval down to -2e253."""
    x = (rng.normal(size=(300, 10)) @ np.diag(np.logspace(0, 3, 10))).astype(dtype)
    for y, blocks in ((x, None), (2 * x, None), (x, np.arange(300) // 60)):
        for g in compare(x, y, blocks="none" if blocks is None else blocks, permutations=1).groups.values():
            assert 1 - 1e-9 < g.r2.low <= g.r2.value <= g.r2.high <= 1
            assert 0 <= g.relative.low <= g.relative.value <= g.relative.high < 1e-5
            assert 0 <= g.epsilon.low <= g.epsilon.value <= g.epsilon.high < 1e-5


def test_intervals_on_a_log_scale():
    found = on_log_scale(2.0, Spread(0.1, np.inf, -0.03))
    assert found.low * found.high == pytest.approx(4.0) and found.high == pytest.approx(2 * np.exp(0.098), rel=1e-5)
    assert on_log_scale(2.0, Spread(0.1, 7.0, 0.0), 0.99).high == pytest.approx(2 * np.exp(0.05 * t.ppf(0.995, 7)))
    nothing = on_log_scale(0.0, Spread(0.1, 2.0, 0.0))
    assert nothing == Interval(0.0, 0.0) and nothing.known
    assert np.isfinite(on_log_scale(1e-300, Spread(1e5, 2.0, 0.0)).high)
    # Variances add up, and rows far out move their own end alone.
    assert on_log_scale(2.0, Spread(0.08, np.inf, 0.0), choice=0.06**2 / 4).high == pytest.approx(found.high)
    below, above = (on_log_scale(2.0, Spread(0.1, np.inf, row), further=2) for row in (-0.03, 0.03))
    assert below.high == found.high and below.low == pytest.approx(found.low * np.exp(-0.03))
    assert above.low == found.low and above.high == pytest.approx(found.high * np.exp(0.03))


@pytest.mark.parametrize("tails", ["gaussian", "t3"])
@pytest.mark.parametrize(("n", "d"), [(60, 4), (300, 4)])
def test_intervals_cover_what_they_are_of(rng, n, d, tails):
    """The mean figure of a fit on so many rows, over data sets."""
    groups, runs = [GROUPS["permutation"], GROUPS["rigid"], GROUPS["linear"]], 200
    values, ends = np.empty((runs, 3, 3)), np.empty((runs, 3, 3, 2))
    mixing = np.linalg.qr(rng.normal(size=(d, d)))[0] @ np.diag(np.linspace(0.7, 1.3, d))
    for run in range(runs):
        x, noise = rng.normal(size=(2, n, d))
        if tails == "t3":
            x, noise = (side / np.sqrt(rng.chisquare(3, size=(n, 1))) for side in (x, noise))
        y = x @ mixing + 0.5 * noise
        _, seen, found = judged(x, y, groups=groups, seed=run)
        for g in range(3):
            own = intervals(found, g, seen.errors[g], seen.spread)
            size = np.mean(seen.spread**2)
            mean = seen.errors[g].mean()
            values[run, g] = 1 - np.mean(seen.errors[g] ** 2) / size, mean, mean / np.sqrt(size)
            ends[run, g] = [(one.low, one.high) for one in (own.r2, own.error, own.relative)]
    means = values.mean(axis=0)
    covered = np.mean((ends[..., 0] <= means) & (means <= ends[..., 1]), axis=0)
    # 200 runs tell a share of 95% to 1.5 points.
    assert covered.min() > 0.88, covered
    assert covered.mean() > 0.93, covered
