"""Mutual information of a continuous with a discrete variable by nearest neighbours (Ross 2014), by sorting alone.

On a line, the k nearest of a class stand in a window of its sorted values, which only moves forward. The ball with that
radius ends beside one end of the window, and before the next value of the class on the other side.
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
    estimates = np.zeros((variables, len(codes)))
    kept, at = np.empty(n), np.empty(n, np.int64)
    for i in range(len(codes)):
        labels = codes[i]
        sizes = np.zeros(labels.max() + 1, np.int64)
        for label in labels:
            sizes[label] += 1
        for j in range(variables):
            values, order, count = ordered[j], orders[j], 0
            for place in range(n):
                label = labels[order[place]]
                if sizes[label] > 1:
                    kept[count], at[count] = values[place], label
                    count += 1
            if count:
                estimates[j, i] = max(0.0, _ross(kept[:count], at[:count], len(sizes), k, psi, count_ties))
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
    # Values class by class, and where each stands among all.
    grouped, places, fill = np.empty(n), np.empty(n, np.int64), starts[:-1].copy()
    for i in range(n):
        grouped[fill[codes[i]]], places[fill[codes[i]]] = values[i], i
        fill[codes[i]] += 1

    total = 0.0
    for c in range(classes):
        own, place = grouped[starts[c] : starts[c + 1]], places[starts[c] : starts[c + 1]]
        size = len(own)
        near = min(k, size - 1)
        window, one = 0, 0.0
        for i in range(size):
            x = own[i]
            # Equal values of a class have equal balls.
            if i and x == own[i - 1]:
                total += one
                continue
            # Moved on while the value that enters is nearer than the one that leaves.
            while window + near + 1 < size and own[window + near + 1] - x < x - own[window]:
                window += 1
            last = window + near
            left, right = x - own[window], own[last] - x
            distance, radius = max(left, right), 0.0
            if count_ties:
                radius = max(distance - TIE, TIE)
                one = psi[_last(own, last, x, radius) - _first(own, window, x, radius) + 1]
            else:
                radius = np.nextafter(distance, 0.0)
                one = psi[near]
            # The ball ends beside the farther end of the window, and on the other side before the next of the class.
            low, high = place[window], place[last]
            if left >= right:
                high = _up_to(values, high, place[last + 1] if last + 1 < size else n, x, radius)
            if right >= left:
                low = _from(values, place[window - 1] if window else -1, low, x, radius)
            one -= psi[_last(values, high, x, radius) - _first(values, low, x, radius) + 1]
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


@njit(cache=True, nogil=True)
def _up_to(values, at, end, x, radius):  # type: ignore[no-untyped-def]
    """The last place from `at` on and before `end` whose value lies in the ball; `at` itself if none does.

    Of the two halves of what is left, the first or the second is looked at next, without a branch that a processor
    would have to guess.
    """
    left = end - at - 1
    while left > 0:
        half = (left + 1) // 2
        at += half * (values[at + half] - x <= radius)
        left -= half
    return at


@njit(cache=True, nogil=True)
def _from(values, begin, at, x, radius):  # type: ignore[no-untyped-def]
    """The first place after `begin` and up to `at` whose value lies in the ball; `at` itself if none does."""
    left = at - begin - 1
    while left > 0:
        half = (left + 1) // 2
        at -= half * (x - values[at - half] <= radius)
        left -= half
    return at
