"""What scikit-learn's own tests ask of FastICA, asked of nearid.ICA through a thin adapter, and where they differ."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA, FastICA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline

from nearid import ICA, RankWarning, Whitening
from nearid.base.errors import InputError

# Few rows, a Cauchy source and uniform noise give alerts, which other tests look at.
pytestmark = [
    pytest.mark.filterwarnings("ignore::nearid.IdentifiabilityWarning"),
    pytest.mark.filterwarnings("ignore:.*stopped after 500 passes:sklearn.exceptions.ConvergenceWarning"),
]


def adapted(
    n_components=None, *, fun="logcosh", whiten="unit-variance", max_iter=500, tol=1e-4, random_state=0, dtype=None
):
    """The ICA that scikit-learn's names of parameters stand for.

    "unit-variance" is the only scale of components that there is; dtype is the precision of the products.
    """
    assert whiten in ("unit-variance", False)
    return ICA(
        n_components,
        contrast=fun,
        whiten=bool(whiten),
        max_passes=max_iter,
        tol=tol,
        random_state=random_state,
        dtype=dtype,
    )


@pytest.fixture(params=[np.float32, np.float64])
def precision(request):
    return request.param


def normed(x):
    return (x - x.mean(axis=0)) / x.std(axis=0)


def square_wave_and_cauchy(rng, n=1000):
    """A periodic signal of two values, and one without moments."""
    wave = np.where(np.sin(np.linspace(0, 100, n)) > 0, 1.0, -1.0)
    return normed(np.column_stack([wave, rng.standard_cauchy(size=n)]))


def sine_and_steps(n=1000):
    t = np.linspace(0, 100, n)
    return normed(np.column_stack([np.sin(t), np.ceil(np.sin(np.pi * t))]))


def recovered(components, sources):
    """|Correlation| of each source with the component that is nearest to it; every component has one source."""
    k = sources.shape[1]
    alike = np.abs(np.corrcoef(components.T, sources.T)[:k, k:])
    assert sorted(alike.argmax(axis=0)) == list(range(k))
    return alike.max(axis=0)


@pytest.mark.parametrize("noise", [0.0, 0.1])
@pytest.mark.parametrize("whiten", ["unit-variance", False])
@pytest.mark.parametrize("fun", ["logcosh", "exp", "cube"])
def test_two_sources_that_were_rotated_are_recovered(rng, precision, fun, whiten, noise):
    sources = square_wave_and_cauchy(rng)
    turn = np.array([[np.cos(0.6), np.sin(0.6)], [np.sin(0.6), -np.cos(0.6)]])
    x = normed(sources @ turn + noise * rng.normal(size=(1000, 2)))
    if not whiten:
        # A rotation alone separates rows that are white.
        x = PCA(whiten=True).fit_transform(x)
    x = x.astype(precision)
    ica = adapted(fun=fun, whiten=whiten)
    components = ica.fit_transform(x)
    assert ica.components_.shape == ica.mixing_.shape == (2, 2) and components.shape == (1000, 2)
    assert components.dtype == precision
    assert recovered(components, sources).min() > (0.9 if noise else 0.99)
    np.testing.assert_allclose(components, (x - ica.mean_) @ ica.components_.T, atol=1e-4 * np.abs(components).max())


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_two_sources_in_six_columns_are_recovered(rng, noise):
    sources = sine_and_steps()
    x = normed(sources @ rng.normal(size=(2, 6)) + noise * rng.normal(size=(1000, 6)))
    ica = adapted(2)
    components = ica.fit_transform(x)
    assert recovered(components, sources).min() > (0.9 if noise else 0.999)
    # Whitening, then a rotation.
    rotation = ica.components_ @ np.linalg.pinv(ica.whitening_)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(2), atol=1e-8)
    np.testing.assert_allclose(rotation @ ica.whitening_ @ (x - ica.mean_).T, components.T, atol=1e-8)


def test_both_programs_find_the_same_sources(rng):
    x = rng.laplace(size=(4000, 5)) @ rng.normal(size=(5, 5)) + 3
    other = FastICA(whiten="unit-variance", tol=1e-8, max_iter=2000, random_state=0).fit(x)
    own = adapted(tol=1e-7).fit(x)
    assert recovered(own.transform(x), other.transform(x)).min() > 1 - 1e-6
    # Sizes are the same, and so are mixing and whitening but for signs, order and the scale of the latter.
    np.testing.assert_allclose(np.linalg.norm(own.mixing_, axis=1), np.linalg.norm(other.mixing_, axis=1), rtol=1e-6)
    np.testing.assert_allclose(np.abs(own.whitening_), np.sqrt(len(x)) * np.abs(other.whitening_), rtol=1e-6)


@pytest.mark.parametrize(("whiten", "k"), [("unit-variance", 5), ("unit-variance", 10), (False, None)])
def test_fit_transform_is_fit_and_then_transform(rng, precision, whiten, k):
    x = rng.uniform(size=(100, 10)).astype(precision)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        at_once = adapted(k, whiten=whiten).fit_transform(x)
        later = adapted(k, whiten=whiten).fit(x)
    assert at_once.shape == (100, k or 10) and later.components_.shape == (k or 10, 10)
    np.testing.assert_array_equal(at_once, later.transform(x))
    if whiten:
        np.testing.assert_allclose(at_once.var(axis=0), 1, rtol=1e-5)


@pytest.mark.parametrize("whiten", ["unit-variance", False])
@pytest.mark.parametrize("k", [5, 10])
def test_rows_come_back_from_all_components(rng, precision, whiten, k):
    x = rng.uniform(size=(100, 10)).astype(precision)
    ica = adapted(k, whiten=whiten)
    components = ica.fit_transform(x)
    back = ica.inverse_transform(components)
    # FastICA ignores n_components without whitening: there mixing_ would be (10, 10).
    assert ica.mixing_.shape == (10, k) and back.shape == x.shape and back.dtype == precision
    if k == 10:
        np.testing.assert_allclose(back, x, atol=1e-5)
    else:
        # The nearest rows that five directions can give, with or without whitening.
        nearest = PCA(5, svd_solver="full").fit(x)
        np.testing.assert_allclose(back, nearest.inverse_transform(nearest.transform(x)), atol=1e-5)


def test_arrays_have_the_precision_of_the_rows_on_request(rng, precision):
    x = rng.uniform(size=(100, 10)).astype(precision)
    ica = adapted(5).fit(x)
    names = ("components_", "mixing_", "mean_", "whitening_", "variances_", "kappa_")
    assert all(getattr(ica, name).dtype == np.float64 for name in names)
    own = ica.astype(x.dtype)
    assert all(getattr(own, name).dtype == precision for name in names)
    np.testing.assert_allclose(own.transform(x), ica.transform(x), atol=1e-4)
    np.testing.assert_allclose(own.whitening_, ica.whitening_, rtol=1e-3, atol=1e-3)
    # The fit itself stays what it was, and a copy can go back to float64.
    assert ica.components_.dtype == np.float64 and own.astype("float64").components_.dtype == np.float64
    assert Whitening().fit(x).astype("float32").components_.dtype == np.float32
    for wrong in (None, "float16", "int64"):
        with pytest.raises(InputError, match="float32 or float64"):
            ica.astype(wrong)
    with pytest.raises(NotFittedError):
        ICA().astype("float32")


@pytest.mark.parametrize(("unit", "words"), [(1e42, "too large for float32"), (1e-42, "too (large|small) for float32")])
def test_a_precision_that_cannot_hold_the_numbers_is_refused(rng, unit, words):
    x = rng.laplace(size=(500, 3)) * unit
    for fitted in (ICA(starts=1).fit(x), Whitening().fit(x)):
        with pytest.raises(InputError, match=words):
            fitted.astype("float32")
        np.testing.assert_array_equal(fitted.astype("float64").components_, fitted.components_)


def test_an_array_that_would_become_all_zeros_is_refused(rng):
    """Variances of 1e-60, while components and mixing fit into float32."""
    whitening = Whitening().fit(rng.laplace(size=(500, 3)) * 1e-30)
    with pytest.raises(InputError, match="variances_ holds numbers too small for float32"):
        whitening.astype(np.float32)


def test_a_search_that_ends_too_soon_warns(rng):
    x = sine_and_steps() @ rng.normal(size=(2, 6))
    with pytest.warns(ConvergenceWarning, match="stopped after 2 passes"):
        adapted(2, max_iter=2, tol=1e-300).fit(x)


def test_rows_of_low_rank_warn(rng):
    a = rng.normal(size=(10, 2))
    with pytest.warns(RankWarning, match="10 columns have rank 2: only 2 directions are kept"):
        assert adapted().fit(a @ a.T).n_components_ == 2


@pytest.mark.parametrize(
    "wrong",
    [{"fun": np.tanh}, {"fun": "tanh"}, {"n_components": 0}, {"n_components": 2.5}, {"tol": 0.0}, {"max_iter": 0}],
)
def test_parameters_that_make_no_sense_are_refused(rng, wrong):
    with pytest.raises(ValueError, match="must be"):
        adapted(**wrong).fit(rng.uniform(size=(10, 3)))


@pytest.mark.parametrize("x", [np.ones((5, 3)), np.zeros((1, 3)), np.array([[1.0, np.nan], [2, 3]]), np.ones(4)])
def test_rows_that_make_no_sense_are_refused(x):
    with pytest.raises(ValueError, match=r"constant|minimum of 2|NaN|2D array"):
        adapted().fit(x)


def test_two_rows_have_one_direction():
    """FastICA gives two components here, of which one is rounding."""
    with pytest.warns(RankWarning):
        ica = adapted(1, whiten=False).fit([[0, 1], [1, 0]])
        assert adapted().fit([[0, 1], [1, 0]]).n_components_ == 1
    assert ica.mixing_.shape == (2, 1)


def test_generators_clones_and_pipelines(rng):
    x = rng.laplace(size=(500, 4)) @ rng.normal(size=(4, 4))
    first, second = (adapted(random_state=np.random.RandomState(3)).fit(x) for _ in range(2))
    np.testing.assert_array_equal(first.components_, second.components_)
    copied = clone(adapted(3, fun="exp"))
    assert (copied.n_components, copied.contrast) == (3, "exp")
    piped = make_pipeline(PCA(3), adapted())
    assert piped.fit_transform(x).shape == (500, 3) and list(piped.get_feature_names_out()) == ["ica0", "ica1", "ica2"]
