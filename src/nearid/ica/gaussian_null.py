"""p-values of ICA components, by comparison with a search for components in Gaussian rows."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from nearid.moments import Floats

# With fewer rows per component, a search finds components in noise, so none can be distinguished from Gaussian.
FEWEST_ROWS = 3
# Beyond the table, the values grow with this power of the number of columns. A Gaussian process over directions gives
# the power 1/2. With fourth powers the values grow faster, because a few rows can make a component.
GROWTH = {"logcosh": 0.5, "exp": 0.5, "cube": 1.0}


@cache
def _tables() -> dict[str, Any]:
    """Return mean and spread of the most extreme component of Gaussian rows (see benchmarks/gaussian_null.py)."""
    record = json.loads(files("nearid.ica").joinpath("gaussian_null.json").read_text())
    axes = np.log(record["components"]), np.log(record["ratios"])
    return {**record, "axes": axes}


def searched_p_values(z: Floats, contrast: str, n: int) -> Floats:
    """Return p-values of components that a search found in n rows.

    The p-value of the most extreme component is twice the probability that the most extreme component of equally many
    Gaussian columns is at least as extreme on the same side. If this component is not Gaussian, the search for the next
    one has one direction less. So each component is compared with as many columns as there are components from it on.
    p-values never decrease from one component to the next.

    Parameters
    ----------
    z : ndarray of shape (k,)
        Mean contrasts minus that of a Gaussian component, in standard errors.
    contrast : {"logcosh", "exp", "cube"}
    """
    k = len(z)
    if n < FEWEST_ROWS * k:
        return np.ones(k)
    order = np.argsort(_tails(z, np.full(k, k), contrast, n), kind="stable")
    p_values = np.empty(k)
    p_values[order] = np.maximum.accumulate(_tails(z[order], k - np.arange(k), contrast, n))
    return p_values


def _tails(z: Floats, columns: np.ndarray, contrast: str, n: int) -> Floats:
    """Return twice the probability that the most extreme component of so many Gaussian columns exceeds z."""
    from scipy.special import ndtr

    tables = _tables()["contrasts"][contrast]
    tails = np.empty(len(z))
    for side, chosen in (("above", z > 0), ("below", z <= 0)):
        mean, spread = (_between(np.asarray(tables[side][name]), columns[chosen], n) for name in ("mean", "spread"))
        mean *= np.maximum(columns[chosen] / max(_tables()["components"]), 1) ** GROWTH[contrast]
        tails[chosen] = ndtr((mean - np.abs(z[chosen])) / spread)
    return np.minimum(2 * tails, 1)


def _between(table: Floats, columns: np.ndarray, n: int) -> Floats:
    """Interpolate the table for these numbers of columns and n rows, linearly in both logarithms."""
    (i, u), (j, v) = (
        _place(axis, np.log(value)) for axis, value in zip(_tables()["axes"], (columns, n / columns), strict=True)
    )
    left, right = ((1 - u) * table[i, c] + u * table[i + 1, c] for c in (j, j + 1))
    return np.asarray((1 - v) * left + v * right)


def _place(axis: Floats, value: Floats) -> tuple[np.ndarray, Floats]:
    """Return the grid point before each value, and the relative position between it and the next point."""
    before = np.clip(np.searchsorted(axis, value, side="right") - 1, 0, len(axis) - 2)
    return before, np.clip((value - axis[before]) / (axis[before + 1] - axis[before]), 0, 1)
