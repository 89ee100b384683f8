"""How batch components are taken away: along which pattern of columns, and by which reading of a row.

A row y loses A C y. The columns of A are the patterns that the batch adds to rows. The rows of C read how much of each
pattern a row has, with C A = I, so that nothing of these patterns is left. Two things matter.

The pattern is known only up to noise, because it follows from means of batches. Most of that noise lies where wells
vary most anyway. So directions are taken in groups by their variance. Where the pattern is hardly larger than noise
would make it, it is shrunk.

Of all readings with C A = I the one is used that does the least harm to other variance. Variance between labels weighs
more than any other, so that a component that is partly label is read by its other part.
"""

from __future__ import annotations

import numpy as np

from nearid.moments import Floats
from nearid.questions.deconfound.attribution import group_sums
from nearid.questions.deconfound.directions import BatchComponents, given_labels, permuted

# Directions by variance: the first four, the next four, then twice as many each time.
FIRST = 4
# Share of the squares of a pattern that must be more than noise for it to stay whole, and the least that stays.
SIGNAL, LEAST = 2 / 3, 0.1
# Weight of variance between labels over other variance.
LABEL_WEIGHT = 300.0
# Permutations of labels: a direction of labels counts if it exceeds the largest of all of them.
PERMUTATIONS = 19


def oblique(
    y: Floats,
    labels: np.ndarray,
    batches: np.ndarray,
    follows: BatchComponents,
    dropped: np.ndarray,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Patterns A of shape (k, r) and readings C of shape (r, k) of the dropped components: y - A C y lacks them.

    Parameters
    ----------
    y : ndarray of shape (n, k)
        Whitened rows, the direction with the largest variance first.
    labels, batches : ndarray of int, shape (n,)
    follows : BatchComponents
        Of these rows.
    dropped : ndarray of int, shape (r,)
    """
    b, l = (np.unique(codes, return_inverse=True)[1] for codes in (batches, labels))
    vectors = follows.vectors[:, dropped]
    if not len(dropped):
        return vectors, vectors.T
    pattern = _signal(y, b, l, vectors)[:, None] * vectors
    directions, shares = label_directions(y, b, l, rng)
    # (I + weight S)^-1 pattern, for the variance S between labels.
    weights = LABEL_WEIGHT * shares
    spared = pattern - directions @ ((weights / (1 + weights))[:, None] * (directions.T @ pattern))
    return pattern, np.linalg.solve(pattern.T @ spared, spared.T)


def _signal(y: Floats, b: np.ndarray, l: np.ndarray, vectors: Floats) -> Floats:
    """Factor of each direction, from `LEAST` where the patterns are noise to 1, of shape (k,)."""
    centred, root = given_labels(y, b, l)
    means = root @ group_sums(centred, b)
    squares = np.sum((means @ vectors) ** 2, axis=0)
    sizes = np.maximum(np.bincount(b), 1)
    rest = centred - (group_sums(centred, b) / sizes[:, None])[b]
    noise = np.sum(rest**2, axis=0) / max(len(y) - len(sizes) - int(l.max()), 1)
    k = len(vectors)
    edges = [0, FIRST]
    while edges[-1] < k:
        edges.append(2 * edges[-1])
    start = np.array([edge for edge in edges if edge < k])
    found = np.add.reduceat(vectors**2 @ squares, start)
    chance = vectors.shape[1] * np.add.reduceat(noise, start)
    share = np.divide(found - chance, found, out=np.zeros(len(start)), where=found > 0)
    return np.repeat(np.clip(share / SIGNAL, LEAST, 1.0), np.diff([*start, k]))


def label_directions(y: Floats, b: np.ndarray, l: np.ndarray, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Directions in which labels differ within batches, of shape (k, m), and the label's share of the variance in each.

    Only directions with more variance between labels than any has where labels are permuted within batches.
    """
    within = y - (group_sums(y, b) / np.maximum(np.bincount(b), 1)[:, None])[b]

    def means(codes: np.ndarray) -> Floats:
        return group_sums(within, codes) / np.sqrt(np.bincount(codes))[:, None]

    _, values, turned = np.linalg.svd(means(l), full_matrices=False)
    chance = np.array([_squares(means(permuted(l, b, rng))) for _ in range(PERMUTATIONS)])
    found = values**2 > chance.max()
    directions, explained = turned[found].T, values[found] ** 2 - chance.mean(axis=0)[found]
    every = np.sum((within @ directions) ** 2, axis=0) - chance.mean(axis=0)[found]
    return directions, np.divide(explained, every, out=np.zeros(len(every)), where=every > 0)


def _squares(x: Floats) -> Floats:
    """Squares of the singular values, descending."""
    return np.linalg.eigvalsh(x @ x.T if len(x) < x.shape[1] else x.T @ x)[::-1]
