"""Maps, and the fits against scipy and scikit-learn: known answers, nestedness, invariance, and derivatives."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import orthogonal_procrustes
from scipy.optimize import linear_sum_assignment
from scipy.spatial import procrustes
from sklearn.linear_model import LinearRegression, Ridge

from nearid.groups.fits import (
    WIDE,
    _rotate_and_drop,
    apply,
    assignment,
    correlation,
    fit_linear,
    fit_permutation,
    fit_rigid,
    fit_rigid_to_many,
    fit_scaled_permutation,
    fit_unmixed,
    polar,
    squared_errors,
)
from nearid.groups.ladder import GROUPS
from nearid.moments import PairMoments


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def squared_error(fitted, x, y):
    return float(np.sum((apply(fitted, x) - y) ** 2))


@pytest.mark.parametrize(("n", "p", "q"), [(2000, 32, 32), (300, 20, 40), (300, 40, 20), (50, 80, 30), (20, 80, 90)])
def test_linear_is_scikit_learns(rng, n, p, q):
    x = rng.normal(size=(n, p)) * np.geomspace(1, 30, p) + 5
    y = x @ rng.normal(size=(p, q)) + rng.normal(size=(n, q))
    oracle = LinearRegression().fit(x, y)
    fitted = fit_linear(PairMoments.of(x, y))
    np.testing.assert_allclose(fitted.matrix, oracle.coef_.T, atol=1e-10)
    np.testing.assert_allclose(apply(fitted, x), oracle.predict(x), atol=1e-8)


def test_linear_without_translation_and_with_ridge(rng):
    x, y = rng.normal(size=(200, 6)) + 2, rng.normal(size=(200, 3)) + 1
    m = PairMoments.of(x, y)
    plain, ridge = LinearRegression(fit_intercept=False).fit(x, y), Ridge(3.5).fit(x, y)
    np.testing.assert_allclose(fit_linear(m, translation=False).matrix, plain.coef_.T, atol=1e-10)
    np.testing.assert_allclose(fit_linear(m, ridge=3.5).matrix, ridge.coef_.T, atol=1e-10)


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize("ridge", [1e-3, 1.0, 1e4])
def test_linear_of_few_rows_with_ridge(rng, ridge, translation):
    x, y = rng.normal(size=(20, 90)) + 2, rng.normal(size=(20, 30)) + 1
    oracle = Ridge(ridge, fit_intercept=translation, solver="svd").fit(x, y)
    fitted = fit_linear(PairMoments.of(x, y), translation=translation, ridge=ridge)
    np.testing.assert_allclose(fitted.matrix, oracle.coef_.T, atol=1e-9)


def test_linear_is_of_least_norm_where_columns_repeat(rng):
    x = rng.normal(size=(200, 5))
    x = np.hstack([x, x[:, :2], np.zeros((200, 1))])
    y = rng.normal(size=(200, 3))
    fitted = fit_linear(PairMoments.of(x, y))
    np.testing.assert_allclose(fitted.matrix, LinearRegression().fit(x, y).coef_.T, atol=1e-10)


def test_linear_keeps_columns_of_very_different_units(rng):
    x = rng.normal(size=(500, 4))
    y = x @ rng.normal(size=(4, 4))
    units = np.array([1e-12, 1, 1e6, 1e12])
    fitted = fit_linear(PairMoments.of(x * units, y))
    np.testing.assert_allclose(apply(fitted, x * units), y, atol=1e-8)


@pytest.mark.parametrize(("p", "q", "rank"), [(160, 160, 160), (140, 200, 140), (160, 160, 120)])
def test_rigid_of_wide_rows_is_that_of_the_svd_also_along_directions_that_products_lose(rng, p, q, rank):
    # Singular values from 1 to 1e-9, and zeros: products of columns with each other resolve none below 1e-8.
    u, v = rotation(rng, p), rotation(rng, q)[:p]
    sizes = np.concatenate([np.geomspace(1, 1e-9, rank), np.zeros(p - rank)])
    moments = PairMoments(900, np.zeros(p), np.zeros(q), np.eye(p), (u * sizes) @ v, np.eye(q))
    fitted = fit_rigid(moments, scale=False).matrix
    np.testing.assert_allclose(fitted @ fitted.T, np.eye(p), atol=1e-7)
    np.testing.assert_allclose(u.T[:rank] @ fitted, v[:rank], atol=2e-6)
    np.testing.assert_allclose(np.sum(fitted * moments.xy), sizes.sum(), rtol=1e-12)


@pytest.mark.parametrize("scale", [True, False])
def test_rigid_is_scipys_procrustes(rng, scale):
    x, y = rng.normal(size=(1000, 32)) + 3, rng.normal(size=(1000, 32)) - 2
    y = y + x @ rotation(rng, 32)
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    r, nuclear = orthogonal_procrustes(a, b)
    expected = r * (nuclear / np.sum(a**2) if scale else 1.0)
    np.testing.assert_allclose(fit_rigid(PairMoments.of(x, y), scale=scale).matrix, expected, atol=1e-10)


def test_rigid_disparity_is_scipys(rng):
    x = rng.normal(size=(200, 5))
    y = x @ rotation(rng, 5) + 0.3 * rng.normal(size=(200, 5))
    _, _, disparity = procrustes(y, x)
    share = squared_error(fit_rigid(PairMoments.of(x, y)), x, y) / np.sum((y - y.mean(axis=0)) ** 2)
    assert share == pytest.approx(disparity, rel=1e-10)


def test_rigid_embeds_a_narrower_source(rng):
    x = rng.normal(size=(400, 3))
    y = 2 * x @ rotation(rng, 7)[:3] + 1
    fitted = fit_rigid(PairMoments.of(x, y))
    np.testing.assert_allclose(apply(fitted, x), y, atol=1e-10)
    np.testing.assert_allclose(fitted.matrix @ fitted.matrix.T, 4 * np.eye(3), atol=1e-10)


def test_rigid_drops_spare_coordinates_of_a_wider_source(rng):
    y = rng.normal(size=(400, 3))
    x = np.hstack([y, 0.01 * rng.normal(size=(400, 4))]) @ rotation(rng, 7)
    fitted = fit_rigid(PairMoments.of(x, y))
    np.testing.assert_allclose(apply(fitted, x), y, atol=0.01)


@pytest.mark.parametrize(("n", "p"), [(400, 9), (20, 60)])
def test_rigid_of_a_wider_source_is_where_its_bound_touches_the_error(rng, n, p):
    """Of few rows the descent is made along the eigenvectors of the scatter; here the whole scatter judges its end."""
    x = rng.normal(size=(n, p)) * np.linspace(1, 2, p)
    y = x[:, :3] @ rotation(rng, 3) + 0.3 * rng.normal(size=(n, 3))
    m = PairMoments.of(x, y)
    (matrix,) = _rotate_and_drop([m], True, steps=3000, tol=0.0)
    scale = np.linalg.norm(matrix) / np.sqrt(3)
    frame = matrix / scale
    np.testing.assert_allclose(frame.T @ frame, np.eye(3), atol=1e-9)
    assert scale == pytest.approx(np.sum(frame * m.xy) / np.sum(frame * (m.xx @ frame)))
    u, _, vt = np.linalg.svd(m.xy + scale * (np.linalg.eigvalsh(m.xx)[-1] * frame - m.xx @ frame), full_matrices=False)
    np.testing.assert_allclose(u @ vt, frame, atol=1e-4)


def test_permutation_recovers_signs_order_scale_and_shift(rng):
    x = rng.laplace(size=(500, 6))
    order, signs = rng.permutation(6), rng.choice([-1.0, 1.0], 6)
    y = 2.5 * signs * x[:, order] + 4
    fitted = fit_permutation(PairMoments.of(x, y))
    np.testing.assert_array_equal(fitted.columns, order)
    np.testing.assert_allclose(fitted.weights, 2.5 * signs)
    np.testing.assert_allclose(apply(fitted, x), y)
    np.testing.assert_allclose((x - fitted.source_centre) @ fitted.matrix + fitted.target_centre, y)


def test_permutation_maximises_the_sum_of_absolute_correlations(rng):
    x, y = rng.normal(size=(100, 5)), rng.normal(size=(100, 8))
    rho = np.abs(np.corrcoef(x.T, y.T)[:5, 5:])
    best = rho[linear_sum_assignment(-rho)].sum()
    fitted = fit_permutation(PairMoments.of(x, y))
    matched = np.flatnonzero(fitted.weights)
    assert len(matched) == 5 and len(set(fitted.columns[matched])) == 5
    assert rho[fitted.columns[matched], matched].sum() == pytest.approx(best)
    # The one scale is least squares: no other does better.
    for factor in (0.9, 1.1):
        worse = (x - x.mean(axis=0)) @ (fitted.matrix * factor) + y.mean(axis=0)
        assert np.sum((worse - y) ** 2) > squared_error(fitted, x, y)


@pytest.mark.parametrize(("p", "q"), [(4, 7), (7, 4)])
def test_permutation_matches_different_widths_in_part(rng, p, q):
    wide = rng.laplace(size=(500, 7))
    x, y = wide[:, :p], wide[:, ::-1][:, -q:] if q < p else wide[:, ::-1]
    fitted = fit_permutation(PairMoments.of(x, y))
    matched = np.flatnonzero(fitted.weights)
    assert len(matched) == 4
    np.testing.assert_allclose(apply(fitted, x)[:, matched], y[:, matched], atol=1e-10)
    spare = np.flatnonzero(fitted.weights == 0)
    np.testing.assert_allclose(apply(fitted, x)[:, spare], np.broadcast_to(y.mean(axis=0)[spare], (500, len(spare))))


def test_correlations_are_numpys_whatever_the_spread(rng):
    x, y = rng.normal(size=(60, 4)) * [1e-3, 1, 10, 1e4], rng.normal(size=(60, 3)) * [1e5, 1, 1e-2]
    y = y + x[:, :3] * [1e5, 1, 1e-3]
    np.testing.assert_allclose(correlation(PairMoments.of(x, y)), np.corrcoef(x.T, y.T)[:4, 4:], atol=1e-12)


@pytest.mark.parametrize("fit", [fit_permutation, fit_scaled_permutation])
def test_columns_of_any_size_are_matched_by_correlation_alone(rng, fit):
    """A large column of little correlation must not take the place of a small one that is the same."""
    source = rng.laplace(size=(400, 3))
    x = source * [1e-3, 1, 1e3]
    y = np.column_stack([source[:, 1], -source[:, 0], source[:, 2]]) + 0.1 * source[:, [2, 2, 0]]
    for sizes in ([1, 1, 1], [1e3, 1e-3, 1], [1e-4, 1e4, 1e2]):
        fitted = fit(PairMoments.of(x, y * sizes))
        np.testing.assert_array_equal(fitted.columns, [1, 0, 2])
        np.testing.assert_array_equal(np.sign(fitted.weights), [1, -1, 1])


def test_constant_columns_correlate_with_nothing(rng):
    x = np.hstack([rng.normal(size=(100, 2)), np.full((100, 1), 0.3)])
    rho = correlation(PairMoments.of(x, x))
    assert not rho[2].any() and not rho[:, 2].any() and np.isfinite(rho).all()


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_the_ladder_is_nested_in_sample(seed, p, q):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(60, p)) * 10.0 ** rng.uniform(-2, 2, p) + 1, rng.normal(size=(60, q))
    y = y + x @ rng.normal(size=(p, q))
    m = PairMoments.of(x, y)
    groups = {name: g for name, g in GROUPS.items() if g.prepare is None}
    errors = {name: squared_error(g.fit(m), x, y) for name, g in groups.items()}
    slack = 1e-9 * np.sum((y - y.mean(axis=0)) ** 2)
    assert all(errors[inner] >= errors[name] - slack for name, g in groups.items() for inner in g.contains)


@given(st.integers(0, 2**32 - 1), st.sampled_from([1e-20, 1e-3, 1e20]), st.sampled_from([0.0, 1e4]))
def test_fits_follow_units_and_offsets(seed, unit, offset):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(80, 3)), rng.normal(size=(80, 3))
    y = y + x
    base, moved = PairMoments.of(x, y), PairMoments.of((x + offset) * unit, y)
    for fit in (fit_permutation, fit_scaled_permutation, fit_rigid, fit_linear):
        np.testing.assert_allclose(apply(fit(moved), (x + offset) * unit), apply(fit(base), x), rtol=1e-6, atol=1e-6)


def test_rigid_and_permutation_without_translation_keep_the_origin(rng):
    x = rng.normal(size=(300, 4)) + 2
    y = x @ rotation(rng, 4)
    m = PairMoments.of(x, y)
    for fit in (fit_rigid, fit_permutation, fit_scaled_permutation):
        np.testing.assert_array_equal(apply(fit(m, translation=False), np.zeros((1, 4))), 0)
    np.testing.assert_allclose(apply(fit_rigid(m, translation=False), x), y, atol=1e-10)


@pytest.mark.parametrize("scale", [True, False])
def test_rigid_finds_an_exact_rotate_and_drop(rng, scale):
    x = rng.normal(size=(500, 10)) * np.geomspace(0.1, 10, 10)
    y = (x @ rotation(rng, 10))[:, :4] * (3 if scale else 1)
    fitted = fit_rigid(PairMoments.of(x, y), scale=scale)
    np.testing.assert_allclose(apply(fitted, x), y, atol=1e-6)
    size = 9 if scale else 1
    np.testing.assert_allclose(fitted.matrix.T @ fitted.matrix, size * np.eye(4), atol=1e-6)


def test_rotate_and_drop_is_no_worse_than_random_rotations(rng):
    x = rng.normal(size=(300, 6)) * [5, 3, 2, 1, 1, 0.5]
    y = x @ rng.normal(size=(6, 2)) + rng.normal(size=(300, 2))
    found = squared_error(fit_rigid(PairMoments.of(x, y), scale=False), x, y)
    x0, y0 = x - x.mean(axis=0), y - y.mean(axis=0)
    tries = [np.sum((y0 - x0 @ rotation(rng, 6)[:, :2]) ** 2) for _ in range(2000)]
    assert found <= min(tries)


@pytest.mark.parametrize("options", [{}, {"scale": False}, {"translation": False}], ids=str)
@pytest.mark.parametrize(("n", "p", "q"), [(200, 6, 3), (30, 40, 2), (9, 40, 4), (100, 3, 3), (100, 3, 5)])
def test_rigid_fits_to_many_targets_are_those_to_each(rng, n, p, q, options):
    x = rng.normal(size=(n, p)) * np.linspace(1, 3, p) + 1
    near = (x @ rotation(rng, p))[:, :q]
    # An exact map, which descent finds at once, a noisy one, noise, and nothing: they stop at different steps.
    exact = near if q <= p else np.pad(near, ((0, 0), (0, q - p)))
    targets = [exact, exact + rng.normal(size=(n, q)), 5 * rng.normal(size=(n, q)), np.ones((n, q))]
    many = [PairMoments.of(x, y) for y in targets]
    together = fit_rigid_to_many(many, **options)
    assert len(together) == len(many)
    for moments, fitted in zip(many, together, strict=True):
        alone = fit_rigid(moments, **options)
        np.testing.assert_allclose(fitted.matrix, alone.matrix, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(fitted.source_centre, alone.source_centre)
        np.testing.assert_array_equal(fitted.target_centre, alone.target_centre)
    by_group = GROUPS["rigid"].fitted_to_many(many, [{"scale": True, "ridge": 1.0 * k} for k in range(4)])
    for fitted, moments in zip(by_group, many, strict=True):
        np.testing.assert_allclose(fitted.matrix, fit_rigid(moments).matrix, rtol=1e-12, atol=1e-12)


def test_a_group_with_a_fit_or_options_of_its_own_is_fitted_by_them(rng):
    x = rng.normal(size=(50, 3))
    many = [PairMoments.of(x, rng.normal(size=(50, 2))) for _ in range(2)]
    ridges = [{"ridge": 0.0}, {"ridge": 5.0}]
    for own, moments, fitted in zip(ridges, many, GROUPS["linear"].fitted_to_many(many, ridges), strict=True):
        np.testing.assert_array_equal(fitted.matrix, fit_linear(moments, **own).matrix)
    other = replace(GROUPS["rigid"], fit=fit_permutation)
    for moments, fitted in zip(many, other.fitted_to_many(many, [{}, {}]), strict=True):
        np.testing.assert_array_equal(fitted.matrix, fit_permutation(moments).matrix)
    unlike = GROUPS["rigid"].fitted_to_many(many, [{"scale": True}, {"scale": False}])
    for moments, scale, fitted in zip(many, (True, False), unlike, strict=True):
        np.testing.assert_array_equal(fitted.matrix, fit_rigid(moments, scale=scale).matrix)


@pytest.mark.parametrize("scale", [True, False])
def test_unmixed_sides_are_matched_with_signs_and_one_scale(rng, scale):
    s = rng.laplace(size=(300, 3))
    s = (s - s.mean(axis=0)) @ np.linalg.inv(np.linalg.cholesky(np.cov(s.T, bias=True))).T
    a, b = rng.normal(size=(3, 3)), rng.normal(size=(4, 3))
    noise = 0.5 * rng.normal(size=(300, 3))
    x, y = s @ a.T + 1, (s[:, [2, 0, 1]] * [1, -1, 1] + noise) @ b.T - 2
    m, sides = PairMoments.of(x, y), {"source": np.linalg.inv(a), "target": np.linalg.pinv(b), "mixing": b}
    matched = (s[:, [2, 0, 1]] * [1, -1, 1]) @ b.T
    # One number for all columns, as plain least squares has it.
    factor = LinearRegression(fit_intercept=False).fit(matched.reshape(-1, 1), (y - y.mean(axis=0)).ravel()).coef_[0]
    assert abs(factor - 1) > 1e-3
    expected = (factor if scale else 1.0) * matched + y.mean(axis=0)
    np.testing.assert_allclose(apply(fit_unmixed(m, **sides, scale=scale), x), expected, atol=1e-9)
    origin = fit_unmixed(m, **sides, translation=False, scale=scale)
    assert not origin.source_centre.any() and not origin.target_centre.any()


def test_the_scale_of_unmixed_sides_without_translation_is_about_the_origin(rng):
    x = rng.laplace(size=(300, 3)) + 2
    y = 3 * x + rng.normal(size=(300, 3)) + 1
    same = np.eye(3)
    fitted = fit_unmixed(PairMoments.of(x, y), source=same, target=same, mixing=same, translation=False)
    np.testing.assert_allclose(fitted.matrix, np.sum(x * y) / np.sum(x * x) * same, atol=1e-9)


def test_unmixed_sides_without_variation_have_nothing_to_scale(rng):
    x, none = rng.normal(size=(50, 2)), np.zeros((1, 2))
    fitted = fit_unmixed(PairMoments.of(x, x), source=none, target=none, mixing=none.T)
    np.testing.assert_allclose(apply(fitted, x), np.broadcast_to(x.mean(axis=0), x.shape))


@pytest.mark.parametrize(("p", "q"), [(60, 60), (50, 60)])
def test_rigid_of_few_rows_is_an_isometry_with_the_error_of_procrustes(rng, p, q):
    x, y = rng.normal(size=(15, p)), rng.normal(size=(15, q))
    fitted = fit_rigid(PairMoments.of(x, y))
    gram = fitted.matrix @ fitted.matrix.T
    np.testing.assert_allclose(gram / gram[0, 0], np.eye(p), atol=1e-10)
    centred = np.hstack([x - x.mean(axis=0), np.zeros((15, q - p))])
    turn, size = orthogonal_procrustes(centred, y - y.mean(axis=0))
    best = np.sum((size / np.sum(centred**2) * centred @ turn - (y - y.mean(axis=0))) ** 2)
    assert squared_error(fitted, x, y) == pytest.approx(best, rel=1e-9)


def test_rigid_of_few_rows_leaves_alone_what_they_say_nothing_of(rng):
    x = rng.normal(size=(10, 40))
    fitted = fit_rigid(PairMoments.of(x, x))
    np.testing.assert_allclose(fitted.matrix, np.eye(40), atol=1e-10)


@pytest.mark.parametrize("n", [10, 25, 40])
def test_few_rows_of_a_wider_source_are_still_rotated_and_dropped(rng, n):
    x = rng.normal(size=(n, 40))
    y = x @ rng.normal(size=(40, 5)) * [1, 2, 4, 8, 16]
    fitted = fit_rigid(PairMoments.of(x, y))
    sizes = np.linalg.svd(fitted.matrix, compute_uv=False)
    np.testing.assert_allclose(sizes, sizes[0], rtol=1e-9)
    spread = np.sum((y - y.mean(axis=0)) ** 2)
    assert squared_error(fitted, x, y) < squared_error(fit_permutation(PairMoments.of(x, y)), x, y) < spread


def test_rigid_of_few_rows_without_any_relation_is_the_identity(rng):
    x = rng.normal(size=(10, 40))
    np.testing.assert_allclose(fit_rigid(PairMoments.of(x, np.ones((10, 40))), scale=False).matrix, np.eye(40))


@pytest.mark.parametrize("fit", [fit_permutation, fit_rigid])
def test_a_rescaled_map_acts_on_rescaled_rows(rng, fit):
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    fitted = fit(PairMoments.of(x, y))
    small = fitted.rescaled(np.full(3, 4.0), 2.0, np.dtype(np.float32))
    turned = small.turn((x / 4.0).astype(np.float32))
    assert turned.dtype == np.float32
    np.testing.assert_allclose(turned * 2.0, fitted.turn(x), rtol=1e-5, atol=1e-5)


def test_apply_agrees_with_the_matrix(rng):
    x, y = rng.normal(size=(40, 3)) + 5, rng.normal(size=(40, 4))
    for fit in (fit_permutation, fit_rigid):
        f = fit(PairMoments.of(x, y))
        np.testing.assert_allclose(apply(f, x), (x - f.source_centre) @ f.matrix + f.target_centre, atol=1e-12)


def test_wide_assignments_are_scipys(rng):
    common = rng.normal(size=(700, 20))
    x, y = (common @ rng.normal(size=(20, WIDE + 1)) + rng.normal(size=(700, WIDE + 1)) for _ in range(2))
    gains = np.abs(np.corrcoef(x.T, y.T)[: WIDE + 1, WIDE + 1 :])
    np.testing.assert_array_equal(assignment(gains), linear_sum_assignment(gains, maximize=True))
    np.testing.assert_array_equal(assignment(gains[5:]), linear_sum_assignment(gains[5:], maximize=True))
    # Constant columns have many partners that are as good.
    gains[[2, 7]], gains[:, [1, 3, 9]] = 0, 0
    np.testing.assert_array_equal(assignment(gains), linear_sum_assignment(gains, maximize=True))


def test_assignments_are_scipys(rng):
    for shape in ((5, 5), (3, 7), (7, 3), (0, 2)):
        gains = rng.normal(size=shape)
        np.testing.assert_array_equal(assignment(gains), linear_sum_assignment(gains, maximize=True))


def weighted(x, y, weights):
    """Moments of rows that count as often as their weights say."""
    n = weights.sum()
    mean_x, mean_y = weights @ x / n, weights @ y / n
    a, b = x - mean_x, y - mean_y
    return PairMoments(
        n, mean_x, mean_y, a.T @ (weights[:, None] * a), a.T @ (weights[:, None] * b), b.T @ (weights[:, None] * b)
    )


@pytest.mark.parametrize("translation", [True, False])
@pytest.mark.parametrize(("p", "q"), [(4, 4), (3, 5), (5, 3)])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("permutation", {"scale": True}),
        ("permutation", {"scale": False}),
        ("scaled_permutation", {}),
        ("rigid", {"scale": True}),
        ("rigid", {"scale": False}),
        ("linear", {"ridge": 0.0}),
        ("linear", {"ridge": 7.0}),
    ],
)
def test_influences_are_derivatives_by_the_weight_of_a_row(rng, name, options, p, q, translation):
    if name == "rigid" and p > q:
        pytest.skip("the rotation of a wider source has no closed form")
    x = rng.normal(size=(40, p)) * np.geomspace(1, 3, p) + 1
    y = x @ (np.eye(p, q) + 0.3 * rng.normal(size=(p, q))) + 0.5 * rng.normal(size=(40, q)) - 2
    group, gradient, options = GROUPS[name], rng.normal(size=(p, q)), {"translation": translation, **options}
    moments = PairMoments.of(x, y)
    fitted = group.fit(moments, **options)
    at, step = np.array([0, 7, 23]), 1e-4
    a, b = x[at] - fitted.source_centre, y[at] - fitted.target_centre
    found = group.influence(moments, fitted, gradient, a, b, **options)

    def along(row, change):
        weights = np.ones(40)
        weights[row] += change
        return np.sum(gradient * group.fit(weighted(x, y, weights), **options).matrix)

    slopes = [(along(row, step) - along(row, -step)) / (2 * step) for row in at]
    np.testing.assert_allclose(found, slopes, rtol=1e-5, atol=1e-8)
    assert np.any(slopes) == (options.get("scale", True) or name == "rigid")
    # What the centre of the map adds is not part of the matrix.
    assert fitted.source_centre.any() == translation


def test_influences_of_nothing_are_zero(rng):
    """Constant columns have no partner, and a map of size 0 no scale to move."""
    x, y = np.zeros((20, 2)), rng.normal(size=(20, 2))
    moments = PairMoments.of(x, y)
    for name in ("permutation", "scaled_permutation", "rigid", "linear"):
        group, options = GROUPS[name], {"translation": True} | ({"ridge": 1.0} if name == "linear" else {})
        fitted = group.fit(moments, **options)
        moved = group.influence(moments, fitted, np.ones((2, 2)), x, y - fitted.target_centre, **options)
        np.testing.assert_array_equal(moved, 0)


@pytest.mark.parametrize("ridge", [0.5, 40.0])
@pytest.mark.parametrize(("n", "p"), [(60, 5), (20, 50)])
def test_a_penalty_shrinks_the_map_as_its_equation_says(rng, n, p, ridge):
    x, y = rng.normal(size=(n, p)) + 3, rng.normal(size=(n, 2))
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    found = fit_linear(PairMoments.of(x, y), ridge=ridge).matrix
    np.testing.assert_allclose(a.T @ (b - a @ found), ridge * found, atol=1e-8)
    assert np.linalg.norm(found) < np.linalg.norm(fit_linear(PairMoments.of(x, y)).matrix)


@pytest.mark.parametrize(("p", "q"), [(3, 3), (4, 2), (2, 4)])
@pytest.mark.parametrize("fit", [fit_permutation, fit_scaled_permutation, fit_rigid])
def test_squared_errors_are_those_of_the_rows(rng, fit, p, q):
    """Of a matching too, whose errors need the products of partners alone; a column may have none."""
    x, new_x = rng.normal(size=(2, 60, p)) + 1
    y, new_y = (rows @ rng.normal(size=(p, q)) + rng.normal(size=(60, q)) for rows in (x, new_x))
    fitted = fit(PairMoments.of(x, y))
    expected = np.sum((new_y - apply(fitted, new_x)) ** 2, axis=0)
    np.testing.assert_allclose(squared_errors(fitted, PairMoments.of(new_x, new_y)), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("n", "p", "q"), [(48, 80, 30), (60, 80, 30), (20, 80, 30), (48, 80, 80), (30, 80, 80), (48, 60, 90), (20, 60, 90)]
)
def test_rounding_does_not_decide_a_rigid_motion_of_few_rows(rng, n, p, q):
    """R2 on new rows was .06, .14, .10 and .21 for changes of 1e-13: directions that no row has were turned anyhow."""
    x, y = rng.normal(size=(n, p)) + 3, rng.normal(size=(n, q))
    y[:, : min(p, q)] += x[:, : min(p, q)]
    first = fit_rigid(PairMoments.of(x, y))
    size = np.linalg.norm(first.matrix, axis=0 if p >= q else 1)
    # Orthonormal columns, or rows, times one scale.
    inner = first.matrix.T @ first.matrix if p >= q else first.matrix @ first.matrix.T
    np.testing.assert_allclose(inner, size[0] ** 2 * np.eye(min(p, q)), atol=1e-9 * size[0] ** 2)
    for _ in range(3):
        again = fit_rigid(PairMoments.of(x * (1 + 1e-13 * rng.normal(size=x.shape)), y))
        np.testing.assert_allclose(again.matrix, first.matrix, atol=1e-5 * size[0])
    if p <= q:
        # No isometry gains more.
        a, b = x - x.mean(axis=0), y - y.mean(axis=0)
        gain = np.linalg.svd(a.T @ b, compute_uv=False).sum()
        assert np.sum(first.matrix / size[0] * (a.T @ b)) == pytest.approx(gain, rel=1e-9)


def test_a_target_of_few_dimensions_leaves_other_directions_alone(rng):
    x = rng.normal(size=(200, 6))
    y = np.zeros((200, 6))
    y[:, :2] = x[:, :2]
    matrix = fit_rigid(PairMoments.of(x, y), scale=False).matrix
    np.testing.assert_allclose(matrix[2:, 2:], np.eye(4), atol=0.05)
    np.testing.assert_allclose(matrix.T @ matrix, np.eye(6), atol=1e-9)


@pytest.mark.parametrize("shape", [(200, 130), (130, 200), (150, 150), (2, 160, 140)])
@pytest.mark.parametrize("least", [1e-2, 1e-6, 0.0])
def test_the_nearest_orthonormal_matrix_is_that_of_the_svd(rng, shape, least):
    """From products of columns where these are well conditioned, else from an SVD."""
    u, _, vt = np.linalg.svd(rng.normal(size=shape), full_matrices=False)
    sizes = np.geomspace(1, least, u.shape[-1]) if least else np.arange(u.shape[-1]) % 2
    found = polar(1e-150 * u * sizes @ vt)
    if least:
        np.testing.assert_allclose(found, u @ vt, atol=1e-9)
    narrow = found if shape[-2] >= shape[-1] else np.swapaxes(found, -1, -2)
    assert np.abs(np.swapaxes(narrow, -1, -2) @ narrow - np.eye(narrow.shape[-1])).max() < 1e-12


@pytest.mark.parametrize(("n", "p", "q", "related"), [(400, 8, 5, False), (160, 30, 10, True), (160, 64, 20, False)])
def test_rotate_and_drop_is_no_worse_than_100_plain_steps(rng, n, p, q, related):
    x = rng.normal(size=(n, p)) * np.geomspace(1, 0.05, p)
    y = x @ rotation(rng, p)[:, :q] + 0.3 * rng.normal(size=(n, q))
    y = y if related else y[rng.permutation(n)]
    moments = PairMoments.of(x, y)
    xx, xy = moments.xx, moments.xy
    bound = np.linalg.eigvalsh(xx)[-1]
    errors = []
    for start in (fit_permutation(moments).matrix, xy, np.linalg.solve(xx, xy)):
        r = polar(start)
        for _ in range(100):
            r = polar(xy + bound * r - xx @ r)
        errors.append(np.sum(r * (xx @ r)) - 2 * np.sum(r * xy) + np.trace(moments.yy))
    found = fit_rigid(moments, scale=False)
    np.testing.assert_allclose(found.matrix.T @ found.matrix, np.eye(q), atol=1e-10)
    assert squared_error(found, x, y) <= min(errors) * (1 + 1e-6)
