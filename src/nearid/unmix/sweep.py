"""One fused pass of ICA: components of every row, their contrast, and the products that a step needs.

For each cache-sized piece of rows: y = (x - m) A^T (a product), g(y) in place, sums, and M += g^T (x - m) (a product).
No n x d array is ever made. Partial sums are added in the order of the rows, so the result does not depend on threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.arrays import Rows
from nearid.engines.local import blocks, ordered_map
from nearid.moments import Floats
from nearid.unmix.contrast import Contrast

# Rows of a piece: it and its components stay in a core's cache.
PIECE_BYTES = 1 << 21


@dataclass(frozen=True)
class Sums:
    """Means over rows.

    Attributes
    ----------
    products : ndarray of shape (k, p)
        E[g(y) (x - m)^T].
    slopes : ndarray of shape (k,)
        E[g'(y)].
    values : ndarray of shape (k,)
        E[G(y)], zero where not asked for.
    """

    products: Floats
    slopes: Floats
    values: Floats


@dataclass(frozen=True)
class Sweeper:
    """Passes over some rows of an input.

    Attributes
    ----------
    rows : Rows
    kept : ndarray of bool or None
        Rows in use.
    mean : ndarray of shape (p,)
    contrast : Contrast
    dtype : dtype
        Precision of the products; sums are float64.
    step : int
        Every how many blocks one is used (2: half of the rows).
    """

    rows: Rows
    kept: np.ndarray | None
    mean: Floats
    contrast: Contrast
    dtype: np.dtype
    step: int = 1

    def blocks(self) -> list[tuple[int, int]]:
        """The blocks that a pass reads."""
        return blocks(*self.rows.shape)[:: self.step]

    def pieces(self, block: tuple[int, int]) -> list[Floats]:
        """Centred pieces of a block, each a fresh array in the pass's precision."""
        x = self.rows.read(*block)
        if self.kept is not None:
            x = x[self.kept[slice(*block)]]
        size = max(64, PIECE_BYTES // (self.dtype.itemsize * x.shape[1]))
        origin = self.mean.astype(self.dtype)
        return [np.subtract(x[a : a + size], origin, dtype=self.dtype) for a in range(0, len(x), size)]

    def sweep(self, unmixing: Floats, with_values: bool = False) -> Sums:
        """Sums for components y = unmixing (x - mean), unmixing of shape (k, p)."""
        k, p = unmixing.shape
        turn = np.ascontiguousarray(unmixing.T, dtype=self.dtype)
        # What the rounded origin misses of the mean moves every component by a constant.
        shift = (unmixing @ (self.mean.astype(self.dtype).astype(np.float64) - self.mean)).astype(self.dtype)

        def task(block: tuple[int, int]) -> tuple[int, Floats, Floats, Floats, Floats]:
            n, products, sums = 0, np.zeros((k, p)), np.zeros((3, k))
            for x in self.pieces(block):
                y = x @ turn
                y += shift
                g, slopes, values = self.contrast.evaluate(y, with_values)
                products += g.T @ x
                sums += (np.sum(g, axis=0, dtype=np.float64), slopes, values)
                n += len(x)
            return n, products, *sums

        n, products, sums = 0, np.zeros((k, p)), np.zeros((3, k))
        for count, part, *partial in ordered_map(task, self.blocks()):
            n += count
            products += part
            sums += partial
        gap = self.mean.astype(self.dtype).astype(np.float64) - self.mean
        return Sums((products + np.outer(sums[0], gap)) / n, sums[1] / n, sums[2] / n)
