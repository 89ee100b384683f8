"""Mutual information of a continuous with a discrete variable by nearest neighbours (Ross 2014), by sorting alone.

On a line, the k nearest of a class stand in a window of its sorted values, which only moves forward. So do the ends of
the ball with that radius among the values of all classes. After the sort, a pair of variables takes one walk per class.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import njit

from nearid.measures.information import Codes
from nearid.moments import Floats

# Values (of unit variance) this close are ties: far above their rounding, far below what data resolve.
TIE = 1e-12


def neighbour_information(values: Floats, codes: Codes, *, k: int, count_ties: bool = True) -> Floats:
    """Mutual information of one continuous variable with discrete ones, in nats.

    MI = psi(n) + mean psi(k) - mean psi(class size) - mean psi(m), where m counts the values within the distance of
    the k-th nearest of the same class, and is not allowed below 0. Values whose class has no other are left out.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Of about unit variance.
    codes : ndarray of int of shape (factors, n)
        Classes from 0 on.
    k : int
        Neighbours; at most the class size less one.
    count_ties : bool, default=True
        Where several neighbours stand at the k-th distance, put the number of the class within the ball in the place
        of k (Gao et al. 2017). Without ties that is k itself. False keeps k, for values that a jitter has parted.

    Returns
    -------
    ndarray of shape (factors,)
        0 where all classes are singletons.
    """
    order = np.argsort(values)
    ordered = np.ascontiguousarray(values[order], dtype=np.float64)
    return _each(ordered, codes.astype(np.int64), order, k, _digammas(len(values)), count_ties)


@lru_cache(maxsize=1)
def _digammas(n: int) -> Floats:
    """psi(0..n), with 0 in the place of psi(0), which is never asked for."""
    from scipy.special import digamma

    return np.concatenate([[0.0], digamma(np.arange(1, n + 1))])


@njit(cache=True, nogil=True)
def _each(ordered, codes, order, k, psi, count_ties):  # type: ignore[no-untyped-def]
    """The estimates for all factors. Values whose class has no other are left out."""
    n, estimates = len(ordered), np.zeros(len(codes))
    kept, at = np.empty(n), np.empty(n, np.int64)
    for i in range(len(codes)):
        labels = codes[i]
        sizes = np.zeros(labels.max() + 1, np.int64)
        for label in labels:
            sizes[label] += 1
        count = 0
        for place in range(n):
            label = labels[order[place]]
            if sizes[label] > 1:
                kept[count], at[count] = ordered[place], label
                count += 1
        if count:
            estimates[i] = max(0.0, _ross(kept[:count], at[:count], len(sizes), k, psi, count_ties))
    return estimates


@njit(cache=True, nogil=True)
def _ross(values, codes, classes, k, psi, count_ties):  # type: ignore[no-untyped-def]
    """The estimate from sorted values without singleton classes."""
    n = len(values)
    starts = np.zeros(classes + 1, np.int64)
    for c in codes:
        starts[c + 1] += 1
    for c in range(classes):
        starts[c + 1] += starts[c]
    grouped, fill = np.empty(n), starts[:-1].copy()
    for i in range(n):
        grouped[fill[codes[i]]] = values[i]
        fill[codes[i]] += 1

    total = 0.0
    for c in range(classes):
        own = grouped[starts[c] : starts[c + 1]]
        size = len(own)
        near = min(k, size - 1)
        window = low = high = own_low = own_high = 0
        for x in own:
            # Moved on while the value that enters is nearer than the one that leaves.
            while window + near + 1 < size and own[window + near + 1] - x < x - own[window]:
                window += 1
            distance = max(x - own[window], own[window + near] - x)
            if count_ties:
                radius = max(distance - TIE, TIE)
                own_low, own_high = _below(own, own_low, x, radius), _within(own, own_high, x, radius)
                total += psi[own_high - own_low]
            else:
                radius = np.nextafter(distance, 0.0)
                total += psi[near]
            low, high = _below(values, low, x, radius), _within(values, high, x, radius)
            total -= psi[high - low]
        total -= size * psi[size]
    return psi[n] + total / n


@njit(cache=True, nogil=True)
def _below(values, start, x, radius):  # type: ignore[no-untyped-def]
    """How many values lie below x by more than the radius, searched from `start` on."""
    # Rounding may ask for a step back.
    while start > 0 and x - values[start - 1] <= radius:
        start -= 1
    # Strides that double, then halve: classes with few values skip most of the others.
    stride = 1
    while start + stride <= len(values) and x - values[start + stride - 1] > radius:
        start += stride
        stride *= 2
    while stride > 0:
        if start + stride <= len(values) and x - values[start + stride - 1] > radius:
            start += stride
        stride //= 2
    return start


@njit(cache=True, nogil=True)
def _within(values, start, x, radius):  # type: ignore[no-untyped-def]
    """How many values do not lie above x by more than the radius, searched from `start` on."""
    while start > 0 and values[start - 1] - x > radius:
        start -= 1
    stride = 1
    while start + stride <= len(values) and values[start + stride - 1] - x <= radius:
        start += stride
        stride *= 2
    while stride > 0:
        if start + stride <= len(values) and values[start + stride - 1] - x <= radius:
            start += stride
        stride //= 2
    return start
