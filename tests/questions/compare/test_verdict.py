"""Figures of known errors, bootstrap intervals against theory, and the rule, case by case, on made-up replicates."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student
from threadpoolctl import threadpool_limits

from nearid.groups.ladder import ladder
from nearid.measures.diameter import Diameter
from nearid.questions.compare.verdict import Rungs, bootstrap, decide, summaries

LADDER = ladder()


def rungs(groups, unexplained, draws=None, chance=0.0, errors=None, limits=1.0, repeats=99):
    u = np.array(unexplained, dtype=float)
    draws = u[None].repeat(9, 0) if draws is None else draws
    level, left = (np.broadcast_to(value, u.shape) for value in (chance, limits))
    sizes = np.sqrt(u) if errors is None else np.array(errors)
    return Rungs(groups, u, sizes, level[None].repeat(repeats, 0), 1 - u, draws, left)


def ruled(unexplained, wobble=1e-4, **more):
    u = np.array(unexplained)
    draws = u * (1 + wobble * np.random.default_rng(0).normal(size=(1000, 1)))
    return decide(rungs(LADDER, u, draws, **more))


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
        # more than chance, but less than 5%
        ((0.999, 0.99, 0.96), "none", "almost unrelated"),
    ],
)
def test_rule(unexplained, group, strength):
    found = ruled(unexplained)
    assert (found.group, found.strength) == (group, strength)
    assert found.reason.endswith(".")


def test_reasons_speak_of_what_was_tried():
    alone = decide(rungs(ladder("rigid"), [0.01]))
    assert "larger" not in alone.reason and "smaller" not in alone.reason
    assert "more than 99.999%" in ruled((1e-9, 1e-9, 1e-9)).reason


def test_chance_sets_the_bar():
    beaten = ruled((0.9, 0.9, 0.9), chance=(0.2, 0.2, 0.2))
    assert beaten.group == "none" and beaten.p_value == 1
    # The best of the groups is measured against the best of them by chance.
    assert ruled((0.9, 0.9, 0.9), chance=(0.0, 0.0, 0.2)).group == "none"
    found = ruled((0.9, 0.9, 0.9))
    assert found.group == "permutation" and found.p_value == 0.01


def test_a_few_repetitions_must_all_be_beaten():
    assert ruled((0.5, 0.5, 0.5), chance=0.4, repeats=3).p_value == 0.25
    assert ruled((0.5, 0.5, 0.5), chance=0.4, repeats=3).group == "permutation"
    assert ruled((0.5, 0.5, 0.5), chance=0.6, repeats=3).group == "none"


def test_next_to_nothing_is_almost_unrelated():
    found = ruled((0.999, 0.99, 0.97))
    assert (found.group, found.strength) == ("none", "almost unrelated")
    assert "A linear map explains 3.0%" in found.reason and "less than 5%" in found.reason
    u = np.array([0.97, 0.97, 0.97])
    assert decide(rungs(LADDER, u), unrelated=0.01).group == "permutation"


def test_a_group_that_does_worse_than_one_it_contains_is_not_estimable():
    found = ruled((0.9, 0.3, 0.8))
    assert found.group == "rigid" and found.not_estimable == ("linear",)
    assert "A linear map contains this group" in found.reason
    # So is one that is worse than the constant guess, where maps have a scale.
    assert ruled((0.9, 1.5, 0.3)).not_estimable == ("rigid",)
    assert "too few rows to estimate a smaller group" in ruled((1.2, 1.5, 0.3)).reason
    # Slightly worse is no news: both explain the same.
    assert ruled((0.9, 0.300, 0.302)).not_estimable == ()


def test_slow_rows_must_explain_most():
    """Two of 54 pairs of unrelated slow series were called related, with up to a quarter of the variance explained."""
    u = np.array([0.9, 0.5, 0.3])
    weak, strong = (
        decide(replace(rungs(LADDER, values), unmeasured="Rows depend on their neighbours for so long"))
        for values in (u, u / 10)
    )
    assert weak.group == "none" and "chance cannot be measured" in weak.reason and "90%" in weak.reason
    assert strong.group == "linear" and "so there are no p-values" in strong.reason


def test_the_reason_says_why_a_group_that_beats_chance_does_not_count():
    u = np.array([1.0, 0.99, 0.97])
    wild = u * (1 + np.random.default_rng(0).normal(size=(1000, 1)))
    few_rows, too_little = decide(rungs(LADDER, u, wild)), ruled((1.0, 0.999, 0.995))
    assert few_rows.group == too_little.group == "none" and few_rows.p_value <= 0.01
    assert "does not count because the lower 99% bound of its R2 is -" in few_rows.reason
    assert "does not count because that is less than 1%." in too_little.reason
    for found in (few_rows, too_little):
        assert "better than chance" not in found.reason
    assert "better than chance" in ruled((1.0, 0.99, 0.97), chance=0.1).reason


def test_the_yardstick_is_taken_without_its_overfitting():
    """Held out a linear map leaves 14% more than with many rows: the rigid motion is near it for that reason alone."""
    held_out = (0.5, 0.0135, 0.0114)
    assert ruled(held_out).group == "rigid"
    assert ruled(held_out, limits=(1.0, 0.9375, 0.875)).group == "linear"


def test_a_group_that_cannot_be_estimated_is_not_said_to_explain_less():
    """150 rows of an exact rotation of 400 columns: a rigid motion is worse than the constant guess."""
    found = ruled((0.9, 1.3, 0.7))
    assert found.group == "linear" and "too few rows to estimate a rigid motion" in found.reason
    assert "explains as much" not in found.reason


def test_what_many_rows_would_leave_lets_no_group_pass():
    """Two sentence encoders, 768 to 384 columns, 1,500 rows: R2 .464 is not 90% of .539, whatever many rows leave."""
    assert ruled((0.93, 0.536, 0.461), limits=(0.7, 0.7, 0.7)).group == "linear"


def test_the_reason_says_where_mean_error_and_r2_disagree():
    found = ruled((0.9, 0.3, 0.5), errors=(0.9, 0.5, 0.2))
    assert "By mean error a linear map is better (error / spread 0.200 against 0.500)" in found.reason
    assert "By mean error" not in ruled((0.9, 0.3, 0.5), errors=(0.9, 0.5, 0.49)).reason


def test_a_group_that_explains_more_but_does_not_count_is_named():
    """30 components against one skewed factor: a linear map explained 14%, and "no larger group does better" 8%."""
    u = np.array([0.92, 0.90, 0.86])
    draws = u * (1 + 1e-3 * np.random.default_rng(0).normal(size=(1000, 3)))
    # A few rows decide the larger groups' R2.
    draws[:20, 1:] = 1.2
    found = decide(rungs(LADDER, u, draws))
    assert found.group == "linear" and found.between == ("permutation", "linear") and found.yardstick == "permutation"
    assert "does better" not in found.reason and "a linear map explains 14.0%, but these rows" in found.reason
    assert "bound of its R2 is -0.20" in found.reason and "do not show whether a signed permutation" in found.reason
    # Neither is it passed over where chance reaches as much.
    u = np.array([0.5, 0.45, 0.4])
    beaten = ruled(u, chance=(0.0, 0.0, 0.7))
    assert beaten.group == "none"
    beaten = ruled((0.4, 0.39, 0.35), chance=(0.0, 0.62, 0.6))
    assert "does better" not in beaten.reason


def test_what_chance_reaches_stands_beside_what_is_explained():
    assert "35.0% of the target's variance on held-out rows, where chance alone reaches 30.2%" in (
        ruled((0.65, 0.65, 0.65), chance=0.302).reason
    )
    assert "chance" not in ruled((0.5, 0.5, 0.5), chance=0.04).reason


def test_what_to_do_where_chance_cannot_be_measured():
    for explained in (0.3, 0.99):
        slow = replace(rungs(LADDER, [1 - explained] * 3), unmeasured="Rows are so slow", remedy="Give more.")
        assert decide(slow).reason.endswith("Give more.")


@pytest.mark.parametrize(
    ("explained", "chance", "counts"), [(0.7, 0.03, True), (0.25, 0.0, False), (0.7, 0.08, False), (0.95, 0.5, True)]
)
def test_slow_rows_must_be_far_from_what_other_orders_reach(explained, chance, counts):
    given = rungs(LADDER, [1 - explained] * 3, chance=chance)
    slow = replace(given, unmeasured="Rows are so slow", slow=True)
    assert (decide(slow).group != "none") == counts
    # Too few orders are no measure of what others would reach.
    assert (decide(replace(slow, slow=False)).group != "none") == (explained > 0.9)


def test_uncertainty_is_held_against_the_smaller_group():
    rng = np.random.default_rng(0)
    u = np.array([0.5, 0.21, 0.20])
    sharp, vague = (u * (1 + s * rng.normal(size=(1000, 3))) for s in (0.001, 0.2))
    assert decide(rungs(LADDER, u, sharp)).group == "rigid"
    undecided = decide(rungs(LADDER, u, vague))
    assert undecided.group == "linear" and undecided.between == ("rigid", "linear")
    assert "do not show whether a rigid motion is enough" in undecided.reason


def test_a_ladder_that_is_a_partial_order():
    groups = ladder("permutation,scaled_permutation,rigid,linear")

    def verdict(*unexplained):
        return decide(rungs(groups, unexplained))

    assert verdict(0.8, 1e-4, 0.7, 1e-4).group == "scaled_permutation"
    assert verdict(0.8, 0.7, 1e-4, 1e-4).group == "rigid"
    # Both suffice and neither contains the other: the one with fewer parameters. Both fail: what contains both.
    assert verdict(0.8, 1e-4, 1e-4, 1e-4).group == "scaled_permutation"
    assert verdict(0.8, 0.7, 0.7, 1e-4).group == "linear"
    # The smaller group that the reason names is one that the verdict contains.
    assert "a signed permutation explains 20.0%" in verdict(0.8, 0.7, 1e-4, 2e-4).reason
    assert "scale for each column" not in verdict(0.8, 0.7, 1e-4, 2e-4).reason


@pytest.mark.parametrize("n", [300, 50_000])
def test_the_spread_of_replicates_is_the_standard_error(rng, n):
    errors = rng.exponential(size=(2, n))
    found = bootstrap(errors, np.full(n, 3.0), 0)
    squares = errors**2 / 9
    np.testing.assert_allclose(found.mean(axis=0), squares.mean(axis=1), rtol=0.05)
    np.testing.assert_allclose(found.std(axis=0), squares.std(axis=1) / np.sqrt(n), rtol=0.15)


def test_few_blocks_spread_by_more_than_their_rows(rng):
    blocks = np.repeat(np.arange(8), 50)
    errors = np.sqrt(1 + rng.uniform(size=8))[blocks][None] + 0.01 * rng.normal(size=400)
    by_rows, by_blocks = (bootstrap(errors, np.full(400, 2.0), 0, codes) for codes in (None, blocks))
    squares = np.array([np.mean(errors[0, blocks == b] ** 2) for b in range(8)]) / 4
    expected = squares.std(ddof=1) / np.sqrt(8) * student.ppf(0.975, 7) / 1.96
    assert by_blocks.std() == pytest.approx(expected, rel=0.15)
    assert by_blocks.std() > 4 * by_rows.std()


def test_replicates_are_paired(rng):
    errors = rng.exponential(size=500)
    found = bootstrap(np.stack([errors, 2 * errors]), np.ones(500), 0)
    np.testing.assert_allclose(found[:, 1], 4 * found[:, 0])


def test_huge_units(rng):
    errors = rng.exponential(size=(1, 100))
    huge = bootstrap(errors * 1e200, np.full(100, 1e200), 0)
    np.testing.assert_allclose(huge, bootstrap(errors, np.ones(100), 0))


def test_threads_of_blas_change_no_digit(rng):
    errors, spread = rng.exponential(size=(3, 20_000)), rng.exponential(size=20_000)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            found.append(bootstrap(errors, spread, 0))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])


def test_figures_of_known_errors():
    errors = np.vstack([np.arange(101.0), np.full(101, 3.0)])
    size = Diameter(10.0, 12.0, False, (0, 1))
    spread = np.full(101, 6.0)
    found = summaries(ladder("permutation,linear"), (2, 3), errors, spread, size)
    g, e = found["permutation"], found["permutation"].epsilon
    assert (e.value, g.median, g.q95, g.max) == (5.0, 5.0, 9.5, 10.0)
    assert found["linear"].r2.value == 0.75 and found["linear"].max == 0.3
    assert found["linear"].relative.value == pytest.approx(0.5)
    assert found["linear"].degrees_of_freedom == 9 and np.isnan([e.low, e.high, e.chance, g.r2.chance]).all()


def test_no_p_value_is_told_where_chance_cannot_be_measured():
    given = rungs(LADDER, [0.05] * 3)
    for why, told in (("", True), ("Rows are so slow", False)):
        verdict = decide(replace(given, unmeasured=why), unrelated=0.99)
        assert verdict.strength == "almost unrelated" and ("p = " in verdict.reason) == told
        assert ("more than chance" in verdict.reason) == told and "less than 99%" in verdict.reason
