"""Batch metrics from neighbours: whether batches mix within a label, and whether replicates match across batches.

Both are computed exactly on a sample of rows, with distances from products of blocks.
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
    """

    value: float
    lisi: float
    rows: int


def mixing(x: Floats, labels: np.ndarray, batches: np.ndarray, k: int = NEIGHBOURS) -> Mixing:
    """Return how well batches mix within labels.

    For labels with fewer than 2 k + 1 rows, the number of neighbours is half of the other rows. Labels and batches are
    whole numbers of shape (n,).
    """
    apart: list[Floats] = []
    effective: list[Floats] = []
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
        effective.append(near**2 / np.sum(same.astype(np.float64) ** 2, axis=1))
    if not apart:
        return Mixing(float("nan"), float("nan"), 0)
    unlike = np.concatenate(apart)
    return Mixing(float(unlike.mean()), float(np.concatenate(effective).mean()), len(unlike))


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


class Replicates(NamedTuple):
    """How well replicates of a perturbation match across batches.

    Attributes
    ----------
    value : float
        Mean average precision over the perturbations. Each row ranks the rows of other batches.
    chance : float
        Mean average precision of random rankings.
    per_label : dict of code -> float
    """

    value: float
    chance: float
    per_label: dict[int, float]


def replicates(x: Floats, labels: np.ndarray, batches: np.ndarray, control: int | None = None) -> Replicates:
    """Return the mean average precision of rows of the same perturbation among rows of other batches (by cosine).

    Rows x are centred. Labels and batches are whole numbers of shape (n,). Control rows are candidates in the rankings,
    but they are not queries.
    """
    norms = np.sqrt(np.einsum("ij,ij->i", x, x))
    unit = x / np.where(norms > 0, norms, 1)[:, None]
    asking = np.flatnonzero(labels != control) if control is not None else np.arange(len(x))
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, len(x) + 1))])
    precision, chance, of = [], [], []
    for a in range(0, len(asking), BLOCK):
        part = asking[a : a + BLOCK]
        alike = unit[part] @ unit.T
        for row, scores in zip(part, alike, strict=True):
            other = batches != batches[row]
            hits = labels[other] == labels[row]
            if not hits.any():
                continue
            same, rest = np.sort(scores[other][hits])[::-1], np.sort(scores[other][~hits])
            n, m = len(hits), len(same)
            # Last among equals: ties must not help.
            ahead = len(rest) - np.searchsorted(rest, same, side="left")
            place = np.arange(1, m + 1)
            precision.append(float(np.mean(place / (place + ahead))))
            # The mean over all orders of n rows, m of them hits.
            share = (m - 1) / (n - 1) if n > 1 else 1.0
            chance.append(share + (1 - share) * harmonic[n] / n)
            of.append(int(labels[row]))
    if not of:
        return Replicates(float("nan"), float("nan"), {})
    codes, reached, guessed = np.array(of), np.array(precision), np.array(chance)
    each = {int(c): float(reached[codes == c].mean()) for c in np.unique(codes)}
    by_chance = float(np.mean([guessed[codes == c].mean() for c in each]))
    return Replicates(float(np.mean(list(each.values()))), by_chance, each)
