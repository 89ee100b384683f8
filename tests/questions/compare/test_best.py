"""The best of several pairs against simulations of the choice, and against fits and reorderings by hand."""

import itertools

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import norm, t

import nearid
from nearid import InputError, compare
from nearid.folds import assign
from nearid.questions.compare.best import confidence_of_best


def rigid_errors(x, y, fold):
    """Squared errors of held-out rows under a rigid motion with a scale, and of the mean."""
    error, spread = np.empty(len(x)), np.empty(len(x))
    for k in range(int(fold.max()) + 1):
        rows, at = fold != k, fold == k
        mean_x, mean_y = x[rows].mean(axis=0), y[rows].mean(axis=0)
        turn, size = orthogonal_procrustes(x[rows] - mean_x, y[rows] - mean_y)
        scale = size / np.sum((x[rows] - mean_x) ** 2)
        error[at] = np.sum((y[at] - mean_y - scale * (x[at] - mean_x) @ turn) ** 2, axis=1)
        spread[at] = np.sum((y[at] - mean_y) ** 2, axis=1)
    return error, spread


def explicit_interval(error, spread, count):
    """R2 of the best of `count` pairs: ratio of means, on the scale of log(1 - R2)."""
    share, n = error.sum() / spread.sum(), len(error)
    moved = (error - share * spread) / spread.mean()
    squares = moved**2
    freedom = min(n - 1, 2 * squares.sum() ** 2 / (np.sum(squares**2) - squares.sum() ** 2 / n))
    half = t.ppf(1 - 0.05 / (count + 1), freedom) * moved.std(ddof=1) / np.sqrt(n) / share
    return 1 - share, 1 - share * np.exp(half), 1 - share * np.exp(-half)


@pytest.fixture
def runs(rng):
    z = rng.normal(size=(300, 3))
    return [z @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 0.5 * rng.normal(size=(300, 3)) for _ in range(4)]


@pytest.mark.parametrize("truth", ["like", "one ahead", "spread"])
@pytest.mark.parametrize("shared", [0.0, 0.5, 0.95])
def test_the_interval_of_the_best_covers(rng, truth, shared):
    count, draws = 45, 20_000
    means = {"like": np.zeros(count), "one ahead": 3.0 * (np.arange(count) == 0), "spread": np.linspace(0, 5, count)}
    noise = np.sqrt(shared) * rng.normal(size=(draws, 1)) + np.sqrt(1 - shared) * rng.normal(size=(draws, count))
    found = means[truth] + noise
    best = found.argmax(axis=1)
    off = np.abs(found[np.arange(draws), best] - means[truth][best])
    half = norm.ppf((1 + confidence_of_best(count)) / 2)
    assert np.mean(off <= half) > 0.95 - 3 * np.sqrt(0.05 * 0.95 / draws)
    if truth == "like" and shared == 0:
        # It is no wider than need be, and the interval of a single pair is far too narrow.
        assert np.mean(off <= half) < 0.96 and np.mean(off <= norm.ppf(0.975)) < 0.5


def test_of_one_pair_there_is_no_choice(rng):
    assert confidence_of_best(1) == pytest.approx(0.95)
    assert np.all(np.diff([confidence_of_best(m) for m in (1, 2, 10, 100, 10_000)]) > 0)


def test_best_and_worst_pairs_and_their_intervals(runs):
    comparisons, fold = compare(*runs, names=list("abcd"), permutations=1), assign(300, 5, 0)
    by_hand = {
        (i, j): explicit_interval(*rigid_errors(runs[i], runs[j], fold), 6)
        for i, j in itertools.combinations(range(4), 2)
    }
    for found, (i, j) in (
        (comparisons.best("rigid"), max(by_hand, key=by_hand.get)),
        (comparisons.worst("rigid"), min(by_hand, key=by_hand.get)),
    ):
        assert (found.source, found.target, found.pairs) == ("abcd"[i], "abcd"[j], 6)
        assert (found.value.value, found.value.low, found.value.high) == pytest.approx(by_hand[i, j], abs=1e-6)
        assert found.value.of == "a fit on 240 rows, judged on new rows; chosen among 6 pairs"
        own = comparisons[list(by_hand).index((i, j))].groups["rigid"].r2
        # A single pair keeps its own interval, which is narrower.
        assert found.value.low < own.low < own.high < found.value.high and own.of.endswith("new rows")
    assert np.isnan(comparisons.worst("rigid").p_value)


def test_the_best_by_chance_is_that_of_all_pairs_in_one_order(rng):
    z = rng.normal(size=(60, 2))
    runs = [z + 3 * rng.normal(size=(60, 2)) for _ in range(4)]
    fold = assign(60, 5, 2)
    found = compare(*runs, groups="rigid", permutations=9, random_state=2, blocks="none").best("rigid")

    def r2(x, y):
        error, spread = rigid_errors(x, y, fold)
        return 1 - error.sum() / spread.sum()

    pairs = list(itertools.combinations(runs, 2))
    orders = [np.random.default_rng(own).permutation(60) for own in np.random.SeedSequence([2, 4]).spawn(9)]
    reached = [max(r2(x, y[order]) for x, y in pairs) for order in orders]
    assert found.value.value == pytest.approx(max(r2(x, y) for x, y in pairs), abs=1e-6)
    assert found.value.chance == pytest.approx(max(reached), abs=1e-6)
    assert found.p_value == pytest.approx((1 + np.sum(np.array(reached) >= found.value.value)) / 10)


