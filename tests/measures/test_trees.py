"""Boosted trees against LightGBM, and bins by counting."""

import numpy as np
import pytest

from nearid.measures.trees import BINS, CLOSEST, EVERY, LEAST_IN_BIN, RATE, WIDE, bin_latents, boost

TREES, LEAVES = 40, 8


def targets(x, classes, rng):
    signal = x[:, 0] + x[:, 1] ** 2 + 0.2 * rng.normal(size=len(x))
    if not classes:
        return ((signal - signal.mean()) / signal.std()).astype(np.float32).astype(float)
    return np.digitize(signal, np.quantile(signal, np.linspace(0, 1, classes + 1)[1:-1]))


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_scores_and_gains_are_those_of_lightgbm(rng, classes):
    lightgbm = pytest.importorskip("lightgbm", reason="the extra `boost` is not installed")
    # Positive: LightGBM keeps a bin for zero, whose place it takes from the others.
    x = rng.uniform(1, 2, size=(600, 5))
    y = targets(x, classes, rng)
    objective = {0: {"objective": "regression"}, 2: {"objective": "binary"}}
    options = {
        **objective.get(classes, {"objective": "multiclass", "num_class": classes}),
        "num_leaves": LEAVES,
        "max_bin": BINS + 1,
        "min_data_in_bin": LEAST_IN_BIN,
        "learning_rate": RATE,
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbosity": -1,
    }
    booster = lightgbm.train(options, lightgbm.Dataset(x, y), TREES, keep_training_booster=True)
    rows = np.arange(600)
    made = boost(bin_latents(x), rows, y, rows, classes=classes, trees=TREES, leaves=LEAVES)
    scores = np.asarray(booster.predict(x, raw_score=True, num_threads=1)).reshape(600, -1).T
    # LightGBM has float32 gradients. A cut between equally good ones may then be another: none is here.
    np.testing.assert_allclose(made.scores, scores, atol=1e-5)
    np.testing.assert_allclose(made.gains, booster.feature_importance("gain"), rtol=1e-4, atol=1e-3)


def test_one_split_by_hand(rng):
    x = rng.permutation(100).astype(float)[:, None]
    y = np.where(x[:, 0] < 40, -1.0, 2.0)
    y = y - y.mean()
    rows = np.arange(100)
    made = boost(bin_latents(x), rows, y, rows, classes=0, trees=1, leaves=2)
    np.testing.assert_allclose(made.scores[0], RATE * y, atol=1e-6)
    # The whole variance is gained; y has mean 0.
    assert made.gains.tolist() == pytest.approx([float(np.sum(y**2))])


def test_rows_are_judged_that_were_not_fitted(rng):
    x = rng.normal(size=(400, 6))
    y = targets(x, 0, rng)
    train, test = np.arange(300), np.arange(300, 400)
    changed = x.copy()
    changed[300:] = changed[299::-1][:100]
    binned = bin_latents(x)
    first = boost(binned, train, y[train], test, classes=0, trees=20, leaves=8)
    assert np.corrcoef(first.scores[0], y[test])[0, 1] > 0.8
    # Other targets of the unseen rows are never looked at; other rows of the same bins give the same.
    again = boost(binned.take(np.r_[train, test[::-1]]), train, y[train], test, classes=0, trees=20, leaves=8)
    np.testing.assert_array_equal(again.scores[0], first.scores[0][::-1])


def test_bins_hold_equally_many_rows_and_never_part_equal_values(rng):
    many, few, constant = rng.normal(size=2000), rng.integers(0, 3, 2000).astype(float), np.ones(2000)
    heavy = np.where(rng.uniform(size=2000) < 0.5, 0.0, rng.normal(size=2000))
    binned = bin_latents(np.column_stack([many, few, constant, heavy, many]))
    assert binned.width == 5 and binned.codes.shape == (1, 2000, 8) and binned.bins <= BINS
    counts = np.bincount(binned.codes[0, :, 0])
    assert len(counts) == BINS and counts.min() >= LEAST_IN_BIN and counts.max() <= 2 * 2000 / BINS
    np.testing.assert_array_equal(binned.codes[0, :, 1], few)
    assert not binned.codes[0, :, 2].any()
    zeros = np.unique(binned.codes[0, heavy == 0, 3])
    assert len(zeros) == 1
    order = np.argsort(heavy)
    assert (np.diff(binned.codes[0, order, 3].astype(int)) >= 0).all()


