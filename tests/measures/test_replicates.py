"""Replicate mAP against brute force, against copairs, and p-values against all orders and on data without effects."""

import json
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from scipy.stats import false_discovery_control
from sklearn.metrics import average_precision_score

from nearid.measures import replicates as module
from nearid.measures.replicates import Null, ReplicateSearch, adjust, replicates

# Made by copairs 0.5.5 from drawn numbers: pos_sameby label, pos_diffby batch, neg_diffby batch and label ("all"),
# or batch and whether it is the control 0 ("controls"); null_size 100,000, seed 0.
COPAIRS = Path(__file__).with_name("copairs.json")


def test_replicates_are_what_brute_force_finds(rng, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 5)
    x, labels, batches = rng.normal(size=(30, 4)), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    alike = 1 - cdist(x, x, "cosine")
    by_label = {1: [], 2: []}
    for i in np.flatnonzero(labels):
        other = batches != batches[i]
        by_label[labels[i]].append(average_precision_score(labels[other] == labels[i], alike[i][other]))
    found = replicates(x, labels, batches, control=0)
    assert found.per_label == pytest.approx({k: np.mean(v) for k, v in by_label.items()})
    assert found.value == pytest.approx(np.mean([np.mean(v) for v in by_label.values()]))


def test_chance_is_the_mean_over_all_orders():
    # One asking row, and five rows of another batch of which two are its replicates.
    labels, batches = np.array([1, 1, 1, 0, 0, 0]), np.array([0, 1, 1, 1, 1, 1])
    x = np.eye(6)[:, :2] + np.arange(6)[:, None]
    wanted = np.mean([average_precision_score(order, np.arange(5, 0, -1)) for order in permutations([1, 1, 0, 0, 0])])
    # Rows 1 and 2 ask for row 0 alone, and find it.
    found = replicates(x, labels, batches, control=0)
    assert found.chance == pytest.approx(np.mean([wanted, 1, 1]))


def test_ties_do_not_help():
    labels, batches = np.array([1, 1, 2, 2]), np.array([0, 1, 1, 0])
    found = replicates(np.ones((4, 2)), labels, batches)
    assert found.value == pytest.approx(0.5)


@pytest.mark.parametrize("against", ["all", "controls"])
def test_copairs_finds_the_same(against):
    told = json.loads(COPAIRS.read_text())
    x, labels, batches = (np.array(told[name]) for name in ("x", "labels", "batches"))
    found = ReplicateSearch(labels, batches, 0, against).measure(x)
    theirs = told[against]
    assert dict(zip(map(str, found.queries), found.precision, strict=True)) == pytest.approx(theirs["ap"], abs=1e-12)
    assert found.per_label == pytest.approx({int(k): v for k, v in theirs["map"].items()}, abs=1e-12)
    # Both draw their orders: five standard errors of 10,000 draws.
    for code, p in found.p.items():
        other = theirs["p"][str(code)]
        assert p == pytest.approx(other, abs=5 * np.sqrt(other * (1 - other) / 10_000) + 2e-4)


def test_other_labels_alone(rng):
    x, labels, batches = rng.normal(size=(30, 4)), rng.integers(0, 3, 30), rng.integers(0, 3, 30)
    alike = 1 - cdist(x, x, "cosine")
    found = ReplicateSearch(labels, batches, 0, "labels").measure(x)
    for row, precision in zip(found.queries, found.precision, strict=True):
        others = (batches != batches[row]) & (labels != 0)
        assert precision == pytest.approx(average_precision_score(labels[others] == labels[row], alike[row][others]))


def test_p_values_are_exact_where_orders_are_few():
    # Label 1 is once in each of two batches, beside three others: the replicate is first, or second, or ...
    labels, batches = np.array([1, 0, 2, 3, 1, 0, 2, 3]), np.array([0, 0, 0, 0, 1, 1, 1, 1])
    search = ReplicateSearch(labels, batches)
    null = search.nulls[1]
    assert null.exact and null.values.tolist() == pytest.approx([1 / 4, 1 / 3, 1 / 2, 1])
    assert [null.p(v) for v in (1, 0.75, 0.5, 1 / 3, 0.1)] == [0.25, 0.25, 0.5, 0.75, 1.0]
    x = np.vstack([np.eye(4), np.eye(4)])
    assert set(search.measure(x).p.values()) == {0.25}


def test_drawn_orders_have_the_distribution_of_all_orders(monkeypatch):
    place = np.arange(1, 4)
    exact = np.sort([np.mean(place / np.array(at)) for at in combinations(range(1, 13), 3)])
    assert module._orders(3, 9, 100, 0).exact
    monkeypatch.setattr(module, "ORDERS", 10)
    drawn = module._orders(3, 9, 20_000, 0)
    assert not drawn.exact and drawn.values.mean() == pytest.approx(exact.mean(), abs=0.01)
    for q in (0.1, 0.5, 0.9, 0.99):
        assert (
            abs(np.mean(exact >= np.quantile(drawn.values, q)) - np.mean(drawn.values >= np.quantile(drawn.values, q)))
            < 0.03
        )
    assert Null(np.arange(4.0), exact=False).p(9) == 1 / 5


def test_without_effects_p_values_are_not_too_small():
    rng = np.random.default_rng(0)
    small = []
    for _ in range(30):
        labels, batches = rng.integers(0, 5, 80), rng.integers(0, 4, 80)
        small += ReplicateSearch(labels, batches, 0, "controls").measure(rng.normal(size=(80, 5))).p.values()
    # 120 p-values: 6 below .05 are expected at most.
    assert np.sum(np.array(small) < 0.05) <= 14


def test_effects_have_small_p_values(rng):
    labels, batches = np.arange(120) % 4, np.arange(120) // 20
    x = rng.normal(size=(120, 5)) + 3 * np.eye(4, 5)[labels]
    found = ReplicateSearch(labels, batches, 0, "controls").measure(x)
    assert max(found.p_adjusted.values()) < 0.001 and found.value > 0.9
    assert ReplicateSearch(labels, batches, 0).measure(x, p_values=False).p == {}


def test_adjusted_p_values(rng):
    p = rng.random(40) ** 3
    assert adjust(p) == pytest.approx(false_discovery_control(p))
    assert len(adjust(np.empty(0))) == 0


@pytest.mark.parametrize(("positives", "negatives"), [(5, 80), (60, 197), (40, 1500), (200, 300)])
def test_orders_of_nearly_as_many_rows_serve(positives, negatives):
    """Tails of the null distribution against one that is drawn for these very numbers."""
    own = module._orders(positives, negatives, 40_000, 1)
    other = module._alike(positives, negatives)
    assert abs(np.log(other[1] / negatives)) <= 0.021 and other[0] == positives
    # As far away as the grid allows.
    for far in (other[1], round(negatives * 1.02), round(negatives * 0.98)):
        drawn = module._orders(positives, far, 40_000, 2)
        shared = module._scaled(drawn, positives, negatives, positives, far)
        for share in (0.5, 0.9, 0.99):
            value = np.quantile(own.values, share)
            error = np.sqrt(2 * share * (1 - share) / 40_000)
            assert abs((shared.values >= value).mean() - (own.values >= value).mean()) < 5 * error


def test_few_orders_are_never_shared():
    assert module._alike(2, 100) == (2, 100)
    assert module._alike(4, 5000) == (4, 5000)
