"""Diversity conditions against brute-force ranks, constructions that fail, and scipy's chi-square."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from nearid.base.errors import InputError
from nearid.geometry.diversity import affine_generator, choose_pairs, quadratic_generator, uniform_prior


def unit_rows(rng, classes, d):
    v = rng.normal(size=(classes, d))
    return v / np.linalg.norm(v, axis=1, keepdims=True)


@given(st.integers(2, 12), st.integers(1, 6), st.integers(1, 6), st.integers(0, 1000))
def test_affine_rank_is_that_of_all_differences(classes, d, inner, seed):
    rng = np.random.default_rng(seed)
    v = 5 + rng.normal(size=(classes, min(inner, d))) @ rng.normal(size=(min(inner, d), d))
    differences = np.array([a - b for a, b in combinations(v, 2)])
    found = affine_generator(v)
    assert found.rank == np.linalg.matrix_rank(differences, tol=1e-9) and found.needed == d
    assert found.holds == (found.rank == d) and found.classes == classes
    if found.holds:
        assert found.condition == pytest.approx(np.linalg.cond(differences), rel=1e-6)
    else:
        assert found.condition == np.inf and ("too few" in found.note) == (classes < d + 1)


def test_affine_generator_needs_one_class_more_than_dimensions(rng):
    assert affine_generator(unit_rows(rng, 6, 5)).holds
    few = affine_generator(unit_rows(rng, 5, 5))
    assert not few.holds and few.note == "5 classes are too few: at least 6 are needed"


def test_many_classes_in_a_plane_do_not_span(rng):
    flat = affine_generator(np.column_stack([unit_rows(rng, 50, 2), np.full(50, 0.5)]))
    assert not flat.holds and flat.rank == 2 and "smaller space" in flat.note
    assert affine_generator(np.ones((4, 2))).rank == 0


def test_rank_is_judged_in_the_precision_of_the_input(rng):
    low = rng.normal(size=(5000, 3)) @ rng.normal(size=(3, 20)) + 3
    assert affine_generator(low).rank == affine_generator(low.astype(np.float32)).rank == 3
    assert not choose_pairs(low.astype(np.float32)).holds
    full = rng.normal(size=(5000, 20)).astype(np.float32)
    assert affine_generator(full).holds and affine_generator(full).condition < 2


def test_normalised_heads_need_twice_the_dimension(rng):
    for d in (2, 5, 10):
        found = quadratic_generator(unit_rows(rng, 2 * d, d))
        assert found.holds and found.rank == found.needed == 2 * d
        assert not quadratic_generator(unit_rows(rng, 2 * d - 1, d)).holds
    # Corners of a cube: squares are constant, however many classes there are.
    corners = np.array(np.meshgrid(*[[-1, 1]] * 3)).reshape(3, -1).T / np.sqrt(3)
    found = quadratic_generator(corners)
    assert not found.holds and found.rank == 4 and affine_generator(corners).holds


def test_pairs_are_well_conditioned_in_all_heads(rng):
    first, second = rng.normal(size=(2, 30, 4))
    found = choose_pairs(first, second)
    assert found.holds and found.pairs.shape == (4, 2) and found.draws == 100
    conditions = [np.linalg.cond(g[found.pairs[:, 0]] - g[found.pairs[:, 1]]) for g in (first, second)]
    assert found.condition == pytest.approx(max(conditions)) and found.condition < 10
    assert found.condition <= choose_pairs(first, second, draws=5).condition
    again = choose_pairs(first, second)
    np.testing.assert_array_equal(found.pairs, again.pairs)


@given(st.integers(1, 20), st.integers(0, 100), st.integers(0, 1000))
def test_any_choice_of_pairs_is_a_forest(m, more, seed):
    k = m + 1 + more
    pairs = choose_pairs(np.random.default_rng(seed).normal(size=(k, m)), draws=1, random_state=seed).pairs
    # Differences of unit vectors are independent exactly where the pairs have no cycle.
    edges = np.eye(k)[pairs[:, 0]] - np.eye(k)[pairs[:, 1]]
    assert np.linalg.matrix_rank(edges) == m


def test_with_the_least_number_of_classes_a_spanning_tree_is_found(rng):
    found = choose_pairs(rng.normal(size=(41, 40)))
    assert np.isfinite(found.condition) and len(np.unique(found.pairs)) == 41


def test_too_few_classes_and_bad_conditioning_are_results(rng):
    few = choose_pairs(rng.normal(size=(4, 4)))
    assert not few.holds and few.pairs is None and "at least 5 are needed" in few.note
    g = rng.normal(size=(20, 3)) * [1, 1, 1e-5]
    bad = choose_pairs(g)
    assert not bad.holds and bad.condition > 1e3 and "above 1000" in bad.note
    assert choose_pairs(g, largest_condition=1e7).holds
    assert choose_pairs(np.ones((5, 2))).condition == np.inf


def test_prior_against_scipy(rng):
    for counts in (rng.multinomial(1000, np.ones(10) / 10), np.array([100, 100, 160])):
        found, oracle = uniform_prior(counts), stats.chisquare(counts)
        assert found.chi_square == pytest.approx(oracle.statistic) and found.p_value == pytest.approx(oracle.pvalue)
        assert found.holds == (oracle.pvalue >= 0.01)
        assert found.largest_deviation == pytest.approx(np.abs(counts / counts.mean() - 1).max())
    assert not uniform_prior([100, 100, 160]).holds
    assert uniform_prior([7, 7, 7]).largest_deviation == 0 and uniform_prior([7, 7, 7]).p_value == 1


def test_inputs_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match=r"shape \(3,\)"):
        affine_generator(np.ones(3))
    with pytest.raises(InputError, match="NaN"):
        quadratic_generator([[1.0, np.nan], [0, 1]])
    with pytest.raises(InputError, match=r"\(5, 2\), \(6, 2\)"):
        choose_pairs(rng.normal(size=(5, 2)), rng.normal(size=(6, 2)))
    with pytest.raises(InputError, match="draws is 0"):
        choose_pairs(rng.normal(size=(5, 2)), draws=0)
    for bad in ([3], [-1, 4], [0, 0], [[1, 2]]):
        with pytest.raises(InputError, match="class counts must be one-dimensional"):
            uniform_prior(bad)
