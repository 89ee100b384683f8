"""Separated attribute predictability (Kumar et al. 2018): how much better the best latent predicts than the next."""

from __future__ import annotations

import numpy as np

from nearid.base.options import Seed
from nearid.base.progress import Progress, silent
from nearid.folds import assign
from nearid.measures.factors import Factors, repeated_pairs
from nearid.measures.mig import gaps
from nearid.measures.registry import EACH_LATENT, Measured, measure
from nearid.moments import Floats


@measure("SAP", invariances=EACH_LATENT, each="SAP", costly=True, steady=True)
def sap(
    x: Floats, factors: Factors, *, folds: int = 3, random_state: Seed = 0, progress: Progress = silent
) -> Measured:
    """Return the mean over factors of the gap between the two latents that best predict it on their own.

    Returns
    -------
    Measured
        `matrix` holds held-out scores: the accuracy of a linear support vector machine (C = 0.01, balanced classes, as
        published) for integer and categorical factors, the R2 of a linear fit for the others, at least 0.
        `per_factor` holds the gaps.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).normal(size=(300, 2))
    >>> nearid.sap(u * [-3, 100], u).value > 0.9
    True
    """
    fold = assign(len(x), folds, random_state, factors.block_codes)
    alerts = repeated_pairs(x, factors, folds)
    spread = x.std(axis=0)
    # The machine's penalty depends on units; a latent's own spread makes the score independent of them.
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    matrix = np.zeros((x.shape[1], len(factors.items)))
    tick = progress("predictors", len(factors.items))
    for at, factor in enumerate(factors.items):
        if factor.discrete:
            # Compiled by numba, whose import takes most of a second.
            from nearid.measures.hinge import accuracy

            matrix[:, at] = accuracy(x, factor.codes(), fold, folds)
        else:
            matrix[:, at] = explained(x, factor.columns, fold, folds)
        tick()
    per_factor, more = gaps(matrix)
    return Measured(float(per_factor.mean()), matrix, factors.names, per_factor, alerts=alerts + more)


def explained(x: Floats, y: Floats, fold: np.ndarray, folds: int) -> Floats:
    """Share of the variance of columns y that a line through each latent explains in held-out rows, at least 0.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Latents with mean 0.
    y : ndarray of shape (n, k)
    fold : ndarray of int, shape (n,)

    Returns
    -------
    ndarray of shape (d,)
    """
    y = y - y.mean(axis=0)
    error, spread = np.zeros(x.shape[1]), 0.0
    for k in range(folds):
        test = fold == k
        train = ~test if folds > 1 else test
        centre, mean = x[train].mean(axis=0), y[train].mean(axis=0)
        seen, unseen, target = x[train] - centre, x[test] - centre, y[test] - mean
        size = np.einsum("ij,ij->j", seen, seen)
        slope = np.divide(
            seen.T @ (y[train] - mean), size[:, None], out=np.zeros((len(size), y.shape[1])), where=size[:, None] > 0
        )
        # |t - x s|^2 = |t|^2 - 2 s x.t + s^2 |x|^2, for every latent at once.
        whole = float(np.sum(target**2))
        error += whole - 2 * np.sum(slope * (unseen.T @ target), axis=1)
        error += np.sum(slope**2, axis=1) * np.einsum("ij,ij->j", unseen, unseen)
        spread += whole
    return np.asarray(np.maximum(0.0, 1 - error / spread))
