"""Latents that outnumber the rows: these are held in memory, and products of all latents with one another never made.

The rows take less memory than such products would. Correlations need the products of latents with factors alone. A
linear fit has a solution of least norm in the span of the rows, so it is made there, in as many coordinates as the rows
have directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from nearid.arrays import Pair
from nearid.base.limits import check_memory
from nearid.folds import FoldMoments, pair_traits, refuse_nonfinite, refuse_range
from nearid.moments import CrossMoments, Floats, Moments, resolution

T = TypeVar("T")


@dataclass(frozen=True)
class RowSpace:
    """Moments of every fold in coordinates of the latents.

    Attributes
    ----------
    parts : FoldMoments
        Of the coordinates and the factor columns.
    basis : ndarray of shape (d, r) or None
        Orthonormal directions that the coordinates are along; None where they are the latents themselves.
    """

    parts: FoldMoments
    basis: Floats | None

    def in_latents(self, coefficients: Floats) -> Floats:
        """Coefficients of the latents, shape (d, q), from those of the coordinates."""
        return coefficients if self.basis is None else np.asarray(self.basis @ coefficients)


@dataclass(frozen=True)
class WideRows:
    """Rows in memory, with their folds.

    Attributes
    ----------
    x : ndarray of shape (n, d)
    y : ndarray of shape (n, q)
    fold : ndarray of shape (n,)
    folds : int
    kept : ndarray of bool or None
        Rows of the inputs that are in use; None when that is all.
    """

    x: Floats
    y: Floats
    fold: np.ndarray
    folds: int
    kept: np.ndarray | None

    @property
    def counts(self) -> list[int]:
        """Rows of each fold."""
        return [int(count) for count in np.bincount(self.fold, minlength=self.folds)]

    @property
    def spreads_y(self) -> list[Floats]:
        """Centred sum of squares of each column of y, in each fold."""
        return [np.diag(self._cross(self.fold == k).yy) for k in range(self.folds)]

    @property
    def traits(self) -> Floats:
        """Of each row a number that it shares with its copies; empty where nothing is held out."""
        return pair_traits(self.x, self.y) if self.folds > 1 else np.empty(0)

    @property
    def cross(self) -> CrossMoments:
        """Products of latents with factors over all rows."""
        return CrossMoments.of(self.x, self.y)

    def map_cross(self, function: Callable[[CrossMoments, CrossMoments], T]) -> list[T]:
        """function(train, test) of every fold."""
        parts = [self.fold == k for k in range(self.folds)]
        return [function(self._cross(~held), self._cross(held)) for held in parts]

    def _cross(self, rows: np.ndarray) -> CrossMoments:
        return CrossMoments.of(self.x[rows], self.y[rows])

    @cached_property
    def row_space(self) -> RowSpace:
        """The folds in coordinates along the rows' span.

        As of a scatter, the rank is judged in units of each latent's own size. The coordinates are in the latents' own
        units, so that a solution of least norm in them is one of least norm in the latents.
        """
        centred = self.x - self.x.mean(axis=0)
        sizes = np.sqrt(self.cross.spread)
        sizes = np.where(sizes > 0, sizes, 1.0)
        u, singular, vt = np.linalg.svd(centred / sizes, full_matrices=False)
        rank = min(int(np.sum(singular**2 > resolution(len(sizes)) * singular[0] ** 2)), len(centred) - 1)
        # centred = u s vt sizes, and sizes v = basis r: the coordinates of the rows along the basis are u s r^T.
        basis, r = np.linalg.qr(sizes[:, None] * vt[:rank].T)
        joint = np.hstack([u[:, :rank] * singular[:rank] @ r.T, self.y])
        parts = [Moments.of(joint[self.fold == k]) for k in range(self.folds)]
        return RowSpace(FoldMoments(parts, rank, self.kept), basis)


def read_wide(pair: Pair, fold: np.ndarray, folds: int, *, drop_nonfinite: bool) -> WideRows:
    """Read all rows of a pair; a NaN or an infinity is refused, or dropped with its row."""
    # The rows as read, in float64, and scaled for their decomposition.
    check_memory(
        f"{pair.x.name} and {pair.y.name}",
        3 * 8 * pair.n * (pair.x.shape[1] + pair.y.shape[1]),
        "Reduce the columns first, for example to their principal components.",
    )
    sides = pair.read(0, pair.n)
    good = np.logical_and(*(np.isfinite(side).all(axis=1) for side in sides))
    if not good.all() and not drop_nonfinite:
        refuse_nonfinite(pair.sides, sides, 0)
    x, y = (np.asarray(side[good], dtype=np.float64) for side in sides)
    for (rows, _), side in zip(pair.sides, (x, y), strict=True):
        # Squares that overflow are what is looked for.
        with np.errstate(over="ignore", under="ignore"):
            refuse_range(rows.name, float(np.max(np.einsum("ij,ij->j", side, side), initial=0.0)), bool(side.any()))
    return WideRows(x, y, fold[good], folds, None if good.all() else good)
