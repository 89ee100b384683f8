"""Latents and the columns of their factors, as they were given and as the moments that linear measures rest on.

Moments come from one streaming pass. Where latents outnumber the rows, these are held in memory, and products of all
latents with one another are never made: the rows take less memory. Correlations need the products of latents with
factors alone. A linear fit has a solution of least norm in the span of the rows, so it is made there, in as many
coordinates as the rows have directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np

from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.blocks import open_blocks
from nearid.arrays.columns import named_columns
from nearid.arrays.metadata import input_alerts
from nearid.arrays.tables import Columns
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.progress import Progress, silent
from nearid.engines.base import Engine
from nearid.engines.local import blocks, open_engine
from nearid.folds import (
    FoldMoments,
    assign,
    fold_moments,
    pair_traits,
    refuse_nonfinite,
    refuse_range,
    refuse_small_folds,
    repeated_rows,
)
from nearid.measures.factors import (
    Factors,
    constant_factor,
    constant_latents,
    dropped_rows,
    load_pair,
    open_both,
    open_latents,
    unnamed,
)
from nearid.moments import CrossMoments, Floats, Moments, PairMoments, resolution

T = TypeVar("T")


@dataclass(frozen=True)
class Targets:
    """Moments of latents and factor columns, fold by fold.

    Attributes
    ----------
    source : FoldMoments or WideRows
        The moments, or the rows where they are fewer than the latents.
    names : tuple of str
        Factors that vary.
    blocks : tuple of slice
        Columns of each of them.
    kinds : tuple of str
        "continuous" also for numbers that are streamed, whose kind nobody looked at.
    alerts : tuple of Alert
    """

    source: FoldMoments | WideRows
    names: tuple[str, ...]
    blocks: tuple[slice, ...]
    kinds: tuple[str, ...]
    alerts: tuple[Alert, ...]

    @property
    def row_space(self) -> RowSpace:
        """Moments that linear fits are made from."""
        return self.source.row_space if isinstance(self.source, WideRows) else RowSpace(self.source, None)

    @property
    def cross(self) -> CrossMoments:
        """Products of latents with factors, over all rows."""
        return self.source.cross if isinstance(self.source, WideRows) else self.source.all.cross

    def splits(self, function: Callable[[int, PairMoments, PairMoments], T]) -> list[T]:
        """function(fold, train, test) in coordinates of the row space; with one fold both are all rows."""
        parts = self.row_space.parts
        return [function(0, parts.all, parts.all)] if len(parts.parts) == 1 else parts.map_splits(function)

    def cross_splits(self, function: Callable[[CrossMoments, CrossMoments], T]) -> list[T]:
        """The same for products of latents with factors alone."""
        if len(self.source.counts) == 1:
            return [function(self.cross, self.cross)]
        if isinstance(self.source, WideRows):
            return self.source.map_cross(function)
        return self.source.map_splits(lambda _, train, test: function(train.cross, test.cross))


@dataclass(frozen=True)
class Inputs:
    """Latents and factors as they were given, and how to read them: the common parameters of measures."""

    latents: object
    factors: object
    drop_nonfinite: bool = False
    engine: str | Engine | None = None
    progress: Progress = silent
    blocks: object = None

    def load(self) -> tuple[Floats, Factors, tuple[Alert, ...]]:
        """Latents in memory, the factors of the same rows, and alerts about both; see `load_pair`."""
        return load_pair(self.latents, self.factors, blocks=self.blocks, drop_nonfinite=self.drop_nonfinite)

    def moments(self, folds: int, random_state: int) -> Targets:
        """Moments of latents and factors.

        Factors without names or kinds are numbers and are streamed like the latents, whatever their size. Rows that
        are fewer than the latents are read into memory.
        """
        given, latents, known = self.factors, open_latents(self.latents), None
        named: Factors | Columns | None = given if isinstance(given, Factors) else None
        if not isinstance(given, Factors | Rows):
            named = named_columns(given, name=unnamed(given, "factors"))
        if named is not None:
            latents, known = open_both(latents, named, self.blocks)
            rows = known.rows
        else:
            opened = open_rows(given, name=unnamed(given, "factors"))
            (latents, rows), _ = open_blocks(self.blocks, [latents, opened])
        pair = pair_rows(latents, rows)
        fold = assign(pair.n, folds, random_state, pair.blocks)
        source: FoldMoments | WideRows
        with open_engine(self.engine) as engine:
            if pair.n <= pair.x.shape[1]:
                source = read_wide(pair, fold, folds, drop_nonfinite=self.drop_nonfinite)
            else:
                tick = self.progress("moments", len(blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])))
                source = fold_moments(pair, fold, folds, drop_nonfinite=self.drop_nonfinite, engine=engine, tick=tick)
        alerts = tuple(input_alerts(pair)) + (known.alerts if known else ())
        if source.kept is not None:
            alerts += (dropped_rows(int(np.sum(~source.kept)), pair.n),)
        alerts += repeated_rows(source.traits, sum(source.counts), pair.n, in_blocks=pair.blocks is not None)
        refuse_small_folds(source.counts, blocks=pair.blocks is not None)
        names = known.names if known else tuple(map(str, range(rows.shape[1])))
        kinds = tuple(factor.kind for factor in known.items) if known else ("continuous",) * rows.shape[1]
        widths = [factor.columns.shape[1] for factor in known.items] if known else [1] * rows.shape[1]
        ends = np.cumsum(widths)
        return _varying(source, names, [slice(e - w, e) for e, w in zip(ends, widths, strict=True)], kinds, alerts)


def _varying(
    source: FoldMoments | WideRows,
    names: tuple[str, ...],
    columns: list[slice],
    kinds: tuple[str, ...],
    alerts: tuple[Alert, ...],
) -> Targets:
    """Leave out what is constant in the rows in use, with an alert."""
    targets = Targets(source, names, tuple(columns), kinds, alerts)
    moments = targets.cross
    spread = np.diag(moments.yy)
    alerts += constant_latents(moments.spread <= 0)
    live = [at for at, block in enumerate(columns) if spread[block].any()]
    if not live:
        raise InputError("Every factor is constant, so there is nothing to recover.")
    alerts += tuple(constant_factor(name) for at, name in enumerate(names) if at not in live)
    spreads = source.spreads_y
    for at in live:
        if not all(own[columns[at]].any() for own in spreads):
            alerts += (
                Alert(
                    "constant_in_fold",
                    f"The factor {names[at]!r} is constant within a fold, so nothing can be recovered there and its "
                    "held-out value is too low. Use fewer folds or more rows.",
                ),
            )
    pick = [columns[at] for at in live]
    return Targets(source, tuple(names[at] for at in live), tuple(pick), tuple(kinds[at] for at in live), alerts)


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
    x, y : ndarray of shape (n, d) and (n, q)
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
        none = np.empty((len(self.x), 0))
        return [np.diag(CrossMoments.of(none[rows], self.y[rows]).yy) for rows in self._held_out]

    @property
    def traits(self) -> Floats:
        """Of each row a number that it shares with its copies; empty where nothing is held out."""
        return pair_traits(self.x, self.y) if self.folds > 1 else np.empty(0)

    @cached_property
    def cross(self) -> CrossMoments:
        """Products of latents with factors over all rows."""
        return CrossMoments.of(self.x, self.y)

    def map_cross(self, function: Callable[[CrossMoments, CrossMoments], T]) -> list[T]:
        """function(train, test) of every fold."""
        return [function(self._cross(~held), self._cross(held)) for held in self._held_out]

    @property
    def _held_out(self) -> list[np.ndarray]:
        """The rows of each fold."""
        return [self.fold == k for k in range(self.folds)]

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

    @property
    def coordinates(self) -> Floats:
        """Coordinates of the rows along the basis of their span, shape (n, r)."""
        basis = self.row_space.basis
        assert basis is not None
        return np.asarray((self.x - self.x.mean(axis=0)) @ basis)


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
