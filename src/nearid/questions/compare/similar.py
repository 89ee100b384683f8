"""Intervals of CCA, SVCCA and CKA, from the influence of each row."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.base.student import student
from nearid.measures.canonical import Canonical
from nearid.measures.similarity import cka_influence
from nearid.moments import Floats
from nearid.questions.compare.errors import Fits, Gathered, Sample, Similarities
from nearid.questions.compare.intervals import spread_of_mean

# Number of rows to use, fewer if products are expensive, but at least the minimum.
ROWS, LEAST_ROWS, PRODUCTS = 20_000, 2_000, 1.6e9

# What the intervals are of.
DIRECTIONS = "rows: these canonical directions on new rows"
POPULATION = "rows: the population"


def rows_looked_at(gathered: Gathered, seed: int) -> tuple[Sample, Floats, Floats]:
    """A sample of the rows in use (whole blocks if rows belong together), with both sides."""
    p, q = gathered.moments.xy.shape
    most = int(np.clip(PRODUCTS / (p * p + p * q + q * q), LEAST_ROWS, ROWS))
    sample = gathered.sample(most, np.random.default_rng([seed, 5]))
    x, y = (side.astype(np.float64) for side in gathered.pair.take(sample.rows))
    return sample, x, y


def with_interval(
    value: Estimate,
    moved: Floats,
    of: str,
    gathered: Gathered,
    sample: Sample,
    found: Canonical | None = None,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A similarity with its interval by Student's t, cut to the range of a correlation.

    Parameters
    ----------
    moved : ndarray of shape (m,)
        Influence of each row of the sample on the similarity, times the number of all rows.
    of : str
        What the interval is of.
    found : Canonical, optional
        Fitted canonical directions. Fits to different folds share rows, which adds to the variance.
    """
    if not (math.isfinite(value.value) and np.isfinite(moved).all()):
        return value
    n = gathered.moments.n
    spread = spread_of_mean(moved, n, sample.blocks, sample.weights)
    if math.isnan(spread.error):
        return value
    variance = spread.error**2
    if found is not None:
        # Similar rows count as fewer. The shared part of folds is at most as large as the rest.
        alone = spread_of_mean(moved, n).error ** 2
        fewer = n * min(alone / variance, 1.0) if variance else n
        variance += min(found.shared_variance(gathered.moments.xy.shape, fewer), variance)
    half = student(spread.freedom, confidence) * math.sqrt(variance)
    return replace(value, low=value.value - half, high=value.value + half, of=of).within(-1.0, 1.0)


def with_intervals(similar: Similarities, gathered: Gathered, fits: Fits, seed: int) -> Similarities:
    """The same similarities with 95% intervals. Where rows belong together, their blocks count as one."""
    sample, x, y = rows_looked_at(gathered, seed)
    fold = gathered.fold[sample.rows]
    cca, svcca = (
        with_interval(value, found.influence(x, y, fold, gathered.parts), DIRECTIONS, gathered, sample, found)
        for value, found in ((similar.cca, fits.cca), (similar.svcca, fits.svcca))
    )
    cka = with_interval(similar.cka, cka_influence(x, y, gathered.moments), POPULATION, gathered, sample)
    return replace(similar, cca=cca, svcca=svcca, cka=cka)
