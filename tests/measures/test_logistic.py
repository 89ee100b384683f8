"""Multinomial logistic fits against scikit-learn's and closed forms."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from nearid.measures import logistic
from nearid.measures.logistic import fit_logistic


def classes(rng, n=900, k=4):
    codes = np.minimum(rng.integers(0, k, n), rng.integers(0, k, n))
    x = rng.normal(size=(n, 3))
    x[:, 0] += codes
    x[:, 1] -= codes == 1
    return x, np.hstack([x, np.ones((n, 1))]), codes


def sklearns(x, codes, **options):
    model = LogisticRegression(C=np.inf, class_weight="balanced", **options).fit(x, codes)
    return model.n_iter_[0], log_loss(codes, model.predict_proba(x))


def test_the_mean_stops_where_scikit_learn_stops(rng):
    x, design, codes = classes(rng)
    fit = fit_logistic(design, codes)
    iterations, loss = sklearns(x, codes)
    assert fit.finished and fit.iterations == iterations
    assert fit.loss == pytest.approx(loss, abs=1e-11)


def test_the_sum_asks_for_more_and_converged_is_the_optimum(rng):
    x, design, codes = classes(rng)
    optimum = sklearns(x, codes, tol=1e-10, max_iter=10_000)[1]
    mean, total = fit_logistic(design, codes), fit_logistic(design, codes, scaling="sum")
    assert total.iterations > mean.iterations
    best = fit_logistic(design, codes, converged=True)
    assert best.finished and best.loss == pytest.approx(optimum, abs=1e-6)


def test_blocks_change_nothing(rng, monkeypatch):
    _, design, codes = classes(rng)
    whole = fit_logistic(design, codes)
    monkeypatch.setattr(logistic, "BLOCK", 128)
    cut = fit_logistic(design, codes)
    assert cut.iterations == whole.iterations and cut.loss == pytest.approx(whole.loss, abs=1e-11)


def test_an_intercept_alone_gives_the_log_of_the_number_of_classes(rng):
    codes = classes(rng)[2]
    assert fit_logistic(np.ones((len(codes), 1)), codes).loss == pytest.approx(np.log(4), abs=1e-12)


def test_a_fit_that_hits_the_cap_says_so(rng, monkeypatch):
    _, design, codes = classes(rng)
    monkeypatch.setitem(logistic.STOPS, "mean", {**logistic.STOPS["mean"], "maxiter": 3})
    fit = fit_logistic(design, codes)
    assert not fit.finished and fit.iterations == 3


def test_separable_classes_end_with_no_loss(rng):
    codes = rng.integers(0, 2, 200)
    design = np.column_stack([codes - 0.5, np.ones(200)])
    fit = fit_logistic(design, codes, converged=True)
    assert fit.finished and fit.loss < 1e-6
