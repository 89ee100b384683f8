"""Modularity and explicitness (Ridgeway & Mozer 2018)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed, checked
from nearid.base.progress import Reporting, reporting
from nearid.folds import assign
from nearid.measures.factors import BINS, check_bins, load_pair, repeated_pairs
from nearid.measures.mig import mutual_information
from nearid.measures.recovery import FactorRecovery, Recovery
from nearid.moments import Floats


@dataclass(frozen=True)
class Modularity(Recovery):
    """Modularity. The matrix holds mutual information in nats; the value is the mean over latents that tell anything.

    Attributes
    ----------
    per_latent : ndarray of shape (d,)
        0 for a latent without any information.
    """

    per_latent: Floats


@checked
def modularity(
    latents: object, factors: object, *, bins: int = BINS, drop_nonfinite: bool = False, progress: Reporting = False
) -> Modularity:
    """How nearly each latent tells of one factor alone.

    With t the largest mutual information of a latent, modularity is 1 - sum of the squares of the others / (t^2 (m -
    1)). Latents and continuous factors are cut into bins of equal width, as for `mig`.

    It says nothing of how much a latent tells: with few rows noise has most information in common with the factor of
    the most levels, and looks modular. Read it beside `explicitness`, and heed the alert on few rows.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
    bins : int
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    Modularity
    """
    x, found, alerts = load_pair(latents, factors, drop_nonfinite=drop_nonfinite)
    matrix, _, more = mutual_information(x, found, bins, progress)
    alerts += more
    m = matrix.shape[1]
    if m == 1:
        alerts += (Alert("one_factor", "There is one factor: every latent is modular, which says nothing."),)
    largest = matrix.max(axis=1)
    telling = largest > 0
    others = np.sum(matrix[telling] ** 2, axis=1) / largest[telling] ** 2 - 1
    per_latent = np.zeros(len(matrix))
    per_latent[telling] = 1 - others / max(m - 1, 1)
    if not telling.all():
        silent_ones = int(np.sum(~telling))
        alerts += (
            Alert("uninformative_latents", f"{silent_ones} latents tell nothing of any factor; they are left out."),
        )
    value = float(per_latent[telling].mean()) if telling.any() else 0.0
    return Modularity(value, matrix, found.names, alerts, per_latent)


@checked
def explicitness(
    latents: object,
    factors: object,
    *,
    bins: int = BINS,
    folds: int = 3,
    random_state: Seed = 0,
    drop_nonfinite: bool = False,
    progress: Reporting = False,
) -> FactorRecovery:
    """How well logistic regression on all latents tells the classes of each factor: mean of 2 AUC - 1 over classes.

    Areas under the curve are held out: 0 is chance, 1 is perfect. Factors without classes are cut into bins. The
    matrix has one row, as all latents are used together.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
    bins : int
    folds : int
        Number of folds; 1 gives in-sample scores.
    random_state : int
        Seed of the folds.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    FactorRecovery
    """
    x, found, alerts = load_pair(latents, factors, drop_nonfinite=drop_nonfinite)
    check_bins(bins, len(x))
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    fold = assign(len(x), folds, random_state)
    alerts += repeated_pairs(x, found, folds)
    with reporting(progress) as report:
        tick = report("classifiers", len(found.items))
        each = []
        for factor in found.items:
            each.append(_areas(x, factor.codes(bins), fold, folds))
            tick()
    per_factor = np.zeros(len(found.items))
    for at, (factor, areas) in enumerate(zip(found.items, each, strict=True)):
        if areas:
            per_factor[at] = 2 * float(np.mean([np.mean(found_areas) for found_areas in areas.values()])) - 1
        else:
            alerts += (
                Alert(
                    "no_class_in_folds",
                    f"No class of the factor {factor.name!r} is both learned and seen in other rows: its explicitness "
                    "counts as 0. Merge rare classes or take more rows.",
                ),
            )
    return FactorRecovery(float(per_factor.mean()), per_factor[None, :], found.names, alerts, per_factor)


def _areas(x: Floats, y: np.ndarray, fold: np.ndarray, folds: int) -> dict[int, list[float]]:
    """Areas under the curve of each class, fold by fold, where a fold has rows of the class and of others."""
    from scipy.stats import rankdata
    from sklearn.linear_model import LogisticRegression

    areas: dict[int, list[float]] = {}
    for k in range(folds):
        test = fold == k
        train = ~test if folds > 1 else test
        if (y[train] == y[train][0]).all():
            continue
        model = LogisticRegression(max_iter=1000).fit(x[train], y[train])
        seen = y[test][:, None] == model.classes_
        counts = seen.sum(axis=0)
        # The area is the share of pairs in the right order, which the ranks of a class's rows tell (Mann & Whitney).
        above = np.sum(rankdata(model.predict_proba(x[test]), axis=0) * seen, axis=0) - counts * (counts + 1) / 2
        for label, count, pairs in zip(model.classes_, counts, above, strict=True):
            if 0 < count < len(seen):
                areas.setdefault(int(label), []).append(float(pairs / (count * (len(seen) - count))))
    return areas
