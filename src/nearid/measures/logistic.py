"""Multinomial logistic regression by L-BFGS, whose fits stop where those of scikit-learn do."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np

from nearid.measures.information import Codes
from nearid.moments import Floats

Scaling = Literal["mean", "sum"]

# Where published values stopped. "mean" is scikit-learn from 1.4 on, "sum" what it was before: with the sum of the
# losses as the objective the same tolerance of the gradient asks for n times as much.
STOPS: dict[Scaling, dict[str, Any]] = {
    "mean": {"maxiter": 100, "gtol": 1e-4, "maxls": 50, "ftol": 64 * np.finfo(np.float64).eps},
    "sum": {"maxiter": 100, "gtol": 1e-4},
}
# Of the mean: to the optimum, or where classes are separable (no optimum exists) until the loss is about this small.
CONVERGED: dict[str, Any] = {"maxiter": 20_000, "maxfun": 40_000, "gtol": 1e-7, "maxls": 50, "ftol": 0.0, "maxcor": 100}
# A penalised fit has an optimum that is soon reached.
PENALISED: dict[str, Any] = {**STOPS["mean"], "maxiter": 1000}
# A fit that starts at the coefficients for nearly the same rows. Only the spread of its loss, or of its ranks, is used.
# Where the first fit had not converged, this one must not go on for long either.
RESTARTED: dict[str, Any] = {"maxiter": 20, "gtol": 1e-3}
# The same of a penalised fit with fewer rows per column than below, which 20 steps would leave near its start.
RESTARTED_WIDE: dict[str, Any] = {"maxiter": 100, "gtol": 3e-4}
ROWS_PER_COLUMN = 10
# One row's loss is counted up to that of a probability of float64's epsilon: a lost row must not decide the mean.
WORST = -float(np.log(np.finfo(np.float64).eps))
# Rows of a block: its scores for some ten classes stay in a core's cache.
BLOCK = 2048


class LogisticFit(NamedTuple):
    """The end of a fit.

    Attributes
    ----------
    loss : float
        Mean log-loss of the rows in nats.
    iterations : int
    finished : bool
        Whether the fit ended by its tolerances.
    coefficients : ndarray of shape (d, classes)
    """

    loss: float
    iterations: int
    finished: bool
    coefficients: Floats


def fit_logistic(
    design: Floats,
    codes: Codes,
    *,
    scaling: Scaling = "mean",
    converged: bool = False,
    start: Floats | None = None,
) -> LogisticFit:
    """Fit class probabilities softmax(W x), classes balanced and without a penalty, and give their log-loss.

    The objective and its gradient come from one walk over blocks of rows. The minimiser is scipy's L-BFGS-B from zeros,
    so that a fit that stops early stops where others' early fits do.

    Two classes are fitted like any other number, with coefficients for each. Fits with coefficients for one of the two
    alone have the same optimum, but stop at slightly other places before it.

    Parameters
    ----------
    design : ndarray of shape (n, d)
        Rows, with a column of ones for the intercept.
    codes : ndarray of int of shape (n,)
        Classes from 0 on; each occurs.
    scaling : {"mean", "sum"}
        Whether the mean or the sum of the weighted losses is minimised; they differ in where they stop.
    converged : bool
        Go on to the optimum, whatever the scaling.
    start : ndarray of shape (d, classes), optional
        Coefficients of a fit to nearly the same rows, to take a few steps from. Ignored if the classes are others.
    """
    n = len(design)
    sizes = np.bincount(codes)
    weights = (n / (len(sizes) * sizes))[codes]
    if converged or scaling == "mean":
        weights /= n
    stop = CONVERGED if converged else STOPS[scaling]
    return _minimise(design, codes, weights, np.zeros(design.shape[1]), stop, start, RESTARTED)


def fit_penalised(design: Floats, codes: Codes, *, start: Floats | None = None) -> LogisticFit:
    """Fit class probabilities softmax(W x) with scikit-learn's default penalty (L2, C = 1).

    Parameters
    ----------
    design : ndarray of shape (n, d)
        Rows. The last column is of ones; its coefficients have no penalty.
    codes : ndarray of int of shape (n,)
        Classes from 0 on; each occurs.
    start : ndarray of shape (d, classes), optional
        Coefficients to start from, see `fit_logistic`.
    """
    n, d = design.shape
    penalty = np.ones(d) / n
    penalty[-1] = 0
    # scikit-learn has one vector of coefficients for two classes. Two vectors of half its size have half its penalty.
    if codes.max() == 1:
        penalty *= 2
    restarted = RESTARTED if n >= ROWS_PER_COLUMN * d else RESTARTED_WIDE
    return _minimise(design, codes, np.full(n, 1 / n), penalty, PENALISED, start, restarted)


def _minimise(
    design: Floats,
    codes: Codes,
    weights: Floats,
    penalty: Floats,
    stop: dict[str, Any],
    start: Floats | None,
    restarted: dict[str, Any],
) -> LogisticFit:
    from scipy.optimize import minimize

    n, d = design.shape
    classes = int(codes.max()) + 1
    blocks = [Block.of(design[a : a + BLOCK], codes[a : a + BLOCK], weights[a : a + BLOCK]) for a in range(0, n, BLOCK)]

    def objective(flat: Floats) -> tuple[float, Floats]:
        coefficients = flat.reshape(d, -1)
        gradient = penalty[:, None] * coefficients
        loss = float(np.vdot(gradient, coefficients)) / 2
        for block in blocks:
            likelihoods, sums, losses = block.evaluate(coefficients)
            loss += float(block.weights @ losses)
            # w p - w e_y, with p the likelihoods over their sums.
            likelihoods *= block.weights / sums
            likelihoods.ravel()[block.own] -= block.weights
            gradient += block.columns @ likelihoods.T
        return loss, gradient.ravel()

    first = np.zeros(d * classes)
    if start is not None and start.shape == (d, classes):
        first, stop = start.ravel(), {**stop, **restarted}
    end = minimize(objective, first, jac=True, method="L-BFGS-B", options=stop)
    coefficients = end.x.reshape(d, -1)
    total = sum(float(np.minimum(b.evaluate(coefficients)[2], WORST).sum()) for b in blocks)
    return LogisticFit(total / n, int(end.nit), bool(end.success), coefficients)


class Block(NamedTuple):
    """Some rows as columns of shape (d, m), their weights, and where their classes stand in a (classes, m) array."""

    columns: Floats
    weights: Floats
    own: Codes

    @classmethod
    def of(cls, design: Floats, codes: Codes, weights: Floats) -> Block:
        """The block of some rows."""
        m = len(codes)
        # Contiguous along the rows: maxima and sums over classes then run over whole vectors of rows.
        return cls(np.ascontiguousarray(design.T, dtype=np.float64), weights, codes.astype(np.intp) * m + np.arange(m))

    def evaluate(self, coefficients: Floats) -> tuple[Floats, Floats, Floats]:
        """Likelihoods of shape (classes, m) up to a factor per row, their sums over classes, and the rows' losses."""
        scores = coefficients.T @ self.columns
        scores -= scores.max(axis=0)
        losses = -scores.ravel()[self.own]
        likelihoods: Floats = np.exp(scores, out=scores)
        sums: Floats = likelihoods.sum(axis=0)
        losses += np.log(sums)
        return likelihoods, sums, losses
