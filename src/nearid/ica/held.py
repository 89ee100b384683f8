"""Whitened rows that are held in memory, so that a pass is two small products; the sums are those of `passes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Rows
from nearid.engines.local import LOCAL, blocks, ordered_map
from nearid.ica.contrast import Contrast
from nearid.ica.passes import PIECE_BYTES, Part, Sums, add_parts
from nearid.ica.whiten import Whitener
from nearid.moments import Floats, resolution

# Entries of whitened rows that are held, at most: 64 MB in float64. More rows are read and whitened in every pass.
MOST_HELD = 1 << 23
# Bytes of a component in a piece, at most: its sums run along memory, pairwise, and stay precise for more rows than
# those of `passes`.
PIECE_LENGTH = 1 << 16
# Below so many entries a pass takes less than sharing it out over threads would.
WORTH_THREADS = 1 << 20


@dataclass(frozen=True)
class HeldRows:
    """Whitened rows, and passes over them.

    Attributes
    ----------
    pieces : list of ndarray of shape (k, rows)
        Each fits a core's cache. Rows are columns here: sums over them run along memory.
    n : int
        Rows of all pieces.
    contrast : Contrast
    """

    pieces: list[Floats]
    n: int
    contrast: Contrast

    @property
    def single(self) -> bool:
        """Whether they are in single precision."""
        return self.pieces[0].dtype == np.float32

    def as_single(self) -> HeldRows:
        """The same in single precision."""
        return HeldRows([piece.astype(np.float32) for piece in self.pieces], self.n, self.contrast)

    def contrast_sums(
        self,
        rotation: Floats,
        with_values: bool = False,
        with_bends: bool = False,
        contrast: Contrast | None = None,
    ) -> Sums:
        """Sums for components y = rotation z, as `RowPasses.contrast_sums` gives them for those of rows."""
        turn, each = rotation.astype(self.pieces[0].dtype), contrast or self.contrast

        def part(z: Floats) -> Part:
            return Part.of((turn @ z).T, each, with_values, with_bends)

        if self.n * len(turn) < WORTH_THREADS:
            whole = part(self.pieces[0])
            for piece in self.pieces[1:]:
                whole = add_parts(whole, part(piece))
        else:
            [whole] = LOCAL.reduce(lambda piece: iter([part(piece)]), self.pieces, merge=add_parts)
        return whole.means()

    def part(self, chosen: np.ndarray) -> tuple[HeldRows, Floats]:
        """Some of the rows, whitened by their own moments, and the matrix (k, k) that did it.

        Parameters
        ----------
        chosen : ndarray of bool, shape (n,)
        """
        z = np.concatenate(self.pieces, axis=1)[:, chosen].astype(np.float64)
        z -= z.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(z @ z.T / z.shape[1])
        # Of fewer rows than components some directions have no variance, and get none.
        varies = values > max(resolution(len(z)) * values[-1], 0.0)
        turn = vectors[:, varies] / np.sqrt(values[varies]) @ vectors[:, varies].T
        size = self.pieces[0].shape[1]
        pieces = _recut(iter([(turn @ z).astype(self.pieces[0].dtype)]), size)
        return HeldRows(list(pieces), z.shape[1], self.contrast), turn


def hold(rows: Rows, kept: np.ndarray | None, whitener: Whitener, contrast: Contrast, dtype: np.dtype) -> HeldRows:
    """The rows in use, whitened in float64 and rounded to `dtype`."""

    def whitened(block: tuple[int, int]) -> Floats:
        x = rows.read(*block)
        if kept is not None:
            x = x[kept[slice(*block)]]
        centred = np.subtract(x, whitener.mean, dtype=np.float64)
        return np.asarray(whitener.forward @ centred.T).astype(dtype)

    size = max(64, min(PIECE_BYTES // len(whitener.forward), PIECE_LENGTH) // dtype.itemsize)
    pieces = list(_recut(ordered_map(whitened, blocks(*rows.shape)), size))
    return HeldRows(pieces, sum(piece.shape[1] for piece in pieces), contrast)


def _recut(parts: Iterator[Floats], size: int) -> Iterator[Floats]:
    """Columns of the parts in pieces of this many, the last one smaller."""
    waiting: list[Floats] = []
    count = 0
    for part in parts:
        waiting.append(part)
        count += part.shape[1]
        if count >= size:
            joined = np.concatenate(waiting, axis=1)
            whole = count - count % size
            for a in range(0, whole, size):
                yield np.ascontiguousarray(joined[:, a : a + size])
            waiting, count = [joined[:, whole:]], count - whole
    if count:
        yield np.ascontiguousarray(np.concatenate(waiting, axis=1))
