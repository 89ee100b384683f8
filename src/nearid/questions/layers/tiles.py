"""Measures between layers: from common moments of layers side by side, and errors from the rows of each pair of layers.

One product of a block of rows with itself gives the moments of all pairs of layers. If these would take too much
memory, layers are split into tiles, with one pass per tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np

from nearid.arrays import Pair, Rows, pair_rows
from nearid.arrays.derived import JoinedRows
from nearid.arrays.pair import Index, part_of, read_part
from nearid.base.alerts import Alert
from nearid.base.limits import check_memory
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.folds import Blocks, FoldMoments, assign, fold_moments, refuse_small_folds, repeated_rows
from nearid.groups.fits import Ridge, assignment, squared_errors
from nearid.groups.ladder import GROUPS, Group
from nearid.groups.ridge import Judges
from nearid.measures.canonical import Canonical, Grid
from nearid.measures.similarity import debiased_cka
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.errors import Fits, Gathered, evaluate, target_diameter
from nearid.questions.layers.result import group_of

# Largest memory of the moments of a tile, of all folds together, unless one pair of layers needs more.
TILE_BYTES = 512 << 20

Layers = dict[str, Rows]
Given = float | Literal["auto"]


@dataclass(frozen=True)
class Fitting:
    """How measures are fitted and held out.

    Attributes
    ----------
    folds : int
    ridge : float or "auto"
    k : int or None
        Principal components for SVCCA.
    seed : int
    blocks : Blocks or None
        Rows that belong together.
    engine : Engine
        The engine that runs the passes over the rows.
    """

    folds: int
    ridge: Given
    k: int | None
    seed: int
    blocks: Blocks | None
    engine: Engine = LOCAL

    def deal(self, n: int, folds: int) -> np.ndarray:
        """Fold of each of n rows. Layers of one model have the same rows, so all tiles use the same blocks."""
        return assign(n, folds, self.seed, None if self.blocks is None else self.blocks.codes)


class LayerPenalties:
    """Penalties of the linear maps of one source layer; its judges are decomposed once for all target layers."""

    def __init__(self, ridge: Given) -> None:
        self._ridge = ridge
        self._judges: Judges | None = None

    def of(self, group: Group, parts: FoldMoments) -> Sequence[Ridge]:
        """Penalties of a group's maps that are fitted outside each fold; 0 if the group has none."""
        if "ridge" not in group.options:
            return [0.0] * len(parts.counts)
        if self._ridge != "auto":
            return [self._ridge] * len(parts.counts)
        self._judges = self._judges or Judges(parts)
        return self._judges.choose(parts).folds


