"""Held-out folds of paired rows, and the one pass that gathers the moments of every fold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from nearid.arrays import Pair, first_nonfinite
from nearid.engines.local import blocks, ordered_map
from nearid.errors import InputError
from nearid.moments import Floats, Moments, PairMoments, total

T = TypeVar("T")

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

    def gather(block: tuple[int, int]) -> list[Moments]:
        start, stop = block
        x, y = pair.read(start, stop)
        label = fold[start:stop]
        # Rows of one fold become contiguous, and each fold one matrix product.
        order = np.argsort(label, kind="stable")
        ends = np.searchsorted(label[order], np.arange(folds + 1))
        z = np.empty((stop - start, p + q))
        z[:, :p], z[:, p:] = x[order], y[order]
        with np.errstate(invalid="ignore", over="ignore"):
            parts = [Moments.of(z[a:b], overwrite=True) for a, b in pairwise(ends)]
        if all(np.isfinite(part.mean).all() for part in parts):
            return parts
        if not drop_nonfinite:
            _refuse(pair, x, y, start)
        kept[start:stop] = np.isfinite(x).all(axis=1) & np.isfinite(y).all(axis=1)
        return [_moments_of(x, y, kept[start:stop] & (label == k)) for k in range(folds)]

    in_flight = 8 * (p + q) ** 2 * folds * 4
    sums = [Moments.zero(p + q)] * folds
    for parts in ordered_map(
        gather, blocks(pair.n, p + q), workers=1 if in_flight > PARTIAL_BYTES else None, tick=tick
    ):
        sums = [a + b for a, b in zip(sums, parts, strict=True)]
    if not all(np.isfinite(s.scatter).all() for s in sums):
        raise InputError("Squares of the values overflow float64; divide the inputs by their typical size first.")
    return FoldMoments(sums, p, None if kept.all() else kept)


def _moments_of(x: Floats, y: Floats, rows: np.ndarray) -> Moments:
    return Moments.of(np.hstack([x[rows], y[rows]], dtype=np.float64), overwrite=True)


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
