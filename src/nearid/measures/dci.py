"""Disentanglement, completeness and informativeness (Eastwood & Williams 2018).

A predictor of each factor from all latents gives importances R (latents x factors) and a held-out score. A latent is
disentangled if it matters to one factor alone, a factor is complete if one latent alone matters to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed, checked
from nearid.base.progress import Reporting, reporting
from nearid.engines.local import ordered_map
from nearid.folds import assign
from nearid.measures.factors import load_pair, repeated_pairs
from nearid.measures.kinds import Factor
from nearid.measures.predictors import predict
from nearid.measures.recovery import FactorRecovery
from nearid.moments import Floats


@dataclass(frozen=True)
class DCI(FactorRecovery):
    """The three scores. The value is the disentanglement; per factor, the informativeness is given.

    The matrix holds importances; those of each factor sum to 1, or are 0 if its predictor used no latent.

    Attributes
    ----------
    disentanglement, completeness, informativeness : float
    chance : ndarray of shape (m,)
        What informativeness is without latents: the share of the commonest class, or an R2 of 0.
    per_latent : ndarray of shape (d,)
        Disentanglement of each latent; 0 for one that no predictor used, which has no weight in the mean.
    completeness_per_factor : ndarray of shape (m,)
    """

    disentanglement: float
    completeness: float
    informativeness: float
    chance: Floats
    per_latent: Floats
    completeness_per_factor: Floats


@checked
def dci(
    latents: object,
    factors: object,
    *,
    model: str = "boost",
    folds: int = 3,
    random_state: Seed = 0,
    drop_nonfinite: bool = False,
    progress: Reporting = False,
) -> DCI:
    """Disentanglement, completeness and informativeness.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
        Integer and categorical factors are classified, the others regressed on (circular ones by cosine and sine).
    model : {"boost", "forest", "l1"}
        Gradient boosting (LightGBM if it is installed, else scikit-learn's histogram trees), random forests, or Lasso
        and L1 logistic regression. Importances are those of the models, see `nearid.measures.predictors`.
    folds : int
        Number of folds; importances are means over the fits. 1 gives in-sample scores.
    random_state : int
        Seed of the folds and the models.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    DCI
    """
    from threadpoolctl import threadpool_limits

    x, found, alerts = load_pair(latents, factors, drop_nonfinite=drop_nonfinite)
    fold = assign(len(x), folds, random_state)
    alerts += repeated_pairs(x, found, folds)
    tasks = [(factor, k) for factor in found.items for k in range(folds)]

    def run(task: tuple[Factor, int]) -> Fit:
        factor, k = task
        test = fold == k
        return _fit(factor, x, test, ~test if folds > 1 else test, model, random_state)

    # Fits are small and many: a thread for each beats many threads for one.
    with threadpool_limits(limits=1), reporting(progress) as report:
        fits = list(ordered_map(run, tasks, tick=report("predictors", len(tasks))))
    matrix = np.zeros((x.shape[1], len(found.items)))
    informativeness, chance = np.zeros(len(found.items)), np.zeros(len(found.items))
    for at, factor in enumerate(found.items):
        mine = fits[at * folds : (at + 1) * folds]
        importance = np.sum([fit.importance for fit in mine], axis=0)
        matrix[:, at] = importance / (importance.sum() or 1.0)
        informativeness[at] = 1 - sum(fit.error for fit in mine) / sum(fit.worst for fit in mine)
        chance[at] = np.bincount(factor.codes()).max() / len(x) if factor.discrete else 0.0
    per_latent, per_factor = _concentration(matrix), _concentration(matrix.T)
    weight = matrix.sum(axis=1)
    disentanglement = float(np.sum(per_latent * weight) / weight.sum()) if weight.any() else 0.0
    return DCI(
        disentanglement,
        matrix,
        found.names,
        alerts + _degenerate(matrix, found.names),
        informativeness,
        disentanglement,
        float(per_factor.mean()),
        float(informativeness.mean()),
        chance,
        per_latent,
        per_factor,
    )


class Fit(NamedTuple):
    """Importances of one fit, its error in test rows, and the error that scores 0.

    Errors are counts of wrong classes, of which all rows score 0, or squared errors, of which those of the mean do.
    """

    importance: Floats
    error: float
    worst: float


def _fit(factor: Factor, x: Floats, test: np.ndarray, train: np.ndarray, model: str, seed: int) -> Fit:
    classes = factor.discrete
    importance, error, worst = np.zeros(x.shape[1]), 0.0, 0.0
    for y in [factor.codes()] if classes else _centred(factor.columns).T:
        made = predict(model, x[train], y[train], x[test], classes=classes, random_state=seed)
        importance += made.importance
        if classes:
            error += float(np.sum(made.values != y[test]))
            worst += float(np.sum(test))
        else:
            error += float(np.sum((made.values - y[test]) ** 2))
            worst += float(np.sum((y[test] - y[train].mean()) ** 2))
    return Fit(importance, error, worst)


def _centred(columns: Floats) -> Floats:
    """Targets about their means, to the digits of float32: where they lie must not break ties between cuts."""
    centred = columns - columns.mean(axis=0)
    return np.asarray((centred / np.linalg.norm(centred) * np.sqrt(len(columns))).astype(np.float32), dtype=np.float64)


def _concentration(importances: Floats) -> Floats:
    """1 - entropy of each row's shares, in units of the largest possible; 0 for a row of zeros."""
    total = importances.sum(axis=1, keepdims=True)
    share = np.divide(importances, total, out=np.zeros_like(importances), where=total > 0)
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    largest = np.log(importances.shape[1]) or 1.0
    return np.asarray(np.where(total[:, 0] > 0, 1 + np.sum(share * logs, axis=1) / largest, 0.0))


def _degenerate(matrix: Floats, names: tuple[str, ...]) -> tuple[Alert, ...]:
    found = []
    if matrix.shape[1] == 1:
        found.append(Alert("one_factor", "There is one factor: every latent is disentangled, which says nothing."))
    if matrix.shape[0] == 1:
        found.append(Alert("one_latent", "There is one latent: every factor is complete, which says nothing."))
    unused = [name for name, column in zip(names, matrix.T, strict=True) if not column.any()]
    if unused:
        listed = ", ".join(map(repr, unused))
        found.append(Alert("no_importance", f"No latent was used to predict {listed}: completeness counts as 0 there."))
    return tuple(found)