class Tile:
    """Some layers of both sides and the moments of all their columns together."""

    def __init__(self, pair: Pair, parts: FoldMoments, x: list[slice], y: list[slice]) -> None:
        self.pair, self.parts, self.x, self.y = pair, parts, x, y
        self.all = parts.all
        self.spread_x = np.array([np.trace(self.all.xx[s, s]) for s in x])
        self.spread_y = np.array([np.trace(self.all.yy[s, s]) for s in y])

    def between(self, moments: PairMoments, i: int, j: int) -> PairMoments:
        """Moments of one layer of x and one of y."""
        a, b = self.x[i], self.y[j]
        m = moments
        return PairMoments(m.n, m.mean_x[a], m.mean_y[b], m.xx[a, a], m.xy[a, b], m.yy[b, b])

    def parts_between(self, i: int, j: int) -> FoldMoments:
        """Moments of every fold of one layer of x and one of y."""
        a, b, width = self.x[i], self.y[j], self.parts.width
        at = np.r_[a, b.start + width : b.stop + width]
        return FoldMoments([m.take(at) for m in self.parts.parts], a.stop - a.start, None)

    def cka(self, engine: Engine = LOCAL) -> Floats:
        """Debiased CKA, which needs one more pass: products of the squared lengths of the rows."""
        starts = [[s.start for s in side] for side in (self.x, self.y)]
        about = _Lengths([self.all.mean_x, self.all.mean_y], starts)
        work = [
            (cut, part_of(self.pair.x_index, *cut), part_of(self.pair.y_index, *cut))
            for cut in blocks(self.pair.n, self.pair.x.shape[1] + self.pair.y.shape[1])
        ]
        quartic = np.sum(list(engine.map(_lengths, work, about, self.pair.x, self.pair.y)), axis=0)
        p = len(self.x)
        cka = np.empty((p, len(self.y)))
        for i, j in np.ndindex(cka.shape):
            fourth = np.array([quartic[i, p + j], quartic[i, i], quartic[p + j, p + j]])
            cka[i, j] = debiased_cka(self.between(self.all, i, j), fourth)
        return cka

    def held_out(self, measure: str, k: int | None, ridge: Given) -> Floats:
        """A fitted measure on held-out rows."""
        group = group_of(measure, "r2")
        if group is not None:
            error, spread = self._errors(GROUPS[group], ridge)
            return np.asarray(1 - np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0))
        if measure == "mcc":
            return np.asarray(np.mean(self.parts.map_splits(lambda _, train, test: self._matched(train, test)), axis=0))
        grid = Grid.of(self.parts, self.x, self.y, exact=measure == "svcca" and k is not None)
        found = grid.held_out(leading=measure == "svcca", k=k if measure == "svcca" else None, keep=False)
        return np.array([[canonical.value for canonical in row] for row in found])

    def _errors(self, group: Group, ridge: Given) -> Floats:
        """Squared errors, of a group's maps and of the mean, of shape (2, layers of x, layers of y)."""
        errors = np.zeros((2, len(self.x), len(self.y)))
        for i in range(len(self.x)):
            penalties = LayerPenalties(ridge)
            for j in range(len(self.y)):
                parts = self.parts_between(i, j)
                own = penalties.of(group, parts)
                errors[:, i, j] = np.sum(parts.map_splits(partial(_judged, group, own)), axis=0)
        return errors

    def _matched(self, train: PairMoments, test: PairMoments) -> Floats:
        """Mean correlation in `test` of the columns of y with those of x that are matched to them in `train`."""
        seen, held = _column_correlations(train), _column_correlations(test)
        matched = np.zeros((len(self.x), len(self.y)))
        for i, a in enumerate(self.x):
            for j, b in enumerate(self.y):
                rows, columns = assignment(np.abs(seen[a, b]))
                agreeing = np.sign(seen[a, b][rows, columns]) * held[a, b][rows, columns]
                # Columns of y without a partner count as 0.
                matched[i, j] = agreeing.sum() / (b.stop - b.start)
        return matched


@dataclass(frozen=True)
class _Lengths:
    """Means of both sides, and the first column of each layer."""

    means: list[Floats]
    starts: list[list[int]]


def _lengths(piece: tuple[tuple[int, int], Index, Index], about: _Lengths, *sides: Rows) -> Floats:
    """Products of the squared lengths of the rows of a block, between all layers of both sides."""
    block, *indices = piece
    each = []
    for rows, index, mean, starts in zip(sides, indices, about.means, about.starts, strict=True):
        squares = np.subtract(read_part(rows, index, *block), mean, dtype=np.float64) ** 2
        each.append(np.add.reduceat(squares, starts, axis=1))
    both = np.hstack(each)
    return np.asarray(both.T @ both)


def _judged(
    group: Group, penalties: Sequence[Ridge], fold: int, train: PairMoments, test: PairMoments
) -> tuple[float, float]:
    """Squared errors on held-out rows: of a group's map, and of the mean."""
    fitted = group.fitted(train, {"ridge": penalties[fold]})
    spread = np.trace(test.yy) + test.n * np.sum((test.mean_y - train.mean_y) ** 2)
    return float(squared_errors(fitted, test).sum()), float(spread)


def _column_correlations(moments: PairMoments) -> Floats:
    """Correlation of each column of x with each of y; 0 if one does not vary."""
    size = np.sqrt(np.outer(np.diag(moments.xx), np.diag(moments.yy)))
    return np.asarray(np.divide(moments.xy, size, out=np.zeros_like(moments.xy), where=size > 0))


