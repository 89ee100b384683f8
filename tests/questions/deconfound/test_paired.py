"""Paired tests against scipy, the published correction and Holm's method by hand."""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from nearid.questions.deconfound.paired import ALL, MeanScore, compared, holm, t_test


def test_mean_and_standard_error():
    key = ("most", "boost", "auroc", "ica", "drug")
    score = MeanScore.of(key, [0.5, 0.7, math.nan, 0.6])
    assert score.mean == pytest.approx(0.6) and score.se == pytest.approx(stats.sem([0.5, 0.7, 0.6]))
    assert score.splits == (3, 4) and score.condition == "ica"
    assert math.isnan(MeanScore.of(key, [1.0]).se) and math.isnan(MeanScore.of(key, [math.nan]).mean)


def test_without_correction_it_is_the_paired_t_test(rng):
    a, b = rng.normal(size=(2, 9))
    gap, p = t_test(b - a, 0.0)
    theirs = stats.ttest_rel(b, a)
    assert p == pytest.approx(theirs.pvalue)
    assert (gap.low, gap.high) == pytest.approx(tuple(theirs.confidence_interval()))
    assert gap.value == pytest.approx(np.mean(b - a)) and gap.n == 9


def test_overlapping_folds_enlarge_the_variance(rng):
    gap = rng.normal(0.1, 1, 5)
    t = gap.mean() / np.sqrt((1 / 5 + 1 / 4) * gap.var(ddof=1))
    assert t_test(gap, 1 / 4)[1] == pytest.approx(2 * stats.t.sf(abs(t), 4))


def test_what_says_nothing_of_its_spread():
    same, p = t_test(np.zeros(4), 0.2)
    assert (same.value, same.low, same.high, p) == (0.0, 0.0, 0.0, 1.0)
    assert math.isnan(t_test(np.full(4, 0.3), 0.0)[1]) and math.isnan(t_test(np.array([0.3]), 0.0)[1])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, math.nan])[:3] == pytest.approx([0.03, 0.06, 0.06])
    assert math.isnan(holm([math.nan])[0]) and holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_lies_between_none_and_bonferroni(p):
    found = np.array(holm(p))
    assert (found >= np.array(p) - 1e-15).all() and (found <= np.minimum(len(p) * np.array(p), 1) + 1e-12).all()
    assert (np.diff(found[np.argsort(p, kind="stable")]) >= 0).all()


def test_families(rng):
    values = {
        name: {"x": rng.normal(k, 1, 5).tolist(), "y": rng.normal(k, 1, 3).tolist()}
        for k, name in enumerate(("base", "pca", "ica"))
    }
    found = compared("most", "boost", "auroc", values, {"x": 0.25, "y": 0.5})
    assert len(found) == 9 and [(t.first, t.second) for t in found[:3]] == [
        ("base", "pca"),
        ("base", "ica"),
        ("pca", "ica"),
    ]
    together = [t for t in found if t.perturbation == ALL]
    means = {n: [np.mean(v["x"]), np.mean(v["y"])] for n, v in values.items()}
    assert together[1].difference.value == pytest.approx(np.mean(means["ica"]) - np.mean(means["base"]))
    assert together[1].p == pytest.approx(stats.ttest_rel(means["ica"], means["base"]).pvalue)
    assert [t.p_holm for t in together] == pytest.approx(holm([t.p for t in together]))
    each = [t for t in found if t.perturbation != ALL]
    assert [t.p_holm for t in each] == pytest.approx(holm([t.p for t in each]))
