"""The rule, case by case, on made-up replicates."""

import numpy as np
import pytest

from nearid.groups.ladder import ladder
from nearid.questions.compare.bootstrap import Replicates
from nearid.questions.compare.verdict import decide

LADDER = ladder()


def ruled(unexplained, chance=(0.0, 0.0, 0.0), wobble=1e-4):
    u = np.array(unexplained)
    draws = u * (1 + wobble * np.random.default_rng(0).normal(size=(1000, 1)))
    return decide(LADDER, u, np.array(chance), Replicates(draws, draws))


@pytest.mark.parametrize(
    ("unexplained", "group", "strength"),
    [
        ((1e-4, 1e-4, 1e-4), "permutation", "nearly exactly"),
        ((0.8, 1e-4, 1e-4), "rigid", "nearly exactly"),
        ((0.8, 0.3, 1e-4), "linear", "nearly exactly"),
        # 97% is not what 99.99% is, although it is more than 90% of it
        ((0.8, 0.03, 1e-4), "linear", "nearly exactly"),
        # nor is nothing what a tenth is, although the errors are within 10%
        ((1.0, 0.95, 0.90), "linear", "weakly"),
        # few rows: the largest group overfits and sets no bar
        ((0.05, 0.06, 0.30), "permutation", "closely"),
        ((0.5, 0.25, 0.24), "rigid", "in part"),
        # below rounding everything is equal
        ((1e-14, 1e-16, 1e-18), "permutation", "nearly exactly"),
        ((1.0, 1.2, 3.0), "none", "not at all"),
        # significant but next to nothing
        ((0.999, 0.998, 0.995), "none", "not at all"),
    ],
)
def test_rule(unexplained, group, strength):
    found = ruled(unexplained)
    assert (found.group, found.strength) == (group, strength)
    assert found.reason.endswith(".")


def test_reasons_speak_of_what_was_tried():
    u = np.array([0.01])
    alone = decide(ladder("rigid"), u, np.zeros(1), Replicates(u[None].repeat(9, 0), u[None].repeat(9, 0)))
    assert "larger" not in alone.reason and "smaller" not in alone.reason
    assert "more than 99.999%" in ruled((1e-9, 1e-9, 1e-9)).reason


def test_chance_sets_the_bar():
    assert ruled((0.9, 0.9, 0.9), chance=(0.2, 0.2, 0.2)).group == "none"


def test_uncertainty_is_held_against_the_smaller_group():
    rng = np.random.default_rng(0)
    u = np.array([0.5, 0.21, 0.20])
    sharp, vague = (u * (1 + s * rng.normal(size=(1000, 3))) for s in (0.001, 0.2))
    assert decide(LADDER, u, np.zeros(3), Replicates(sharp, sharp)).group == "rigid"
    assert decide(LADDER, u, np.zeros(3), Replicates(vague, vague)).group == "linear"


def test_a_ladder_that_is_a_partial_order():
    groups = ladder("permutation,scaled_permutation,rigid,linear")

    def verdict(*unexplained):
        u = np.array(unexplained)
        return decide(groups, u, np.zeros(4), Replicates(u[None].repeat(9, 0), u[None].repeat(9, 0)))

    assert verdict(0.8, 1e-4, 0.7, 1e-4).group == "scaled_permutation"
    assert verdict(0.8, 0.7, 1e-4, 1e-4).group == "rigid"
    # Both suffice and neither contains the other: the one with fewer parameters. Both fail: what contains both.
    assert verdict(0.8, 1e-4, 1e-4, 1e-4).group == "scaled_permutation"
    assert verdict(0.8, 0.7, 0.7, 1e-4).group == "linear"
    # The smaller group that the reason names is one that the verdict contains.
    assert "a signed permutation explains 20.0%" in verdict(0.8, 0.7, 1e-4, 2e-4).reason
    assert "scale for each column" not in verdict(0.8, 0.7, 1e-4, 2e-4).reason