def epsilons(
    pair: Pair, groups: list[str], how: Fitting, penalties: LayerPenalties
) -> tuple[list[float], tuple[Alert, ...]]:
    """Mean held-out error over the target's diameter, of each group, NaN without variance; alerts on repeated rows."""
    fold = how.deal(pair.n, how.folds)
    parts = fold_moments(pair, fold, how.folds, engine=how.engine)
    refuse_small_folds(parts.counts, blocks=how.blocks is not None)
    copies = repeated_rows(parts.traits, sum(parts.counts), in_blocks=how.blocks is not None)
    whole = parts.all
    if not np.trace(whole.xx) or not np.trace(whole.yy):
        return [float("nan")] * len(groups), copies
    chosen = [(GROUPS[name], penalties.of(GROUPS[name], parts)) for name in groups]
    maps = parts.map_splits(lambda k, train, _: [group.fitted(train, {"ridge": own[k]}) for group, own in chosen])
    means = parts.map_splits(lambda _, train, __: train.mean_y)
    gathered = Gathered(pair, fold, parts, whole, {}, [], (), how.blocks)
    evaluation = evaluate(
        gathered,
        Fits(maps, means, Canonical([], []), Canonical([], [])),
        engine=how.engine,
    )
    size = target_diameter(gathered, evaluation, engine=how.engine).lower
    return [float(error) / size for error in evaluation.mean_errors], copies


def fill_errors(
    measures: Sequence[str],
    left: Layers,
    right: Layers,
    how: Fitting,
    into: dict[str, Floats],
    tick: Callable[..., object],
) -> list[Alert]:
    """Fill the matrices of errors over the diameter; return alerts about repeated rows."""
    copies: list[Alert] = []
    groups = [group for m in measures if (group := group_of(m, "epsilon"))]
    for i, a in enumerate(left.values()):
        penalties = LayerPenalties(how.ridge)
        for j, b in enumerate(right.values()):
            values, repeated = epsilons(pair_rows(a, b), groups, how, penalties)
            copies += repeated
            for measure, value in zip(measures, values, strict=True):
                into[measure][i, j] = value
            tick()
    return copies


def _tiles(layers: Layers, most: int) -> list[list[int]]:
    """Group neighbouring layers into tiles of at most `most` columns."""
    tiles: list[list[int]] = [[]]
    width = 0
    for at, rows in enumerate(layers.values()):
        if tiles[-1] and width + rows.shape[1] > most:
            tiles.append([])
            width = 0
        tiles[-1].append(at)
        width += rows.shape[1]
    return tiles


def fill_from_moments(
    left: Layers,
    right: Layers,
    names: Sequence[str],
    measures: Sequence[str],
    how: Fitting,
    into: dict[str, Floats],
    dead: set[str],
    progress: Progress,
) -> list[Alert]:
    """Fill the matrices of the measures that need only moments; return alerts about repeated rows."""
    held = how.folds if any(m != "cka" for m in measures) else 1
    most = int(np.sqrt(TILE_BYTES / (8 * (held + 2)))) // 2
    rows_of = [list(side.values()) for side in (left, right)]
    tiles = [(a, b) for a in _tiles(left, most) for b in _tiles(right, most)]
    tick = progress("tiles of layers", len(tiles))
    copies: list[Alert] = []
    for a, b in tiles:
        sides = [JoinedRows(name, [rows[i] for i in at]) for name, rows, at in zip(names, rows_of, (a, b), strict=True)]
        width = sides[0].shape[1] + sides[1].shape[1]
        advice = "Pool the layers when they are extracted, or choose fewer."
        check_memory(f"The moments of {names[0]} and {names[1]}", 8 * (held + 2) * width**2, advice)
        pair = pair_rows(*sides)
        parts = fold_moments(pair, how.deal(pair.n, held), held, engine=how.engine)
        refuse_small_folds(parts.counts, blocks=how.blocks is not None)
        copies += repeated_rows(parts.traits, sum(parts.counts), in_blocks=how.blocks is not None)
        tile = Tile(pair, parts, sides[0].columns_of, sides[1].columns_of)
        for at, spread, side in ((a, tile.spread_x, left), (b, tile.spread_y, right)):
            dead.update(list(side)[i] for i, s in zip(at, spread, strict=True) if s == 0)
        for measure in measures:
            block = tile.cka(how.engine) if measure == "cka" else tile.held_out(measure, how.k, how.ridge)
            block[tile.spread_x == 0] = np.nan
            block[:, tile.spread_y == 0] = np.nan
            into[measure][np.ix_(a, b)] = block
        tick()
    return copies
