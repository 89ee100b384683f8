"""Paired bootstrap of means and of explained variance, at any number of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.engines.local import one_blas_thread
from nearid.moments import Floats

UNITS = 1000
REPLICATES = 1000


@dataclass(frozen=True)
class Replicates:
    """Bootstrap replicates; column g of both arrays saw the same resampled rows, so differences are paired.

    Attributes
    ----------
    error : ndarray of shape (replicates, groups)
        Mean error.
    unexplained : ndarray of shape (replicates, groups)
        Squared error over the squared error of the constant guess.
    """

    error: Floats
    unexplained: Floats


def bootstrap(errors: Floats, spread: Floats, seed: int) -> Replicates:
    """Resample rows with replacement.

    Millions of rows are first dealt at random into 1,000 units of equal size, and the units are resampled: for means
    of exchangeable rows that has the same spread, and a replicate becomes one row of a small matrix product.

    Parameters
    ----------
    errors : ndarray of shape (groups, n)
    spread : ndarray of shape (n,)
        Error of the constant guess.
    """
    rng = np.random.default_rng([seed, 3])
    n = len(spread)
    units = min(n, UNITS)
    unit = rng.permutation(n) % units

    def sums(values: Floats) -> Floats:
        return np.bincount(unit, weights=values, minlength=units).astype(np.float64)

    count = np.bincount(unit, minlength=units)
    # Row b counts how often replicate b drew each unit.
    draws = rng.integers(units, size=(REPLICATES, units)) + units * np.arange(REPLICATES)[:, None]
    weights = np.bincount(draws.ravel(), minlength=REPLICATES * units).reshape(REPLICATES, units).astype(np.float64)
    # Units of the data are taken out before squaring: 1e200 squared is no number.
    size = float(np.sqrt(np.mean((spread / (spread.max() or 1.0)) ** 2)) * (spread.max() or 1.0)) or 1.0
    # The last digits of a product depend on the threads of BLAS.
    with one_blas_thread:
        means = weights @ np.stack([sums(e) for e in errors], axis=1) / (weights @ count)[:, None]
        squares = weights @ np.stack([sums((e / size) ** 2) for e in errors], axis=1)
        base = weights @ sums((spread / size) ** 2)
    return Replicates(means, squares / base[:, None])


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Central percentile interval of replicates."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