def test_both_directions_count(runs):
    comparisons = compare(*runs[:3], names=list("abc"), symmetric=True, permutations=1)
    best = comparisons.best("linear")
    values = {
        way.names: way.groups["linear"].r2.value for c in comparisons for way in (c, c.reverse) if way is not None
    }
    assert best.pairs == 6 and (best.source, best.target) == max(values, key=values.get)
    assert best.value.value == max(values.values()) and comparisons.worst("linear").value.value == min(values.values())


def test_pairs_of_different_rows(rng):
    """Rows are paired by id, so that pairs have different rows and orders."""
    z = rng.normal(size=(200, 2))
    runs, ids = [], []
    for k in range(3):
        rows = np.sort(rng.choice(200, 150 + 10 * k, replace=False))
        runs.append(z[rows] + 0.1 * rng.normal(size=(len(rows), 2)))
        ids.append(rows)
    comparisons = compare(*runs, ids=ids, permutations=19)
    assert len({c.n for c in comparisons}) > 1
    best = comparisons.best("linear")
    assert best.p_value == pytest.approx(0.05) and best.value.low < best.value.value < best.value.high < 1


def test_without_intervals_or_estimates_nothing_is_invented(rng):
    z = rng.normal(size=(40, 8))
    comparisons = compare(z, z + 0.1, z + 0.1 * rng.normal(size=(40, 8)), permutations=1)
    found = comparisons.best("linear")
    assert not found.value.has_interval and "interval" not in found.text and "best by chance" in found.text
    with pytest.raises(InputError, match="'lineal' was not compared; the groups are permutation, rigid, linear"):
        comparisons.best("lineal")
    # Plain least squares with hardly more rows than columns is worse than the rigid motion that it contains.
    wide = rng.normal(size=(60, 30))
    turned = [wide @ np.linalg.qr(rng.normal(size=(30, 30)))[0] + 0.1 * rng.normal(size=(60, 30)) for _ in range(3)]
    unknown = compare(*turned, ridge=0, permutations=1)
    assert not any(c.groups["linear"].estimable for c in unknown)
    assert unknown.best("linear") is unknown.worst("linear") is unknown.to_dict()["best"]["linear"] is None
    assert "not estimable" in str(unknown) and unknown.view.reason == "" and unknown.best("rigid").pairs == 3


def test_what_is_said(runs):
    comparisons = compare(*runs, names=list("abcd"), permutations=19)
    best, worst = comparisons.best("linear"), comparisons.worst("linear")
    low, high = f"{best.value.low:.3f}", f"{best.value.high:.3f}"
    text = (
        f"The best of 6 pairs by R2 of a linear map is {best.source} -> {best.target}: {best.value.value:.3f} (95% "
        f"interval {low} to {high}, allowing for the choice; best by chance up to "
    )
    assert comparisons.view.reason.startswith(text) and comparisons.view.reason.endswith("p = 0.05).")
    table = comparisons.view.tables[1]
    assert table.title == "Best and worst of 6 pairs, R2 held out [95% interval]"
    row = next(row.cells for row in table.rows if row.cells[0] == "linear map")
    assert row[2] is not None and (row[2].low, row[6].high) == (best.value.low, worst.value.high)
    written = comparisons.to_dict()
    assert written["best"]["linear"] == {
        "source": best.source, "target": best.target, "value": best.value.to_dict(), "pairs": 6, "p_value": 0.05,
        "unmeasured": "",
    }  # fmt: skip
    assert written["worst"]["rigid"]["p_value"] is None and "by_chance" not in written["pairs"][0]
    assert isinstance(best, nearid.questions.compare.best.Best)


def test_slow_rows_have_no_p_value(rng):
    """The overview gave p = .01 where each pair says that chance cannot be measured."""
    # One turn of a circle, from another point for each run: no draw makes such rows depend on each other less.
    angles = np.linspace(0, 2 * np.pi, 300)[:, None] + np.array([0.0, 1.5])
    runs = (np.cos(angles + 0.4 * k) + 0.01 * rng.normal(size=(300, 2)) for k in range(3))
    found = compare(*runs, permutations=19)
    best = found.best("linear")
    assert all(c.unmeasured == "Rows depend on their neighbours for so long" for c in found)
    assert np.isnan(best.p_value) and np.isnan(best.value.chance) and "p =" not in best.text
    assert "rows depend on their neighbours for so long that chance cannot be measured)" in best.text
    assert found.view.tables[1].note.endswith("for so long that chance cannot be measured.")
    assert found.to_dict()["pairs"][0]["unmeasured"] and found.to_dict()["best"]["linear"]["p_value"] is None
