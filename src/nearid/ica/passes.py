"""One pass of ICA over the rows: the components, their contrast, and the products that a step needs.

For each piece of rows that fits the cache: y = (x - m) A^T (a product), g(y), sums, and M += g^T y (a product).
Products are taken with y, not with x, because unmixing them afterwards would amplify rounding errors. No n x d array is
made. Partial sums are added in a fixed tree, so the result does not depend on threads or engines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.device import current_device
from nearid.engines.local import LOCAL, blocks
from nearid.ica.contrast import Contrast
from nearid.ica.on_device import sums_of
from nearid.moments import Floats

# Number of rows of a piece. It fits the cache of a core, and is small enough for sums in single precision.
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
        E[g'(y_i) y_j^2], for second derivatives. None without `with_bends`.
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
        Rows in use. None means all rows.
    mean : ndarray of shape (p,)
    dtype : dtype
        Precision of the products. Sums are float64.
    engine : Engine
        The engine that runs the passes.
    """

    rows: Rows
    kept: np.ndarray | None
    mean: Floats
    contrast: Contrast
    dtype: np.dtype
    engine: Engine = LOCAL

    def contrast_sums(self, unmixing: Floats, with_values: bool = False, with_bends: bool = False) -> Sums:
        """Return the sums for components y = unmixing (x - mean), with unmixing of shape (k, p)."""
        origin = self.mean.astype(self.dtype)
        turn = np.ascontiguousarray(unmixing.T, dtype=self.dtype)
        # The rounding error of the origin shifts every component by a constant.
        shift = (unmixing @ (origin.astype(np.float64) - self.mean)).astype(self.dtype)
        task = Task(origin, turn, shift, self.contrast, with_values, with_bends)
        work = blocks(*self.rows.shape)
        [whole] = self.engine.reduce(_part, work, self.rows, self.kept, task, merge=add_parts)
        return whole.means()


@dataclass(frozen=True)
class Task:
    """Arguments of a pass, which computes components y = (x - origin) turn + shift and their contrast."""

    origin: Floats
    turn: Floats
    shift: Floats
    contrast: Contrast
    with_values: bool
    with_bends: bool


class Part(NamedTuple):
    """Number of rows, sums of g(y) y^T (and optionally of g'(y) times squares), and sums of g' and G."""

    n: int
    products: Floats
    sums: Floats

    @classmethod
    def of(cls, y: Floats, contrast: Contrast, with_values: bool, with_bends: bool) -> Part:
        """Return the sums for components y of shape (rows, k), in their precision."""
        g, slopes, values = contrast.evaluate(y, with_values)
        products = [g.T @ y]
        if with_bends:
            products.append(contrast.slope(y, g).T @ (y * y))
        return cls(len(y), np.array(products, dtype=np.float64), np.array([slopes, values]))

    def means(self) -> Sums:
        """Return the means over the rows."""
        products, (slopes, values) = self.products / self.n, self.sums / self.n
        return Sums(products[0], slopes, values, products[1] if len(products) > 1 else None)


def _part(block: tuple[int, int], rows: Rows, kept: np.ndarray | None, task: Task) -> Iterator[Part]:
    k = task.turn.shape[1]
    device = current_device()
    if device is not None:
        x = _kept(block, rows, kept)
        sums = sums_of(x, task, device)
        if sums is not None:
            yield Part(len(x), *sums)
            return
    whole = Part(0, np.zeros((1 + task.with_bends, k, k)), np.zeros((2, k)))
    for x in _pieces(block, rows, kept, task.origin):
        y = x @ task.turn
        y += task.shift
        whole = add_parts(whole, Part.of(y, task.contrast, task.with_values, task.with_bends))
    yield whole


def _pieces(block: tuple[int, int], rows: Rows, kept: np.ndarray | None, origin: Floats) -> Iterator[Floats]:
    """Yield centred pieces of a block, each a new array in the precision of the origin."""
    x = _kept(block, rows, kept)
    size = min(max(64, PIECE_BYTES // (origin.itemsize * x.shape[1])), PIECE_ROWS)
    return (np.subtract(x[a : a + size], origin, dtype=origin.dtype) for a in range(0, len(x), size))


def _kept(block: tuple[int, int], rows: Rows, kept: np.ndarray | None) -> Floats:
    """Return the rows of a block that are in use."""
    x = rows.read(*block)
    return x if kept is None else x[kept[slice(*block)]]


def add_parts(into: Part, part: Part) -> Part:
    """Return the sum of two parts. The first is overwritten."""
    np.add(into.products, part.products, out=into.products)
    np.add(into.sums, part.sums, out=into.sums)
    return Part(into.n + part.n, into.products, into.sums)
