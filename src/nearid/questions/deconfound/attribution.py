"""How much of each component the batch explains, and how much the label, each beside the other.

Labels are rarely the same in all batches, so that neither can be looked at alone. The model is additive: a mean for
each batch plus one for each label. What the batch explains is the share of the variance left by the labels that the
batches take away, and the other way round. Where there are controls, what the batch explains is looked at among these
alone, of which nothing but the batch differs: perturbed rows of one label may be of several doses or compounds, which
differ from batch to batch. Shares are adjusted for the means they are fitted with: noise has 0 on
average. All of it follows from counts and sums of groups, in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.moments import Floats
from nearid.questions.deconfound.conditions import PIECE, ComponentRows

# Components are named at this level, divided by their number.
LEVEL = 0.01
# Batch effects below this share of the variance are not named, however many rows show them.
MATTERS = 0.01
# Eigenvalues below this share of the largest are those of groups that are not linked.
LINKED = 1e-9


@dataclass(frozen=True)
class Attribution:
    """Adjusted shares of the variance of each component, and how surprising they would be without an effect.

    Attributes
    ----------
    batch, label : ndarray of shape (k,)
        NaN where the two cannot be told apart, or rows are too few.
    batch_p, label_p : ndarray of shape (k,)
        Of F tests.
    """

    batch: Floats
    label: Floats
    batch_p: Floats
    label_p: Floats

    @property
    def technical(self) -> np.ndarray:
        """Components that follow the batch, and more so than the label."""
        level = LEVEL / max(len(self.batch), 1)
        return np.asarray((self.batch_p < level) & (self.batch >= MATTERS) & (self.batch > self.label))

    @property
    def biological(self) -> np.ndarray:
        """Components that follow the label, and are not technical."""
        return np.asarray((self.label_p < LEVEL / max(len(self.label), 1)) & ~self.technical)

    def take(self, which: np.ndarray) -> Attribution:
        """Of some components."""
        return Attribution(self.batch[which], self.label[which], self.batch_p[which], self.label_p[which])

    def kept(self, drop: float) -> np.ndarray:
        """Components that are not technical, or of which the batch explains less; the least technical always stays."""
        dropped = self.technical & (self.batch >= drop)
        dropped[self.ranked[-1]] = False
        return np.flatnonzero(~dropped)

    @property
    def kinds(self) -> list[str]:
        """Of each component: "technical", "biological" or "neither"."""
        other = np.where(self.biological, "biological", "neither")
        return [str(kind) for kind in np.where(self.technical, "technical", other)]

    @property
    def ranked(self) -> np.ndarray:
        """Components from the most technical to the most biological: by batch share less label share."""
        return np.argsort(-np.nan_to_num(self.batch - self.label), kind="stable")


class _Sums(NamedTuple):
    counts: Floats
    batch: Floats
    label: Floats
    squares: Floats


def attribution(
    components: ComponentRows,
    labels: np.ndarray,
    batches: np.ndarray,
    places: np.ndarray | None = None,
    control: int | None = None,
) -> Attribution:
    """Shares of batch and label in each component.

    Parameters
    ----------
    labels, batches : ndarray of int, shape (n,)
        Of the rows at `places`.
    places : ndarray of int, shape (n,), optional
        All rows by default.
    control : int, optional
        Label of the rows that the batch's share is judged on, where these are of two batches or more.
    """
    places = np.arange(components.rows.shape[0]) if places is None else places
    every = _additive(components, labels, batches, places)
    mine = labels == control
    if control is None or len(np.unique(batches[mine])) < 2:
        return every
    among = _additive(components, labels[mine], batches[mine], places[mine])
    return Attribution(among.batch, every.label, among.batch_p, every.label_p)


def _additive(components: ComponentRows, labels: np.ndarray, batches: np.ndarray, places: np.ndarray) -> Attribution:
    from scipy.special import fdtrc

    b, l = (np.unique(codes, return_inverse=True)[1] for codes in (batches, labels))
    s = _gather(components, places, b, l)
    n = len(places)
    sizes_b, sizes_l = s.counts.sum(axis=1), s.counts.sum(axis=0)
    # Components are centred over all rows, so that little cancels.
    left_b = s.squares - np.sum(s.batch**2 / sizes_b[:, None], axis=0)
    left_l = s.squares - np.sum(s.label**2 / sizes_l[:, None], axis=0)
    # Through the smaller side; what remains is the same.
    if len(sizes_l) <= len(sizes_b):
        extra, rank = _extra(s.counts, s.batch, s.label)
        left, params = left_b - extra, len(sizes_b) + rank
    else:
        extra, rank = _extra(s.counts.T, s.label, s.batch)
        left, params = left_l - extra, len(sizes_l) + rank
    left = np.maximum(left, 0)
    shares = []
    for before, groups in ((left_l, len(sizes_l)), (left_b, len(sizes_b))):
        free, spent = n - params, params - groups
        if free <= 0 or spent <= 0:
            shares.append((np.full(components.width, np.nan), np.ones(components.width)))
            continue
        with np.errstate(divide="ignore", invalid="ignore"):
            share = 1 - (left / free) / (before / (n - groups))
            f = ((before - left) / spent) / (left / free)
        shares.append((share, np.asarray(fdtrc(spent, free, np.maximum(f, 0)))))
    return Attribution(shares[0][0], shares[1][0], shares[0][1], shares[1][1])


def _gather(components: ComponentRows, places: np.ndarray, b: np.ndarray, l: np.ndarray) -> _Sums:
    from scipy.sparse import csr_matrix

    batches, labels = int(b.max()) + 1, int(l.max()) + 1
    counts = np.bincount(b * labels + l, minlength=batches * labels).reshape(batches, labels).astype(np.float64)
    by_batch, by_label = np.zeros((batches, components.width)), np.zeros((labels, components.width))
    squares = np.zeros(components.width)
    for a in range(0, len(places), PIECE):
        y = components.take(places[a : a + PIECE]).astype(np.float64)
        ones, at = np.ones(len(y)), np.arange(len(y))
        by_batch += csr_matrix((ones, (b[a : a + PIECE], at)), (batches, len(y))) @ y
        by_label += csr_matrix((ones, (l[a : a + PIECE], at)), (labels, len(y))) @ y
        squares += np.einsum("ij,ij->j", y, y)
    return _Sums(counts, by_batch, by_label, squares)


def _extra(counts: Floats, first: Floats, second: Floats) -> tuple[Floats, int]:
    """What the second grouping explains beyond the first, of each component, and with how many free means.

    The second's indicator columns are freed of the first's group means; `counts` is of shape (first, second).
    """
    weights = counts / counts.sum(axis=1, keepdims=True)
    gram = np.diag(counts.sum(axis=0)) - counts.T @ weights
    residual = second - weights.T @ first
    values, vectors = np.linalg.eigh(gram)
    real = values > LINKED * max(float(values[-1]), 1.0)
    turned = vectors[:, real].T @ residual
    return np.asarray(np.sum(turned**2 / values[real][:, None], axis=0)), int(real.sum())
