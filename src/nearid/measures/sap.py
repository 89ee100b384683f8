"""Separated attribute predictability (Kumar et al. 2018): how much better the best latent predicts than the next."""

from __future__ import annotations

import numpy as np

from nearid.base.options import Seed
from nearid.base.progress import Progress, silent
from nearid.folds import assign
from nearid.measures.factors import Factor, Factors, repeated_pairs
from nearid.measures.mig import gaps
from nearid.measures.registry import EACH_LATENT, Measured, measure
from nearid.moments import Floats


@measure("SAP", invariances=EACH_LATENT, each="SAP", costly=True)
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
    tick = progress("predictors", matrix.size)
    for at, factor in enumerate(factors.items):
        for j, column in enumerate(x.T):
            matrix[j, at] = _score(factor, column[:, None], fold, folds)
            tick()
    per_factor, more = gaps(matrix)
    return Measured(float(per_factor.mean()), matrix, factors.names, per_factor, alerts=alerts + more)


def _score(factor: Factor, x: Floats, fold: np.ndarray, folds: int) -> float:
    """Held-out accuracy or R2 of a factor given one latent."""
    from sklearn.svm import LinearSVC

    y = factor.codes() if factor.discrete else factor.columns
    error = spread = 0.0
    for k in range(folds):
        test = fold == k
        train = ~test if folds > 1 else test
        if not factor.discrete:
            slope = np.linalg.pinv(x[train] - x[train].mean()) @ y[train]
            made = y[train].mean(axis=0) + (x[test] - x[train].mean()) @ slope
            error += float(np.sum((y[test] - made) ** 2))
            spread += float(np.sum((y[test] - y[train].mean(axis=0)) ** 2))
            continue
        if (y[train] == y[train][0]).all():
            made = np.full(int(test.sum()), y[train][0])
        else:
            machine = LinearSVC(C=0.01, class_weight="balanced", dual=False)
            made = machine.fit(x[train], y[train]).predict(x[test])
        error += float(np.sum(made != y[test]))
    return 1 - error / len(x) if factor.discrete else max(0.0, 1 - error / spread)
