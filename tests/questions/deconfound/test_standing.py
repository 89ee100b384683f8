"""Gain and loss of conditions: tests of neighbours against a plain jackknife, and what is said of them."""

import numpy as np
import pytest

from nearid.base.estimate import Estimate
from nearid.questions.deconfound.paired import Paired, over_labels, over_rows
from nearid.questions.deconfound.standing import Standing


def of(value, p=0.001):
    return Paired("", "", "", "(all)", "base", "x", Estimate(value, value - 0.1, value + 0.1), p, p)


@pytest.mark.parametrize(
    ("carries", "mixes", "finds", "verdict"),
    [
        (of(0.1), of(0.1), of(0.1), "gains biology and mixes batches better"),
        (of(-0.1), of(0.1), of(0.1), "mixes batches better, but loses biology"),
        (of(0.1), of(0.1), of(-0.1), "mixes batches better, but loses biology"),
        (of(-0.1), of(-0.1), of(0.1, 0.5), "loses biology and mixes batches worse"),
        (of(-0.1, 0.2), of(0.1), of(0.1, 0.2), "mixes batches better"),
        (of(0.1, 0.2), of(0.1, 0.2), None, "no clear difference"),
        (of(0.1, np.nan), None, None, "no clear difference"),
    ],
)
def test_verdicts(carries, mixes, finds, verdict):
    assert Standing("x", carries, mixes, finds).verdict == verdict


def test_single_perturbations_decide_where_their_mean_cannot():
    unclear = of(-0.4, 0.3)
    assert Standing("x", unclear, of(0.1), None, worse=("a", "b")).verdict == "mixes batches better, but loses biology"
    assert Standing("x", unclear, None, None, better=("a",)).verdict == "gains biology"
    assert Standing("x", unclear, None, None, better=("a",), worse=("b",)).verdict == "no clear difference"


def test_rows_are_tested_by_leaving_out_batches(rng):
    gaps, batches = rng.normal(size=60), rng.integers(0, 5, 60) * 2
    found, p = over_rows(gaps, batches)
    left = np.array([gaps[batches != b].mean() for b in np.unique(batches)])
    variance = 4 / 5 * np.sum((left - gaps.mean()) ** 2)
    assert found.value == pytest.approx(gaps.mean()) and found.n == 5
    assert found.high - found.value == pytest.approx(2.7764451 * np.sqrt(variance)) and 0 < p < 1
    assert np.isnan(over_rows(gaps, np.zeros(60, int))[1])


def test_equal_conditions_are_seldom_called_different():
    rng = np.random.default_rng(0)
    labels, batches = np.arange(400) % 5, np.arange(400) // 40
    small = {"rows": 0, "labels": 0}
    for _ in range(200):
        # Rows of a batch move together, and so do those of a label in a batch.
        gaps = rng.normal(size=400) + rng.normal(size=10)[batches] + rng.normal(size=(5, 10))[labels, batches]
        small["rows"] += over_rows(gaps, batches)[1] < 0.05
        small["labels"] += over_labels(gaps, labels, batches)[1] < 0.05
    # 10 are expected; 22 are four standard errors more.
    assert max(small.values()) <= 22


def test_the_mean_over_labels_counts_each_label_once(rng):
    labels, batches = np.repeat([0, 1], [90, 10]), np.arange(100) % 5
    gaps = np.where(labels == 0, 1.0, 0.0) + 0.01 * rng.normal(size=100)
    assert over_labels(gaps, labels, batches)[0].value == pytest.approx(0.5, abs=0.01)
    one, _ = over_labels(gaps[:90], labels[:90], batches[:90])
    assert one.value == pytest.approx(1, abs=0.01) and one.n == 5
