"""Random halves against textbook variances, what the choice of partners adds, and where it is not tried."""

import numpy as np
import pytest

import nearid
import nearid.questions.compare.partners as room
from judged_rows import judged
from nearid.folds import Blocks
from nearid.groups.ladder import GROUPS
from nearid.moments import PairMoments
from nearid.questions.compare.intervals import Influences, intervals
from nearid.questions.compare.partners import choice_variances

MATCHING = [GROUPS["permutation"], GROUPS["scaled_permutation"]]


def sides(rng, n, mixing, noise=0.5):
    x = rng.normal(size=(n, len(mixing))) + 2
    return x, x @ mixing + noise * rng.normal(size=(n, mixing.shape[1]))


def over_halves(x, y, blocks=None):
    """Sums over all rows of x and of x y, each less its average over halves, for every half."""
    gathered, _, _ = judged(x, y, blocks, groups=MATCHING)
    found = []
    for parts, rest in room._halves(gathered):
        n = parts[0].n + rest[0].n
        mean = sum(part.n * part.mean_x for part in parts) / n
        # Numbers of rows are rounded where a sample stands for them.
        np.testing.assert_allclose((parts[0].n * parts[0].mean_x + rest[0].n * rest[0].mean_x) / n, mean, rtol=0.01)
        products = sum(p.xy + p.n * np.outer(p.mean_x - x.mean(axis=0), p.mean_y - y.mean(axis=0)) for p in parts)
        found.append((mean[0], products[0, 1] / n))
    return np.var(found, axis=0, ddof=1)


@pytest.mark.parametrize("rows", [20_000, 500], ids=["all rows", "a sample"])
def test_means_vary_over_halves_as_over_samples(rng, monkeypatch, rows):
    monkeypatch.setattr(room, "HALVES", 1500)
    monkeypatch.setattr(room, "PIECES", 40)
    monkeypatch.setattr(room, "ROWS", rows)
    x, y = sides(rng, 2000, rng.normal(size=(3, 3)))
    product = (x[:, 0] - x[:, 0].mean()) * (y[:, 1] - y[:, 1].mean())
    expected = np.array([x[:, 0].var(), product.var()]) / 2000
    np.testing.assert_allclose(over_halves(x, y), expected, rtol=0.25 if rows == 20_000 else 0.5)


def test_copies_in_blocks_add_nothing(rng):
    # Rotated by about 45 degrees, so that either partner will do.
    mixing = np.array([[1, 1, 0, 0], [-1, 1, 0, 0], [0, 0, 1, 1], [0, 0, -1, 1]]) / np.sqrt(2)
    x, y = sides(rng, 150, mixing)
    copies = np.repeat(np.arange(150), 4)
    once, often, alone = (
        judged(x[rows], y[rows], blocks, groups=MATCHING)[2].choice
        for rows, blocks in ((np.arange(150), Blocks(np.arange(150))), (copies, Blocks(copies)), (copies, None))
    )
    np.testing.assert_allclose(often, once, rtol=1e-6)
    assert np.all(once > 2 * alone) and np.all(once > 0)


def test_halves_have_the_moments_of_rows(rng, monkeypatch):
    """With a piece for each row, a half is every second row, counted twice."""
    monkeypatch.setattr(room, "PIECES", 10**6)
    x, y = sides(rng, 40, rng.normal(size=(3, 2)))
    gathered, _, _ = judged(x, y, groups=MATCHING)
    for (parts, _), _ in zip(room._halves(gathered), range(3), strict=False):
        rows = np.flatnonzero(gathered.fold == 0)
        of_pairs = [(a, b, c, d) for a in rows for b in rows for c in rows for d in rows if a < b < c < d]
        means = np.array([x[list(own)].mean(axis=0) for own in of_pairs])
        drawn = list(of_pairs[np.argmin(np.abs(means - parts[0].mean_x).sum(axis=1))])
        expected = PairMoments.of(x[drawn], y[drawn])
        np.testing.assert_allclose(parts[0].mean_x, expected.mean_x)
        np.testing.assert_allclose(parts[0].xy, 2 * expected.xy)
        np.testing.assert_allclose(np.diag(parts[0].xx), 2 * np.diag(expected.xx))
        np.testing.assert_allclose(np.diag(parts[0].yy), 2 * np.diag(expected.yy))


