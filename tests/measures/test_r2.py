"""R2 against scikit-learn fold by fold, its invariances and known answers, and the geometry of the map."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import LinearRegression, Ridge, RidgeCV

from nearid.base.errors import InputError
from nearid.folds import assign
from nearid.measures.factors import open_factors
from nearid.measures.r2 import r2
from nearid.measures.registry import Earlier, measures


def rotation(rng, d):
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def noisy(rng, n=200, d=5, m=3):
    z = rng.normal(size=(n, d)) + 3
    return z, z @ rng.normal(size=(d, m)) + [0.5, 1, 4] * rng.normal(size=(n, m))


def test_held_out_values_are_those_of_scikit_learns_fits(rng):
    z, u = noisy(rng, n=60)
    fold = assign(60, 5, 1)
    error, spread = np.zeros(3), np.zeros(3)
    for k in range(5):
        train, test = fold != k, fold == k
        made = LinearRegression().fit(z[train], u[train]).predict(z[test])
        error += np.sum((u[test] - made) ** 2, axis=0)
        spread += np.sum((u[test] - u[train].mean(axis=0)) ** 2, axis=0)
    found = r2(z, u, ridge=0, random_state=1)
    np.testing.assert_allclose(found.per_factor, 1 - error / spread, atol=1e-10)
    assert found.value == pytest.approx(np.mean(1 - error / spread))


def test_in_sample_values_and_coefficients_are_scikit_learns(rng):
    z, u = noisy(rng)
    found, oracle = r2(z, u, ridge=0, folds=1), LinearRegression().fit(z, u)
    assert found.value == pytest.approx(oracle.score(z, u), abs=1e-12)
    scaled = np.abs(oracle.coef_.T) * z.std(axis=0)[:, None] / u.std(axis=0)
    np.testing.assert_allclose(found.matrix, scaled, atol=1e-10)


@given(seed=st.integers(0, 1000))
def test_invertible_maps_shifts_and_scales_change_nothing(seed):
    rng = np.random.default_rng(seed)
    z, u = noisy(rng, n=50)
    order, moved_factors = rng.permutation(3), u * [-2, 0.01, 40] + 5
    for ridge, mixing in ((0, rotation(rng, 5) * [1, 2, 3, 4, 5]), ("auto", rotation(rng, 5))):
        base = r2(z, u, ridge=ridge).per_factor
        # A penalty knows the units of the latents, but no direction, and is chosen for each factor in its own units.
        found = r2(7 * z @ mixing - 30, moved_factors, ridge=ridge).per_factor
        np.testing.assert_allclose(found, base, atol=1e-7)
        np.testing.assert_allclose(r2(z, u[:, order], ridge=ridge).per_factor, base[order], atol=1e-10)


def test_a_rotation_keeps_one_and_is_told_as_a_scaled_rotation(rng):
    u = rng.uniform(size=(500, 4))
    found = r2(2 * u @ rotation(rng, 4) + 9, u)
    assert found.value == pytest.approx(1, abs=1e-10) and not found.alerts
    assert found.orthogonality_error < 1e-7
    assert found.scale == pytest.approx(0.5) and found.scale_error == pytest.approx(np.log(2))


def test_orthogonality_error_is_the_distance_to_the_nearest_scaled_rotation(rng):
    u = rng.normal(size=(500, 3))
    matrix = rng.normal(size=(3, 3))
    found = r2(u @ np.linalg.inv(matrix), u)
    nearest, size = orthogonal_procrustes(np.eye(3), matrix)
    distance = np.linalg.norm(matrix - size / 3 * nearest) / np.linalg.norm(matrix)
    assert found.orthogonality_error == pytest.approx(distance, rel=1e-6)
    assert found.scale == pytest.approx(size / 3, rel=1e-6)
    # A map that keeps one direction of many is as far as can be: sqrt(1 - 1/3).
    flat = r2(u, u[:, [0, 0, 0]] * 1.0)
    assert flat.orthogonality_error == pytest.approx(np.sqrt(2 / 3), abs=1e-6)


def test_circular_and_categorical_factors(rng):
    angle, kind = rng.uniform(0, 2 * np.pi, 900), rng.integers(0, 3, 900)
    factors = open_factors({"pan": angle, "kind": np.array(["a", "b", "c"])[kind]}, periods={"pan": 2 * np.pi})
    z = np.column_stack([np.cos(angle + 1), np.sin(angle + 1), np.eye(3)[kind][:, :2]])
    np.testing.assert_allclose(r2(z, factors).per_factor, 1, atol=1e-9)
    # Half of cosine and sine is known from one of them.
    assert r2(z[:, :1], factors).per_factor[0] == pytest.approx(0.5, abs=0.05)
    only = r2(z, open_factors({"kind": np.array(["a", "b", "c"])[kind]}))
    assert np.isnan([only.orthogonality_error, only.scale, only.scale_error]).all() and only.value == pytest.approx(1)


def test_noise_is_not_above_zero_although_it_interpolates(rng):
    z, u = rng.normal(size=(100, 300)), rng.normal(size=(100, 4))
    found = r2(z, u, ridge=0)
    assert found.value < 0.05 and [alert.code for alert in found.alerts] == ["few_rows"]
    assert r2(z, u, ridge=0, folds=1).value == pytest.approx(1)
    # The chosen penalty leaves hardly anything of a map of noise.
    assert -0.3 < r2(z, u).value < 0.1 and not r2(z, u).alerts
    assert -0.02 < r2(rng.normal(size=(5000, 5)), rng.normal(size=(5000, 4))).value <= 0


def by_scikit_learn(z, u):
    """R2 of each factor by RidgeCV in the same folds."""
    fold, error, spread = assign(len(z), 5, 0), np.zeros(u.shape[1]), np.zeros(u.shape[1])
    for k in range(5):
        train, test = fold != k, fold == k
        oracle = RidgeCV(np.geomspace(1e-4, 1e5, 37), alpha_per_target=True).fit(z[train], u[train])
        error += np.sum((u[test] - oracle.predict(z[test])) ** 2, axis=0)
        spread += np.sum((u[test] - u[train].mean(axis=0)) ** 2, axis=0)
    return 1 - error / spread


@pytest.mark.parametrize(("n", "d"), [(150, 200), (150, 60)])
def test_a_chosen_penalty_is_as_good_as_that_of_scikit_learn(rng, n, d):
    """Wide latents of decaying sizes, where plain least squares overfits; factors in very different units."""
    z = rng.normal(size=(n, d)) * np.geomspace(3, 0.1, d)
    u = z[:, :5] @ rng.normal(size=(5, 3)) * [1, 1e3, 1e-3] + [4, 4e3, 8e-3] * rng.normal(size=(n, 3))
    found = r2(z, u)
    # Other penalties are chosen, from other rows: a margin beyond the hundredth that real data are held to.
    assert np.mean(found.per_factor - by_scikit_learn(z, u)) > -0.05
    assert found.value > r2(z, u, ridge=0).value + 0.05 and (found.ridge > 0).all()


def test_a_penalty_that_is_given_is_scikit_learns(rng):
    z, u = noisy(rng)
    found, oracle = r2(z, u, ridge=30.0, folds=1), Ridge(30.0).fit(z, u)
    assert found.value == pytest.approx(oracle.score(z, u), abs=1e-12) and found.ridge.tolist() == [30.0] * 3


def test_with_many_rows_a_latent_the_penalty_changes_nothing(rng):
    z = rng.normal(size=(1000, 10))
    u = z @ rng.normal(size=(10, 4)) + 0.5 * rng.normal(size=(1000, 4))
    np.testing.assert_allclose(r2(z, u).per_factor, r2(z, u, ridge=0).per_factor, atol=1e-3)


def test_three_properties_of_real_images_from_more_latents_than_rows(real_data):
    """The faces of Isomap in an EfficientNet: plain least squares is far behind scikit-learn's RidgeCV."""
    held = np.load(real_data / "ensembles" / "imagenet_factors.npz")
    z, u = held["faces_lite0"].astype(float), held["faces_light_pan_tilt"].astype(float)
    found, oracle = r2(z, u).per_factor, by_scikit_learn(z, u)
    assert (found > oracle - 0.01).all() and (found > r2(z, u, ridge=0).per_factor).all()


