"""Fits with a penalty; those without one are tested with InfoMEC."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from nearid.measures.logistic import fit_logistic, fit_penalised


@pytest.mark.parametrize("classes", [2, 3])
def test_penalised_fits_are_those_of_scikit_learn(rng, classes):
    codes = np.arange(150) % classes
    x = np.eye(classes)[codes] + rng.normal(size=(150, classes))
    design = np.hstack([x, np.ones((150, 1))])
    scores = design @ fit_penalised(design, codes).coefficients
    shares = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    oracle = LogisticRegression(max_iter=1000, tol=1e-8).fit(x, codes).predict_proba(x)
    np.testing.assert_allclose(shares, oracle, atol=2e-3)


def test_a_start_near_the_optimum_ends_there_in_few_steps(rng):
    codes = np.arange(300) % 3
    design = np.hstack([np.eye(3)[codes] + rng.normal(size=(300, 3)), np.ones((300, 1))])
    for fit in (fit_logistic, fit_penalised):
        whole, cold = fit(design, codes), fit(design[:270], codes[:270])
        warm = fit(design[:270], codes[:270], start=whole.coefficients)
        assert warm.loss == pytest.approx(cold.loss, abs=1e-3) and warm.iterations < cold.iterations
    # Coefficients of other classes are no start.
    assert fit_logistic(design, codes, start=np.zeros((4, 2))).loss == fit_logistic(design, codes).loss
