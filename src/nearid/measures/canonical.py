"""Canonical correlations of held-out rows, from the moments of folds, along as many directions as the rows support.

With few rows per column, canonical directions fit noise, and all held-out correlations become small. So the directions
are searched within the leading principal components of both sides. The number of components for a fold is chosen on the
other folds, so it does not depend on the pairing of the rows of this fold. Products are summed over folds before they
are divided, because correlations within folds of few rows are inaccurate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from nearid.base.extensions import lapack
from nearid.engines.local import ordered_map
from nearid.folds import PARTIAL_BYTES, FoldMoments
from nearid.moments import Floats, Moments, PairMoments, cholesky, eigen, resolution, span_of, spectrum, total

S = TypeVar("S")
T = TypeVar("T")

# SVCCA keeps this share of each side's variance unless the number of directions is given.
SVCCA_VARIANCE = 0.99
# With so many rows per column all directions are used, because a choice would only add noise.
PLENTY = 50
# Minimum number of rows per direction if there are fewer rows than columns.
ROWS_PER_DIRECTION = 4
# Number of groups of folds that test each other's choice of a rank.
GROUPS = 5
# The best rank is used if its score is at least so many standard errors above noise.
CLEAR = 3.0
# Factor on the Gaussian approximation of the shared variance, from simulations with ten rows per column.
SHARED = 3.0
# Subspace iteration for leading principal components: extra directions, and rounds after the first.
SPARE, ITERATIONS = 32, 2


@dataclass(frozen=True)
class Canonical:
    """Canonical directions fitted outside each fold, and the correlations of the rows of the fold along them.

    Attributes
    ----------
    directions : list of (ndarray of shape (p, r), ndarray of shape (q, r))
        Directions for each fold, strongest first. r may differ between folds.
    products : list of ndarray of shape (3, r)
        For each fold: sums of products along each pair of directions, and sums of the squares of both.
    """

    directions: list[tuple[Floats, Floats]]
    products: list[Floats]

    @property
    def ranks(self) -> list[int]:
        """Number of directions in each fold."""
        return [products.shape[1] for products in self.products]

    @property
    def correlations(self) -> Floats:
        """Correlation along each pair of directions, over all folds that have it."""
        return pooled(self.products)

    @property
    def weights(self) -> Floats:
        """Weight of each pair of directions in the mean, proportional to the number of folds that have it."""
        folds = np.sum([np.arange(max(self.ranks)) < rank for rank in self.ranks], axis=0)
        return np.asarray(folds / folds.sum())

    @property
    def value(self) -> float:
        """Mean correlation over the directions of all folds."""
        return float(self.weights @ self.correlations)

    def influence(self, x: Floats, y: Floats, fold: np.ndarray, parts: FoldMoments) -> Floats:
        """Return the influence of each of some rows on the mean correlation for fixed directions, times all rows.

        Parameters
        ----------
        x, y : ndarray of shape (m, p) and (m, q)
        fold : ndarray of int, shape (m,)
            Fold of each row.
        parts : FoldMoments
            Moments of all rows.
        """
        moved = np.zeros(len(x))
        _, left, right = _summed(self.products)
        rho, weights, n = self.correlations, self.weights, sum(parts.counts)
        live = (left > 0) & (right > 0)
        share = [np.divide(n * weights, sums, out=np.zeros_like(sums), where=live) for sums in (left, right)]
        scale = np.sqrt(share[0] * share[1])
        for k, (a, b) in enumerate(self.directions):
            mine, r = np.flatnonzero(fold == k), a.shape[1]
            u = (x[mine] - parts.parts[k].mean[: parts.width]) @ a
            v = (y[mine] - parts.parts[k].mean[parts.width :]) @ b
            # The mean of the fold is estimated from its own rows, which makes their spread look smaller.
            size = np.sqrt(parts.counts[k] / max(parts.counts[k] - 1, 1))
            squares = (u * u) @ (rho * share[0])[:r] + (v * v) @ (rho * share[1])[:r]
            moved[mine] = size * ((u * v) @ scale[:r] - squares / 2)
        return moved

    def shared_variance(self, widths: tuple[int, int], n: float) -> float:
        """Return the variance of the mean correlation that `influence` misses, as fits to different folds share rows.

        Each of two rows in different folds is used in the fit on which the other one is tested, so their errors are
        multiplied twice. For Gaussian rows, the second derivative of the sum of correlations by the whitened
        cross-covariance is 1 / (rho_a + rho_b) along the rotation of directions a and b, where the variance of a row is
        `along`. For directions without a partner the two values are 1 / rho_a and 1 - rho_a^2.

        Parameters
        ----------
        widths : tuple of int
            Number of columns of both sides.
        n : float
            Number of rows of all folds, or the effective number if rows are dependent.
        """
        rho = np.clip(self.correlations, 1 / np.sqrt(n), 1.0)
        r, train = len(rho), n * max(1 - 1 / len(self.products), 0.5)
        gap, product = rho[:, None] - rho, rho[:, None] * rho
        along = np.clip(2 * (1 - product) + gap**2 * (1 - product) / 2 - 2 * gap**2, 0, None)
        turns = np.triu((along / (rho[:, None] + rho)) ** 2, 1).sum()
        spare = sum(min(width, train / ROWS_PER_DIRECTION) - r for width in widths if width > r)
        turns += max(spare, 0) * np.sum(((1 - rho**2) / rho) ** 2)
        return float(SHARED * turns / r**2 / n / train)


def pooled(products: Sequence[Floats]) -> Floats:
    """Return the correlations over all folds from their products (see `Canonical`); 0 if a projection is constant."""
    top, left, right = _summed(products)
    spread = np.sqrt(np.clip(left, 0, None) * np.clip(right, 0, None))
    rho: Floats = np.divide(top, spread, out=np.zeros_like(top), where=spread > 0)
    return rho


def _summed(products: Sequence[Floats]) -> Floats:
    sums = np.zeros((len(products[0]), max(p.shape[1] for p in products)))
    for p in products:
        sums[:, : p.shape[1]] += p
    return sums


def held_out(parts: FoldMoments, *, leading: bool = False, k: int | None = None) -> Canonical:
    """Return the canonical correlations of each fold along directions from the other folds.

    Parameters
    ----------
    parts : FoldMoments
        Moments of the folds. A single fold is tested along all of its own directions.
    leading : bool
        Whether to use only the principal components with 99% of the variance, or fewer (SVCCA).
    k : int, optional
        With `leading`, the number of principal components of each side. No choice is made then.
    """
    return Grid.of(parts, exact=k is not None).held_out(leading=leading, k=k)[0][0]


@dataclass(frozen=True)
class Side:
    """Columns of one side, reduced to principal components if there are few rows.

    Attributes
    ----------
    columns : slice
        Position of the columns in the moments.
    basis : ndarray of shape (p, r) or None
        Principal components to which the side was reduced.
    variance : float
        Share of the variance in these columns that corresponds to 99% of the variance before the reduction.
    """

    columns: slice
    basis: Floats | None = None
    variance: float = SVCCA_VARIANCE

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.columns.stop - self.columns.start)

    def back(self, directions: Floats) -> Floats:
        """Return directions in the original columns of the side."""
        return directions if self.basis is None else np.asarray(self.basis @ directions)


@dataclass(frozen=True)
class Grid:
    """Several sides x and several sides y with joint moments. Each x is correlated with each y.

    If a side has at least as many columns as there are rows for a fit, its directions are searched within the leading
    principal components of all its rows, one for every four rows. These components depend on the held-out rows, but not
    on how the rows of both sides are paired.
    """

    parts: FoldMoments
    x: list[Side]
    y: list[Side]

    @classmethod
    def of(
        cls,
        parts: FoldMoments,
        x: Sequence[slice] | None = None,
        y: Sequence[slice] | None = None,
        *,
        exact: bool = False,
    ) -> Grid:
        """Return a grid of columns of the two sides of a pair (default: all). With `exact`, no side is reduced."""
        x = x or [slice(0, parts.width)]
        y = y or [slice(0, len(parts.parts[0].mean) - parts.width)]
        room = _rows_to_fit(parts.counts)
        if exact or len(parts.counts) == 1 or max(s.stop - s.start for s in (*x, *y)) < room:
            return cls(parts, [Side(s) for s in x], [Side(s) for s in y])
        whole = parts.all
        left, right = _reduced(whole.xx, x, room), _reduced(whole.yy, y, room)
        moved = [slice(s.start + parts.width, s.stop + parts.width) for s in y]
        maps = [(s, side.basis) for s, side in zip((*x, *moved), (*left, *right), strict=True)]
        small = [_small(m, maps) for m in parts.parts]
        return cls(replace(parts, parts=small, width=sum(side.width for side in left)), left, right)

    def held_out(self, *, leading: bool, k: int | None = None, keep: bool = True) -> list[list[Canonical]]:
        """Return the canonical correlations of every pair, see `held_out`. With `keep`, directions are stored."""
        folds, pairs = len(self.parts.parts), self._pairs
        ranks: list[list[int | None]] = [[None] * folds for _ in pairs]
        if k is None:
            ranks = self._ranks(leading)

        def judged(fold: int) -> list[tuple[tuple[Floats, Floats], Floats]]:
            fit, test = _Fit(self, (fold,) if folds > 1 else (), leading, k), self.of_folds([fold])
            found = []
            for (i, j), rank in zip(pairs, ranks, strict=True):
                a, b, _ = fit.directions(i, j, rank[fold])
                back = (self.x[i].back(a), self.y[j].back(b)) if keep else (a[:0], b[:0])
                found.append((back, products_along(a, b, self.between(test, i, j))))
            return found

        each = self._map(judged, range(folds))
        made = [Canonical([fold[at][0] for fold in each], [fold[at][1] for fold in each]) for at in range(len(pairs))]
        return [made[at : at + len(self.y)] for at in range(0, len(made), len(self.y))]

    def between(self, moments: PairMoments, i: int, j: int) -> PairMoments:
        """Return the moments of one x and one y."""
        a, b, m = self.x[i].columns, self.y[j].columns, moments
        return PairMoments(m.n, m.mean_x[a], m.mean_y[b], m.xx[a, a], m.xy[a, b], m.yy[b, b])

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        return [(i, j) for i in range(len(self.x)) for j in range(len(self.y))]

    def of_folds(self, folds: Sequence[int]) -> PairMoments:
        """Return the moments of several folds together."""
        return PairMoments.split(total(self.parts.parts[k] for k in folds), self.parts.width)

    def _map(self, function: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """Apply a function to items, in threads if the moments are small enough, like `FoldMoments.map_splits`."""
        workers = 1 if self.parts.parts[0].scatter.nbytes > PARTIAL_BYTES // 4 else None
        return list(ordered_map(function, items, workers=workers))

    def _ranks(self, leading: bool) -> list[list[int | None]]:
        """Return the number of principal components of each pair in each fold. None means all.

        Folds are joined to at most five groups. Two neighbouring groups are left out together. Directions are fitted on
        the others and tested on each of the two, and the result is used for the other one. So the choice for a fold
        uses two groups of test rows, and neither test rows nor fitted rows belong to this fold.
        """
        counts, pairs = self.parts.counts, self._pairs
        candidates = [_candidates(max(self.x[i].width, self.y[j].width), counts) for i, j in pairs]
        if all(len(own) == 1 for own in candidates):
            return [own * len(counts) for own in candidates]
        groups = fold_groups(len(counts))
        moments = [self.of_folds(group) for group in groups]
        together = [(g, (g + 1) % len(groups)) for g in range(len(groups))]

        def judged(held: tuple[int, int]) -> list[dict[int, list[Floats]]]:
            """What `_best` needs of each candidate, by pair and by the group that it is for."""
            fit, found = _Fit(self, groups[held[0]] + groups[held[1]], leading, None), []
            judges = {held[0]: moments[held[1]], held[1]: moments[held[0]]}
            for (i, j), own in zip(pairs, candidates, strict=True):
                fits = [fit.directions(i, j, rank) for rank in own]
                each = {g: self.between(judge, i, j) for g, judge in judges.items()}
                found.append(
                    {g: [np.vstack([products_along(a, b, m), s]) for a, b, s in fits] for g, m in each.items()}
                )
            return found

        results = dict(zip(together, self._map(judged, together), strict=True))

        def chosen(at: int, group: int) -> int | None:
            mine = [held for held in together if group in held]
            rows = sum(moments[g].n for held in mine for g in held if g != group)
            return candidates[at][_best(list(zip(*(results[held][at][group] for held in mine), strict=True)), rows)]

        each = [[chosen(at, group) for group in range(len(groups))] for at in range(len(pairs))]
        return [[own[fold % len(groups)] for fold in range(len(counts))] for own in each]


class _Fit:
    """Canonical directions of every pair of a grid, fitted without some folds. Each side is decomposed once."""

    def __init__(self, grid: Grid, without: Sequence[int], leading: bool, k: int | None) -> None:
        kept = [fold for fold in range(len(grid.parts.parts)) if fold not in without]
        self._grid, self._moments = grid, grid.of_folds(kept)
        self._leading, self._k = leading, k
        self._known: dict[tuple[str, int, bool], Floats] = {}

    def directions(self, i: int, j: int, rank: int | None) -> tuple[Floats, Floats, Floats]:
        """Return the directions of one pair within `rank` principal components per side, and fitted correlations."""
        wx, wy = self._whitener("x", i, rank), self._whitener("y", j, rank)
        return directions_between(wx, self._moments.xy[self._grid.x[i].columns, self._grid.y[j].columns], wy)

    def _whitener(self, name: str, at: int, rank: int | None) -> Floats:
        leading = self._leading or rank is not None
        key = name, at, leading
        if key not in self._known:
            side = (self._grid.x if name == "x" else self._grid.y)[at]
            scatter = (self._moments.xx if name == "x" else self._moments.yy)[side.columns, side.columns]
            variance = side.variance if self._leading else 1.0
            self._known[key] = side_whitener(scatter, self._moments.n, leading=leading, k=self._k, variance=variance)
        return self._known[key][:, :rank]


def fold_groups(folds: int) -> list[list[int]]:
    """Return the folds in at most five groups that test each other's choice, so that each group has enough rows."""
    number = min(folds, GROUPS)
    return [list(range(g, folds, number)) for g in range(number)]


