"""Batch metrics from neighbours: whether batches mix within a label.

Computed exactly on a sample of rows, with distances from products of blocks.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearid.moments import Floats

NEIGHBOURS = 15
# Rows whose distances to all others are held at a time.
BLOCK = 512


class Mixing(NamedTuple):
    """How well batches mix among the neighbours of a row within its label.

    Attributes
    ----------
    value : float
        Probability that two neighbours are from different batches, divided by the same probability for random rows of
        the label. 1 is well mixed, 0 is not mixed. Mean over rows.
    lisi : float
        Mean over rows of the inverse Simpson index of the neighbours' batches: the effective number of batches.
    rows : int
        Rows of labels in several batches.
    places : ndarray of int, shape (rows,)
        These rows.
    each : ndarray of shape (rows,)
        Their values, of which `value` is the mean.
    """

    value: float
    lisi: float
    rows: int
    places: np.ndarray
    each: Floats


def mixing(x: Floats, labels: np.ndarray, batches: np.ndarray, k: int = NEIGHBOURS) -> Mixing:
    """Return how well batches mix within labels.

    For labels with fewer than 2 k + 1 rows, the number of neighbours is half of the other rows. Labels and batches are
    whole numbers of shape (n,).
    """
    apart: list[Floats] = []
    effective: list[Floats] = []
    places: list[np.ndarray] = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        own, codes = np.unique(batches[rows], return_inverse=True)
        near = min(k, (len(rows) - 1) // 2)
        if len(own) < 2 or near < 2:
            continue
        same = _same_batch(x[rows], codes, near)
        sizes = np.bincount(codes)
        others = sizes[None, :] - np.eye(len(own))
        # Of ordered pairs of different rows among the m others, those of one batch: the chance for two at random.
        m = len(rows) - 1
        expected = 1 - np.sum(others * (others - 1), axis=1) / (m * (m - 1))
        # The share of ordered pairs of different neighbours that are of one batch, from their counts.
        together = np.sum(same * (same - 1), axis=1) / (near * (near - 1))
        usable = expected[codes] > 0
        apart.append((1 - together[usable]) / expected[codes][usable])
        places.append(rows[usable])
        effective.append(near**2 / np.sum(same.astype(np.float64) ** 2, axis=1))
    if not apart:
        return Mixing(float("nan"), float("nan"), 0, np.empty(0, np.intp), np.empty(0))
    unlike = np.concatenate(apart)
    lisi = float(np.concatenate(effective).mean())
    return Mixing(float(unlike.mean()), lisi, len(unlike), np.concatenate(places), unlike)


def _same_batch(x: Floats, codes: np.ndarray, near: int) -> np.ndarray:
    """Of the nearest other rows of each row, how many are of each batch; shape (n, batches)."""
    n, batches = len(x), int(codes.max()) + 1
    lengths = np.einsum("ij,ij->i", x, x)
    counts = np.zeros((n, batches), dtype=np.int64)
    for a in range(0, n, BLOCK):
        part = x[a : a + BLOCK]
        # Up to each row's own length, which does not change its order.
        distances = lengths - 2 * (part @ x.T)
        at = np.arange(len(part))
        distances[at, a + at] = np.inf
        closest = np.argpartition(distances, near - 1, axis=1)[:, :near]
        flat = (at[:, None] * batches + codes[closest]).ravel()
        counts[a : a + BLOCK] = np.bincount(flat, minlength=len(part) * batches).reshape(len(part), batches)
    return counts
