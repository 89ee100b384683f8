"""Layers against layers: a matrix of any measure between the layers of two models, from few passes over the rows.

Layers are put side by side, so that one product of a block of rows with itself gives the moments of all pairs at once.
Where these would take too much memory, tiles of layers are taken, each with a pass of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from nearid import __version__
from nearid.alerts import Alert
from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.extraction import Extraction
from nearid.arrays.joined import JoinedRows
from nearid.arrays.memory import check_memory
from nearid.arrays.patterns import chosen, patterns_of
from nearid.engines.local import blocks, ordered_map
from nearid.errors import InputError, unknown
from nearid.folds import FoldMoments, assign, fold_moments
from nearid.groups.ladder import LADDER
from nearid.groups.maps import squared_errors
from nearid.identifiability.layer_result import MEASURES, LayerComparison
from nearid.measures.similarity import (
    correlations_along,
    debiased_cka,
    directions_between,
    mean_over_folds,
    side_whitener,
)
from nearid.moments import Floats, PairMoments
from nearid.progress import Progress, reporting

# Moments of a tile, of all folds together, take so much memory at most, unless one pair of layers takes more.
TILE_BYTES = 512 << 20

GROUPS = {"r2": "linear", "r2_rigid": "rigid", "r2_permutation": "permutation"}
Measure = str | Callable[[np.ndarray, np.ndarray], float]
Layers = dict[str, Rows]


def compare_layers(
    x: object,
    y: object = None,
    /,
    *,
    measures: Iterable[Measure] | Measure = "cka",
    layers: Iterable[str] | str | None = None,
    folds: int = 5,
    svcca_k: int | None = None,
    random_state: int = 0,
    names: Sequence[str] | None = None,
    progress: bool = False,
) -> LayerComparison:
    """Compare every layer of one model with every layer of another.

    Parameters
    ----------
    x, y : Extraction, folder that `extract` wrote, or dict of layer -> rows
        Source and target. Rows are paired by id where both have ids, by position otherwise. Without y, the layers of
        x are compared with each other.
    measures : names or callables, default="cka"
        "cka": linear CKA, debiased. "cca", "svcca": mean canonical correlation, held out. "r2", "r2_rigid",
        "r2_permutation": share of the target layer's variance that a linear map, a rigid motion, a signed matching of
        the source layer explains, held out. A callable takes the rows of two layers, paired, as arrays and
        gives a number.
    layers : names or patterns, optional
        Layers of both sides to take; all by default.
    folds : int, default=5
    svcca_k : int, optional
        Principal components for SVCCA; those with 99% of the variance by default.
    random_state : int, default=0
        Seed of the folds.
    names : two of str, optional
        What to call the models.
    progress : bool, default=False
        Draw progress bars on stderr.

    Returns
    -------
    LayerComparison
        A matrix for each measure, source layers by target layers.
    """
    wanted = _measures(measures)
    if not 2 <= folds <= 255:
        raise InputError(f"folds must be between 2 and 255, not {folds}.")
    if svcca_k is not None and svcca_k < 1:
        raise InputError(f"svcca_k must be at least 1, not {svcca_k}.")
    sides = [x, x if y is None else y]
    called = list(names) if names is not None else [_name(side, "xy"[at]) for at, side in enumerate(sides)]
    if len(called) != 2:
        raise InputError(f"{len(called)} names were given for 2 models.")
    patterns = None if layers == "all" else patterns_of(layers)
    (left, facts_x), (right, facts_y) = (_open(side, name, patterns) for side, name in zip(sides, called, strict=True))
    declared = [m for m in wanted.values() if isinstance(m, str)]
    found = {name: np.full((len(left), len(right)), np.nan) for name in wanted}
    dead: set[str] = set()
    with reporting(progress) as report:
        if declared:
            n, notes = _from_moments(left, right, called, declared, folds, svcca_k, random_state, found, dead, report)
        else:
            pair = pair_rows(*(next(iter(side.values())) for side in (left, right)))
            n, notes = pair.n, pair.notes
        for name, measure in wanted.items():
            if not isinstance(measure, str):
                _own_measure(measure, left, right, found[name], report(name, len(left) * len(right)))
    alerts = [Alert("pairing", note) for note in notes]
    if dead:
        alerts.append(Alert("constant_layer", f"Every column of {', '.join(sorted(dead))} is constant: no measure."))
    options = {"folds": folds, "svcca_k": svcca_k, "seed": random_state}
    return LayerComparison(
        names=(called[0], called[1]),
        layers=(tuple(left), tuple(right)),
        widths=tuple(tuple(rows.shape[1] for rows in side.values()) for side in (left, right)),  # type: ignore[arg-type]
        n=n,
        values=found,
        alerts=alerts,
        provenance={"nearid": __version__, "options": options, "inputs": [_brief(facts_x), _brief(facts_y)]},
    )


def _measures(given: Iterable[Measure] | Measure) -> dict[str, Measure]:
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")]
    elif callable(given):
        given = [given]
    wanted: dict[str, Measure] = {}
    for measure in given:
        if isinstance(measure, str) and measure not in MEASURES:
            raise InputError(unknown("measure between layers", measure, MEASURES))
        name = measure if isinstance(measure, str) else getattr(measure, "__name__", type(measure).__name__)
        if wanted.get(name, measure) is not measure:
            raise InputError(f"Two measures are called {name}: give functions names of their own.")
        wanted[name] = measure
    if not wanted:
        raise InputError(f"No measure is named; there are {', '.join(MEASURES)}.")
    return wanted


def _name(side: object, default: str) -> str:
    if isinstance(side, str | os.PathLike):
        return os.path.basename(os.path.abspath(side))
    return side.folder.name if isinstance(side, Extraction) and side.folder else default


def _open(side: object, name: str, patterns: list[str] | None) -> tuple[Layers, dict[str, Any]]:
    if isinstance(side, str | os.PathLike):
        side = Extraction.open(side)
    if not isinstance(side, Mapping) or not side:
        raise InputError(
            f"{name} is a {type(side).__name__}; an extraction, its folder, or a dict of layer -> rows is expected."
        )
    keys = list(side)
    if patterns is not None:
        wanted = {key for pattern in patterns for key in chosen(name, pattern, map(str, keys))}
        keys = [key for key in keys if str(key) in wanted]
    facts = side.provenance if isinstance(side, Extraction) else {}
    rows = {str(k): v if isinstance(v := side[k], Rows) else open_rows(v, name=f"{name}:{k}") for k in keys}
    return rows, facts


def _brief(facts: dict[str, Any]) -> dict[str, Any]:
    return {k: facts[k] for k in ("model", "data", "options", "versions") if k in facts}


def _own_measure(
    measure: Callable[[np.ndarray, np.ndarray], float],
    left: Layers,
    right: Layers,
    into: Floats,
    tick: Callable[..., object],
) -> None:
    for i, a in enumerate(left.values()):
        for j, b in enumerate(right.values()):
            pair = pair_rows(a, b)
            size = 8 * pair.n * (a.shape[1] + b.shape[1])
            check_memory(f"A measure of your own between {a.name} and {b.name}", size, "Give fewer rows.")
            into[i, j] = float(measure(*pair.take(np.arange(pair.n))))
            tick()


def _tiles(layers: Layers, most: int) -> list[list[int]]:
    """Neighbouring layers together, up to so many columns."""
    tiles: list[list[int]] = [[]]
    width = 0
    for at, rows in enumerate(layers.values()):
        if tiles[-1] and width + rows.shape[1] > most:
            tiles.append([])
            width = 0
        tiles[-1].append(at)
        width += rows.shape[1]
    return tiles


def _from_moments(
    left: Layers,
    right: Layers,
    names: Sequence[str],
    measures: list[str],
    folds: int,
    k: int | None,
    seed: int,
    into: dict[str, Floats],
    dead: set[str],
    report: Progress,
) -> tuple[int, tuple[str, ...]]:
    """Fill the matrices of the measures that follow from moments; gives the number of pairs of rows, and notes."""
    held = folds if any(m != "cka" for m in measures) else 1
    most = int(np.sqrt(TILE_BYTES / (8 * (held + 2)))) // 2
    rows_of = [list(side.values()) for side in (left, right)]
    tiles = [(a, b) for a in _tiles(left, most) for b in _tiles(right, most)]
    tick = report("tiles of layers", len(tiles))
    for a, b in tiles:
        sides = [JoinedRows(name, [rows[i] for i in at]) for name, rows, at in zip(names, rows_of, (a, b), strict=True)]
        width = sides[0].shape[1] + sides[1].shape[1]
        advice = "Pool the layers when they are extracted, or choose fewer."
        check_memory(f"The moments of {names[0]} and {names[1]}", 8 * (held + 2) * width**2, advice)
        pair = pair_rows(*sides)
        fold = assign(pair.n, held, seed)
        parts = fold_moments(pair, fold, held)
        tile = _Tile(pair, parts, sides[0].columns_of, sides[1].columns_of)
        for at, spread, side in ((a, tile.spread_x, left), (b, tile.spread_y, right)):
            dead.update(list(side)[i] for i, s in zip(at, spread, strict=True) if s == 0)
        for measure in measures:
            block = tile.cka() if measure == "cka" else tile.held_out(measure, k)
            block[tile.spread_x == 0] = np.nan
            block[:, tile.spread_y == 0] = np.nan
            into[measure][np.ix_(a, b)] = block
        tick()
    return pair.n, pair.notes


class _Tile:
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

    def cka(self) -> Floats:
        """Debiased CKA, which needs one more pass: products of the squared lengths of the rows."""
        starts = [[s.start for s in side] for side in (self.x, self.y)]

        def lengths(block: tuple[int, int]) -> Floats:
            centred = zip(self.pair.read(*block), (self.all.mean_x, self.all.mean_y), strict=True)
            squares = [np.subtract(z, mean, dtype=np.float64) ** 2 for z, mean in centred]
            each = np.hstack([np.add.reduceat(z, at, axis=1) for z, at in zip(squares, starts, strict=True)])
            return np.asarray(each.T @ each)

        cut = blocks(self.pair.n, self.pair.x.shape[1] + self.pair.y.shape[1])
        quartic = np.sum(list(ordered_map(lengths, cut)), axis=0)
        p = len(self.x)
        return np.array(
            [
                [
                    debiased_cka(
                        self.between(self.all, i, j),
                        np.array([quartic[i, p + j], quartic[i, i], quartic[p + j, p + j]]),
                    )
                    for j in range(len(self.y))
                ]
                for i in range(p)
            ]
        )

    def held_out(self, measure: str, k: int | None) -> Floats:
        """A measure that is fitted, on rows that the fit has not seen."""
        if measure in GROUPS:
            errors = self.parts.map_splits(lambda _, train, test: self._errors(GROUPS[measure], train, test))
            error, spread = np.sum(errors, axis=0)
            return np.asarray(1 - np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0))
        leading = measure == "svcca"
        found = self.parts.map_splits(lambda _, train, test: self._correlations(train, test, leading, k))
        return np.array(
            [
                [float(np.mean(mean_over_folds([fold[i][j] for fold in found]))) for j in range(len(self.y))]
                for i in range(len(self.x))
            ]
        )

    def _errors(self, group: str, train: PairMoments, test: PairMoments) -> Floats:
        """Squared errors, of a group's maps and of the mean, of shape (2, layers of x, layers of y)."""
        found = np.empty((2, len(self.x), len(self.y)))
        for i in range(len(self.x)):
            for j in range(len(self.y)):
                a, b = self.between(train, i, j), self.between(test, i, j)
                found[0, i, j] = squared_errors(LADDER[group].fit(a), b).sum()
                found[1, i, j] = np.trace(b.yy) + b.n * np.sum((b.mean_y - a.mean_y) ** 2)
        return found

    def _correlations(self, train: PairMoments, test: PairMoments, leading: bool, k: int | None) -> list[list[Floats]]:
        """Canonical correlations of every pair; what belongs to one layer is computed once."""
        wx = [side_whitener(train.xx[s, s], train.n, leading=leading, k=k) for s in self.x]
        wy = [side_whitener(train.yy[s, s], train.n, leading=leading, k=k) for s in self.y]
        return [
            [
                correlations_along(*directions_between(a, train.xy[s, t], b), self.between(test, i, j))
                for j, (b, t) in enumerate(zip(wy, self.y, strict=True))
            ]
            for i, (a, s) in enumerate(zip(wx, self.x, strict=True))
        ]
