"""Logistic regression in blocks against that of a library on a held matrix."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from nearid.arrays import open_rows
from nearid.questions.deconfound import classifiers, logistic
from nearid.questions.deconfound.classifiers import learn
from nearid.questions.deconfound.conditions import Condition, View

OPTIONS = {"options": {}, "seed": 0, "threads": 1}


@pytest.fixture(scope="module", params=[np.float64, np.float32])
def rows(request):
    rng = np.random.default_rng(1)
    x = rng.laplace(size=(900, 5)) @ rng.normal(size=(5, 5)) + 30
    y = x[:, 1] - x[:, 3] + rng.normal(size=900) > 1
    return x.astype(request.param), y


def conditions(x):
    mean, rng = x.mean(axis=0, dtype=float), np.random.default_rng(2)
    yield Condition("base", mean, None, np.array([0, 1, 3, 4]), x.std(axis=0, dtype=float)[[0, 1, 3, 4]])
    yield Condition("pca", mean, rng.normal(size=(4, 5)), np.arange(4), np.ones(4))


@pytest.mark.parametrize("which", [None, np.array([1, 3])])
def test_the_same_as_on_a_held_matrix(rows, which, monkeypatch):
    x, y = rows
    places = np.flatnonzero(np.random.default_rng(0).random(len(x)) < 0.7)
    monkeypatch.setattr(logistic, "PIECE", 128)
    for condition in conditions(x):
        view = View(open_rows(x), condition)
        monkeypatch.setattr(classifiers, "HELD_BYTES", 0)
        found = learn("logistic", view, places, y[places], which=which, **OPTIONS)
        z = view.take(np.arange(len(x)), which).astype(np.float64)
        exact = LogisticRegression(class_weight="balanced", tol=1e-8, solver="newton-cholesky").fit(
            z[places], y[places]
        )
        expected = exact.decision_function(z)
        # Other weights of the classes or of the penalty, or other rows, change scores by a tenth and more.
        assert np.allclose(found.predict(z), expected, atol=1e-2 * expected.std())
        sizes = np.abs(exact.coef_[0])
        assert np.allclose(found.shares, sizes / sizes.sum(), atol=3e-3)


def test_a_component_that_does_not_vary_has_no_share():
    rng = np.random.default_rng(0)
    x = np.column_stack([rng.normal(size=60), np.where(np.arange(60) < 40, 0.0, rng.normal(size=60))])
    view = View(open_rows(x), Condition("pca", np.zeros(2), np.eye(2), np.arange(2), np.ones(2)))
    weights, _ = logistic.fit_streamed(view, np.arange(40), x[:40, 0] > 0, None, 50)
    assert weights[0] > 0.5 and weights[1] == 0
