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


def nothing_shared(values, batches=4):
    """What is left without each batch is as much as before."""
    return {c: {p: np.full((len(v), batches), np.mean(v)) for p, v in by_name.items()} for c, by_name in values.items()}


def test_one_batch_leaves_out_each_batch_by_turns(rng):
    # Trained on batches 0, 1 and 2 of four, judged on each of the others.
    pairs = 0.1 * rng.normal(size=(3, 4))
    pairs[np.arange(3), np.arange(3)] = np.nan
    gap, without = np.nanmean(pairs, axis=1), np.full((3, 4), np.nan)
    for split in range(3):
        for batch in set(range(4)) - {split}:
            without[split, batch] = np.nanmean(np.delete(pairs[split], batch))
    zeros = {"x": [0.0] * 3}, {"x": np.zeros((3, 4))}
    args = {"base": zeros[0], "ica": {"x": gap}}, {"base": zeros[1], "ica": {"x": without}}, {"x": None}
    (found,) = (t for t in compared("one", "boost", "auroc", *args) if t.perturbation == "x")
    left = np.nanmean(without, axis=0)
    size = np.sqrt(3 / 4 * np.sum((left - gap.mean()) ** 2))
    assert found.p == pytest.approx(2 * stats.t.sf(abs(gap.mean()) / size, 2))
    assert found.difference.value == pytest.approx(gap.mean()) and "jackknife" in found.difference.of
    # A batch without which nothing can be judged: no test.
    without[:, 3] = np.nan
    assert math.isnan(compared("one", "boost", "auroc", *args)[-1].p)


def test_perturbations_that_share_batches_are_less_sure():
    values = {"base": {p: [0.5] * 4 for p in "xyz"}, "ica": {p: [0.6 + k / 50] * 4 for k, p in enumerate("xyz")}}
    alone = nothing_shared(values)
    own = {"x": 0.01, "y": 0.0, "z": -0.01}
    shared = {**alone, "ica": {p: alone["ica"][p] + (0.03 + own[p]) * np.array([1, -1, 1, -1]) for p in "xyz"}}
    corrections = dict.fromkeys("xyz", 0.25)
    before, after = (compared("most", "boost", "auroc", values, w, corrections)[0] for w in (alone, shared))
    # What each has for itself is among what perturbations differ by.
    over, common = np.var([0.1, 0.12, 0.14], ddof=1) / 3, 3 / 4 * 4 * (0.03**2 - 0.01**2 / 3)
    free = (over + common) ** 2 / (over**2 / 2 + common**2 / 3)
    assert before.p == pytest.approx(stats.ttest_1samp([0.1, 0.12, 0.14], 0).pvalue)
    assert after.p == pytest.approx(2 * stats.t.sf(0.12 / np.sqrt(over + common), free)) and after.p > before.p


@pytest.mark.parametrize(("score", "most"), [("auroc", 1), ("sparsity", 1), ("concentration@5", 2)])
def test_intervals_stay_within_what_a_difference_can_be(score, most):
    values = {"base": {"x": [0.1, 0.0, 0.3]}, "ica": {"x": [0.9, 1.0, 0.6]}}
    raw = t_test(np.array([0.8, 1.0, 0.3]), 2.0)[0]
    assert raw.high > 2 and raw.low < -0.5
    found = compared("most", "boost", score, values, nothing_shared(values), {"x": 2.0})[-1]
    assert (found.difference.low, found.difference.high) == (max(raw.low, -most), most)


def test_families(rng):
    values = {
        name: {"x": rng.normal(k, 1, 5).tolist(), "y": rng.normal(k, 1, 3).tolist()}
        for k, name in enumerate(("base", "pca", "ica"))
    }
    found = compared("most", "boost", "auroc", values, nothing_shared(values), {"x": 0.25, "y": 0.5})
    assert len(found) == 9 and [(t.first, t.second) for t in found[:3]] == [
        ("base", "pca"),
        ("base", "ica"),
        ("pca", "ica"),
    ]
    together = [t for t in found if t.perturbation == ALL]
    means = {n: [np.mean(v["x"]), np.mean(v["y"])] for n, v in values.items()}
    assert together[1].difference.value == pytest.approx(np.mean(means["ica"]) - np.mean(means["base"]))
    # Where no batch makes a difference, perturbations alone count.
    assert together[1].p == pytest.approx(stats.ttest_rel(means["ica"], means["base"]).pvalue)
    assert [t.p_holm for t in together] == pytest.approx(holm([t.p for t in together]))
    each = [t for t in found if t.perturbation != ALL]
    assert [t.p_holm for t in each] == pytest.approx(holm([t.p for t in each]))
