"""Layers of two models from common moments, and errors over the diameter from the rows of each pair of layers."""

from __future__ import annotations

import numpy as np

from nearid.arrays import Pair
from nearid.base.progress import silent
from nearid.engines.local import blocks, ordered_map
from nearid.folds import FoldMoments, assign, fold_moments
from nearid.groups.fits import assignment, squared_errors
from nearid.groups.ladder import GROUPS
from nearid.measures.diameter import search
from nearid.measures.similarity import (
    debiased_cka,
    directions_between,
    pooled,
    products_along,
    side_whitener,
)
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.evaluate import Fits, evaluate

R2_OF = {"r2": "linear", "r2_rigid": "rigid", "r2_permutation": "permutation"}


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
        if measure in R2_OF:
            errors = self.parts.map_splits(lambda _, train, test: self._errors(R2_OF[measure], train, test))
            error, spread = np.sum(errors, axis=0)
            return np.asarray(1 - np.divide(error, spread, out=np.full_like(error, np.nan), where=spread > 0))
        if measure == "mcc":
            return np.asarray(np.mean(self.parts.map_splits(lambda _, train, test: self._matched(train, test)), axis=0))
        leading = measure == "svcca"
        found = self.parts.map_splits(lambda _, train, test: self._correlations(train, test, leading, k))
        return np.array(
            [
                [float(np.mean(pooled([fold[i][j] for fold in found]))) for j in range(len(self.y))]
                for i in range(len(self.x))
            ]
        )

    def _errors(self, group: str, train: PairMoments, test: PairMoments) -> Floats:
        """Squared errors, of a group's maps and of the mean, of shape (2, layers of x, layers of y)."""
        found = np.empty((2, len(self.x), len(self.y)))
        for i in range(len(self.x)):
            for j in range(len(self.y)):
                a, b = self.between(train, i, j), self.between(test, i, j)
                found[0, i, j] = squared_errors(GROUPS[group].fit(a), b).sum()
                found[1, i, j] = np.trace(b.yy) + b.n * np.sum((b.mean_y - a.mean_y) ** 2)
        return found

    def _matched(self, train: PairMoments, test: PairMoments) -> Floats:
        """Mean correlation in `test` of the columns of y with those of x that are matched to them in `train`."""
        seen, held = _column_correlations(train), _column_correlations(test)
        found = np.zeros((len(self.x), len(self.y)))
        for i, a in enumerate(self.x):
            for j, b in enumerate(self.y):
                rows, columns = assignment(np.abs(seen[a, b]))
                agreeing = np.sign(seen[a, b][rows, columns]) * held[a, b][rows, columns]
                # Columns of y without a partner count as 0.
                found[i, j] = agreeing.sum() / (b.stop - b.start)
        return found

    def _correlations(self, train: PairMoments, test: PairMoments, leading: bool, k: int | None) -> list[list[Floats]]:
        """Products along canonical directions of every pair; what belongs to one layer is computed once."""
        wx = [side_whitener(train.xx[s, s], train.n, leading=leading, k=k) for s in self.x]
        wy = [side_whitener(train.yy[s, s], train.n, leading=leading, k=k) for s in self.y]
        return [
            [
                products_along(*directions_between(a, train.xy[s, t], b), self.between(test, i, j))
                for j, (b, t) in enumerate(zip(wy, self.y, strict=True))
            ]
            for i, (a, s) in enumerate(zip(wx, self.x, strict=True))
        ]


def _column_correlations(moments: PairMoments) -> Floats:
    """Of each column of x with each of y; 0 where one does not vary."""
    size = np.sqrt(np.outer(np.diag(moments.xx), np.diag(moments.yy)))
    return np.asarray(np.divide(moments.xy, size, out=np.zeros_like(moments.xy), where=size > 0))


def epsilons(pair: Pair, groups: list[str], folds: int, seed: int) -> tuple[list[float], Floats]:
    """Mean held-out error over the target's diameter, of each group, NaN without variance; and traits of the rows."""
    fold = assign(pair.n, folds, seed)
    parts = fold_moments(pair, fold, folds)
    whole = parts.all
    if not np.trace(whole.xx) or not np.trace(whole.yy):
        return [float("nan")] * len(groups), parts.traits
    maps = parts.map_splits(lambda _, train, __: [GROUPS[group].fit(train) for group in groups])
    means = parts.map_splits(lambda _, train, __: train.mean_y)
    found = evaluate(pair, fold, parts, whole, Fits(maps, means, np.empty(0), float("nan")), progress=silent)
    size = search(pair.read_y, pair.take_y, found.radii, found.origin).lower
    return [float(error) / size for error in found.errors.mean(axis=1)], parts.traits
