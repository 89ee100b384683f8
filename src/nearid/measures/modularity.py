"""Modularity and explicitness (Ridgeway & Mozer 2018)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.options import Seed
from nearid.base.progress import Progress, silent
from nearid.engines.local import ordered_map
from nearid.folds import assign
from nearid.measures.auroc import area_of
from nearid.measures.factors import BINS, Bins, Factors, check_bins, repeated_pairs
from nearid.measures.information import mutual_information
from nearid.measures.logistic import fit_penalised
from nearid.measures.ranks import average_ranks
from nearid.measures.registry import EACH_LATENT, Earlier, Measured, measure
from nearid.moments import Floats


@measure("Modularity", invariances=EACH_LATENT, held_out=False)
def modularity(x: Floats, factors: Factors, *, bins: Bins = BINS, progress: Progress = silent) -> Measured:
    """Return the modularity: how close each latent is to carrying information about one factor only.

    With t the largest mutual information of a latent, modularity is 1 - sum of the squares of the others / (t^2 (m -
    1)). Latents and continuous factors are cut into bins of equal width, as for `mig`.

    Modularity does not measure how much information a latent carries. With few rows, noise shares most information with
    the factor with the most levels, and looks modular. Compare with `explicitness`, and check the alert on few rows.

    Returns
    -------
    Measured
        The value is the mean over latents that carry information. `matrix` holds mutual information in nats.
        `per_latent`, an array of shape (d,), holds the modularity of each latent. It is 0 without any information.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).integers(0, 4, size=(500, 2))
    >>> nearid.modularity(np.hstack([u, -u]), u).per_latent.round(1).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    matrix, _, alerts = mutual_information(x, factors, bins, progress)
    m = matrix.shape[1]
    if m == 1:
        alerts += (Alert("one_factor", "Modularity is not meaningful with one factor: every latent is modular."),)
    largest = matrix.max(axis=1)
    telling = largest > 0
    others = np.sum(matrix[telling] ** 2, axis=1) / largest[telling] ** 2 - 1
    per_latent = np.zeros(len(matrix))
    per_latent[telling] = 1 - others / max(m - 1, 1)
    if not telling.all():
        text = f"{int(np.sum(~telling))} latents carry no information about any factor and are left out of the mean."
        alerts += (Alert("uninformative_latents", text),)
    value = float(per_latent[telling].mean()) if telling.any() else 0.0
    return Measured(value, matrix, factors.names, arrays={"per_latent": per_latent}, alerts=alerts)


@measure(
    "Explicitness",
    low=-1.0,
    invariances=EACH_LATENT,
    each="Explicitness",
    each_low=-1.0,
    costly=True,
    steady=True,
)
def explicitness(
    x: Floats,
    factors: Factors,
    *,
    bins: Bins = BINS,
    folds: int = 3,
    random_state: Seed = 0,
    progress: Progress = silent,
    earlier: Earlier | None = None,
) -> Measured:
    """Return how well logistic regression on all latents predicts the classes of each factor: the mean of 2 AUC - 1.

    AUC is computed on held-out rows: 0 is chance and 1 is perfect. Factors without classes are cut into bins. Latents
    are standardised. The fit has scikit-learn's default penalty (L2, C = 1), so there may be more latents than rows.

    Parameters
    ----------
    bins : int
        Bins of equal width of each factor that has no classes of its own.

    Returns
    -------
    Measured
        The value is the mean of `per_factor`. `matrix` has one row, as all latents are used together.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).integers(0, 2, size=(200, 2))
    >>> round(nearid.explicitness(u @ [[1, -1], [1, 1]], u).value, 3)
    1.0
    """
    check_bins(bins, len(x))
    alerts = repeated_pairs(x, factors, folds)
    starts: Mapping[str, Sequence[Floats]] = {}
    if earlier is None or earlier.permuted:
        fold = assign(len(x), folds, random_state, factors.block_codes)
    else:
        # The same folds as of all rows: in others, a fit would start at coefficients that have seen the rows it is
        # judged on.
        starts, fold = earlier.kept.coefficients, earlier.kept.fold[earlier.rows]
    design = _design(x) if earlier is None else earlier.kept.design[earlier.rows]
    codes = [factor.codes(bins) for factor in factors.items]

    def run(at: int) -> tuple[dict[int, list[float]], list[Floats]]:
        return _areas(design, codes[at], fold, folds, starts.get(factors.names[at], ()))

    per_factor = np.zeros(len(codes))
    coefficients: dict[str, Sequence[Floats]] = {}
    tick = progress("classifiers", len(codes))
    for at, (areas, fits) in enumerate(ordered_map(run, range(len(codes)), tick=tick)):
        name = factors.names[at]
        coefficients[name] = fits
        if areas:
            per_factor[at] = 2 * float(np.mean([np.mean(of_folds) for of_folds in areas.values()])) - 1
        else:
            alerts += (
                Alert(
                    "no_class_in_folds",
                    f"No class of the factor {name!r} has rows for both training and test, so its explicitness "
                    "counts as 0. Merge rare classes or use more rows.",
                ),
            )
    kept = Kept(design, fold, coefficients)
    return Measured(float(per_factor.mean()), per_factor[None, :], factors.names, per_factor, alerts=alerts, kept=kept)


class Kept(NamedTuple):
    """What explicitness uses again: the design of all rows, their folds, and coefficients of each factor and fold."""

    design: Floats
    fold: np.ndarray
    coefficients: Mapping[str, Sequence[Floats]]


def _design(x: Floats) -> Floats:
    """Standardised latents with a column of ones; coordinates of their rows where the latents are more.

    A penalty on the length of the coefficients does not depend on the axes: fits in the span of the rows are the same.
    """
    spread = x.std(axis=0)
    z = (x - x.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    if z.shape[1] > len(z):
        values, vectors = np.linalg.eigh(z @ z.T)
        z = vectors * np.sqrt(np.clip(values, 0, None))
    return np.hstack([z, np.ones((len(z), 1))])


def _areas(
    design: Floats, y: np.ndarray, fold: np.ndarray, folds: int, starts: Sequence[Floats]
) -> tuple[dict[int, list[float]], list[Floats]]:
    """The AUC of each class for every fold with rows of this class and of others, and the coefficients of each fit."""
    areas: dict[int, list[float]] = {}
    fitted: list[Floats] = []
    for k in range(folds):
        test = fold == k
        train = ~test if folds > 1 else test
        present, own = np.unique(y[train], return_inverse=True)
        # Without some rows, a fold may be empty.
        if len(present) == 1 or not test.any():
            fitted.append(np.empty((0, 0)))
            continue
        fit = fit_penalised(design[train], own, start=starts[k] if starts else None)
        fitted.append(fit.coefficients)
        scores = design[test] @ fit.coefficients
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        ranks = average_ranks(scores / scores.sum(axis=1, keepdims=True))
        for label, own_ranks in zip(present, ranks.T, strict=True):
            area = area_of(y[test] == label, own_ranks)
            if not np.isnan(area):
                areas.setdefault(int(label), []).append(area)
    return areas, fitted
