import numpy as np
import pytest
from sklearn.svm import LinearSVC

from nearid.folds import assign
from nearid.measures.hinge import _machine, accuracy


@pytest.mark.parametrize("classes", [2, 4])
def test_accuracy_is_that_of_scikit_learn(rng, classes):
    codes = rng.integers(0, classes, 300)
    x = np.column_stack(
        [codes + rng.normal(size=300), rng.normal(size=300), np.abs(codes - 1) + 0.3 * rng.normal(size=300)]
    )
    x = (x - x.mean(axis=0)) / x.std(axis=0)
    fold, right = assign(300, 3, 0), np.zeros(3)
    for k in range(3):
        train, test = fold != k, fold == k
        for j in range(3):
            machine = LinearSVC(C=0.01, class_weight="balanced", dual=False, tol=1e-10, max_iter=10_000)
            right[j] += np.sum(
                machine.fit(x[train, j : j + 1], codes[train]).predict(x[test, j : j + 1]) == codes[test]
            )
    np.testing.assert_allclose(accuracy(x, codes, fold, 3), right / 300)


def test_the_machine_is_at_its_minimum(rng):
    x, own = rng.normal(size=100), rng.integers(0, 2, 100)
    weights = np.where(own == 1, 0.3, 0.7)

    def objective(w, b):
        short = np.maximum(0, 1 - np.where(own == 1, 1, -1) * (w * x + b))
        return (w**2 + b**2) / 2 + np.sum(weights * short**2)

    w, b = _machine(x, np.where(own == 1, 1.0, -1.0), weights)
    least = objective(w, b)
    for step in ((1e-4, 0), (-1e-4, 0), (0, 1e-4), (0, -1e-4)):
        assert objective(w + step[0], b + step[1]) > least


def test_a_class_alone_in_training_is_predicted(rng):
    codes = np.zeros(30, dtype=int)
    codes[4] = 1
    fold = np.arange(30) % 3
    np.testing.assert_allclose(accuracy(np.ones((30, 1)), codes, fold, 3), 29 / 30)
