"""The estimators in scikit-learn's own hands."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge, RidgeCV
from sklearn.model_selection import KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from nearid import InputError, Linear, Rigid, ScaledPermutation, SignedPermutation

ALL = [SignedPermutation(), ScaledPermutation(), Rigid(), Linear()]


@parametrize_with_checks(ALL)
def test_scikit_learns_common_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ALL, ids=str)
def test_in_a_pipeline_and_cross_validate(rng, estimator):
    x = rng.laplace(size=(400, 5))
    found = cross_validate(make_pipeline(StandardScaler(), estimator), x, 3 * x[:, ::-1] + 1, cv=5)
    assert found["test_score"].min() > 0.98


def test_scorers_and_feature_names(rng):
    x = rng.laplace(size=(200, 4))
    assert cross_val_score(make_pipeline(StandardScaler(), Rigid()), x, x[:, ::-1], scoring="r2").min() > 0.9
    assert list(Rigid().fit(x, x).get_feature_names_out()) == ["rigid0", "rigid1", "rigid2", "rigid3"]


def test_score_is_the_share_of_variance_explained(rng):
    x = rng.normal(size=(300, 3))
    y = x + rng.normal(size=(300, 3))
    model = Linear().fit(x, y)
    residual = y - model.transform(x)
    assert model.score(x, y) == pytest.approx(1 - residual.var(axis=0).sum() / y.var(axis=0).sum())


def test_score_of_a_constant_target(rng):
    x, y = rng.normal(size=(30, 3)), np.full((30, 3), 2.0)
    assert Rigid().fit(x, y).score(x, y) == 1.0
    assert Rigid(translation=False).fit(x, y).score(x, y) == 0.0


def test_signed_permutation_names_its_matches(rng):
    x = rng.laplace(size=(200, 3))
    model = SignedPermutation().fit(x, np.column_stack([-x[:, 2], rng.normal(size=200), x[:, 0], x[:, 1]]))
    np.testing.assert_array_equal(model.columns_, [2, -1, 0, 1])
    np.testing.assert_array_equal(model.signs_, [-1, 0, 1, 1])


def test_scaled_permutation_finds_a_scale_for_each_column(rng):
    x = rng.laplace(size=(200, 3))
    y = np.column_stack([-2 * x[:, 2], rng.normal(size=200), 0.5 * x[:, 0] + 4])
    model = ScaledPermutation().fit(x, y)
    np.testing.assert_array_equal(model.columns_[[0, 2]], [2, 0])
    np.testing.assert_array_equal(model.signs_[[0, 2]], [-1, 1])
    np.testing.assert_allclose(model.scales_[[0, 2]], [2, 0.5])
    assert SignedPermutation().fit(x, y).score(x, y) < model.score(x, y) < Linear().fit(x, y).score(x, y)


def test_intercept_is_where_the_origin_goes(rng):
    x, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2))
    model = Linear().fit(x, y)
    np.testing.assert_allclose(model.transform(np.zeros((1, 3)))[0], model.intercept_)


def test_wide_rows_choose_their_penalty(rng):
    hidden = rng.normal(size=(260, 5))
    x = hidden @ rng.normal(size=(5, 80)) + rng.normal(size=(260, 80))
    y = hidden @ rng.normal(size=(5, 3)) + 0.5 * rng.normal(size=(260, 3))
    train, test = slice(0, 100), slice(100, None)
    chosen, plain = Linear().fit(x[train], y[train]), Linear(ridge=0).fit(x[train], y[train])
    alphas = np.geomspace(1e-6, 1e6, 61)
    known = RidgeCV(alphas, cv=KFold(5, shuffle=True, random_state=0)).fit(x[train], y[train])
    assert plain.ridge_ == 0 and min(chosen.ridge_) > 0
    assert chosen.score(x[test], y[test]) > known.score(x[test], y[test]) - 0.02
    assert chosen.score(x[test], y[test]) > plain.score(x[test], y[test]) + 0.1
    given = [Ridge(ridge).fit(x[train], y[train]).predict(x[test]) for ridge in chosen.ridge_]
    np.testing.assert_allclose(chosen.transform(x[test]), np.mean(given, axis=0), atol=1e-8)
    assert Linear(ridge=2.5).fit(x, y).ridge_ == 2.5


def test_many_rows_and_very_few_are_plain_least_squares(rng):
    x = rng.normal(size=(1000, 3))
    y = x @ rng.normal(size=(3, 3)) + rng.normal(size=(1000, 3))
    np.testing.assert_allclose(Linear().fit(x, y).coef_, Linear(ridge=0).fit(x, y).coef_, atol=0.02)
    assert Linear().fit(x[:5], y[:5]).ridge_ == 0


@pytest.mark.parametrize("bad", [{"ridge": -1.0}, {"ridge": "much"}, {"translation": "yes"}])
def test_parameters_are_validated(rng, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        Linear(**bad).fit(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)))


class Unreadable:
    shape = (20, 2)

    def __array__(self, *_, **__):
        raise RuntimeError("no array")


@pytest.mark.parametrize("group", [type(estimator) for estimator in ALL])
def test_data_that_cannot_be_an_array_or_overflow_are_refused(rng, group):
    y = rng.normal(size=(20, 2))
    with pytest.raises(InputError, match="Unreadable, cannot be converted to an array of rows: no array"):
        group().fit(Unreadable(), y)
    with pytest.raises(InputError, match="range of float64"), np.errstate(over="ignore", invalid="ignore"):
        group().fit(y * 1e200, y)