def _rows_to_fit(counts: Sequence[int]) -> int:
    """Return the smallest number of rows for a fit: all rows except those of two groups of folds."""
    sizes = [sum(counts[k] for k in group) for group in fold_groups(len(counts))]
    pairs = [sizes[g] + sizes[(g + 1) % len(sizes)] for g in range(len(sizes))] if len(sizes) > 2 else sizes
    return sum(counts) - max(pairs)


def _candidates(width: int, counts: Sequence[int]) -> list[int | None]:
    """Return the numbers of principal components to choose from, ascending. None means all."""
    n, powers = sum(counts), [2**e for e in range((width - 1).bit_length())]
    if len(counts) == 1 or n >= PLENTY * width:
        return [None]
    if len(counts) == 2:
        # There is no third fold to test a choice, so the number of rows decides.
        fitting = [k for k in (*powers, width) if k * ROWS_PER_DIRECTION <= min(counts)]
        return [None] if width in fitting else fitting[-1:] or [1]
    return [*powers, None]


def _best(candidates: Sequence[Sequence[Floats]], rows: int) -> int:
    """Return which of several ascending ranks to use: the best one, or all directions if even the best is noise.

    The score of a rank is the sum over directions of rho^2 - (rho - s)^2, with the fitted correlation s and the
    correlation rho in the test rows. Directions that fit noise have a large s and a small rho.

    Parameters
    ----------
    candidates : sequence of sequence of ndarray of shape (4, r)
        For each rank and group of test rows: products (see `Canonical`) and fitted correlations.
    rows : int
        Number of all test rows.
    """
    scores, noises = [], []
    for judges in candidates:
        rho, fitted = pooled([judge[:3] for judge in judges]), _summed(judges)[3] / len(judges)
        scores.append(float(np.sum(2 * fitted * rho - fitted**2)))
        noises.append(2 * float(np.linalg.norm(fitted)) / np.sqrt(rows))
    best = int(np.argmax(scores))
    return best if scores[best] > CLEAR * noises[best] else len(scores) - 1


