"""Mutual information of many discrete variables with one, from tables of counts."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def information(many, one, levels, logs):  # type: ignore[no-untyped-def]
    """Mutual information in nats of each of many discrete variables with one, shape (variables,).

    Parameters
    ----------
    many : ndarray of int, shape (variables, n)
        Values from 0 to levels - 1.
    one : ndarray of int, shape (n,)
        Values from 0 on.
    levels : int
    logs : ndarray of shape (n + 1,)
        Logarithms of the counts 0 to n.
    """
    n, width = len(one), one.max() + 1
    own = np.zeros(width, np.int64)
    for value in one:
        own[value] += 1
    logs_own = logs[own]
    table, alone, estimates = np.empty((levels, width), np.int64), np.empty(levels, np.int64), np.empty(len(many))
    for at in range(len(many)):
        table[:] = 0
        alone[:] = 0
        for i in range(n):
            table[many[at, i], one[i]] += 1
            alone[many[at, i]] += 1
        total = 0.0
        for a in range(levels):
            if alone[a]:
                total += _row(table[a], alone[a], own, logs[n] - logs[alone[a]], logs, logs_own, n)
        estimates[at] = max(0.0, total / n)
    return estimates


# Without branches and with sums in any order, so that the compiler makes vector instructions of it.
@njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"})
def _row(joint, alone, own, shared, logs, logs_own, n):  # type: ignore[no-untyped-def]
    """What the pairs with one value of a variable add."""
    total = 0.0
    for b in range(len(own)):
        value = joint[b] * (shared + logs[joint[b]] - logs_own[b])
        # Counts are exact, so that independent variables give exactly 0.
        total += 0.0 if n * joint[b] == alone * own[b] else value
    return total
