"""The penalty of a linear map, chosen by cross-validation over folds, from the moments of the folds.

The squared error of a linear map on a fold is a function of the moments of the fold, so no further pass is needed. One
eigendecomposition of the scatter of the source gives the maps of all penalties, and the error of each is a small
product. With fewer rows than columns, the same follows from the products of the rows.

The penalty for a held-out fold must not depend on this fold. The rows without two folds a and b are decomposed once.
Fold b then tests the maps for a, and fold a those for b. If a few rows lie far from all others, the test folds choose
different penalties, and the map is the mean of the maps that they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Protocol

import numpy as np

from nearid.base.limits import check_memory
from nearid.engines.local import ordered_map
from nearid.folds import FoldMoments, assign
from nearid.groups.fits import DenseMap, Ridge, least_squares, squared_errors
from nearid.moments import Floats, Moments, PairMoments, eigen, resolution

ALL = slice(None)
# Penalties in units of the mean eigenvalue of the scatter of the source. Plain least squares (0) is tried in addition.
GRID = np.geomspace(1e-8, 1e4, 49)
# Maximum distance, in steps of the grid, of the choice of one test fold from the median of all: two decades.
FARTHEST = 8
# Sources with few columns and few folds are tested by all other folds, others by two, and wide ones by one,
# because decompositions take most of the time.
NARROW, FEW_FOLDS, WIDE = 128, 10, 512
# A single factor has few numbers for the test, so a penalty is used only if it gains this share of the squared error.
LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Shrinkage:
    """Linear maps for all penalties on one training set.

    Attributes
    ----------
    penalties : ndarray of shape (m,)
        Ascending; the first is 0.
    values, vectors : ndarray of shape (r,), (p, r)
        Eigenvalues and eigenvectors of the source's scatter.
    plain : callable or None
        Separate solver for least squares, which also resolves columns whose eigenvalues are lost in rounding. None
        if there are too few rows for plain least squares.
    """

    penalties: Floats
    values: Floats
    vectors: Floats
    plain: Callable[[Floats], Floats] | None

    @classmethod
    def of(cls, train: PairMoments, penalties: Floats, *, centred: bool = True) -> Shrinkage:
        """Return the decomposition of the source of some rows."""
        values, vectors = eigen(train.xx, train.n)
        plain = least_squares(train.xx, train.n, centred=centred) if train.n > len(train.xx) + 1 else None
        # n rows span at most n directions; in the others there is only rounding.
        return cls(penalties, np.clip(values[: train.n], 0, None), vectors[:, : train.n], plain)

    @property
    def weights(self) -> Floats:
        """1 / (eigenvalue + penalty) of each positive penalty and eigenvector, shape (m - 1, r)."""
        return np.asarray(1 / (self.values + self.penalties[1:, None]))

    def turned(self, train: PairMoments, test: PairMoments) -> Floats:
        """Products of the source's rows of `test`, less the mean of `train`, along the eigenvectors, shape (r, r)."""
        shift = self.vectors.T @ (test.mean_x - train.mean_x)
        return np.asarray(self.vectors.T @ test.xx @ self.vectors + test.n * np.outer(shift, shift))

    def errors(self, train: PairMoments, tests: Sequence[PairMoments], turned: Sequence[Floats]) -> list[Floats]:
        """Squared errors on each of `tests` of the map of each penalty that is fitted on `train`, shape (..., m).

        `train` has the source's scatter that was decomposed, and `turned` is of the source in `tests`; the target may
        be another one than then, or many, as with permuted rows.
        """
        plain = None if self.plain is None else DenseMap(train.mean_x, train.mean_y, self._least_squares(train.xy))
        fitted = self.vectors.T @ train.xy
        among, weights = fitted @ np.swapaxes(fitted, -1, -2), self.weights
        each = zip(tests, turned, strict=True)
        return [self._errors(train, test, fitted, products * among, weights, plain) for test, products in each]

    def _least_squares(self, xy: Floats) -> Floats:
        """Maps by the plain solver, which takes the columns of all targets side by side."""
        columns = np.moveaxis(xy, -2, 0)
        assert self.plain is not None
        return np.moveaxis(self.plain(columns.reshape(len(columns), -1)).reshape(columns.shape), 0, -2)

    def _errors(
        self,
        train: PairMoments,
        test: PairMoments,
        fitted: Floats,
        inner: Floats,
        weights: Floats,
        plain: DenseMap | None,
    ) -> Floats:
        apart_x, apart_y = test.mean_x - train.mean_x, test.mean_y - train.mean_y
        shift = self.vectors.T @ apart_x
        own = self.vectors.T @ test.xy + test.n * shift[:, None] * apart_y[..., None, :]
        total = _squares(test.yy) + test.n * np.sum(apart_y**2, axis=-1)
        first = np.full_like(total, np.inf) if plain is None else squared_errors(plain, test).sum(axis=-1)
        return _errors_of_path(first, total, np.sum(fitted * own, axis=-1), inner, weights)


