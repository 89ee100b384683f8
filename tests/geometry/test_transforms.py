"""Transforms from heads: exact constructions, the printed formula, likelihoods, and failures that are results."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from sklearn.linear_model import Ridge

from nearid.base.errors import InputError
from nearid.geometry.diversity import choose_pairs
from nearid.geometry.transforms import compare_transforms, head_transform
from nearid.groups.ridge import penalty_of


def twins(rng, classes=12, m=4, n=200):
    """Two models with equal likelihoods: (heads, features, matrix)."""
    f, g = rng.normal(size=(n, m)), rng.normal(size=(classes, m))
    # Of condition 3: rounding of an ill-conditioned map would decide.
    matrix = np.linalg.qr(rng.normal(size=(m, m)))[0] * np.linspace(1, 3, m)
    # (f A) . (A^-1 g) = f . g, and a shift of all class vectors leaves the softmax as it is.
    return (g, g @ np.linalg.inv(matrix).T + rng.normal(size=m)), (f, f @ matrix), matrix


def probabilities(f, g):
    logits = f @ g.T
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


@given(st.integers(1, 8), st.integers(1, 30), st.integers(0, 1000))
def test_a_known_transform_is_recovered_from_heads_alone(m, more, seed):
    heads, features, matrix = twins(np.random.default_rng(seed), m + more, m)
    np.testing.assert_allclose(probabilities(features[0], heads[0]), probabilities(features[1], heads[1]), atol=1e-8)
    found = head_transform(*heads)
    lost = np.linalg.cond(matrix) * max(d.condition for d in found.diversity)
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-12 * lost)
    assert found.misfit < 1e-12 * lost and found.note == ""


def test_the_matrix_is_the_printed_formula_for_chosen_pairs(rng):
    heads, features, matrix = twins(rng)
    pairs = choose_pairs(*heads).pairs
    found = head_transform(*heads, pairs=pairs)
    first, second = ((g[pairs[:, 0]] - g[pairs[:, 1]]).T for g in heads)
    np.testing.assert_allclose(found.matrix, first @ np.linalg.inv(second), atol=1e-10)
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-10)
    np.testing.assert_allclose(features[0] @ found.matrix, features[1], atol=1e-10)


def test_least_squares_over_all_differences(rng):
    heads, _, _ = twins(rng)
    noisy = heads[0], heads[1] + 0.1 * rng.normal(size=heads[1].shape)
    i, j = np.triu_indices(12, 1)
    all_pairs = np.column_stack([i, j])
    np.testing.assert_allclose(
        head_transform(*noisy).matrix, head_transform(*noisy, pairs=all_pairs).matrix, atol=1e-10
    )
    assert 0.01 < head_transform(*noisy).misfit < 1


def test_all_differences_do_better_than_a_few_when_heads_are_noisy():
    errors = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        heads, _, matrix = twins(rng, classes=60)
        noisy = heads[0], heads[1] + 0.01 * rng.normal(size=heads[1].shape)
        few = head_transform(*noisy, pairs=choose_pairs(*noisy).pairs)
        errors.append([np.linalg.norm(head_transform(*noisy).matrix - matrix), np.linalg.norm(few.matrix - matrix)])
    whole, chosen = np.median(errors, axis=0)
    assert whole < chosen / 2


def test_too_few_classes_are_a_result(rng):
    heads, features, _ = twins(rng, classes=4)
    found = head_transform(*heads)
    assert found.matrix is None and found.misfit is None
    assert found.note.count("4 classes are too few: at least 5 are needed") == 2
    compared = compare_transforms(heads, features)
    assert compared.disagreement is None and compared.r2_heads is None
    assert compared.r2_fitted == pytest.approx(1)


def test_heads_or_pairs_that_do_not_span_are_a_result(rng):
    g, h = twins(rng)[0]
    flat = g * [1, 1, 1, 0]
    found = head_transform(flat, h)
    assert found.matrix is None and "the rank is 3, but 4 is needed" in found.note and "(head 1)" in found.note
    assert "(head 2)" not in found.note
    cycle = head_transform(g, h, pairs=[[0, 1], [1, 2], [2, 0], [3, 4]])
    assert cycle.matrix is None and "do not span" in cycle.note


def test_comparison_of_models_at_their_optimum(rng):
    heads, features, matrix = twins(rng)
    found = compare_transforms(heads, features)
    np.testing.assert_allclose(found.fitted, matrix, atol=1e-10)
    assert found.disagreement < 1e-10
    assert found.r2_heads == pytest.approx(1) and found.r2_fitted == pytest.approx(1)


def test_comparison_sees_models_off_their_optimum(rng):
    heads, (f, _), matrix = twins(rng, n=5000)
    # Features that are linear in one another by another matrix than the heads say.
    other = matrix + 0.5 * rng.normal(size=matrix.shape)
    found = compare_transforms(heads, (f, f @ other))
    expected = np.linalg.norm(matrix - other) / np.linalg.norm(other)
    assert found.disagreement == pytest.approx(expected, rel=1e-6)
    assert found.r2_fitted == pytest.approx(1)
    # For white features R2 is 1 - |difference|^2 / |matrix|^2.
    assert found.r2_heads == pytest.approx(1 - expected**2, abs=0.03)


@pytest.mark.parametrize("biased", [False, True])
def test_the_fitted_map_is_scikit_learns_on_the_training_half(rng, biased):
    heads, (f, _), matrix = twins(rng, n=200)
    f, other = f + 1, f @ matrix + rng.normal(size=f.shape)
    biases = [np.zeros(len(heads[0]))] * 2 if biased else None
    half = np.random.default_rng(0).permutation(200)[:100]
    for ridge in (0, 5.0, "auto"):
        found = compare_transforms(heads, (f, other), biases=biases, ridge=ridge)
        chosen = np.ravel(ridge if ridge != "auto" else penalty_of(f[half], other[half], translation=biased))
        known = [Ridge(own, fit_intercept=biased, solver="svd").fit(f[half], other[half]).coef_.T for own in chosen]
        np.testing.assert_allclose(found.fitted, np.mean(known, axis=0), atol=1e-9)
        assert found.ridge == np.median(chosen)


def test_r2_is_held_out(rng):
    heads, (f, _), _ = twins(rng, n=24)
    noise = rng.normal(size=(24, 4))
    found = compare_transforms(heads, (f, noise))
    assert found.r2_fitted < 0.2 and found.disagreement > 0.5
    assert compare_transforms(heads, (f, noise), random_state=1).r2_fitted != found.r2_fitted


def test_inputs_that_cannot_be_are_told(rng):
    heads, (f, other), _ = twins(rng)
    with pytest.raises(InputError, match=r"\(12, 4\), \(11, 4\)"):
        head_transform(heads[0], heads[1][:-1])
    with pytest.raises(InputError, match="outside the range 0 to 11"):
        head_transform(*heads, pairs=[[0, 12]])
    with pytest.raises(InputError, match=r"integers of shape \(P, 2\)"):
        head_transform(*heads, pairs=[[0.5, 1]])
    with pytest.raises(InputError, match="the same shape with 4 columns"):
        compare_transforms(heads, (f, other[:-1]))
    with pytest.raises(InputError, match="9 rows of 4 features are too few: give at least 10"):
        compare_transforms(heads, (f[:9], other[:9]))
    with pytest.raises(InputError, match="constant"):
        compare_transforms(heads, (f, np.ones_like(f)))


def test_biases_make_the_map_affine(rng):
    (g, h), (f, other), matrix = twins(rng, n=400)
    biases, offset = rng.normal(size=(2, 12)), rng.normal(size=4)
    # Logits h . (f' + offset) + b' = g . f + b for all classes but for a constant of each row: b' = b - h . offset.
    biases[1] = biases[0] - h @ offset + 3.0
    found = head_transform(g, h, biases=biases)
    np.testing.assert_allclose(found.matrix, matrix, atol=1e-9)
    np.testing.assert_allclose(found.offset, offset, atol=1e-9)
    pairs = head_transform(g, h, biases=biases, pairs=choose_pairs(g, h).pairs)
    np.testing.assert_allclose(pairs.offset, offset, atol=1e-9)
    compared = compare_transforms((g, h), (f, other + offset), biases=biases)
    assert compared.r2_heads == pytest.approx(1) and compared.seen.logits.value == pytest.approx(1)
    assert compared.r2_fitted == pytest.approx(1) and compared.seen.distance < 1e-9
    without = compare_transforms((g, h), (f, other + offset))
    assert without.seen.logits.value < 0.99
    with pytest.raises(InputError, match=r"shape \(11,\), but 12 finite numbers"):
        head_transform(g, h, biases=(biases[0][:-1], None))


@pytest.mark.parametrize("classes", [2, 3, 4])
def test_too_few_classes_determine_a_part_of_the_map(rng, classes):
    heads, (f, other), matrix = twins(rng, classes=classes, n=600)
    found = compare_transforms(heads, (f, other))
    basis = found.heads.basis
    assert basis.shape == (4, classes - 1) and found.seen.dimensions == classes - 1
    np.testing.assert_allclose(basis.T @ basis, np.eye(classes - 1), atol=1e-12)
    np.testing.assert_allclose(found.heads.seen_matrix, matrix @ basis, atol=1e-9)
    assert found.seen.heads.value == pytest.approx(1) and found.seen.logits.value == pytest.approx(1)
    inside = np.sum((other @ basis - (other @ basis).mean(0)) ** 2) / np.sum((other - other.mean(0)) ** 2)
    assert found.seen.variance == pytest.approx(inside, abs=0.1) and found.seen.variance < 1
    # What is outside of the basis may be anything: the logits do not see it.
    hidden = np.eye(4) - basis @ basis.T
    changed = other + 5 * rng.normal(size=other.shape) @ hidden
    again = compare_transforms(heads, (f, changed))
    assert again.seen.heads.value == pytest.approx(1) and again.r2_fitted < 0.9


def test_differences_of_logits_as_they_are_written(rng):
    heads, (f, other), _ = twins(rng)
    noisy, biases = other + 0.3 * rng.normal(size=other.shape), rng.normal(size=(2, 12))
    found = compare_transforms(heads, (f, noisy), biases=biases).seen.logits
    test = np.random.default_rng(0).permutation(200)[100:]
    first, second = (x[test] @ g.T + b for x, g, b in zip((f, noisy), heads, biases, strict=True))
    first, second = (z - z.mean(axis=1, keepdims=True) for z in (first, second))
    expected = 1 - np.sum((second - first) ** 2) / np.sum((second - second.mean(axis=0)) ** 2)
    assert found.value == pytest.approx(expected) and found.low < expected < found.high


def test_blocks_of_classes_change_nothing(rng, monkeypatch):
    heads, _, _ = twins(rng, classes=50)
    noisy = heads[0], heads[1] + 0.1 * rng.normal(size=heads[1].shape)
    whole = head_transform(*noisy)
    monkeypatch.setattr("nearid.geometry.transforms.BLOCK", 7)
    parts = head_transform(*noisy)
    np.testing.assert_allclose(parts.matrix, whole.matrix, atol=1e-11)
    assert parts.misfit == pytest.approx(whole.misfit)
    i, j = np.triu_indices(50, 1)
    g, h = (v[i] - v[j] for v in noisy)
    assert whole.misfit == pytest.approx(np.linalg.norm(h @ whole.matrix.T - g) / np.linalg.norm(g))


def test_the_interval_covers(rng):
    """Of many draws of rows, about 95% of the intervals hold the R2 of the population."""
    heads, _, matrix = twins(rng)
    inside = []
    for seed in range(200):
        f = np.random.default_rng(seed).normal(size=(400, 4))
        noise = 0.5 * np.random.default_rng([seed, 1]).normal(size=f.shape)
        share = compare_transforms(heads, (f, f @ matrix + noise)).seen.heads
        spread = np.sum(matrix**2) + 4 * 0.25
        inside.append(share.low < 1 - 4 * 0.25 / spread < share.high)
    assert 0.89 < np.mean(inside) <= 1


def test_heads_of_one_vector_say_nothing(rng):
    (g, _), features, _ = twins(rng)
    assert compare_transforms((g, np.ones_like(g)), features).seen is None
