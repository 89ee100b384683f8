"""Probes: splits, accuracies that a closed form gives, and tests that noise does not pass."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import t as student, ttest_1samp

from nearid.lab.papers.reizinger.probing import FEWEST, AboveChance, judged_on, probe, split, told


def test_splits_are_disjoint_balanced_and_stratified(rng):
    answers = rng.random(1000) < 0.1
    rare = int(answers.sum())
    fitted, judged = split(answers, rng)
    assert not set(fitted) & set(judged) and len(set(fitted)) == len(fitted) and len(set(judged)) == len(judged)
    assert answers[fitted].mean() == answers[judged].mean() == 0.5
    assert len(fitted) == 2 * round(0.7 * rare) and len(judged) == 2 * (rare - round(0.7 * rare))
    assert judged_on(answers) == judged_on(~answers) == len(judged)
    # Of the frequent answer others are taken next time, of the rare one all are.
    again = np.concatenate(split(answers, rng))
    assert set(np.flatnonzero(answers)) <= set(again) and set(again) != {*fitted, *judged}


@pytest.mark.parametrize("strength", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_planted_answers_decode_as_well_as_can_be(rng, strength, dtype):
    # Normal classes whose means are `strength` apart: the best accuracy is Phi(strength / 2), whatever the units.
    n, d = 12_000, 6
    answers = rng.random(n) < 0.3
    x = rng.normal(size=(n, d))
    x[:, 2] += strength * answers
    # A turn and other units: of columns that are nearly copies of others the penalty would not find the best answer.
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    mixed = (x @ turn * np.geomspace(1, 1000, d) + 7).astype(dtype)
    best = ndtr(strength / 2)
    # The rows to judge on are some 2 * 0.3 * 0.3 n.
    assert probe(mixed, answers, rng) == pytest.approx(best, abs=4 * 0.5 / np.sqrt(0.18 * n))


def test_constant_features_tell_nothing_and_do_no_harm(rng):
    answers = np.arange(400) % 2 == 0
    x = np.column_stack([np.full(400, 5.0), rng.normal(size=400) + 8 * answers])
    assert probe(x, answers, rng) > 0.97


def test_an_answer_that_is_too_rare_is_left_out(rng):
    x = rng.normal(size=(200, 2))
    assert probe(x, np.arange(200) < FEWEST - 1, rng) is None and probe(x, np.arange(200) >= FEWEST - 1, rng) is None
    assert probe(x, np.arange(200) < FEWEST, rng) is not None


def test_the_published_test_is_students():
    x = [0.52, 0.55, 0.51, 0.53, 0.50]
    found = AboveChance.over(x, 1000)
    assert found.p_splits == pytest.approx(ttest_1samp(x, 0.5).pvalue)
    assert found.error == pytest.approx(np.std(x, ddof=1) / np.sqrt(5)) and found.mean == pytest.approx(0.522)
    # On enough rows the spread decides, with the variance that allows for what splits share.
    wider = np.std(x, ddof=1) * np.sqrt(1 / 5 + 3 / 7)
    assert AboveChance.over(x, 10**6).p_value == pytest.approx(2 * student.sf(0.022 / wider, 4))
    assert found.p_value > found.p_splits
    assert told({"pose": found}) == "pose 52.2 ± 0.9"


def test_what_never_varies():
    assert AboveChance.over([1.0] * 10, 100).decodes(1e-4) and not AboveChance.over([0.5, 0.5], 100).decodes(0.5)
    assert AboveChance.over([0.7], 100) is None and not AboveChance.over([0.1, 0.1], 100).decodes(0.5)
    # Two splits with four right of six each tell next to nothing.
    few = AboveChance.over([4 / 6, 4 / 6], 6)
    expected = 2 * ndtr(-(1 / 6) / np.sqrt(0.25 / 6 * (1 / 2 + 3 / 7)))
    assert few.p_value == pytest.approx(expected) and few.p_value > 0.3 and few.error == 0


def test_splits_of_few_rows_that_agree_by_chance_do_not_pass():
    passed, answers = 0, np.arange(40) < FEWEST
    for k in range(60):
        x = np.random.default_rng([k, 0]).normal(size=(40, 3))
        tried = (probe(x, answers, np.random.default_rng([k, s])) for s in (1, 2))
        passed += AboveChance.over(tried, judged_on(answers)).decodes(0.05 / 85)
    assert passed == 0


def test_noise_passes_the_published_test_too_often_and_not_the_one_that_allows_for_shared_rows():
    level, passed, as_published = 0.05, 0, 0
    sets = 60
    for k in range(sets):
        x = np.random.default_rng([k, 0]).normal(size=(120, 3))
        answers = np.arange(120) < 60
        tried = (probe(x, answers, np.random.default_rng([k, s])) for s in range(1, 21))
        found = AboveChance.over(tried, judged_on(answers))
        passed += found.decodes(level)
        as_published += found.decodes_as_published(level)
    # Of noise a share of level / 2 may pass above chance: 1.5 of 60, and 5 or more hardly ever do.
    assert passed <= 4 and as_published > 6
