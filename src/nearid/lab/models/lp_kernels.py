"""Sums of |x_i - y_j| and |x_i - y_j|^3 over coordinates, and their gradients, compiled for the CPU.

One row of distances at a time stays in the L1 cache, and the loops over it use SIMD. Each row or coordinate is summed
by one thread in a fixed order, so the result does not depend on the number of threads.
"""

from typing import Any

import numpy as np
from numba import njit

from nearid.base.threads import share_out

Array = np.ndarray[Any, np.dtype[Any]]

# Sums may be reordered for SIMD; NaN and infinities keep their meaning.
FAST = {"reassoc", "contract", "nsz", "arcp"}
COMPILED_P = (1.0, 3.0)


def power_distances(x: Array, y: Array, cubic: bool, out: Array, threads: int) -> None:
    """Write sum_k |x_ik - y_kj|^p into out[i, j].

    Parameters
    ----------
    x : ndarray of shape (rows, n)
    y : ndarray of shape (n, columns)
    cubic : bool
        p = 3; otherwise p = 1.
    out : ndarray of shape (rows, columns)
    """
    share_out(threads, len(x), lambda part: _distances(x[part], y, cubic, out[part]))


def power_gradients(
    x: Array, y: Array, weights: Array, cubic: bool, grad_x: Array, grad_y: Array, threads: int
) -> None:
    """Add the gradients of sum_ij weights_ij sum_k |x_ik - y_kj|^p / p to grad_x and grad_y.

    Parameters
    ----------
    x, y : ndarray of shape (n, rows) and (n, columns)
    weights : ndarray of shape (rows, columns)
    cubic : bool
        p = 3; otherwise p = 1.
    grad_x, grad_y : ndarray of shape (n, rows) and (n, columns)
    """
    share_out(threads, len(y), lambda k: _gradients(x[k], y[k], weights, cubic, grad_x[k], grad_y[k]))


@njit(fastmath=FAST, nogil=True, cache=True)
def _distances(x, y, cubic, out):  # type: ignore[no-untyped-def]
    n, columns = y.shape
    for i in range(len(x)):
        row = out[i]
        row[:] = 0
        for k in range(n):
            at, others = x[i, k], y[k]
            if cubic:
                for j in range(columns):
                    gap = abs(at - others[j])
                    row[j] += gap * gap * gap
            else:
                for j in range(columns):
                    row[j] += abs(at - others[j])


@njit(fastmath=FAST, nogil=True, cache=True)
def _gradients(x, y, weights, cubic, grad_x, grad_y):  # type: ignore[no-untyped-def]
    n, columns = y.shape
    for k in range(n):
        others, pull = y[k], grad_y[k]
        zero = others.dtype.type(0)
        for i in range(len(weights)):
            at, row, total = x[k, i], weights[i], zero
            if cubic:
                for j in range(columns):
                    gap = at - others[j]
                    slope = row[j] * gap * abs(gap)
                    total += slope
                    pull[j] -= slope
            else:
                for j in range(columns):
                    slope = row[j] if at > others[j] else (-row[j] if at < others[j] else zero)
                    total += slope
                    pull[j] -= slope
            grad_x[k, i] += total
