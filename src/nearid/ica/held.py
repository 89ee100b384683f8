"""Whitened rows in memory, for which a pass is two small products. The sums are the same as in `passes`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.ica.contrast import Contrast
from nearid.ica.passes import PIECE_BYTES, Part, Sums, add_parts
from nearid.ica.whiten import Whitener
from nearid.moments import Floats, resolution

# Maximum number of whitened entries in memory: 64 MB in float64. With more, rows are read and whitened in every pass.
MOST_HELD = 1 << 23
# Maximum number of bytes of one component in a piece. Sums run along memory, pairwise, so they stay precise for more
# rows than in `passes`.
PIECE_LENGTH = 1 << 16
# With fewer entries, a pass in one thread is faster than several threads.
WORTH_THREADS = 1 << 20


@dataclass(frozen=True)
class HeldRows:
    """Whitened rows, and passes over them.

    Attributes
    ----------
    pieces : list of ndarray of shape (k, rows)
        Pieces that fit into the cache of a core. Rows are stored as columns, so that sums over them run along memory.
    n : int
        Number of rows of all pieces.
    contrast : Contrast
    """

    pieces: list[Floats]
    n: int
    contrast: Contrast

    @property
    def single(self) -> bool:
        """Whether the rows are stored in single precision."""
        return self.pieces[0].dtype == np.float32

    def as_single(self) -> HeldRows:
        """Return the same rows in single precision."""
        return HeldRows([piece.astype(np.float32) for piece in self.pieces], self.n, self.contrast)

    def contrast_sums(
        self,
        rotation: Floats,
        with_values: bool = False,
        with_bends: bool = False,
        contrast: Contrast | None = None,
    ) -> Sums:
        """Return the sums for components y = rotation z, like `RowPasses.contrast_sums`."""
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
        """Return some of the rows, whitened by their own moments, and the matrix (k, k) of this whitening.

        Parameters
        ----------
        chosen : ndarray of bool, shape (n,)
        """
        z = np.concatenate(self.pieces, axis=1)[:, chosen].astype(np.float64)
        z -= z.mean(axis=1, keepdims=True)
        values, vectors = np.linalg.eigh(z @ z.T / z.shape[1])
        # With fewer rows than components, some directions have no variance and are set to 0.
        varies = values > max(resolution(len(z)) * values[-1], 0.0)
        turn = vectors[:, varies] / np.sqrt(values[varies]) @ vectors[:, varies].T
        size = self.pieces[0].shape[1]
        pieces = _recut(iter([(turn @ z).astype(self.pieces[0].dtype)]), size)
        return HeldRows(list(pieces), z.shape[1], self.contrast), turn


def hold(
    rows: Rows,
    kept: np.ndarray | None,
    whitener: Whitener,
    contrast: Contrast,
    dtype: np.dtype,
    engine: Engine = LOCAL,
) -> HeldRows:
    """Return the rows in use, whitened in float64 and rounded to `dtype`. The engine reads and whitens them."""
    cut = blocks(*rows.shape)
    # Each task gets the numbers of its rows: a few of very many rows are sent as less than a mask of all rows.
    work = [(block, None if kept is None else np.flatnonzero(kept[slice(*block)])) for block in cut]
    size = max(64, min(PIECE_BYTES // len(whitener.forward), PIECE_LENGTH) // dtype.itemsize)
    pieces = list(_recut(engine.map(_whitened, work, rows, whitener, dtype), size))
    return HeldRows(pieces, sum(piece.shape[1] for piece in pieces), contrast)


def _whitened(
    part: tuple[tuple[int, int], np.ndarray | None], rows: Rows, whitener: Whitener, dtype: np.dtype
) -> Floats:
    """Return some rows of a block, or all of them, whitened and as columns."""
    block, chosen = part
    x = rows.read(*block)
    centred = np.subtract(x if chosen is None else x[chosen], whitener.mean, dtype=np.float64)
    return np.asarray(whitener.forward @ centred.T).astype(dtype)


def _recut(parts: Iterator[Floats], size: int) -> Iterator[Floats]:
    """Yield the columns of the parts in pieces of this size. The last piece may be smaller."""
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
