"""Mixing of batches and conservation of labels as scib-metrics defines them (Luecken et al. 2022).

LISI (Korsunsky et al. 2019) is the effective number of classes among the neighbours of a row, weighted by distance. All
figures are scaled to [0, 1]: batches are mixed, or labels conserved, at 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearid.moments import Floats

# Nearest rows, the row itself among them.
NEIGHBOURS = 90
# Steps of the search for a width; those of scib-metrics.
STEPS, CLOSE = 50, 1e-5


class Conservation(NamedTuple):
    """Figures of scib-metrics.

    Attributes
    ----------
    ilisi : float
        (median LISI of batches - 1) / (batches - 1).
    clisi : float
        (labels - median LISI of labels) / (labels - 1).
    silhouette_label : float
        (mean silhouette of labels + 1) / 2.
    silhouette_batch : float
        1 - |silhouette of batches| within a label, mean over its rows and then over labels.
    """

    ilisi: float
    clisi: float
    silhouette_label: float
    silhouette_batch: float


def conservation(x: Floats, labels: np.ndarray, batches: np.ndarray, k: int = NEIGHBOURS) -> Conservation:
    """Return the figures of rows x, of shape (n, d); labels and batches are whole numbers of shape (n,)."""
    x = x.astype(np.float64)
    l, b = (np.unique(codes, return_inverse=True)[1] for codes in (labels, batches))
    squares = np.einsum("ij,ij->i", x, x)
    distances = np.sqrt(np.maximum(squares[:, None] - 2 * (x @ x.T) + squares, 0))
    np.fill_diagonal(distances, 0)
    k = min(k, len(x))
    near, weights = _weights(distances, k)
    kinds = [int(codes.max()) + 1 for codes in (b, l)]
    of_batches, of_labels = (
        float(np.nanmedian(_lisi(weights, codes[near], count))) for codes, count in zip((b, l), kinds, strict=True)
    )
    mixed = []
    for code in np.unique(l):
        mine = np.flatnonzero(l == code)
        if 1 < len(np.unique(b[mine])) < len(mine):
            mixed.append(float(np.mean(1 - np.abs(silhouettes(distances[np.ix_(mine, mine)], b[mine])))))
    return Conservation(
        (of_batches - 1) / (kinds[0] - 1) if kinds[0] > 1 else float("nan"),
        (kinds[1] - of_labels) / (kinds[1] - 1) if kinds[1] > 1 else float("nan"),
        float(np.mean(silhouettes(distances, l)) + 1) / 2 if 1 < kinds[1] < len(x) else float("nan"),
        float(np.mean(mixed)) if mixed else float("nan"),
    )


def silhouettes(distances: Floats, codes: np.ndarray) -> Floats:
    """Silhouette of each row, from distances of shape (n, n); 0 for a row that is alone in its class."""
    codes = np.unique(codes, return_inverse=True)[1]
    sizes = np.bincount(codes)
    sums = distances @ np.eye(len(sizes))[codes]
    own = np.arange(len(codes)), codes
    inside = sums[own] / np.maximum(sizes[codes] - 1, 1)
    means = sums / sizes
    means[own] = np.inf
    outside = means.min(axis=1)
    widest = np.maximum(inside, outside)
    with np.errstate(invalid="ignore"):
        values = np.where(widest > 0, (outside - inside) / widest, 0.0)
    return np.asarray(np.where(sizes[codes] > 1, values, 0.0))


def _weights(distances: Floats, k: int) -> tuple[np.ndarray, Floats]:
    """The k - 1 nearest others of each row, and weights exp(-beta distance) of which the perplexity is k // 3."""
    others = distances.copy()
    np.fill_diagonal(others, np.inf)
    near = np.argpartition(others, k - 2, axis=1)[:, : k - 1]
    d = np.take_along_axis(others, near, axis=1)
    wanted = np.log(max(k // 3, 1))
    beta, low, high = np.ones(len(d)), np.full(len(d), -np.inf), np.full(len(d), np.inf)
    for _ in range(STEPS):
        p = np.exp(-beta[:, None] * d)
        total = np.maximum(p.sum(axis=1), 1e-300)
        excess = np.log(total) + beta * (d * p).sum(axis=1) / total - wanted
        if np.all(np.abs(excess) < CLOSE):
            break
        wide = excess > 0
        low, high = np.where(wide, beta, low), np.where(wide, high, beta)
        up = np.where(np.isinf(high), 2 * beta, (beta + high) / 2)
        down = np.where(np.isinf(low), beta / 2, (beta + low) / 2)
        beta = np.where(np.abs(excess) < CLOSE, beta, np.where(wide, up, down))
    return near, np.asarray(p / total[:, None])


def _lisi(weights: Floats, codes: np.ndarray, count: int) -> Floats:
    """The effective number of classes among weighted neighbours."""
    simpson = np.zeros(len(weights))
    for code in range(count):
        simpson += np.sum(weights * (codes == code), axis=1) ** 2
    return np.asarray(1 / simpson)
