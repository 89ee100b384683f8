"""Intervals of CCA, SVCCA and CKA, from how far each row moves them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from nearid.base.estimate import Estimate
from nearid.measures.canonical import Canonical
from nearid.measures.similarity import cka_influence
from nearid.questions.compare.errors import Fits, Gathered, Similarities
from nearid.questions.compare.intervals import spread_of_mean

# Rows that are looked at, fewer where each costs more products than this allows, but never fewer than the least.
ROWS, LEAST_ROWS, PRODUCTS = 20_000, 2_000, 6e9

# What the intervals are of.
DIRECTIONS = "rows: these canonical directions on new rows"
POPULATION = "rows: the population"


def with_intervals(similar: Similarities, gathered: Gathered, fits: Fits, seed: int) -> Similarities:
    """The same similarities with 95% intervals by Student's t, within what a correlation can be.

    Where rows belong together, blocks are drawn and their rows count as one.
    """
    p, q = widths = gathered.moments.xy.shape
    most = int(np.clip(PRODUCTS / (p * p + p * q + q * q), LEAST_ROWS, ROWS))
    sample = gathered.sample(most, np.random.default_rng([seed, 5]))
    x, y = (side.astype(np.float64) for side in gathered.pair.take(sample.rows))
    n, fold = gathered.moments.n, gathered.fold[sample.rows]

    def interval(value: Estimate, moved: np.ndarray, of: str, found: Canonical | None = None) -> Estimate:
        if not (math.isfinite(value.value) and np.isfinite(moved).all()):
            return value
        spread = spread_of_mean(moved, n, sample.blocks, sample.weights)
        variance = spread.error**2
        if found is not None:
            # Rows that are alike count as fewer. What folds share is at most as much as what they do not.
            alone = spread_of_mean(moved, n).error ** 2
            fewer = n * min(alone / variance, 1.0) if variance else n
            variance += min(found.shared_variance(widths, fewer), variance)
        half = spread.quantile * math.sqrt(variance)
        return replace(value, low=value.value - half, high=value.value + half, of=of).within(-1.0, 1.0)

    cca, svcca = (
        interval(value, found.influence(x, y, fold, gathered.parts), DIRECTIONS, found)
        for value, found in ((similar.cca, fits.cca), (similar.svcca, fits.svcca))
    )
    cka = interval(similar.cka, cka_influence(x, y, gathered.moments), POPULATION)
    return replace(similar, cca=cca, svcca=svcca, cka=cka)