@dataclass(frozen=True)
class RowShrinkage:
    """The same for fewer rows than columns: the map of a penalty is x^T (x x^T + penalty)^-1 y.

    Attributes
    ----------
    penalties : ndarray of shape (m,)
    values, vectors : ndarray of shape (n,), (n, n)
        Eigenvalues and eigenvectors of the products of the source's rows with each other.
    along : list of ndarray of shape (rows of the fold, n)
        Products of the rows of each judging fold with the rows of the fit, along the eigenvectors.
    """

    penalties: Floats
    values: Floats
    vectors: Floats
    along: list[Floats]

    @classmethod
    def of(cls, train: Floats, tests: Sequence[Floats], penalties: Floats) -> RowShrinkage:
        """Decompose rows of the source, of which others are to be judged; both less the same mean."""
        values, vectors = np.linalg.eigh(train @ train.T)
        return cls(penalties, np.clip(values, 0, None), vectors, [test @ train.T @ vectors for test in tests])

    def errors(self, train: Floats, tests: Sequence[Floats]) -> list[Floats]:
        """Squared errors on the target's rows of each judging fold, of the map of each penalty, shape (m,)."""
        fitted, weights = self.vectors.T @ train, 1 / (self.values + self.penalties[1:, None])
        among, found = fitted @ fitted.T, []
        for test, along in zip(tests, self.along, strict=True):
            gains, inner = np.sum(along * (test @ fitted.T), axis=0), (along.T @ along) * among
            found.append(_errors_of_path(np.array(np.inf), np.asarray(np.sum(test**2)), gains, inner, weights))
        return found


def _errors_of_path(first: Floats, total: Floats, gains: Floats, inner: Floats, weights: Floats) -> Floats:
    """Squared errors of each penalty, shape (..., m): of plain least squares those given, of the others by algebra.

    Along eigenvector i the map has weight w_i; the error is total - 2 sum_i w_i gains_i + sum_ij w_i w_j inner_ij.
    """
    errors = total[..., None] - 2 * gains @ weights.T + np.sum((weights @ inner) * weights, axis=-1)
    # Differences of sums: below this, errors are rounding, and all penalties are as good.
    rounding = resolution(inner.shape[-1]) * total[..., None]
    return np.asarray(np.maximum(np.concatenate([first[..., None], errors], axis=-1), rounding))


@dataclass(frozen=True)
class Choice:
    """What one judge chooses: the number of the best positive penalty, and whether plain least squares is as good."""

    penalty: np.ndarray
    plain: np.ndarray

    @classmethod
    def of(cls, errors: Floats, least_gain: float) -> Choice:
        """By the errors of each penalty; plain least squares is as good where none gains this share of its error."""
        return cls(1 + errors[..., 1:].argmin(axis=-1), (1 - least_gain) * errors[..., 0] <= errors.min(axis=-1))


def _agreed(choices: Sequence[Choice], least_gain: float) -> np.ndarray:
    """Numbers of the penalties of which maps are averaged, shape (judges, ...); 0 is plain least squares.

    That may miss by any amount along directions that hold next to nothing, which spoils a mean of maps: where any gain
    counts, it is taken only if all judges prefer it. Where a penalty has to gain something, half of them suffice. A
    judge with rows that no map fits would take the largest penalty: no choice is more than `FARTHEST` steps away from
    the median.
    """
    each = np.stack([choice.penalty for choice in choices])
    middle = np.median(each, axis=0)
    each = np.clip(each, np.ceil(middle - FARTHEST), np.floor(middle + FARTHEST)).astype(int)
    needed = 0.5 if least_gain else 1.0
    return np.asarray(np.where(np.mean([choice.plain for choice in choices], axis=0) >= needed, 0, each))


def _squares(products: Floats) -> Floats:
    """Sum of squares of all columns, of the products of one target or of many."""
    return np.asarray(np.trace(products, axis1=-2, axis2=-1))


class Folded(Protocol):
    """Moments of folds, as of `FoldMoments`."""

    @property
    def counts(self) -> Sequence[int]:
        """Rows of each fold."""

    @property
    def all(self) -> PairMoments:
        """Moments of all rows."""

    def part(self, k: int) -> PairMoments:
        """Moments of fold k."""

    def without(self, folds: Sequence[int]) -> PairMoments:
        """Moments of the rows outside some folds."""


