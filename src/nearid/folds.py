"""Held-out folds of paired rows, and the one pass that gathers the moments of every fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from nearid.arrays import Pair, first_nonfinite
from nearid.engines.local import blocks, ordered_map
from nearid.errors import InputError
from nearid.moments import Floats, Moments, PairMoments, total

T = TypeVar("T")

# Beyond this size (or below its inverse) products of second moments overflow or vanish.
LARGEST = 1e70

# Above this many bytes of partial sums in flight, one worker with a threaded BLAS replaces a thread per block.
PARTIAL_BYTES = 256 << 20


def assign(n: int, folds: int, seed: int) -> np.ndarray:
    """Fold of each of n rows: balanced, at random, the same for the same seed whatever the chunks."""
    return (np.random.default_rng(seed).permutation(n) % folds).astype(np.uint8)


@dataclass(frozen=True)
class FoldMoments:
    """Moments of each fold of a pair of inputs.

    Attributes
    ----------
    parts : list of Moments
        Joint moments of the concatenated rows [x, y] of each fold.
    width : int
        Columns of x.
    kept : ndarray of bool, shape (n,), or None
        Rows in use; None when that is all.
    """

    parts: list[Moments]
    width: int
    kept: np.ndarray | None

    @property
    def all(self) -> PairMoments:
        """Moments of all rows."""
        return PairMoments.split(total(self.parts), self.width)

    def split(self, k: int) -> tuple[PairMoments, PairMoments]:
        """(train, test) moments with fold k left out; train sums the other folds, so nothing cancels."""
        train = total([p for j, p in enumerate(self.parts) if j != k])
        return PairMoments.split(train, self.width), PairMoments.split(self.parts[k], self.width)

    def map_splits(self, function: Callable[[PairMoments, PairMoments], T]) -> list[T]:
        """function(train, test) of every fold; in threads where the moments are small enough to hold several."""
        workers = 1 if self.parts[0].scatter.nbytes > PARTIAL_BYTES // 4 else None
        return list(ordered_map(lambda k: function(*self.split(k)), range(len(self.parts)), workers=workers))


def fold_moments(
    pair: Pair,
    fold: np.ndarray,
    folds: int,
    *,
    drop_nonfinite: bool = False,
    tick: Callable[[], object] | None = None,
) -> FoldMoments:
    """Gather the moments of every fold in one pass.

    Parameters
    ----------
    pair : Pair
    fold : ndarray of uint8, shape (n,)
        Fold of each row.
    folds : int
    drop_nonfinite : bool
        Leave out pairs of rows with a NaN or an infinity; otherwise such a value is an error that names its place.
    """
    p, q = pair.x.shape[1], pair.y.shape[1]
    kept = np.ones(pair.n, dtype=bool)
    shift = _shift(pair)

    def gather(block: tuple[int, int]) -> list[tuple[int, Floats, Floats]]:
        x, y = pair.read(*block)
        sums = _sums_by_fold(x, y, fold[slice(*block)], folds, shift)
        if all(np.isfinite(first).all() for _, first, _ in sums):
            return sums
        if not drop_nonfinite:
            _refuse(pair, x, y, block[0])
        good = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
        kept[slice(*block)] = good
        return _sums_by_fold(x[good], y[good], fold[slice(*block)][good], folds, shift)

    n, first, second = np.zeros(folds, dtype=int), np.zeros((folds, p + q)), np.zeros((folds, p + q, p + q))
    workers = 1 if 4 * second.nbytes > PARTIAL_BYTES else None
    for sums in ordered_map(gather, blocks(pair.n, p + q), workers=workers, tick=tick):
        for k, (count, linear, square) in enumerate(sums):
            n[k] += count
            first[k] += linear
            second[k] += square
    for name, columns in ((pair.x.name, slice(p)), (pair.y.name, slice(p, None))):
        largest = np.diagonal(second, axis1=1, axis2=2)[:, columns].max()
        if not largest < LARGEST**2 or 0 < largest < LARGEST**-2:
            raise InputError(
                f"Fourth powers of the values of {name} leave the range of float64; divide it by its typical size."
            )
    parts = [Moments.from_sums(int(n[k]), first[k], second[k], shift) for k in range(folds)]
    return FoldMoments(parts, p, None if kept.all() else kept)


def _shift(pair: Pair) -> Floats:
    """A point among the rows to take sums about: 0 where that is as good, so that nothing need be subtracted."""
    x, y = pair.read(0, min(pair.n, 256))
    z = np.hstack([x, y], dtype=np.float64)
    with np.errstate(all="ignore"):
        z = np.where(np.isfinite(z), z, np.nan)
        mean, spread = np.nanmean(z, axis=0), np.nanstd(z, axis=0)
    return np.where(np.isfinite(mean) & (np.abs(mean) > 8 * spread), mean, 0.0)


def _sums_by_fold(
    x: Floats, y: Floats, label: np.ndarray, folds: int, shift: Floats
) -> list[tuple[int, Floats, Floats]]:
    """Count, sum and products of the shifted rows of each fold; one matrix product each."""
    p = x.shape[1]
    sums: list[tuple[int, Floats, Floats]] = []
    for k in range(folds):
        rows = np.flatnonzero(label == k)
        z = np.empty((len(rows), len(shift)))
        z[:, :p], z[:, p:] = x[rows], y[rows]
        if shift.any():
            z -= shift
        with np.errstate(invalid="ignore", over="ignore"):
            sums.append((len(rows), z.sum(axis=0), z.T @ z))
    return sums


def _refuse(pair: Pair, x: Floats, y: Floats, start: int) -> None:
    """Name the first value that is not finite, in the row numbers of its own input."""
    for rows, index, block in ((pair.x, pair.x_index, x), (pair.y, pair.y_index, y)):
        bad = first_nonfinite(block, start)
        if bad:
            row, column, value = bad
            own = row if index is None else int(index[row])
            raise InputError(
                f"{rows.name} has {value} at row {own}, column {column} (counted from 0). "
                "Fix the values, or drop such pairs of rows with drop_nonfinite=True (--drop-nonfinite)."
            )
