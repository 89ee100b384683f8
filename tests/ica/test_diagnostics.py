"""Diagnostics against closed forms, numerical derivatives and data with known answers."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import nearid
import nearid.engines.local as local
import nearid.folds as folds
from nearid import ICA
from nearid.arrays import open_rows
from nearid.base.jsonable import plain
from nearid.ica.contrast import CONTRASTS
from nearid.ica.diagnostics import Diagnostics, curvature, fit_alerts, gaussian_test, see_rows
from nearid.ica.estimators import IdentifiabilityWarning, RankWarning
from nearid.ica.stream import Affine


def fitted(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nearid.ICA(**options).fit(x)


@pytest.mark.parametrize("contrast", ["logcosh", "exp"])
@pytest.mark.parametrize(("n", "k"), [(2000, 3), (5000, 20), (20_000, 40)])
def test_all_components_of_gaussian_rows_are_flagged(contrast, n, k):
    x = np.random.default_rng(k).normal(size=(n, k))
    found = fitted(x, contrast=contrast, max_passes=60).diagnostics_
    assert found.gaussian.all() and found.super_gaussian == found.sub_gaussian == 0
    # The search does find something in noise: more than the columns show that nobody has searched for, and in many
    # dimensions far more than a direction at random.
    values = CONTRASTS[contrast].values((x - x.mean(axis=0)) / x.std(axis=0)).mean(axis=0)
    unsearched, _ = gaussian_test(values, CONTRASTS[contrast], n)
    assert np.abs(found.z).sum() > np.abs(unsearched).sum()
    if k >= 20:
        assert np.abs(found.z).max() > 1.1 * np.sqrt(k) > 1.1 * np.abs(unsearched).max()


def test_sources_are_counted_and_gaussians_flagged(rng):
    x = np.column_stack(
        [rng.laplace(size=(20_000, 4)), rng.uniform(-1, 1, size=(20_000, 2)), rng.normal(size=(20_000, 2))]
    )
    found = fitted(x @ rng.normal(size=(8, 8))).diagnostics_
    assert (found.super_gaussian, found.sub_gaussian, int(found.gaussian.sum())) == (4, 2, 2)
    assert found.gaussian[6:].all() and np.all(found.z[:4] < 0) and found.p_values[:6].max() < 1e-6
    # The pair of Gaussians is the flattest by far.
    assert found.curvature[0][:2] == (6, 7) and found.mu < 0.2 * found.curvature[1][2]
    assert [a.code for a in found.alerts] == ["gaussian"]
    assert found.rows_per_parameter == pytest.approx(20_000 / 28)


def test_kinds_do_not_depend_on_the_contrast(rng):
    x = np.column_stack([rng.laplace(size=(20_000, 2)), rng.uniform(-1, 1, size=(20_000, 3))])
    for contrast in CONTRASTS:
        found = fitted(x, contrast=contrast).diagnostics_
        assert (found.super_gaussian, found.sub_gaussian) == (2, 3)


def test_the_curvature_is_the_second_derivative_along_a_rotation(rng):
    y = np.column_stack([rng.laplace(size=(500, 2)), rng.uniform(-1, 1, size=(500, 1))])
    signs, g = np.array([1.0, 1, -1]), np.tanh(y)
    seconds = (1 - g**2).T @ y**2 / 500 - (g * y).mean(axis=0)[:, None]

    def value(i, j, angle):
        turned = y.copy()
        turned[:, i] = np.cos(angle) * y[:, i] + np.sin(angle) * y[:, j]
        turned[:, j] = np.cos(angle) * y[:, j] - np.sin(angle) * y[:, i]
        return signs @ np.log(np.cosh(turned)).mean(axis=0)

    (found, typical), h = curvature(seconds, signs), 1e-3
    assert typical == found[1][2]
    assert len(found) == 3 and [c[2] for c in found] == sorted(c[2] for c in found)
    for i, j, bend in found:
        second = (value(i, j, h) - 2 * value(i, j, 0) + value(i, j, -h)) / h**2
        assert bend == pytest.approx(second, rel=1e-4)


# A fit that is cut short warns of more than what is looked for.
@pytest.mark.filterwarnings("ignore::nearid.ica.estimators.IdentifiabilityWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warnings_are_typed(rng):
    x = rng.laplace(size=(2000, 3))
    with pytest.warns(RankWarning, match="3 columns have rank 2"):
        nearid.ICA().fit(np.column_stack([x[:, :2], x[:, 0] + x[:, 1]]))
    with pytest.warns(RankWarning, match="99 components were requested, but there are 3 columns of rank 2: 2 comp"):
        nearid.ICA(n_components=99).fit(np.column_stack([x[:, :2], x[:, 0] + x[:, 1]]))
    with pytest.warns(ConvergenceWarning, match="stopped after 2 passes"):
        nearid.ICA(max_passes=2, tol=1e-12).fit(x)
    with pytest.warns(IdentifiabilityWarning, match="2 of 2 components cannot be distinguished from Gaussian"):
        nearid.ICA().fit(rng.normal(size=(2000, 2)))
    with pytest.warns(IdentifiabilityWarning, match="rows are few"):
        nearid.ICA(max_passes=3).fit(rng.laplace(size=(60, 10)))


def looks_gaussian(x, stability):
    """What the alert about Gaussian components says, where the fit has these stabilities."""
    found = fitted(x).diagnostics_
    assert found.gaussian.all()
    found = replace(found, stability=None if stability is None else np.array(stability))
    return next(a.message for a in fit_alerts(found, 4) if a.code == "gaussian")


def test_a_component_that_comes_out_again_is_not_said_to_be_inseparable(rng):
    x = rng.normal(size=(1000, 4))
    assert "ICA cannot separate them" in looks_gaussian(x, [0.5, 0.6, 0.7, 0.8])
    mixed = looks_gaussian(x, [0.5, 0.95, 0.7, 0.99])
    assert "find 2 of them again" in mixed and "ICA cannot separate the other 2" in mixed
    assert "cannot separate" not in looks_gaussian(x, [0.95, 0.95, 0.95, 0.5])
    assert "cannot separate" not in looks_gaussian(x, [0.95, 0.95, 0.95, 0.95])
    assert "nearid unmix with --stability 5 (stability=5)" in looks_gaussian(x, None)


def test_a_saddle_is_told(rng):
    found = fitted(rng.laplace(size=(2000, 2))).diagnostics_
    assert [a.code for a in fit_alerts(found, 2)] == []
    assert [a.code for a in fit_alerts(replace(found, curvature=[(0, 1, -0.1)]), 2)] == ["saddle"]


def test_round_trip_as_plain_data(rng):
    found = fitted(rng.laplace(size=(500, 3)), stability=1).diagnostics_
    again = Diagnostics.from_dict(json.loads(json.dumps(plain(found), allow_nan=False)))
    assert plain(again) == plain(found) and again.stability.shape == (3,) and again.gaussian.dtype == bool


def test_one_component_has_nothing_to_turn(rng):
    found = fitted(rng.laplace(size=(500, 1))).diagnostics_
    assert found.curvature == [] and found.mu == float("inf")


def kinds(x, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        found = nearid.unmix(x, dtype="float64", **options)
    return {a.code for a in found.diagnostics_.alerts} & {"outlying_rows", "repeated_rows"}


@pytest.fixture
def x(rng, monkeypatch):
    """Rows that are read in many blocks."""
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    return rng.laplace(size=(1000, 4)) @ rng.normal(size=(4, 4))


def test_ordinary_rows_give_no_caution(x, rng):
    assert kinds(x) == kinds(x.astype(np.float32)) == set()
    assert kinds(rng.standard_t(4, size=(1000, 4))) == set()


@pytest.mark.filterwarnings("ignore:.* components (was|were) found by:nearid.IdentifiabilityWarning")
def test_a_row_that_makes_a_component_is_reported(x):
    x[1] = 1e6
    assert kinds(x) == {"outlying_rows"}
    with pytest.warns(IdentifiabilityWarning, match="5 of 1000 rows carry 100% of the variance of component 0"):
        ICA().fit(x)


# Of 30 different rows some components may look Gaussian, or not come out of halves.
@pytest.mark.filterwarnings("ignore:.* components (cannot be|was found by|were found by):nearid.IdentifiabilityWarning")
def test_rows_that_repeat_are_reported(x, rng):
    copies = np.repeat(x[:30], 10, axis=0)[rng.permutation(300)]
    assert "repeated_rows" in kinds(copies)
    with pytest.warns(IdentifiabilityWarning, match="About 270 of 300 rows repeat others"):
        ICA().fit(copies)


def test_rows_that_repeat_are_counted_among_some_of_very_many(x, rng, monkeypatch):
    """Also if all copies are of one row, which is kept or left out with all of them."""
    monkeypatch.setattr(folds, "EXACT", 5000)
    many = rng.laplace(size=(20_000, 4)) @ rng.normal(size=(4, 4))
    forward = Affine(np.eye(4), np.zeros(4), np.zeros(4))

    def copies(rows):
        return [a.message.split()[1] for a in see_rows(open_rows(rows), forward).alerts if a.code == "repeated_rows"]

    assert copies(many) == []
    for value in (many[:1], np.zeros((1, 4)), many[:2000]):
        rows = many.copy()
        rows[10_000:16_000] = np.resize(value, (6000, 4))
        [count] = copies(rows)
        assert 5600 < int(count) < 6400


def test_a_part_of_rows_is_the_same_with_and_without_a_list_of_all_rows():
    numbers = [np.random.default_rng(0).choice(among, 5000, replace=False) for among in (10**6, np.arange(10**6))]
    np.testing.assert_array_equal(*numbers)


def test_rows_that_were_dropped_do_not_count(x):
    x[5:100, 0] = np.nan
    assert kinds(x, drop_nonfinite=True) == set()
