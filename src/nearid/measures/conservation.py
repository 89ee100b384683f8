"""Mixing of batches and conservation of labels as scib-metrics defines them (Luecken et al. 2022).

LISI (Korsunsky et al. 2019) is the effective number of classes among the neighbours of a row, weighted by distance.
kBET (Buettner et al. 2019) tests whether the neighbours of a row within its label are of the batches that the label is
of. All figures are scaled to [0, 1]: batches are mixed, or labels conserved, at 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from nearid.moments import Floats

# Nearest rows, the row itself among them.
NEIGHBOURS = 90
# Nearest rows, the row itself among them, in the graph whose connectivity is asked.
GRAPH = 15
# kBET: least and most rows of a neighbourhood, how many of them a label must have, and the level of the test.
LEAST, MOST, ROOM, LEVEL = 10, 70, 3, 0.05
# Steps of the search for a width; those of scib-metrics.
STEPS, CLOSE = 50, 1e-5
# Rows whose neighbours are sought at a time.
BLOCK = 256


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
    kbet : float
        Share of rows whose neighbours within their label have batches as all rows of the label have them, mean over
        labels.
    connectivity : float
        Share of the rows of a label that are in the largest part of the graph of its neighbours, mean over labels.
    """

    ilisi: float
    clisi: float
    silhouette_label: float
    silhouette_batch: float
    kbet: float
    connectivity: float


def conservation(x: Floats, labels: np.ndarray, batches: np.ndarray, k: int = NEIGHBOURS) -> Conservation:
    """Return the figures of rows x, of shape (n, d); labels and batches are whole numbers of shape (n,)."""
    x = x.astype(np.float64)
    l, b = (np.unique(codes, return_inverse=True)[1] for codes in (labels, batches))
    squares = np.einsum("ij,ij->i", x, x)
    # In place: this matrix is the largest that is held.
    distances = x @ x.T
    distances *= -2
    distances += squares[:, None]
    distances += squares
    np.sqrt(np.maximum(distances, 0, out=distances), out=distances)
    np.fill_diagonal(distances, 0)
    k = min(k, len(x))
    near, weights = _weights(distances, k)
    kinds = [int(codes.max()) + 1 for codes in (b, l)]
    of_batches, of_labels = (
        float(np.nanmedian(_lisi(weights, codes[near], count))) for codes, count in zip((b, l), kinds, strict=True)
    )
    mixed, accepted = [], []
    for code in np.unique(l):
        mine = np.flatnonzero(l == code)
        if 1 < len(np.unique(b[mine])) < len(mine):
            within = distances[np.ix_(mine, mine)]
            mixed.append(float(np.mean(1 - np.abs(silhouettes(within, b[mine])))))
            rows = min(MOST, max(LEAST, len(mine) // len(np.unique(b[mine])) // 4))
            if len(mine) >= ROOM * rows:
                accepted.append(kbet(within, b[mine], rows))
    return Conservation(
        (of_batches - 1) / (kinds[0] - 1) if kinds[0] > 1 else float("nan"),
        (kinds[1] - of_labels) / (kinds[1] - 1) if kinds[1] > 1 else float("nan"),
        float(np.mean(silhouettes(distances, l)) + 1) / 2 if 1 < kinds[1] < len(x) else float("nan"),
        float(np.mean(mixed)) if mixed else float("nan"),
        float(np.mean(accepted)) if accepted else float("nan"),
        connectivity(distances, l, min(GRAPH, len(x))),
    )


def kbet(distances: Floats, batches: np.ndarray, k: int) -> float:
    """Share of rows for which a chi-squared test accepts that their k nearest rows have the batches of all rows.

    A row is the first of its nearest rows. `distances` is of shape (n, n).
    """
    from scipy.special import chdtrc

    codes, sizes = np.unique(batches, return_inverse=True, return_counts=True)[1:]
    expected = k * sizes / len(codes)
    near = np.concatenate([near for near, _ in _nearest(distances, k)])
    observed = np.eye(len(sizes))[codes]
    for at in near.T:
        observed += np.eye(len(sizes))[codes[at]]
    squares = np.sum((observed - expected) ** 2 / expected, axis=1)
    return float(np.mean(chdtrc(len(sizes) - 1, squares) >= LEVEL))


def connectivity(distances: Floats, labels: np.ndarray, k: int) -> float:
    """Share of the rows of a label in the largest part of the graph of its neighbours, mean over labels.

    An arrow leads from each row to its k - 1 nearest others, if they are of the same label. Rows are in one part if
    arrows lead from each to the other.
    """
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(labels)
    near = np.concatenate([near for near, _ in _nearest(distances, k)]) if k > 1 else np.empty((n, 0), np.intp)
    start, end = np.repeat(np.arange(n), near.shape[1]), near.reshape(-1)
    alike = labels[start] == labels[end]
    graph = csr_matrix((np.ones(int(alike.sum())), (start[alike], end[alike])), shape=(n, n))
    part = connected_components(graph, connection="strong")[1]
    return float(
        np.mean([np.bincount(part[labels == code]).max() / np.sum(labels == code) for code in np.unique(labels)])
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
    near, d = (np.concatenate(each) for each in zip(*_nearest(distances, k), strict=True))
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


def _nearest(distances: Floats, k: int) -> Iterator[tuple[np.ndarray, Floats]]:
    """The k - 1 nearest others of some rows at a time, and their distances."""
    for a in range(0, len(distances), BLOCK):
        others = distances[a : a + BLOCK].copy()
        others[np.arange(len(others)), np.arange(a, a + len(others))] = np.inf
        near = np.argpartition(others, k - 2, axis=1)[:, : k - 1]
        yield near, np.take_along_axis(others, near, axis=1)


def _lisi(weights: Floats, codes: np.ndarray, count: int) -> Floats:
    """The effective number of classes among weighted neighbours."""
    simpson = np.zeros(len(weights))
    for code in range(count):
        simpson += np.sum(weights * (codes == code), axis=1) ** 2
    return np.asarray(1 / simpson)