def test_units_and_shifts_of_latents_change_nothing(rng):
    x = rng.normal(size=(300, 3))
    y, rows = targets(x, 0, rng), np.arange(300)
    one, other = (boost(bin_latents(z), rows, y, rows, classes=0, trees=10, leaves=8) for z in (x, 1e3 * x + 7))
    np.testing.assert_array_equal(one.scores, other.scores)


def test_few_rows_and_constant_latents_give_the_mean(rng):
    y = rng.normal(size=30)
    for x in (rng.normal(size=(30, 2)), np.ones((30, 2))):
        made = boost(bin_latents(x), np.arange(30), y, np.arange(30), classes=0, trees=5, leaves=8)
        np.testing.assert_allclose(made.scores, y.mean())
        assert not made.gains.any()


@pytest.mark.parametrize("classes", [0, 2, 3])
def test_latents_that_never_help_change_nothing_among_many(rng, classes):
    # All that help are among the closest, so rounds that see these alone give the trees that see all.
    few = rng.normal(size=(200, CLOSEST // 2))
    places = np.sort(rng.choice(3 * WIDE, few.shape[1], replace=False))
    many = np.ones((200, 3 * WIDE))
    many[:, places] = few
    y, rows = targets(few, classes, rng), np.arange(200)
    one, other = (
        boost(bin_latents(x), rows[:150], y[:150], rows[150:], classes=classes, trees=2 * EVERY + 3, leaves=8)
        for x in (few, many)
    )
    np.testing.assert_array_equal(other.scores, one.scores)
    np.testing.assert_array_equal(other.gains[places], one.gains)
    assert not np.delete(other.gains, places).any()


def test_a_signal_among_many_latents_is_found_whenever_it_appears(rng):
    # Two latents of a thousand, the second mostly where the first is positive.
    x = rng.normal(size=(500, 1000))
    y = np.where(x[:, 0] > 0, 1.0, 0.2) * np.sign(x[:, 700]) + 2 * (x[:, 0] > 0)
    train, test = np.arange(400), np.arange(400, 500)
    made = boost(bin_latents(x), train, y[train], test, classes=0, trees=100, leaves=8)
    assert set(np.argsort(made.gains)[-2:]) == {0, 700}
    assert np.corrcoef(made.scores[0], y[test])[0, 1] > 0.9


def best_gain(column, slopes, least=20):
    """The gain of the best cut of a column between the ends of its bins, of a loss with second derivatives of 1."""
    order = np.argsort(column, kind="stable")
    column, slopes = column[order], slopes[order]
    ends = np.flatnonzero(np.diff(column)) + 1
    ends = ends[(ends >= least) & (len(column) - ends >= least)]
    left, total = np.cumsum(slopes)[ends - 1], slopes.sum()
    return np.max(left**2 / ends + (total - left) ** 2 / (len(column) - ends) - total**2 / len(column), initial=0.0)


def test_of_many_latents_trees_see_those_with_the_largest_gains_of_all_rows(rng):
    x = rng.normal(size=(200, WIDE + 150))
    y = targets(x, 0, rng)
    binned = bin_latents(x)
    codes = binned.codes.transpose(0, 2, 1).reshape(-1, 200)[: x.shape[1]]
    own = np.array([best_gain(column, y.mean() - y) for column in codes])
    allowed = np.argsort(-own)[:CLOSEST]
    rows = np.arange(200)
    first = boost(binned, rows, y, rows, classes=0, trees=1, leaves=2)
    assert first.gains.argmax() == own.argmax() and (first.gains > 0).sum() == 1
    np.testing.assert_allclose(first.gains.max(), own.max(), rtol=1e-6)
    used = boost(binned, rows, y, rows, classes=0, trees=EVERY, leaves=LEAVES).gains > 0
    assert set(np.flatnonzero(used)) <= set(allowed) and used.sum() > 10
    later = boost(binned, rows, y, rows, classes=0, trees=3 * EVERY, leaves=LEAVES).gains > 0
    assert not set(np.flatnonzero(later)) <= set(allowed)
