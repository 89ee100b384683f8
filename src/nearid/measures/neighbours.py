"""Mutual information of a continuous with a discrete variable by nearest neighbours (Ross 2014), by sorting alone.

On a line, the k nearest of a class stand in a window of its sorted values, which only moves forward. A table of cells
of equal width tells how many of all values stand before each end of the ball, up to a few that are compared.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from nearid.measures.information import Codes
from nearid.moments import Floats

# Values (of unit variance) this close are ties: far above their rounding, far below what data resolve.
TIE = 1e-12
# Values that are compared beside an end of a ball before a search by halves.
STEPS = 4


def neighbour_information(values: Floats, codes: Codes, *, k: int, count_ties: bool = True) -> Floats:
    """Mutual information of continuous variables with discrete ones, in nats.

    MI = psi(n) + mean psi(k) - mean psi(class size) - mean psi(m), where m counts the values within the distance of
    the k-th nearest of the same class, and is not allowed below 0. Values whose class has no other are left out.

    Parameters
    ----------
    values : ndarray of shape (n,) or (variables, n)
        Each of about unit variance.
    codes : ndarray of int of shape (factors, n)
        Classes from 0 on.
    k : int
        Neighbours; at most the class size less one.
    count_ties : bool, default=True
        Where several neighbours stand at the k-th distance, put the number of the class within the ball in the place
        of k (Gao et al. 2017). Without ties that is k itself. False keeps k, for values that a jitter has parted.

    Returns
    -------
    ndarray of shape (factors,) or (variables, factors)
        0 where all classes are singletons.
    """
    many = np.asarray(np.atleast_2d(values), dtype=np.float64)
    order = np.argsort(many, axis=1)
    ordered = np.take_along_axis(many, order, axis=1)
    estimates = _each(ordered, codes.astype(np.int64), order, k, _digammas(many.shape[1]), count_ties)
    return np.asarray(estimates.reshape(*values.shape[:-1], len(codes)))


@lru_cache(maxsize=1)
def _digammas(n: int) -> Floats:
    """psi(0..n), with 0 in the place of psi(0), which is never asked for."""
    from scipy.special import digamma

    return np.concatenate([[0.0], digamma(np.arange(1, n + 1))])


@njit(cache=True, nogil=True)
def _each(ordered, codes, orders, k, psi, count_ties):  # type: ignore[no-untyped-def]
    """The estimates for all variables and factors. Values whose class has no other are left out."""
    variables, n = ordered.shape
    factors, classes = len(codes), codes.max() + 1
    estimates, sizes = np.zeros((variables, factors)), np.zeros((factors, classes), np.int64)
    single = np.zeros(factors, np.bool_)
    for i in range(factors):
        for label in codes[i]:
            sizes[i, label] += 1
        for c in range(classes):
            if sizes[i, c] == 1:
                single[i], sizes[i, c] = True, 0
    # All values, and those that are kept of a factor with classes of one row.
    values, kept = np.full(n + STEPS, np.inf), np.empty(n + STEPS)
    table, own_table = np.empty(2 * n + 2, np.int64), np.empty(2 * n + 2, np.int64)
    labels = np.empty(n, np.int64)
    work = np.empty(n + classes), np.empty(classes, np.int64)
    for j in range(variables):
        order = orders[j]
        values[:n] = ordered[j]
        scale = _fill_table(values, n, table)
        for i in range(factors):
            if not single[i]:
                for place in range(n):
                    labels[place] = codes[i, order[place]]
                estimates[j, i] = _ross(values, n, table, scale, labels, sizes[i], work, k, psi, count_ties)
                continue
            count = 0
            for place in range(n):
                label = codes[i, order[place]]
                if sizes[i, label]:
                    kept[count], labels[count] = values[place], label
                    count += 1
            if count:
                kept[count:] = np.inf
                own_scale = _fill_table(kept, count, own_table)
                estimates[j, i] = _ross(kept, count, own_table, own_scale, labels, sizes[i], work, k, psi, count_ties)
    return np.maximum(estimates, 0.0)


@njit(cache=True, nogil=True)
def _fill_table(values, n, table):  # type: ignore[no-untyped-def]
    """Put the number of values before each of 2 n cells of equal width into a table; cells per unit come back."""
    low, spread = values[0], values[n - 1] - values[0]
    scale = 2 * n / spread if spread > 0 else 0.0
    cell = 0
    for place in range(n):
        own = _cell(values[place], low, scale, 2 * n)
        while cell <= own:
            table[cell] = place
            cell += 1
    table[cell:] = n
    return scale


@njit(cache=True, nogil=True)
def _cell(value, low, scale, cells):  # type: ignore[no-untyped-def]
    """The cell of a value, which grows with it."""
    return np.int64(min(max((value - low) * scale, 0.0), cells))


@njit(cache=True, nogil=True)
def _ross(values, n, table, scale, labels, sizes, work, k, psi, count_ties):  # type: ignore[no-untyped-def]
    """The estimate from n sorted values without singleton classes, followed by infinities."""
    # Values class by class, each with an infinity behind them.
    grouped, fill = work
    start = 0
    for c in range(len(sizes)):
        fill[c] = start
        start += sizes[c] + 1
    for i in range(n):
        c = labels[i]
        grouped[fill[c]] = values[i]
        fill[c] += 1

    total, low, cells, begin = 0.0, values[0], 2 * n, 0
    for c in range(len(sizes)):
        size = sizes[c]
        own = grouped[begin : begin + size + 1]
        own[size] = np.inf
        begin += size + 1
        near = min(k, size - 1)
        window, one = 0, 0.0
        for i in range(size):
            x = own[i]
            # Equal values of a class have equal balls.
            if i and x == own[i - 1]:
                total += one
                continue
            # Moved on while the value that enters is nearer than the one that leaves. One step without a branch, which
            # a processor would have to guess, is nearly always enough.
            window += own[window + near + 1] - x < x - own[window]
            while own[window + near + 1] - x < x - own[window]:
                window += 1
            last = window + near
            left, right = x - own[window], own[last] - x
            distance, radius = max(left, right), 0.0
            if count_ties:
                radius = max(distance - TIE, TIE)
                inside = near + 1 - (left > radius) - (right > radius)
                # Where others of the class are as far as the farthest, they are counted one by one.
                if radius == TIE or x - own[window + 1] > radius or own[last - 1] - x > radius:
                    members = own[:size]
                    inside = _last(members, last, x, radius) - _first(members, window, x, radius) + 1
                one = psi[inside]
            else:
                radius = np.nextafter(distance, 0.0)
                one = psi[near]
            # All values in the ball: those up to its upper end less those before its lower end. Of the values in the
            # cell of an end, a few are compared without a branch.
            cell = _cell(x + radius, low, scale, cells)
            upper, most = table[cell], table[cell + 1]
            found = 0
            for step in range(STEPS):
                found += values[upper + step] - x <= radius
            upper += found
            if found == STEPS:
                while upper < most:
                    half = (upper + most) // 2
                    if values[half] - x <= radius:
                        upper = half + 1
                    else:
                        most = half
            cell = _cell(x - radius, low, scale, cells)
            lower, most = table[cell], table[cell + 1]
            found = 0
            for step in range(STEPS):
                found += x - values[lower + step] > radius
            lower += found
            if found == STEPS:
                while lower < most:
                    half = (lower + most) // 2
                    if x - values[half] > radius:
                        lower = half + 1
                    else:
                        most = half
            one -= psi[upper - lower]
            total += one
        total -= size * psi[size]
    return psi[n] + total / n


@njit(cache=True, nogil=True)
def _first(values, at, x, radius):  # type: ignore[no-untyped-def]
    """The first place whose value lies in the ball, which begins near place `at`."""
    while x - values[at] > radius:
        at += 1
    while at > 0 and x - values[at - 1] <= radius:
        at -= 1
    return at


@njit(cache=True, nogil=True)
def _last(values, at, x, radius):  # type: ignore[no-untyped-def]
    """The last place whose value lies in the ball, which ends near place `at`."""
    while values[at] - x > radius:
        at -= 1
    while at + 1 < len(values) and values[at + 1] - x <= radius:
        at += 1
    return at
