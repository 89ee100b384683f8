"""The variance of components, split between batch and label."""

import re

import numpy as np
import pytest

from nearid.arrays.memory import MemoryRows
from nearid.base.estimate import Estimate
from nearid.questions.deconfound import partition as module
from nearid.questions.deconfound.attribution import observe
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.partition import PARTS, Shares, partition


def split(x, labels, batches, blocks=None, weights=None):
    x = np.asarray(x, dtype=float)
    x = x[:, None] if x.ndim == 1 else x
    k = x.shape[1]
    components = ComponentRows(MemoryRows("x", x), Condition("base", x.mean(axis=0), None, np.arange(k), np.ones(k)))
    return partition(observe(components, labels, batches, None, blocks).units, weights)


def residual(x, *factors):
    """Residual mean squares of least squares on indicators, by numpy; the oracle."""
    columns = [np.ones((len(x), 1)), *(np.eye(int(f.max()) + 1)[f] for f in factors)]
    design = np.hstack(columns)
    left = x - design @ np.linalg.lstsq(design, x, rcond=None)[0]
    return (left**2).sum(axis=0) / (len(x) - np.linalg.matrix_rank(design))


@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_least_squares_on_indicators(seed):
    rng = np.random.default_rng(seed)
    batches, labels = rng.integers(0, 5, 80), rng.integers(0, 4, 80)
    labels[batches == 0] = 0
    x = rng.normal(size=(80, 3)) + batches[:, None] * [1, 0, 0.5] + labels[:, None] * [0, 1, 0.5]
    none, b, l, both = residual(x), residual(x, batches), residual(x, labels), residual(x, batches, labels)
    expected = np.array([l - both, b - both, none - b - l + both, both])
    found = split(x, labels, batches)
    # Components are in float32.
    np.testing.assert_allclose(found.values, expected / none, atol=1e-5)
    np.testing.assert_allclose([float(e) for e in found.whole], expected.sum(axis=1) / none.sum(), atol=1e-5)
    weights = np.array([4.0, 1.0, 0.0])
    weighted = split(x, labels, batches, weights=weights)
    np.testing.assert_allclose([float(e) for e in weighted.whole], expected @ weights / (none @ weights), atol=1e-5)
    np.testing.assert_allclose(found.values.sum(axis=0), 1)


def test_a_balanced_design_has_the_variances_that_were_planted():
    """Effects of fixed variances, each orthogonal to the other: shares by hand, nothing that could be either."""
    batches, labels = (a.ravel() for a in np.meshgrid(np.arange(4), np.arange(3), indexing="ij"))
    batches, labels = np.repeat(batches, 100), np.repeat(labels, 100)
    # Within every cell half of the rows are +1 and half -1: the rest has variance 1, without any chance.
    noise = np.tile([1.0, -1.0], 600)
    x = np.array([-3, -1, 1, 3])[batches] + np.array([-1, 0, 1])[labels] + noise
    found = dict(zip(PARTS, split(x, labels, batches).values[:, 0], strict=True))
    total = 5 + 2 / 3 + 1
    assert found["batch"] == pytest.approx(5 / total, abs=0.003)
    assert found["label"] == pytest.approx((2 / 3) / total, abs=0.003)
    assert found["rest"] == pytest.approx(1 / total, abs=0.003)
    assert found["either"] == pytest.approx(0, abs=0.003)


def test_shares_for_people_sum_to_100_and_stay_in_their_intervals(rng):
    """Also where effects of batch and label oppose each other, so that the shares of both sum to more than 1."""
    batches = np.repeat(np.arange(4), 60)
    labels = np.where(rng.random(240) < 0.85, batches, rng.integers(0, 4, 240))
    opposed = split(batches - 0.9 * labels + 0.2 * rng.normal(size=240), labels, batches).of(0)
    assert opposed.either < -0.1 and opposed.batch + opposed.label > 1
    drawn = [Shares(*(Estimate(v, v - 0.1, v + 0.3) for v in rng.dirichlet(np.ones(4)))) for _ in range(50)]
    for shares in (opposed, *drawn):
        shown = shares.adding_up()
        assert sum(float(each) for each in shown) == pytest.approx(1) and sum(shares.percentages) == 100
        assert all(0 <= each.low <= each.value <= each.high <= 1 for each in shown)
        assert all(abs(p - 100 * each.value) <= 1 for p, each in zip(shares.percentages, shown, strict=True))
        for text in shares.texts:
            percent, low, high = (int(number) for number in re.findall(r"\d+", text))
            assert 0 <= low <= percent <= high <= 100
    # The largest remainder is rounded up.
    assert Shares(*map(Estimate, (0.334, 0.334, 0.0, 0.332))).percentages == [34, 33, 0, 33]
    assert Shares(*map(Estimate, (0.2, 0.3, 0.1, 0.4))).texts == ["20%", "30%", "10%", "40%"]
    assert Shares(*[Estimate(np.nan)] * 4).texts == []


def test_where_the_batch_is_the_label_all_could_be_either(rng):
    batches = np.repeat(np.arange(4), 50)
    found = split(5.0 * batches + rng.normal(size=200), batches, batches)
    batch, label, either, rest = found.values[:, 0]
    assert batch == pytest.approx(0, abs=1e-6) and label == pytest.approx(0, abs=1e-6)
    assert either > 0.95 and rest == pytest.approx(1 - either)


