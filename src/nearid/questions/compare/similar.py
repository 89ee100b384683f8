"""Intervals of CCA, SVCCA and CKA, from how far each row moves them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.measures.canonical import Canonical
from nearid.measures.similarity import cka_influence
from nearid.moments import Floats
from nearid.questions.compare.errors import Fits, Gathered, Similarities

# Rows that are looked at, fewer where each costs more products than this allows, but never fewer than the least.
ROWS, LEAST_ROWS, PRODUCTS = 20_000, 2_000, 6e9

# What the intervals are of.
DIRECTIONS = "rows: these canonical directions on new rows"
POPULATION = "rows: the population"


def rows_looked_at(gathered: Gathered, seed: int) -> tuple[np.ndarray, Floats, Floats]:
    """Numbers of some rows in use, and their two sides."""
    pair, rows = gathered.pair, gathered.used
    p, q = pair.x.shape[1], pair.y.shape[1]
    most = int(np.clip(PRODUCTS / (p * p + p * q + q * q), LEAST_ROWS, ROWS))
    if len(rows) > most:
        rows = np.sort(np.random.default_rng([seed, 5]).choice(rows, most, replace=False))
    x, y = (side.astype(np.float64) for side in pair.take(rows))
    return rows, x, y


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


def with_interval(
    value: Estimate,
    moved: Floats,
    of: str,
    n: int,
    blocks: np.ndarray | None = None,
    *,
    shared: float = 0.0,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A similarity with its interval by Student's t, within what a correlation can be.

    Parameters
    ----------
    moved : ndarray of shape (m,)
        As the values of `standard_errors`, for one statistic.
    of : str
        What the interval is of.
    n : int
        Rows in all.
    blocks : ndarray of int, shape (m,), optional
        Which of the m rows belong together.
    shared : float
        Further variance, of fits that share rows. It is at most as much as what folds do not share.
    """
    from scipy.special import stdtrit

    variance = float(standard_errors(moved[:, None], n, blocks)[0]) ** 2
    variance += min(shared, variance)
    units = len(moved) if blocks is None else len(np.unique(blocks))
    half = float(stdtrit(max(units - 1, 1), (1 + confidence) / 2)) * math.sqrt(variance)
    if not math.isfinite(half + value.value):
        return value
    return replace(value, low=value.value - half, high=value.value + half, of=of).within(-1.0, 1.0)


def with_intervals(
    similar: Similarities, gathered: Gathered, fits: Fits, seed: int, blocks: np.ndarray | None = None
) -> Similarities:
    """The same similarities with 95% intervals.

    Parameters
    ----------
    blocks : ndarray of int, shape (n,), optional
        Which of all rows belong together; each row is independent of the others by default.
    """
    rows, x, y = rows_looked_at(gathered, seed)
    own = None if blocks is None else blocks[rows]
    n = gathered.moments.n

    def along(value: Estimate, found: Canonical) -> Estimate:
        moved = found.influence(x, y, gathered.fold[rows], gathered.parts)
        return with_interval(
            value, moved, DIRECTIONS, n, own, shared=found.shared_variance(gathered.moments.xy.shape, n)
        )

    return replace(
        similar,
        cca=along(similar.cca, fits.cca),
        svcca=along(similar.svcca, fits.svcca),
        cka=with_interval(similar.cka, cka_influence(x, y, gathered.moments), POPULATION, n, own),
    )