def test_constant_latents_explain_nothing_and_are_told(rng):
    found = r2(np.ones((60, 2)), rng.normal(size=(60, 2)))
    assert found.value <= 1e-12 and np.isnan(found.orthogonality_error)
    assert [alert.code for alert in found.alerts] == ["constant_latents"]


def test_refused(rng):
    z, u = noisy(rng, n=20)
    with pytest.raises(InputError, match="latents has 20 rows and factors has 19"):
        r2(z, u[:-1])
    with pytest.raises(InputError, match="Every factor is constant"):
        r2(z, np.ones((20, 1)))
    u[3, 1] = np.inf
    with pytest.raises(InputError, match="factors has inf at row 3, column 1"):
        r2(z, u)


@pytest.mark.filterwarnings("error")
def test_a_huge_penalty_leaves_nothing(rng):
    u = rng.normal(size=(100, 2))
    found = r2(u @ rng.normal(size=(2, 3)), u, ridge=1e300)
    assert found.value == 0 and 0 <= found.orthogonality_error <= 1


def test_one_factor_has_no_penalty_where_rows_are_many():
    """A penalty has to gain 1% of the error for half of the judges."""
    plain, apart = 0, []
    for seed in range(10):
        rng = np.random.default_rng([9, seed])
        z = rng.normal(size=(500, 10))
        u = z @ rng.normal(size=10) / np.sqrt(10) + 0.3 * rng.normal(size=500)
        found = r2(z, u)
        plain += found.ridge[0] == 0
        apart.append(abs(found.value - r2(z, u, ridge=0).value))
    assert plain >= 7 and max(apart) < 1e-3


def test_permuted_factors_of_few_rows_have_the_value_of_their_own_fit(rng):
    """They share coordinates and decompositions with the factors in their order."""
    x, u = rng.normal(size=(60, 90)), rng.normal(size=(60, 3))
    u += x[:, :3]
    declared, order = measures()["r2"], rng.permutation(60)
    kept = declared.of_loaded(x, open_factors(u)).kept
    permuted = open_factors(u[order])
    found = declared.of_loaded(x, permuted, earlier=Earlier(kept, np.arange(60), permuted=True))
    alone = declared.of_loaded(x, permuted)
    np.testing.assert_allclose(found.per_factor, alone.per_factor, atol=1e-8)
    assert found.orthogonality_error == pytest.approx(alone.orthogonality_error, abs=1e-8)
