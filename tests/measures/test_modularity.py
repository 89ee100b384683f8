import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from nearid.base.errors import InputError
from nearid.folds import assign
from nearid.measures.factors import open_factors
from nearid.measures.modularity import explicitness, modularity
from nearid.measures.registry import Earlier, measures


def codes_of(alerts):
    return [alert.code for alert in alerts]


def grid(rng, n=3000, m=3):
    return rng.integers(0, 4, size=(n, m))


def test_modularity_is_the_definition(rng):
    u = grid(rng)
    z = u @ rng.normal(size=(3, 4)) + 0.5 * rng.normal(size=(3000, 4))
    found = modularity(z, u)
    for row, value in zip(found.matrix, found.per_latent, strict=True):
        template = np.where(row == row.max(), row, 0)
        assert value == pytest.approx(1 - np.sum((row - template) ** 2) / (row.max() ** 2 * 2))
    assert found.value == pytest.approx(found.per_latent.mean())


def test_sources_are_modular_and_mixtures_are_not(rng):
    u = grid(rng)
    assert modularity((u * [1, -2, 3] + 5)[:, [2, 0, 1]], u).value > 0.999
    every = np.indices((4, 4, 4)).reshape(3, -1).T
    assert modularity(every.sum(axis=1, keepdims=True), every).value == pytest.approx(0, abs=1e-12)
    # A latent twice does not harm modularity.
    assert modularity(np.hstack([u, u]), u).value > 0.999


def test_few_rows_in_which_noise_looks_modular_are_told(rng):
    u = np.column_stack([rng.integers(0, 2, 200), rng.normal(size=200)])
    found = modularity(rng.normal(size=(200, 3)), u)
    assert found.value > 0.9 and codes_of(found.alerts) == ["few_rows"]


def test_latents_that_tell_nothing_are_left_out_and_told(rng):
    u = grid(rng)
    found = modularity(np.hstack([u, np.ones((3000, 1))]), u)
    assert found.value > 0.999 and found.per_latent[3] == 0
    assert codes_of(found.alerts) == ["constant_latents", "uninformative_latents"]
    nothing = modularity(np.ones((3000, 2)), u)
    assert nothing.value == 0 and codes_of(nothing.alerts) == ["constant_latents", "uninformative_latents"]


def test_one_factor_is_trivially_modular_and_told(rng):
    u = grid(rng, m=1)
    found = modularity(u + rng.normal(size=(3000, 2)), u)
    assert found.value == pytest.approx(1) and codes_of(found.alerts) == ["one_factor"]


def test_explicitness_in_sample_is_scikit_learns(rng):
    u = rng.integers(0, 3, 200)
    z = np.eye(3)[u] + rng.normal(size=(200, 3))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    chances = LogisticRegression(max_iter=1000).fit(z, u).predict_proba(z)
    oracle = roc_auc_score(u, chances, multi_class="ovr", average="macro")
    assert explicitness(z, u[:, None], folds=1).value == pytest.approx(2 * oracle - 1)


def test_explicitness_of_rotated_sources_is_high_and_of_noise_at_chance(rng):
    u = rng.integers(0, 2, size=(600, 2))
    turn = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert explicitness(u @ turn, u).value == pytest.approx(1)
    assert abs(explicitness(rng.normal(size=(600, 20)), u).value) < 0.12


def test_classes_that_cannot_be_learned_are_told(rng):
    u = np.zeros((30, 1), dtype=int)
    u[3] = 1
    found = explicitness(rng.normal(size=(30, 2)), u)
    assert found.value == 0 and codes_of(found.alerts) == ["singleton_classes", "no_class_in_folds"]


@pytest.mark.parametrize("measure", [modularity, explicitness])
def test_refused(rng, measure):
    with pytest.raises(InputError, match=r"bins is 1, .*at least 2"):
        measure(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), bins=1)


@pytest.mark.filterwarnings("error")
def test_many_bins_of_few_rows_have_no_warning(rng):
    u = rng.normal(size=(30, 2))
    assert -1 <= explicitness(u, u).value <= 1


def test_without_some_rows_no_fit_starts_at_coefficients_that_saw_its_test_rows(rng):
    """Of noise with more latents than rows, a fit that has seen the rows it is judged on looks explicit."""
    x, u = rng.normal(size=(120, 300)), open_factors(rng.integers(0, 3, size=(120, 2)))
    declared = measures()["explicitness"]
    kept = declared.of_loaded(x, u).kept
    rows = np.flatnonzero(np.arange(120) % 10)
    found = declared.of_loaded(x[rows], u.take(rows), earlier=Earlier(kept, rows, permuted=False))
    z, fold = (x - x.mean(axis=0)) / x.std(axis=0), assign(120, 3, 0)
    for factor, value in zip(u.items, found.per_factor, strict=True):
        y, areas = factor.values, []
        for k in range(3):
            train, test = rows[fold[rows] != k], rows[fold[rows] == k]
            shares = LogisticRegression(max_iter=1000, tol=1e-6).fit(z[train], y[train]).predict_proba(z[test])
            areas += [roc_auc_score(y[test] == c, shares[:, int(c)]) for c in np.unique(y)]
        assert value == pytest.approx(2 * np.mean(areas) - 1, abs=0.02)
        assert abs(value) < 0.5
