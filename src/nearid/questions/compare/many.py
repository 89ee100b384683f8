"""Errors of very many rows: what is summed over all of them, a random sample of them, and the rows farthest out.

With more than 1,048,576 rows (`folds.EXACT`), an error of each row under each group would need gigabytes in the
process that asks. Counts, means, mean squares and maxima are then summed block by block over all rows, in the order
of the rows. Quantiles, histograms and the variances behind the intervals come from a random sample of about so many
rows: the median of the sample is between the quantiles 49.9% and 50.1% of all rows with 95% confidence. The
`FARTHEST` rows from the mean are kept by number, because they decide the diameter and the alerts about outlying rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats

# Rows with the largest distances from the mean that are kept.
FARTHEST = 1 << 17


@dataclass(frozen=True)
class Farthest:
    """The rows that are farthest from the mean.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Their numbers, the farthest first.
    radii : ndarray of shape (m,)
        Their distances from the mean.
    squares : float
        Sum of the squared distances of all rows.
    """

    rows: np.ndarray
    radii: Floats
    squares: float


@dataclass(frozen=True)
class Whole:
    """Means over all rows in use.

    Attributes
    ----------
    n : int
        Number of rows.
    errors, squares, largest : ndarray of shape (groups,)
        Mean, mean square and maximum of the errors of each group.
    by_fold : ndarray of shape (groups, folds)
        Mean errors of each fold.
    spread, base : float
        Mean, and root of the mean square, of the errors of the constant guess.
    source, target : Farthest
        The rows of each side that are farthest from its mean.
    """

    n: int
    errors: Floats
    squares: Floats
    largest: Floats
    by_fold: Floats
    spread: float
    base: float
    source: Farthest
    target: Farthest

    @property
    def unexplained(self) -> Floats:
        """Squared error over that of the constant guess, per group; 1 if there is nothing to explain."""
        return self.squares / self.base**2 if self.base else np.ones(len(self.squares))


class _Outermost:
    """The rows farthest out among those seen so far."""

    def __init__(self) -> None:
        self.rows, self.radii = np.empty(0, dtype=np.intp), np.empty(0)
        self.squares, self.bound = 0.0, 0.0

    def add(self, rows: np.ndarray, radii: Floats) -> None:
        self.squares += float(radii @ radii)
        far = radii >= self.bound
        self.rows, self.radii = np.append(self.rows, rows[far]), np.append(self.radii, radii[far])
        if len(self.rows) > 2 * FARTHEST:
            self._cut()

    def _cut(self) -> None:
        # Stable, so that of equal radii the first rows are kept.
        order = np.argsort(-self.radii, kind="stable")[:FARTHEST]
        self.rows, self.radii = self.rows[order], self.radii[order]
        if len(order) == FARTHEST:
            self.bound = float(self.radii[-1])

    def found(self) -> Farthest:
        self._cut()
        return Farthest(self.rows, self.radii, self.squares)


class Tally:
    """Sums over the blocks of rows, as they arrive.

    Parameters
    ----------
    groups, folds : int
    sample : ndarray of int, shape (m,)
        Numbers of the rows whose figures are kept, ascending.
    """

    def __init__(self, groups: int, folds: int, sample: np.ndarray) -> None:
        self._sample, self.figures = sample, np.empty((groups + 3, len(sample)))
        self._by_fold, self._counts = np.zeros((groups, folds)), np.zeros(folds)
        self._squares, self._largest = np.zeros(groups), np.zeros(groups)
        self._spread = np.zeros(2)
        self._outermost = _Outermost(), _Outermost()

    def add(self, start: int, fold: np.ndarray, figures: Floats) -> None:
        """Add a block: the fold of each row (-1 for rows left out), and its figures as of `Evaluation`."""
        low, high = np.searchsorted(self._sample, [start, start + len(fold)])
        self.figures[:, low:high] = figures[:, self._sample[low:high] - start]
        used = np.flatnonzero(fold >= 0)
        figures, fold = figures[:, used], fold[used]
        *errors, spread, radii, source_radii = figures
        folds = len(self._counts)
        self._counts += np.bincount(fold, minlength=folds)
        self._by_fold += [np.bincount(fold, weights=own, minlength=folds) for own in errors]
        self._squares += [own @ own for own in errors]
        self._largest = np.maximum(self._largest, [own.max(initial=0.0) for own in errors])
        self._spread += spread.sum(), spread @ spread
        for outermost, own in zip(self._outermost, (source_radii, radii), strict=True):
            outermost.add(used + start, own)

    def whole(self) -> Whole:
        """Return the means over all blocks."""
        n = int(self._counts.sum())
        means = self._by_fold.sum(axis=1) / n, self._squares / n, self._largest
        by_fold = self._by_fold / np.maximum(self._counts, 1)
        spread, square = (self._spread / n).tolist()
        return Whole(n, *means, by_fold, spread, square**0.5, *(own.found() for own in self._outermost))
