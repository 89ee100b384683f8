"""One fused pass of ICA: components of every row, their contrast, and the products that a step needs.

For each cache-sized piece of rows: y = (x - m) A^T (a product), g(y), sums, and M += g^T y (a product). Products are
taken with y, not with x: unmixing those afterwards would blow up their rounding. No n x d array is ever made. Partial
sums are added in a fixed tree: the result does not depend on threads or engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.ica.contrast import Contrast
from nearid.moments import Floats

# Rows of a piece: it and its components stay in a core's cache, and are few enough for a sum in single precision.
PIECE_BYTES, PIECE_ROWS = 1 << 20, 4096


@dataclass(frozen=True)
class Sums:
    """Means over rows.

    Attributes
    ----------
    products : ndarray of shape (k, k)
        E[g(y) y^T].
    slopes : ndarray of shape (k,)
        E[g'(y)].
    values : ndarray of shape (k,)
        E[G(y)], or zero without `with_values`.
    bends : ndarray of shape (k, k) or None
        E[g'(y_i) y_j^2], which second derivatives need; None without `with_bends`.
    """

    products: Floats
    slopes: Floats
    values: Floats
    bends: Floats | None = None


@dataclass(frozen=True)
class RowPasses:
    """Passes over some rows of an input.

    Attributes
    ----------
    kept : ndarray of bool or None
        Rows in use.
    mean : ndarray of shape (p,)
    dtype : dtype
        Precision of the products; sums are float64.
    engine : Engine
        Where passes run.
    """

    rows: Rows
    kept: np.ndarray | None
    mean: Floats
    contrast: Contrast
    dtype: np.dtype
    engine: Engine = LOCAL

    def contrast_sums(self, unmixing: Floats, with_values: bool = False, with_bends: bool = False) -> Sums:
        """Sums for components y = unmixing (x - mean), unmixing of shape (k, p)."""
        origin = self.mean.astype(self.dtype)
        turn = np.ascontiguousarray(unmixing.T, dtype=self.dtype)
        # What the rounded origin misses of the mean moves every component by a constant.
        shift = (unmixing @ (origin.astype(np.float64) - self.mean)).astype(self.dtype)
        task = Task(origin, turn, shift, self.contrast, with_values, with_bends)
        work = blocks(*self.rows.shape)
        [whole] = self.engine.reduce(_part, work, self.rows, self.kept, task, merge=add_parts)
        return whole.means()


@dataclass(frozen=True)
class Task:
    """What a pass computes: components y = (x - origin) turn + shift in the precision of these, and their contrast."""

    origin: Floats
    turn: Floats
    shift: Floats
    contrast: Contrast
    with_values: bool
    with_bends: bool


class Part(NamedTuple):
    """Number of rows, sums of g(y) y^T and on request of g'(y) and squares (1 or 2, k, k), and those of g' and of G."""

    n: int
    products: Floats
    sums: Floats

    @classmethod
    def of(cls, y: Floats, contrast: Contrast, with_values: bool, with_bends: bool) -> Part:
        """Of components y of shape (rows, k), in their precision."""
        g, slopes, values = contrast.evaluate(y, with_values)
        products = [g.T @ y]
        if with_bends:
            products.append(contrast.slope(y, g).T @ (y * y))
        return cls(len(y), np.array(products, dtype=np.float64), np.array([slopes, values]))

    def means(self) -> Sums:
        """Means over the rows."""
        products, (slopes, values) = self.products / self.n, self.sums / self.n
        return Sums(products[0], slopes, values, products[1] if len(products) > 1 else None)


def _part(block: tuple[int, int], rows: Rows, kept: np.ndarray | None, task: Task) -> Iterator[Part]:
    k = task.turn.shape[1]
    whole = Part(0, np.zeros((1 + task.with_bends, k, k)), np.zeros((2, k)))
    for x in _pieces(block, rows, kept, task.origin):
        y = x @ task.turn
        y += task.shift
        whole = add_parts(whole, Part.of(y, task.contrast, task.with_values, task.with_bends))
    yield whole


def _pieces(block: tuple[int, int], rows: Rows, kept: np.ndarray | None, origin: Floats) -> Iterator[Floats]:
    """Centred pieces of a block, each a fresh array in the precision of the origin."""
    x = rows.read(*block)
    if kept is not None:
        x = x[kept[slice(*block)]]
    size = min(max(64, PIECE_BYTES // (origin.itemsize * x.shape[1])), PIECE_ROWS)
    return (np.subtract(x[a : a + size], origin, dtype=origin.dtype) for a in range(0, len(x), size))


def add_parts(into: Part, part: Part) -> Part:
    """The sum of two parts, in the place of the first."""
    np.add(into.products, part.products, out=into.products)
    np.add(into.sums, part.sums, out=into.sums)
    return Part(into.n + part.n, into.products, into.sums)