@dataclass(frozen=True)
class Penalties:
    """Chosen penalties, of which maps are averaged: for the rows outside each fold, and for all rows."""

    folds: tuple[Ridge, ...]
    whole: Ridge


class Judges:
    """Pairs of folds whose complement is decomposed once, to choose penalties for one or many targets.

    Parameters
    ----------
    parts : FoldMoments or the like
        Without two folds of two nothing is left to fit on: there each training set judges itself.
    translation : bool
    """

    def __init__(self, parts: Folded, *, translation: bool = True) -> None:
        whole = parts.all if translation else parts.all.about_origin()
        p = len(whole.mean_x)
        # One unit for all folds: the best penalty of a sum of squared errors does not grow with the rows. Products of
        # products are taken in units of both sides, which keeps them inside float64.
        self._translation, self._unit = translation, float(np.trace(whole.xx)) / p or 1.0
        self._scales = self._unit**-0.5, (float(_squares(whole.yy).mean()) or 1.0) ** -0.5
        self.penalties = np.concatenate([[0.0], GRID])
        folds = len(parts.counts)
        self._pairs = list(_pairs(folds, p)) if folds > 2 else []
        self._few = p > WIDE and isinstance(parts, FoldMoments) and _fewer_rows(parts, self._pairs)
        # One worker with a threaded BLAS for wide sources, of which few fit the memory at a time; for narrow ones
        # threads take longer to start than to work.
        self._workers = 1 if p <= NARROW or (p > WIDE and not self._few) else None
        # Eigenvectors and the products of both folds along them.
        size = 8 * 3 * (min(whole.n, p) if self._few else p) ** 2 * len(self._pairs)
        check_memory(f"Choosing the penalty of a linear map of {p} columns", size, "Give the penalty: --ridge 0.")
        self._paths = list(ordered_map(lambda pair: self._decomposed(parts, pair), self._pairs, workers=self._workers))

    def _decomposed(self, parts: Folded, pair: tuple[int, int]) -> Callable[..., list[Floats]]:
        """What depends on the source alone: the errors of each penalty for both folds, given moments or rows."""
        if self._few:
            (train, _), *tests = self._rows(parts, pair)
            return RowShrinkage.of(train, [x for x, _ in tests], self.penalties).errors
        moments = self._about(parts.without(pair))
        path = Shrinkage.of(moments, self.penalties, centred=self._translation)
        own, other = (path.turned(moments, self._about(parts.part(k))) for k in pair)
        return partial(path.errors, turned=(other, own))

    def _rows(self, parts: Folded, pair: tuple[int, int]) -> list[tuple[Floats, Floats]]:
        """Both sides of the rows outside a pair of folds, of its second and of its first fold: of each judge."""
        assert isinstance(parts, FoldMoments)
        others = [k for k in range(len(parts.counts)) if k not in pair]
        centre = parts.mean_of(others) * self._translation
        x, y = self._scales
        each = (parts.rows_of(folds, centre) for folds in (others, pair[1:], pair[:1]))
        return [(x * source, y * target) for source, target in each]

    def _about(self, moments: PairMoments) -> PairMoments:
        return (moments if self._translation else moments.about_origin()).scaled(*self._scales)

    def choose(self, parts: Folded, target: slice = ALL) -> Penalties:
        """The penalties that have the least error on each judging fold, of some columns of the target.

        `parts` has the source's moments of the beginning.
        """
        return self.choose_each(parts, [target])[0]

    def choose_each(self, parts: Folded, targets: Sequence[slice], *, least_gain: float = 0.0) -> list[Penalties]:
        """The same for each of several targets, as for factors in units of their own.

        Plain least squares is kept where no penalty lessens its error by the share `least_gain`.
        """
        found = []
        for own in self._chosen(parts, targets, least_gain):
            *folds, whole = map(_ridge, own)
            found.append(Penalties(tuple(folds), whole))
        return found

    def choose_many(self, parts: Folded) -> list[Floats]:
        """The same for many targets at a time: for each fold, and last for all rows, of shape (judges, targets)."""
        return self._chosen(parts, [ALL], 0.0)[0]

    def _chosen(self, parts: Folded, targets: Sequence[slice], least_gain: float) -> list[list[Floats]]:
        """Penalties for each fold, and last for all rows, for the columns of each target."""
        if not self._pairs:
            return [self._by_themselves(parts, target) for target in targets]
        each = range(len(parts.counts))
        tests = [] if self._few else [self._about(parts.part(k)) for k in each]

        def judge(at: int) -> list[list[tuple[int, Choice]]]:
            a, b = pair = self._pairs[at]
            if self._few:
                rows = [y for _, y in self._rows(parts, pair)]
                judged = (self._paths[at](rows[0][:, t], [y[:, t] for y in rows[1:]]) for t in targets)
            else:
                # Shared by all targets: sums over folds take longer than the errors of a target.
                train = self._about(parts.without(pair))
                judging = tests[b], tests[a]
                judged = (self._paths[at](train.target(t), [own.target(t) for own in judging]) for t in targets)
            return [[(k, Choice.of(own, least_gain)) for k, own in zip(pair, of, strict=True)] for of in judged]

        choices: list[list[list[Choice]]] = [[[] for _ in each] for _ in targets]
        for judged in ordered_map(judge, range(len(self._pairs)), workers=self._workers):
            for into, of_target in zip(choices, judged, strict=True):
                for fold, chosen in of_target:
                    into[fold].append(chosen)
        for into in choices:
            into.append([chosen for own in into for chosen in own])
        return [[self._unit * self.penalties[_agreed(own, least_gain)] for own in into] for into in choices]

    def _by_themselves(self, parts: Folded, target: slice) -> list[Floats]:
        sets = [parts.without([k]) for k in range(len(parts.counts))] if len(parts.counts) > 1 else []
        own = (m.target(target) for m in (*sets, parts.all))
        return [generalised_penalty(m, translation=self._translation)[None] for m in own]


