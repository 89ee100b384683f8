"""Batch components: the combinations of columns in which batches differ most, given the label.

Rows are whitened, so every direction has the same variance, that of labels included. An additive model (a mean for each
batch and one for each label) gives the scatter between batches. Its eigenvectors are the batch components, the first
being the combination of columns of which the batch explains most (a linear discriminant of batches). Independent
components are not used for this: an effect of plates is independent of nothing else in particular, so that ICA spreads
it over many components, each of which also carries biology.

Some direction always differs between batches by chance, the more so the more columns there are. So the same is done
with batches that are permuted among the rows of each label: their mean is taken from the explained squares, and a
component is significant if it exceeds the largest of nearly all permutations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearid.arrays.memory import MemoryRows
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import Attribution, attribution, group_sums
from nearid.questions.deconfound.conditions import ComponentRows, Condition

# What to drop: "auto", how many batch components, or the share of a component that the batch must explain.
Drop = int | float | Literal["auto"]
# The share of "auto".
DROPPED_SHARE = 0.05
# Permutations of batches, and the level of the test: at most one of the permutations may explain as much.
PERMUTATIONS, LEVEL = 39, 0.05
# Eigenvalues below this share of the largest are those of batches that no label links to the others.
LINKED = 1e-9


@dataclass(frozen=True)
class BatchComponents:
    """Directions of whitened rows in which batches differ, the largest share of the batch first.

    Attributes
    ----------
    vectors : ndarray of shape (k, r)
        Orthonormal columns.
    batch : ndarray of shape (r,)
        Share of the variance given the label that the batch explains, beyond that of permuted batches.
    controls : ndarray of shape (r,)
        Adjusted share that the batch explains among controls; among all rows given the label, if these are too few.
    label : ndarray of shape (r,)
        Adjusted share that the label explains given the batch; NaN if the two cannot be separated.
    p : ndarray of shape (r,)
        Share of permutations of which the largest component explains as much.
    """

    vectors: Floats
    batch: Floats
    controls: Floats
    label: Floats
    p: Floats

    def dropped(self, drop: Drop) -> np.ndarray:
        """Components to drop, those with the largest share of the batch first; one direction always stays.

        A number drops as many. A share drops those of which the batch explains at least as much, also among controls,
        more than the label does, and significantly. "auto" does so with a share of 5%.
        """
        order = np.argsort(-self.batch, kind="stable")[: len(self.vectors) - 1]
        if isinstance(drop, int):
            return order[:drop]
        least = DROPPED_SHARE if drop == "auto" else drop
        mine = (self.p <= LEVEL) & (self.batch >= least) & (self.batch > np.nan_to_num(self.label))
        # Rows of one label may be of several compounds or doses, which differ between batches; controls are not.
        mine &= np.nan_to_num(self.controls) >= least
        return order[mine[order]]


def batch_components(
    y: Floats, labels: np.ndarray, batches: np.ndarray, control: int | None, rng: np.random.Generator
) -> BatchComponents:
    """Batch components of whitened rows, one row for each unit (row, or block).

    Parameters
    ----------
    y : ndarray of shape (n, k)
        Whitened rows.
    labels, batches : ndarray of int, shape (n,)
    control : int, optional
        Label of the controls.
    """
    b, l = (np.unique(codes, return_inverse=True)[1] for codes in (batches, labels))
    centred, root = given_labels(y, b, l)
    explained, vectors = _explained(root, group_sums(centred, b))
    by_chance = np.array([_explained(root, group_sums(centred, permuted(b, l, rng)))[0] for _ in range(PERMUTATIONS)])
    chance = by_chance.mean(axis=0)
    room = np.sum((centred @ vectors) ** 2, axis=0) - chance
    share = np.divide(explained - chance, room, out=np.zeros(len(explained)), where=room > 0)
    above = np.sum(by_chance[:, :1] >= explained, axis=0)
    follows = _follows(y @ vectors, labels, batches, control)
    return BatchComponents(vectors, share, follows.batch, follows.label, (1 + above) / (PERMUTATIONS + 1))


def given_labels(y: Floats, b: np.ndarray, l: np.ndarray) -> tuple[Floats, Floats]:
    """Rows less the means of their labels, and the root of the inverse Gram matrix of batches given labels."""
    counts = np.zeros((int(b.max()) + 1, int(l.max()) + 1))
    np.add.at(counts, (b, l), 1)
    sizes = np.maximum(counts.sum(axis=0), 1)
    means = group_sums(y, l) / sizes[:, None]
    values, turn = np.linalg.eigh(np.diag(counts.sum(axis=1)) - (counts / sizes) @ counts.T)
    real = values > LINKED * max(float(values[-1]), 1.0)
    root = (turn[:, real] / np.sqrt(values[real])) @ turn[:, real].T
    return y - means[l], root


def _explained(root: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """Squares that batches explain of each component, descending, and the directions, of shape (k, r)."""
    _, values, turned = np.linalg.svd(root @ sums, full_matrices=False)
    r = min(len(root) - 1, len(values))
    return values[:r] ** 2, turned[:r].T


def permuted(codes: np.ndarray, within: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Codes, such as batches, permuted among the rows of each group, such as a label."""
    start, shuffled = np.argsort(within, kind="stable"), np.lexsort((rng.random(len(within)), within))
    drawn = np.empty_like(codes)
    drawn[start] = codes[shuffled]
    return drawn


def _follows(components: Floats, labels: np.ndarray, batches: np.ndarray, control: int | None) -> Attribution:
    """Shares of batch and label in each component."""
    width = components.shape[1]
    if not width:
        # The rows are of one batch, so there is nothing to drop.
        nothing = np.empty(0)
        return Attribution(nothing, nothing, nothing, nothing, 0)
    size = components.std(axis=0)
    rows = MemoryRows("batch components", (components - components.mean(axis=0)) / np.where(size > 0, size, 1.0))
    condition = Condition("pca", np.zeros(width), np.eye(width), np.arange(width), np.ones(width))
    return attribution(ComponentRows(rows, condition), labels, batches, control=control)