def test_a_clear_matching_adds_nothing_and_a_doubtful_one_much(rng):
    """Against the variance of the logarithm of the squared error with the partners held fixed."""
    # A map without order that is the same for every seed: with some draws the partners are beyond doubt.
    clear, doubtful = np.eye(6)[rng.permutation(6)], np.cos(np.arange(36.0) ** 2).reshape(6, 6)
    # The mean of six draws is .005 to .022 for the one and above .5 for the other.
    for mixing, low, high in ((clear, 0, 0.05), (doubtful, 0.1, 10)):
        shares = []
        for _ in range(6):
            found = judged(*sides(rng, 240, mixing), groups=MATCHING)[2]
            missed = found.squares[0] / found.squares[0].mean() - found.spread / found.spread.mean()
            shares.append(found.choice[0] / (found.spread_of(missed).error ** 2))
        assert low <= np.mean(shares) < high, shares


@pytest.mark.parametrize("n", [80, 400])
def test_intervals_of_a_doubtful_matching_cover(rng, n):
    """A map without order: derivatives alone, which hold the partners fixed, are too narrow.

    The map is the same for every seed: with some the partners are beyond doubt.
    """
    runs, mixing = 150, np.cos(np.arange(64.0) ** 2).reshape(8, 8) / 2
    values, ends = np.empty(runs), np.empty((2, runs, 2))
    for run in range(runs):
        x = rng.normal(size=(n, 8))
        _, seen, found = judged(x, x @ mixing + 0.5 * rng.normal(size=(n, 8)), groups=MATCHING[:1], seed=run)
        fixed = Influences(found.squares, found.errors, found.spread, None, n)
        values[run] = 1 - np.mean(seen.errors[0] ** 2) / np.mean(seen.spread**2)
        for at, own in enumerate((fixed, found)):
            interval = intervals(own, 0, seen.errors[0], seen.spread).r2
            ends[at, run] = interval.low, interval.high
    without, covered = np.mean((ends[..., 0] <= values.mean()) & (values.mean() <= ends[..., 1]), axis=1)
    assert covered > 0.89 and covered > without + 0.02, (without, covered)


def test_other_groups_have_no_partners(rng):
    x, y = sides(rng, 100, rng.normal(size=(3, 3)))
    groups = [GROUPS["rigid"], GROUPS["linear"]]
    assert judged(x, y, groups=groups)[2].choice.tolist() == [0.0, 0.0]


def test_a_constant_column_finds_no_partner(rng):
    """Rounding of its mean would correlate with anything."""
    x, y = sides(rng, 200, np.eye(3))
    without, beside = (
        judged(rows, y, groups=MATCHING)[2].choice for rows in (x, np.hstack([x, np.full((200, 1), 0.1)]))
    )
    np.testing.assert_allclose(beside, without, rtol=1e-9)


def test_of_wide_rows_folds_tell_whether_partners_are_clear(rng, monkeypatch):
    monkeypatch.setattr(room, "WIDEST", 5)
    x, y = rng.normal(size=(2, 240, 12))
    assert np.isnan(judged(x, y, groups=MATCHING)[2].choice).all()
    # A column less on either side leaves one without a partner.
    for clear in ((x, 2 * x[:, ::-1]), (x[:, :11], -x), (x, x[:, :11])):
        assert judged(*clear, groups=MATCHING)[2].choice.tolist() == [0.0, 0.0]
    result = nearid.compare(x, y, permutations=1)
    permutation, rigid = (result.groups[name] for name in ("permutation", "rigid"))
    assert not permutation.r2.has_interval and not permutation.epsilon.has_interval and rigid.r2.has_interval
    assert "folds match columns differently" in permutation.no_interval and rigid.no_interval == ""
    assert result.to_dict()["groups"]["permutation"]["no_interval"] == permutation.no_interval
    note = result.view.tables[0].note
    assert f"permutation has no interval: {permutation.no_interval}." in note and "Intervals are for" in note
    few = nearid.compare(x[:80], y[:80], permutations=1)
    assert few.groups["rigid"].no_interval == "there are fewer than 10 rows for each column"
    assert "Errors and R2 have no intervals: there are fewer than 10 rows for each column." in few.view.tables[0].note


def test_components_of_each_side_have_no_interval(rng):
    """Another sample may find other components: sixty samples of 300 x 6 had intervals that covered 17%."""
    x = rng.laplace(size=(200, 3))
    result = nearid.compare(x, x + 0.1 * rng.normal(size=(200, 3)), groups="all", permutations=1)
    ica = result.groups["ica"]
    assert not ica.r2.has_interval and not ica.relative.has_interval and result.groups["linear"].r2.has_interval
    assert f"ica has no interval: {ica.no_interval}." in result.view.tables[0].note
    assert "other components" in ica.no_interval


def test_the_same_rows_leave_no_doubt(rng):
    x = rng.normal(size=(100, 3))
    gathered, _, found = judged(x, x, groups=MATCHING)
    np.testing.assert_allclose(found.choice, 0, atol=1e-12)
    assert choice_variances(gathered, [], None).tolist() == []
