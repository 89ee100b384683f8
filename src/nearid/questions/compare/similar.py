"""Intervals of CCA, SVCCA and CKA, from how far each row moves them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.measures.similarity import cka_influence
from nearid.moments import Floats
from nearid.questions.compare.errors import Fits, Gathered, Similarities

# Rows that are looked at, fewer where each costs more products than this allows, but never fewer than the least.
ROWS, LEAST_ROWS, PRODUCTS = 20_000, 2_000, 6e9

# What the intervals are of.
DIRECTIONS = "rows: these canonical directions on new rows"
POPULATION = "rows: the population"


def influences(gathered: Gathered, fits: Fits, seed: int) -> tuple[np.ndarray, Floats]:
    """Numbers of some rows in use, and how far each moves the means of CCA and SVCCA and the CKA, times n: (m, 3)."""
    pair, rows = gathered.pair, gathered.used
    p, q = pair.x.shape[1], pair.y.shape[1]
    most = int(np.clip(PRODUCTS / (p * p + p * q + q * q), LEAST_ROWS, ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng([seed, 5]).choice(rows, most, replace=False))
    x, y = (side.astype(np.float64) for side in pair.take(rows))
    means = [found.influence(x, y, gathered.fold[rows], gathered.parts) for found in (fits.cca, fits.svcca)]
    return rows, np.stack([*means, cka_influence(x, y, gathered.moments)], axis=1)


def standard_errors(values: Floats, n: int, blocks: np.ndarray | None = None) -> Floats:
    """Standard errors of statistics of n rows, from what some of the rows do to them.

    Parameters
    ----------
    values : ndarray of shape (m, s)
        Influence of m of the n rows, drawn at random, on each statistic, times n.
    blocks : ndarray of int, shape (m,), optional
        Which of these rows belong together; each row is independent of the others by default.
    """
    values = values - values.mean(axis=0)
    alone = np.sum(values**2, axis=0) / len(values)
    if blocks is None:
        return np.asarray(np.sqrt(alone / n))
    names, at = np.unique(blocks, return_inverse=True)
    sums = np.zeros((len(names), values.shape[1]))
    np.add.at(sums, at, values)
    # Of products of two rows of a block a sample has the square of its share of rows, of squares the share itself.
    shared = n * (np.sum(sums**2, axis=0) / len(values) - alone) / len(values)
    return np.asarray(np.sqrt(np.clip(alone + shared, 0, None) / n))


def with_intervals(
    similar: Similarities, gathered: Gathered, fits: Fits, seed: int, blocks: np.ndarray | None = None
) -> Similarities:
    """The same similarities with 95% intervals by Student's t, within what a correlation can be.

    Parameters
    ----------
    blocks : ndarray of int, shape (n,), optional
        Which of all rows belong together; each row is independent of the others by default.
    """
    from scipy.special import stdtrit

    rows, values = influences(gathered, fits, seed)
    own = None if blocks is None else blocks[rows]
    n, widths = gathered.moments.n, gathered.moments.xy.shape
    variances = standard_errors(values, n, own) ** 2
    # What folds share is at most as much as what they do not.
    for at, found in enumerate((fits.cca, fits.svcca)):
        variances[at] += min(found.shared_variance(widths, n), variances[at])
    units = len(rows) if own is None else len(np.unique(own))
    half = [float(h) for h in stdtrit(max(units - 1, 1), (1 + CONFIDENCE) / 2) * np.sqrt(variances)]

    def between(value: Estimate, by: float, of: str) -> Estimate:
        known = replace(value, low=value.value - by, high=value.value + by, of=of)
        return known.within(-1.0, 1.0) if math.isfinite(by + value.value) else value

    return replace(
        similar,
        cca=between(similar.cca, half[0], DIRECTIONS),
        svcca=between(similar.svcca, half[1], DIRECTIONS),
        cka=between(similar.cka, half[2], POPULATION),
    )
