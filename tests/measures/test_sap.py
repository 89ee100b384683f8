import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.svm import LinearSVC

from nearid.folds import assign
from nearid.measures.factors import open_factors
from nearid.measures.sap import sap


def test_scores_are_those_of_scikit_learn(rng):
    level, size = rng.integers(0, 3, 150), rng.normal(size=150)
    z = np.column_stack([level + 0.5 * rng.normal(size=150), size + level])
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    fold = assign(150, 3, 0)
    hits, error, spread = 0, 0.0, 0.0
    for k in range(3):
        train, test = fold != k, fold == k
        machine = LinearSVC(C=0.01, class_weight="balanced", dual=False).fit(z[train, :1], level[train])
        hits += np.sum(machine.predict(z[test, :1]) == level[test])
        line = LinearRegression().fit(z[train, 1:], size[train])
        error += np.sum((size[test] - line.predict(z[test, 1:])) ** 2)
        spread += np.sum((size[test] - size[train].mean()) ** 2)
    found = sap(z, {"level": level, "size": size})
    assert found.matrix[0, 0] == pytest.approx(hits / 150) and found.matrix[1, 1] == pytest.approx(1 - error / spread)
    ordered = np.sort(found.matrix, axis=0)
    np.testing.assert_allclose(found.per_factor, ordered[1] - ordered[0])


def test_sources_score_high_rotations_and_noise_low(rng):
    u = rng.normal(size=(600, 2))
    half = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert sap(u * [-3, 100] + 5, u).value == pytest.approx(1, abs=0.02)
    assert sap(u @ half, u).value < 0.1
    assert sap(rng.normal(size=(600, 3)), u).value < 0.02


def test_units_do_not_matter(rng):
    level = rng.integers(0, 2, 200)
    z = np.column_stack([level + rng.normal(size=200), rng.normal(size=200)])
    assert sap(1e6 * z + 5, level[:, None]).value == pytest.approx(sap(z, level[:, None]).value)


def test_degenerate_inputs_are_told_and_never_nan(rng):
    flag = np.zeros(30, dtype=int)
    flag[4] = 1
    found = sap(np.ones((30, 1)), open_factors({"flag": flag, "x": rng.normal(size=30)}))
    assert np.isfinite(found.matrix).all()
    assert sorted(alert.code for alert in found.alerts) == ["constant_latents", "one_latent", "singleton_classes"]