def test_batches_of_one_label_each_explain_alone_only_what_differs_within_labels(rng):
    """Labels of two batches each: differences of labels could be either, those of batches of a label are batch."""
    batches = np.repeat(np.arange(6), 200)
    labels = batches // 2
    far = split(4.0 * labels + rng.normal(size=1200), labels, batches)
    assert far.of(0).either > 0.85 and abs(far.of(0).batch) < 0.01 and abs(far.of(0).label) < 1e-6
    near = split(4.0 * (batches % 2) + rng.normal(size=1200), labels, batches)
    assert near.of(0).batch > 0.7 and near.of(0).either < 0.01


def test_noise_has_none_of_them_on_average(rng):
    batches, labels = rng.integers(0, 8, 120), rng.integers(0, 10, 120)
    shares = split(rng.normal(size=(120, 2000)), labels, batches).values
    error = shares.std(axis=1) / np.sqrt(2000)
    assert np.all(np.abs(shares.mean(axis=1) - [0, 0, 0, 1]) < 4 * error)


def test_blocks_count_once(rng):
    """Copies of rows change nothing where they are blocks; else they would be evidence."""
    batches, labels = rng.integers(0, 6, 90), rng.integers(0, 3, 90)
    x, copies = rng.normal(size=(90, 2)), rng.integers(1, 6, 90)
    repeated = [np.repeat(a, copies, axis=0) for a in (x - x.mean(axis=0), labels, batches, np.arange(90))]
    once, counted = split(x, labels, batches), split(*repeated)
    np.testing.assert_allclose(counted.values, once.values, atol=1e-5)
    np.testing.assert_allclose(counted.high, once.high, atol=1e-5)
    assert split(*repeated[:3]).values[3].mean() < once.values[3].mean() - 0.05


def test_intervals_are_those_of_a_jackknife_over_batches(rng):
    from scipy.stats import t

    batches, labels = rng.integers(0, 7, 150), rng.integers(0, 4, 150)
    x = rng.normal(size=150) + rng.normal(size=7)[batches] + labels
    found = split(x, labels, batches)
    each = np.array([split(x[batches != b], labels[batches != b], batches[batches != b]).values for b in range(7)])
    reach = t.ppf(0.975, 6) * np.sqrt(6 / 7 * np.sum((each - each.mean(axis=0)) ** 2, axis=0))
    np.testing.assert_allclose((found.high - found.values)[1:], reach[1:], rtol=1e-3)
    np.testing.assert_allclose((found.values - found.low)[1:], reach[1:], rtol=1e-3)
    # The share of the batch is skewed: its interval also covers the one on the logit scale.
    odds, middle = np.log(each[:, 0, 0] / (1 - each[:, 0, 0])), np.log(found.values[0, 0] / (1 - found.values[0, 0]))
    wide = t.ppf(0.975, 6) * np.sqrt(6 / 7 * np.sum((odds - odds.mean()) ** 2))
    ends = [1 / (1 + np.exp(-middle - side * wide)) for side in (-1, 1)]
    value = found.values[0, 0]
    assert found.low[0, 0] == pytest.approx(min(ends[0], value - reach[0, 0]), rel=1e-3)
    assert found.high[0, 0] == pytest.approx(max(ends[1], value + reach[0, 0]), rel=1e-3)
    assert found.high[0, 0] > value + reach[0, 0]
    two = split(x[batches < 2], labels[batches < 2], batches[batches < 2])
    assert np.isnan(two.low).all() and not np.isnan(two.values).any()


def test_many_batches_are_left_out_in_groups(rng, monkeypatch):
    batches, labels = rng.integers(0, 60, 900), rng.integers(0, 4, 900)
    x = rng.normal(size=900) + rng.normal(size=60)[batches]
    single = split(x, labels, batches).of(0).batch
    monkeypatch.setattr(module, "GROUPS", 20)
    grouped = split(x, labels, batches).of(0).batch
    assert grouped.value == single.value and grouped.low != single.low
    assert 0.4 < (grouped.high - grouped.low) / (single.high - single.low) < 2.5


def test_without_degrees_of_freedom_there_is_no_share():
    found = split(np.arange(4.0), np.array([0, 0, 1, 2]), np.array([0, 1, 1, 1]))
    assert np.isnan(found.values).all() and np.isnan(float(found.whole.batch))
    constant = split(np.zeros((40, 1)), np.arange(40) % 3, np.arange(40) % 4)
    assert np.isnan(constant.values).all()


@pytest.mark.parametrize(("drawn", "least"), [(5, 90), (20, 88)])
def test_intervals_cover_the_share_of_batches_that_are_drawn(drawn, least):
    """Random batches of share .3. A symmetric jackknife covers it in 82 of 100 runs with five batches."""
    truth, hits = 0.3, 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        batches, labels = np.repeat(np.arange(drawn), 30), np.tile(np.arange(3), 10 * drawn)
        x = np.sqrt(0.3 / 0.7) * rng.normal(size=drawn)[batches] + rng.normal(size=len(batches))
        share = split(x, labels, batches).of(0).batch
        hits += share.low <= truth <= share.high
    assert hits >= least
