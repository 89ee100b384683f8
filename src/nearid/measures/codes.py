"""Discrete factors of any kind as codes."""

from __future__ import annotations

import numpy as np

from nearid.errors import InputError
from nearid.measures.information import Codes


def encode_factors(factors: object, n: int) -> list[Codes]:
    """Codes 0, 1, ... of the values of every factor, in their order.

    Parameters
    ----------
    factors : array-like of shape (n, factors) or (n,)
        Discrete: integers, strings or other values that repeat.
    n : int
        Rows that are expected.
    """
    table = np.asarray(factors)
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] == 0:
        raise InputError(f"The factors have shape {table.shape}, but (rows, factors) is expected.")
    if len(table) != n:
        raise InputError(f"The latents have {n} rows and the factors {len(table)}; give the same rows of both.")
    return [_codes(column, i) for i, column in enumerate(table.T)]


def _codes(column: np.ndarray, i: int) -> Codes:
    missing = _missing(column)
    if missing.any():
        raise InputError(f"Factor {i} has no value at row {missing.argmax()} (counted from 0); drop such rows.")
    try:
        values, codes = np.unique(column, return_inverse=True)
    except TypeError:
        raise InputError(f"Factor {i} mixes values that have no order, as strings and numbers; use one kind.") from None
    if len(values) == 1:
        raise InputError(f"Factor {i} is constant ({values[0]}): there is nothing to recover; leave it out.")
    if len(values) == len(column):
        raise InputError(
            f"Factor {i} has another value in each of the {len(column)} rows, but a discrete factor is expected; "
            "if it is continuous, bin it first, for example with np.digitize."
        )
    return codes


def _missing(column: np.ndarray) -> np.ndarray:
    """Where there is no value: None, NaN, or what else differs from itself."""
    if column.dtype.kind == "O":
        return np.array([v is None or bool(v != v) for v in column])
    return np.asarray(column != column)