def _reduced(scatter: Floats, slices: Sequence[slice], room: int) -> list[Side]:
    """Sides of some columns; those with no fewer columns than rows to fit on by their principal components."""
    sides, start = [], 0
    for s in slices:
        own, width = scatter[s, s], s.stop - s.start
        basis, variance = None, SVCCA_VARIANCE
        if width >= room:
            basis = leading_span(own, max(room // ROWS_PER_DIRECTION, 1))
            kept, width = float(np.sum(basis * (own @ basis))), basis.shape[1]
            variance = min(SVCCA_VARIANCE * float(np.trace(own)) / (kept or 1.0), 1.0)
        sides.append(Side(slice(start, start + width), basis, variance))
        start += width
    return sides


def _small(moments: Moments, maps: Sequence[tuple[slice, Floats | None]]) -> Moments:
    """Moments in the columns of reduced sides, from the rows where these are known."""
    mean = _through(moments.mean, maps)
    if moments.rows is None:
        return Moments(moments.n, mean, _through(_through(moments.scatter, maps).T, maps))
    rows = _through(moments.rows, maps)
    return Moments(moments.n, mean, rows.T @ rows)


def _through(rows: Floats, maps: Sequence[tuple[slice, Floats | None]]) -> Floats:
    """Rows of joint columns in the columns of reduced sides."""
    return np.concatenate([rows[..., s] if basis is None else rows[..., s] @ basis for s, basis in maps], axis=-1)


def leading_span(scatter: Floats, rank: int) -> Floats:
    """Return approximate leading principal components as orthonormal columns, by fast subspace iteration."""
    span = span_of(scatter, min(rank + SPARE, len(scatter)))
    for _ in range(ITERATIONS):
        span = np.linalg.qr(scatter @ span)[0]
    vectors = np.linalg.eigh(span.T @ scatter @ span)[1]
    return np.asarray(span @ vectors[:, ::-1][:, :rank])


def canonical_correlations(
    train: PairMoments, test: PairMoments, *, leading: bool = False, k: int | None = None
) -> Floats:
    """Return the correlations in `test` along all canonical directions of `train`, without choosing a rank.

    With `leading`, only principal components are used (SVCCA): k of each side, or those with 99% of the variance.
    """
    wx, wy = (side_whitener(s, train.n, leading=leading, k=k) for s in (train.xx, train.yy))
    return pooled([products_along(*directions_between(wx, train.xy, wy)[:2], test)])


def whiteners_like(found: Canonical, train: PairMoments, *, leading: bool) -> tuple[Floats, Floats]:
    """Return whiteners of both sides for other rows, with the same number of directions, for the chance level."""
    rank, width = int(np.median(found.ranks)), min(train.xy.shape)
    if 2 * rank > width:
        wx, wy = (side_whitener(s, train.n, leading=leading, k=rank) for s in (train.xx, train.yy))
        return wx, wy
    spans = [leading_span(s, rank) for s in (train.xx, train.yy)]
    wx, wy = (
        span @ side_whitener(span.T @ s @ span, train.n, leading=True, k=rank)
        for span, s in zip(spans, (train.xx, train.yy), strict=True)
    )
    return wx, wy


def side_whitener(
    scatter: Floats, n: int, *, leading: bool = False, k: int | None = None, variance: float = SVCCA_VARIANCE
) -> Floats:
    """Return the map of shape (p, r) that whitens the columns of one side, or its leading components."""
    whitener = _leading_whitener(scatter, n, k, variance) if leading else _whitener(scatter, n)
    # A side that is constant in these rows has no correlation: it gets one direction of length 0.
    return whitener if whitener.shape[1] else np.zeros((len(whitener), 1))


def directions_between(wx: Floats, xy: Floats, wy: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the canonical directions of two sides with given whiteners, and the correlations along them."""
    u, s, vt = np.linalg.svd(wx.T @ xy @ wy, full_matrices=False)
    return wx @ u, wy @ vt.T, s


def products_along(a: Floats, b: Floats, moments: PairMoments) -> Floats:
    """Return the sums of products of x a_i and y b_i for each pair of directions, and of the squares of both."""
    each = (a, moments.xy, b), (a, moments.xx, a), (b, moments.yy, b)
    return np.stack([np.einsum("ik,ik->k", left, scatter @ right) for left, scatter, right in each])


def _whitener(scatter: Floats, n: int) -> Floats:
    factor = cholesky(scatter, n)
    if factor is not None:
        whitener: Floats = lapack().dtrtrs(factor.lower, np.diag(1 / factor.sizes), lower=True)[0].T
        return whitener
    s = spectrum(scatter, n)
    return s.vectors / np.sqrt(s.values) / s.sizes[:, None]


def _leading_whitener(scatter: Floats, n: int, k: int | None, variance: float) -> Floats:
    # Principal components are computed in the original units. The rank is determined in units of each column.
    values, vectors = eigen(scatter, n)
    if values[0] <= 0:
        return np.zeros((len(scatter), 0))
    rank = max(min(int(np.sum(values > resolution(len(scatter)) * values[0])), n - 1), 1)
    if k is None:
        share = np.cumsum(values[:rank]) / values[:rank].sum()
        k = int(np.searchsorted(share, variance)) + 1
    k = min(k, rank)
    return np.asarray(vectors[:, :k] / np.sqrt(values[:k]))
