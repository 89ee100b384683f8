"""The efficiency of ICA: closed forms, the papers' figure, and where there is none."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

from nearid.questions.compare.efficiency import efficiency, least_gain_of_rigid
from nearid.questions.compare.intervals import Influences

NAMES = ["permutation", "rigid", "linear", "ica"]


def judged(errors, noise=1e-3, in_sample=None, names=NAMES):
    spread = noise * np.random.default_rng(0).normal(size=(len(errors), 5))
    by_fold = np.array(errors)[:, None] + spread - spread.mean(axis=1, keepdims=True)
    return efficiency(names, by_fold, np.full(5, 100), 1.0, in_sample)


def test_the_interval_of_the_efficiency_is_over_folds_that_share_rows():
    by_fold = np.array([[4.0, 4.2, 3.8], [1, 1, 1], [0, 0, 0], [3, 3, 3]])
    found = efficiency(NAMES, by_fold, np.array([10, 10, 10]), 1.0, None)
    # (p - i) / (p - r) of the means is 1/3; a fold moves it by ((p - i) - (p - r) / 3) / 3.
    moved = np.array([1 - 3 / 3, 1.2 - 3.2 / 3, 0.8 - 2.8 / 3]) / 3
    half = student.ppf(0.975, 2) * np.std(moved, ddof=1) * np.sqrt(1 / 3 + 1 / 2)
    assert (found.value, found.low, found.high) == pytest.approx((1 / 3, 1 / 3 - half, 1 / 3 + half))
    assert "folds" in found.of


def test_the_papers_figure():
    # Pythia-160M: 0.219, 0.150, 0.131 and 0.202 are printed with 25%.
    found = judged([0.219, 0.150, 0.131, 0.202], in_sample=np.array([0.2, 0.1, 0.1, 0.15]))
    assert round(found.value, 2) == 0.25 and found.low < found.value < found.high
    assert found.in_sample == pytest.approx(0.5)
    assert "removes 25% [" in found.reason and found.reason.endswith("in sample 50%.")


@pytest.mark.parametrize(("ica", "words"), [(0.3, "is worse than"), (0.2, "is not clearly better than"), (0.1, "100%")])
def test_words_follow_the_figures(ica, words):
    assert words in judged([0.2, 0.1, 0.1, ica]).reason


@pytest.mark.parametrize(
    "errors", [[0.1, 0.1, 0.1, 0.1], [0.1, 0.102, 0.1, 0.1], [1e-16, 0, 0, 1e-17], [0.1012, 0.1, 0.1, 0.1]]
)
def test_no_figure_where_a_rigid_motion_gains_nothing_for_certain(errors):
    found = judged(errors, noise=1e-3 if max(errors) > 1e-3 else 1e-18, in_sample=np.array(errors))
    assert all(np.isnan([found.value, found.low, found.high, found.in_sample]))
    assert "is not clearly better" in found.reason


def test_ica_gains_no_more_than_all_that_a_rigid_motion_gains():
    """Whitening removes what a rigid motion cannot: a share of 967% said nothing."""
    found = judged([0.6, 0.5, 0.1, 0.1])
    assert (found.value, found.low, found.high) == (1, 1, 1)
    assert "all of the error that a rigid motion removes, and more" in found.reason
    assert ": 0.100 with ICA and 0.500 with a rigid motion" in found.reason
    # Nor where folds differ so much that it may be less.
    by_fold = np.array([[0.6] * 5, [0.5] * 5, [0.1] * 5, [0.3, 0.5, 0.4, 0.45, 0.35]])
    found = efficiency(NAMES, by_fold, np.full(5, 100), 1.0, None)
    assert found.value == found.high == 1 and 0 < found.low < 1 and "and more" in found.reason
    assert judged([0.2, 0.1, 0.1, 0.099]).value == 1


def test_a_gain_that_rows_make_certain_counts_where_folds_are_few():
    by_fold = np.array([[0.834, 0.836], [0.801, 0.796], [0.5, 0.5], [0.82, 0.82]])
    rows = np.array([4000, 4000])
    assert np.isnan(efficiency(NAMES, by_fold, rows, 1.0, None).value)
    assert np.isnan(efficiency(NAMES, by_fold, rows, 1.0, None, -0.01).value)
    assert efficiency(NAMES, by_fold, rows, 1.0, None, 0.03).value == pytest.approx(15 / 36.5)


def test_the_least_gain_of_a_rigid_motion_is_that_of_paired_rows(rng):
    n = 500
    rigid = rng.uniform(1, 2, size=n)
    errors = np.stack([rigid + rng.normal(0.1, 0.2, size=n), rigid, rigid])
    seen = Influences(errors**2, errors, np.ones(n), None, n)
    names = ["permutation", "rigid", "ica"]
    difference = errors[0] - errors[1]
    half = student.ppf(0.975, n - 1) * difference.std(ddof=1) / np.sqrt(n)
    assert least_gain_of_rigid(names, errors, seen) == pytest.approx(difference.mean() - half, rel=0.02)
    # A matching that may change says less of its error; without influences nothing is known.
    doubtful = replace(seen, choice=np.array([0.1, 0.0, 0.0]))
    assert least_gain_of_rigid(names, errors, doubtful) < difference.mean() - half - 0.1
    assert np.isnan(least_gain_of_rigid(names, errors, None)) and np.isnan(least_gain_of_rigid(["ica"], errors, seen))


def test_no_figure_without_its_groups():
    assert "needs the groups" in judged([0.1, 0.2], names=["linear", "ica"]).reason
