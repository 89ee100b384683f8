"""How far a search for components gets in Gaussian rows, and the p-values that follow for components of other rows."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from nearid.moments import Floats

# With fewer rows for each component, a search finds anything in noise: nothing can be told from Gaussian.
FEWEST_ROWS = 3
# Beyond the columns of the table the reach grows with this power of their number. A Gaussian process over directions
# gives the root. Fourth powers grow faster: few rows can make a component.
GROWTH = {"logcosh": 0.5, "exp": 0.5, "cube": 1.0}


@cache
def _tables() -> dict[str, Any]:
    """Mean and spread of the furthest component of Gaussian rows, as benchmarks/gaussian_null.py simulates them."""
    record = json.loads(files("nearid.ica").joinpath("gaussian_null.json").read_text())
    axes = np.log(record["components"]), np.log(record["ratios"])
    return {**record, "axes": axes}


def searched_p_values(z: Floats, contrast: str, n: int) -> Floats:
    """p-values of components that a search has found in n rows.

    The p-value of the furthest component is the probability that the furthest of as many Gaussian columns gets as far,
    on the same side, times two for both sides. If it is not Gaussian, then the search for the next one had a direction
    fewer to choose from, and so on: each component is compared with as many columns as there are from it on. A p-value
    is never smaller than that of a component before it.

    Parameters
    ----------
    z : ndarray of shape (k,)
        Mean contrasts less that of a Gaussian component, in standard errors.
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
    """Twice the probability that the furthest component of so many Gaussian columns is beyond z, by a normal tail."""
    from scipy.special import ndtr

    tables = _tables()["contrasts"][contrast]
    tails = np.empty(len(z))
    for side, chosen in (("above", z > 0), ("below", z <= 0)):
        mean, spread = (_between(np.asarray(tables[side][name]), columns[chosen], n) for name in ("mean", "spread"))
        mean *= np.maximum(columns[chosen] / max(_tables()["components"]), 1) ** GROWTH[contrast]
        tails[chosen] = ndtr((mean - np.abs(z[chosen])) / spread)
    return np.minimum(2 * tails, 1)


def _between(table: Floats, columns: np.ndarray, n: int) -> Floats:
    """The table at these numbers of columns of n rows: linear in both logarithms, at its edge beyond it."""
    (i, u), (j, v) = (
        _place(axis, np.log(value)) for axis, value in zip(_tables()["axes"], (columns, n / columns), strict=True)
    )
    left, right = ((1 - u) * table[i, c] + u * table[i + 1, c] for c in (j, j + 1))
    return np.asarray((1 - v) * left + v * right)


def _place(axis: Floats, value: Floats) -> tuple[np.ndarray, Floats]:
    """The point of the axis before each value, and the share of the way to the next one."""
    before = np.clip(np.searchsorted(axis, value, side="right") - 1, 0, len(axis) - 2)
    return before, np.clip((value - axis[before]) / (axis[before + 1] - axis[before]), 0, 1)
