"""Does ICA help? Known answers, a plain script as oracle, plain words."""

import math
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from nearid import ICA, compare
from nearid.base.estimate import Estimate
from nearid.folds import assign
from nearid.questions.compare.unmixing import _answer, _by_errors


def rotated(x, rng):
    return x @ np.linalg.qr(rng.normal(size=(x.shape[1], x.shape[1])))[0]


def noisy(x, rng, share):
    return x + share * x.std() * rng.normal(size=x.shape)


def matched(x, y, train):
    """Mean correlation of matched columns on the other rows."""
    k = x.shape[1]
    fitted = np.corrcoef(x[train].T, y[train].T)[:k, k:]
    own, other = linear_sum_assignment(-np.abs(fitted))
    seen = np.corrcoef(x[~train].T, y[~train].T)[:k, k:]
    return np.mean(np.sign(fitted[own, other]) * seen[own, other])


def test_the_figures_are_those_of_a_plain_script(rng):
    s = rng.laplace(size=(1200, 5))
    x, y = (noisy(rotated(s, rng), rng, 0.4) for _ in "xy")
    found = compare(x, y, groups="all", folds=3, random_state=2, permutations=1).benefit
    fold = assign(1200, 3, 2)
    before = [matched(x, y, fold != k) for k in range(3)]
    after = []
    for k in range(3):
        sides = (ICA(tol=1e-6).fit(side[fold != k]).transform(side) for side in (x, y))
        after.append(matched(*sides, fold != k))
    assert found.columns == pytest.approx(np.mean(before), abs=1e-9)
    assert found.components == pytest.approx(np.mean(after), abs=2e-3)
    assert found.difference.value == pytest.approx(found.components - found.columns)
    assert found.difference.low < found.difference.value < found.difference.high


def test_ica_helps_where_sources_are_mixed(rng):
    s = rng.laplace(size=(3000, 8))
    found = compare(rotated(s, rng), noisy(rotated(s, rng), rng, 0.1), groups="all", permutations=1)
    assert found.benefit.answer == "helped" and found.benefit.components > 0.98 > found.benefit.columns + 0.1
    assert found.benefit.sentence.startswith("ICA helped: matched components of the two sides correlate by 0.99 ")
    r2 = f"R2 of the target is {found.groups['ica'].r2.value:.2f} with components and "
    assert r2 + f"{found.groups['permutation'].r2.value:.2f} with columns." in found.benefit.sentence
    assert found.view.facts["Benefit of ICA"] == found.benefit.sentence
    assert found.to_dict()["benefit"]["difference"]["value"] == pytest.approx(found.benefit.difference.value)


def test_ica_makes_no_difference_where_columns_are_the_sources(rng):
    s = rng.laplace(size=(4000, 6))
    found = compare(s, noisy(s, rng, 0.05), groups="all", permutations=1).benefit
    assert found.answer == "nothing" and found.sentence.startswith("ICA made no difference: ")
    assert "-0.00" not in found.sentence


def test_ica_does_harm_where_columns_match_and_nothing_is_far_from_gaussian(rng):
    x = rng.normal(size=(3000, 12))
    found = compare(x, noisy(x, rng, 0.5), groups="all", permutations=1).benefit
    assert found.answer == "harm" and found.components < found.columns - 0.1


def test_there_is_no_answer_without_both_groups(rng):
    x = rng.laplace(size=(300, 3))
    assert compare(x, x + 1, permutations=1).benefit is None
    assert compare(x, x + 1, groups="rigid,ica", permutations=1).benefit is None
    assert compare(x, x + 1, permutations=1).to_dict()["benefit"] is None


def test_sides_of_other_widths_and_constant_folds(rng):
    s = rng.laplace(size=(600, 4))
    found = compare(s @ rng.normal(size=(4, 6)), s[:, :3], groups="all", permutations=1).benefit
    assert 0 < found.components <= 1 and math.isfinite(found.difference.low)
    alone = compare(s[:, :1], s[:, 1:2], groups="all", permutations=1).benefit
    assert abs(alone.components) < 0.3


def test_constant_columns_do_not_count(rng):
    s = np.column_stack([rng.laplace(size=(400, 3)), np.ones(400)])
    found = compare(s, s, groups="all", permutations=1).benefit
    assert found.columns == pytest.approx(1) and found.answer == "nothing" and "mean of 3 columns" in found.sentence


def test_components_that_match_but_explain_nothing_do_harm(rng):
    """One component of forty rows that are the same on both sides is the same, and next to nothing of 300 columns."""
    x = rng.laplace(size=(40, 300))
    found = compare(x, x, groups="all", permutations=1)
    assert found.benefit.components > 0.99 and found.groups["ica"].r2.value < 0.3 and found.benefit.answer == "harm"


# Interval of the difference of correlations; gain in mean error, as a share of the guess's, and half its interval.
@pytest.mark.parametrize(
    ("low", "high", "gain", "half", "answer"),
    [
        (0.1, 0.2, 1.0, 0.5, "helped"),
        (0.1, 0.2, -0.1, 0.5, "mixed"),
        (-0.2, -0.1, 0.1, 0.5, "mixed"),
        (0.1, 0.2, -1.0, 0.5, "mixed"),
        (-0.2, -0.1, -1.0, 0.5, "harm"),
        (-0.2, -0.1, 1.0, 0.5, "mixed"),
        (-0.1, 0.1, 1.0, 0.5, "unclear"),
        (-0.01, 0.015, 0.1, 0.5, "nothing"),
        (-0.01, 0.015, 0.015, 0.001, "nothing"),
        # Above or below 0, but by next to nothing.
        (0.005, 0.015, 0.1, 0.5, "nothing"),
        (-0.015, -0.005, 0.1, 0.5, "nothing"),
        (-0.015, -0.005, 1.0, 0.5, "helped"),
        (-0.01, 0.015, 1.0, 0.5, "helped"),
        (-0.01, 0.015, -1.0, 0.5, "harm"),
        (0.1, 0.2, -0.015, 0.001, "helped"),
    ],
)
def test_answers(low, high, gain, half, answer):
    assert _answer(Estimate((low + high) / 2, low, high), gain, half) == answer


def test_errors_are_named_where_correlations_leave_it_open():
    """The efficiency of ICA below may be 100%: the answer must not seem to say the opposite."""
    assert _by_errors(1.0, 0.5) == " Mean errors are clearly smaller with components."
    assert _by_errors(-1.0, 0.5) == " Mean errors are clearly larger with components."
    assert _by_errors(0.4, 0.5) == _by_errors(0.01, 0.001) == ""


DATA = Path(os.environ.get("NEARID_DATA", "")) / "ensembles"


@pytest.mark.skipif(not (DATA / "silero_vad.npz").is_file(), reason="NEARID_DATA has no ensembles")
def test_units_of_a_fine_tuned_network_match_better_than_components():
    with np.load(DATA / "silero_vad.npz") as runs:
        found = compare(runs["h_6.0.0"], runs["h_6.2.0"], groups="all", permutations=1)
    # 0.58 for the 128 units, 0.38 for the 32 components that rows can carry.
    assert found.benefit.answer in ("harm", "mixed") and found.benefit.columns > 0.5 > found.benefit.components
    told = [alert.message for alert in found.alerts if alert.code == "ica_start_dependent"]
    assert len(told) == 2 and "components of array 1 were found by all 3 starts" in told[0]
