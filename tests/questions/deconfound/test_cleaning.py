"""What cleaning takes away, what it leaves, and that its cost is judged on rows that it was not fitted on."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn.covariance import OAS
from sklearn.linear_model import Ridge

import nearid
from nearid import InputError
from nearid.questions.deconfound.cleaning import _Ridge, check_drop, cost, fit_cleaner, fit_rows, shrunk
from nearid.questions.deconfound.design import open_design

QUICK = {"classifiers": "logistic", "directions": "most", "conditions": "base,ica", "folds": 3, "top": ()}


def wells(rng, n=480, d=12, plates=6):
    """Correlated columns, a plate effect along one vector and a label effect along another."""
    b, l = np.arange(n) % plates, (np.arange(n) // plates) % 3
    plate, label = rng.normal(size=d), rng.normal(size=d)
    effect = np.outer(np.linspace(-2, 2, plates)[b], plate)
    x = rng.laplace(size=(n, d)) @ rng.normal(size=(d, d)) / 3 + effect + np.outer(l == 1, label)
    return x, l, b, effect


def test_the_planted_effect_goes_and_the_map_is_a_projection(rng):
    x, l, b, effect = wells(rng)
    design = open_design(x, l, b, control=0)
    cleaner = fit_cleaner(design, np.arange(len(x)), "auto")
    a = cleaner.affine.matrix
    assert len(cleaner.dropped) == 1
    np.testing.assert_allclose(a @ a, a, atol=1e-9)
    assert np.sum((effect @ a.T) ** 2) < 0.1 * np.sum(effect**2)
    away = (x - cleaner.mean) @ cleaner.components[cleaner.dropped].T
    stays = cleaner.affine(x)
    size = x.std(axis=0)
    assert cleaner.share == pytest.approx(1 - np.sum((stays.std(axis=0) / size) ** 2) / x.shape[1], abs=1e-9)
    for k, column in enumerate(cleaner.correlations[:, cleaner.dropped[0]]):
        assert column == pytest.approx(np.corrcoef(x[:, k], away[:, 0])[0, 1], abs=1e-9)


def test_without_labels_what_goes_is_uncorrelated_with_what_stays(rng):
    x, l, b, _ = wells(rng)
    cleaner = fit_cleaner(open_design(x, rng.permutation(l), b), np.arange(len(x)), "auto")
    away = (x - cleaner.mean) @ cleaner.readings.T
    # Up to the shrinkage of the covariance.
    assert np.abs(np.corrcoef(away.T, cleaner.affine(x).T)[0, 1:]).max() < 0.1


def test_columns_in_other_units_give_the_same_cleaning(rng):
    x, l, b, _ = wells(rng)
    units = 10.0 ** rng.uniform(-3, 3, x.shape[1])
    plain, scaled = (fit_cleaner(open_design(z, l, b), np.arange(len(x)), 1).affine(z) for z in (x, x * units + 5))
    np.testing.assert_allclose((scaled - 5) / units, plain, atol=1e-6)


def test_shrinkage_is_that_of_the_published_formula(rng):
    x = rng.normal(size=(40, 30)) @ np.diag(np.linspace(0.2, 3, 30))
    x -= x.mean(axis=0)
    s = x.T @ x / 40
    weight = OAS(assume_centered=True).fit(x).shrinkage_
    expected = (1 - weight) * s + weight * np.trace(s) / 30 * np.eye(30)
    # scikit-learn leaves 2 / p out of the formula.
    np.testing.assert_allclose(shrunk(s, 40), expected, atol=0.05 * np.trace(s) / 30)
    assert np.linalg.eigvalsh(shrunk(np.ones((5, 5)), 10)).min() > 0
    np.testing.assert_allclose(shrunk(np.eye(4), 10), np.eye(4))


@pytest.mark.parametrize("shape", [(60, 5), (20, 30)])
def test_ridge_is_that_of_scikit_learn(rng, shape):
    x, codes, new = rng.normal(size=shape), rng.integers(0, 3, shape[0]), rng.normal(size=(7, shape[1]))
    fit = _Ridge(x, codes, 4)
    z, z_new = ((each - x.mean(axis=0)) / x.std(axis=0) for each in (x, new))
    expected = Ridge(alpha=2.5).fit(z, np.eye(4)[codes]).predict(z_new)
    np.testing.assert_allclose(fit.scores(new, 2.5), expected, atol=1e-9)
    assert fit.penalty() > 0


def test_constant_columns_stay_and_one_column_is_refused(rng):
    x, l, b, _ = wells(rng)
    x[:, 3] = 7.25
    cleaner = fit_cleaner(open_design(x, l, b), np.arange(len(x)), "auto")
    np.testing.assert_array_equal(cleaner.affine(x)[:, 3], x[:, 3])
    assert len(cleaner.dropped) == 1 and np.isfinite(cleaner.correlations).all()
    with pytest.raises(InputError, match=r"only one column that varies, '.+'\. Two or more"):
        fit_cleaner(open_design(np.column_stack([x[:, 0], x[:, 3]]), l, b), np.arange(len(x)), "auto")


def test_more_columns_than_rows(rng):
    x, l, b, effect = wells(rng, n=60, d=200, plates=3)
    cleaner = fit_cleaner(open_design(x, l, b), np.arange(60), "auto")
    assert np.sum((effect @ cleaner.affine.matrix.T) ** 2) < 0.3 * np.sum(effect**2)


def test_one_row_of_each_block_is_used(rng):
    x, l, b, _ = wells(rng)
    blocks = np.arange(len(x)) // 12
    design = open_design(x, l, b, blocks)
    chosen = fit_rows(design, np.arange(len(x)), rng)
    assert len(np.unique(design.blocks[chosen])) == len(chosen) == len(np.unique(design.blocks))


def test_cost_is_of_rows_that_nothing_was_fitted_on(rng):
    """Noise with more columns than rows: what is fitted on its own rows would predict them perfectly."""
    n = 90
    x, b, l = rng.normal(size=(n, 150)), np.arange(n) % 3, (np.arange(n) // 3) % 2
    judged = cost(open_design(x, l, b, control=0), 2, folds=5, most=1000)
    for figure in (judged.batch_before, judged.batch_after, judged.label_before, judged.label_after):
        assert 0.2 < figure.value < 0.8


def test_cost_of_labels_that_training_batches_lack(rng):
    """The last label is in one batch only, so that it cannot be judged in held-out batches; the others can."""
    x, l, b, _ = wells(rng)
    l[(b == 0) & (l == 2)] = 3
    l[l == 2] = 1
    judged = cost(open_design(x, l, b, control=0), "auto", folds=3, most=1000)
    assert judged.label_before.value > 0.6


@pytest.mark.parametrize(("drop", "count"), [(0, 0), (2, 2), (999, 5)])
def test_none_some_and_all(rng, drop, count):
    x, l, b, _ = wells(rng)
    result = nearid.deconfound(x, l, b, control=0, drop=drop, **QUICK)
    assert len(result.cleaning.dropped) == count and result.cleaning.components == 5
    assert ("nothing_dropped" in {alert.code for alert in result.alerts}) == (count == 0)


def test_rules_in_words():
    assert [check_drop(rule) for rule in ("auto", "3", "0.2", 3, 0.2)] == ["auto", 3, 0.2, 3, 0.2]
    for wrong in ("most", "", "nan", True, -1, 1.0, float("nan")):
        with pytest.raises(InputError, match="takes 'auto'"):
            check_drop(wrong)


def test_designs_that_cannot_be_cleaned(rng):
    x, l, b, _ = wells(rng)
    for labels, batches, sentence in ((l, b * 0, "nothing can be held out"), (b, b, "Every batch has one label only")):
        with pytest.raises(InputError, match=sentence):
            nearid.deconfound(x, labels, batches, drop="auto", **QUICK)


@pytest.fixture(scope="module")
def validity():
    path = Path(__file__).parents[3] / "benchmarks" / "validity_deconfound.py"
    spec = importlib.util.spec_from_file_location("validity_deconfound", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("way", ["columns", "spectrum"])
def test_effects_planted_in_real_wells(real_data, validity, way):
    """A part of benchmarks/validity_deconfound.py: 632 wells of BBBC021."""
    planted = validity.plant(validity.real_wells("BBBC021"), way, 0.1, np.random.default_rng(1))
    got = validity.clean_planted(planted, with_ica=False)
    assert got.found > 0.9 and got.removed > 0.8 and got.label_kept > 0.9
    assert got.batch_before > 0.7 and abs(got.batch_after - 0.5) < 0.1