def _ridge(penalties: Floats) -> Ridge:
    """One penalty, or several, of which maps are averaged."""
    each = tuple(penalties.tolist())
    return each[0] if len(set(each)) == 1 else each


def choose_penalties(parts: Folded, *, translation: bool = True) -> Penalties:
    """Penalties for the rows outside each fold and for all rows; those of a fold are chosen by other folds."""
    return Judges(parts, translation=translation).choose(parts)


def penalty_of(x: Floats, y: Floats, *, translation: bool = True, folds: int = 5) -> Ridge:
    """The penalty, or several, for all of some rows in memory, chosen in folds at random; 0 if rows allow no three."""
    folds = min(folds, len(x) // 2)
    if folds < 3:
        return 0.0
    fold = assign(len(x), folds, seed=0)
    rows = [np.hstack([x[fold == k], y[fold == k]], dtype=np.float64) for k in range(folds)]
    parts = [replace(moments, rows=own - moments.mean) for own in rows for moments in [Moments.of(own)]]
    return choose_penalties(FoldMoments(parts, x.shape[1], None), translation=translation).whole


def _fewer_rows(parts: FoldMoments, pairs: Sequence[tuple[int, int]]) -> bool:
    """Whether fits outside every pair of folds have fewer rows than columns, and the rows are known."""
    counts = parts.counts
    fewer = all(sum(counts) - counts[a] - counts[b] < parts.width for a, b in pairs)
    return fewer and all(part.rows is not None for part in parts.parts)


def _pairs(folds: int, width: int) -> Iterator[tuple[int, int]]:
    """Pairs of folds that judge each other."""
    if width <= NARROW and folds <= FEW_FOLDS:
        yield from combinations(range(folds), 2)
        return
    for k in range(0, folds, 2 if width > WIDE else 1):
        yield k, (k + 1) % folds


def generalised_penalty(train: PairMoments, *, translation: bool = True) -> Floats:
    """The penalty with the least generalised cross-validation error (Golub, Heath & Wahba 1979), for each target.

    For training sets without folds of their own. It takes the rows as independent.
    """
    if not translation:
        train = train.about_origin()
    unit = float(np.trace(train.xx)) / len(train.xx) or 1.0
    train = train.scaled(unit**-0.5, (float(_squares(train.yy).mean()) or 1.0) ** -0.5)
    path = Shrinkage.of(train, np.concatenate([[0.0], GRID]))
    # Directions that exist; rounding leaves something in the others.
    most = train.n - translation
    rank = min(int(np.sum(path.values > resolution(len(train.xx)) * path.values[0])), most)
    explained = np.sum((path.vectors[:, :rank].T @ train.xy) ** 2, axis=-1) / path.values[:rank]
    shrunk = path.penalties[1:, None] * path.weights[:, :rank]
    # Sums of what is left, not differences: with few rows small penalties leave next to nothing of either.
    rest = np.clip(_squares(train.yy) - explained.sum(axis=-1), 0, None) * (rank < most)
    scores = (rest[..., None] + explained @ (shrunk**2).T) / (most - rank + shrunk.sum(axis=1)) ** 2
    return np.asarray(unit * path.penalties[1 + np.argmin(scores, axis=-1)])
