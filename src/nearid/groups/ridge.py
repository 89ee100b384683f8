"""The penalty of a linear map, chosen by cross-validation over folds from their moments alone.

The squared error of a linear map on a fold is a function of that fold's moments, so that no further pass is needed: one
eigendecomposition of the source's scatter gives the maps of every penalty, and the error of each is a small product.

The penalty for a held-out fold must not have seen it. The rows without two folds a and b are decomposed once; fold b
then judges the maps for a, and fold a those for b. Judges disagree where a few rows lie far from all others, and no
penalty is right for all: the map is the mean of the maps that they choose.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Protocol

import numpy as np

from nearid.base.limits import check_memory
from nearid.engines.local import ordered_map
from nearid.folds import FoldMoments, assign
from nearid.groups.fits import DenseMap, Ridge, least_squares, squared_errors
from nearid.moments import Floats, Moments, PairMoments, eigen, resolution, span_of

ALL = slice(None)
# Penalties in units of the mean eigenvalue of the source's scatter. Plain least squares (0) is tried beside them.
GRID = np.geomspace(1e-8, 1e4, 49)
# Steps of the grid, two decades, that the choice of one judge may be away from the median of all.
FARTHEST = 8
# Narrow sources, in few folds, are judged by all other folds; others by two, and wide ones by one: decompositions take
# most of the time there.
NARROW, FEW_FOLDS, WIDE = 128, 10, 512
# One factor at a time is judged by few numbers: a penalty is taken where it gains this share of the squared error.
LEAST_GAIN = 0.01


@dataclass(frozen=True)
class Shrinkage:
    """Linear maps of every penalty on one training set.

    Attributes
    ----------
    penalties : ndarray of shape (m,)
        Ascending; the first is 0.
    values, vectors : ndarray of shape (r,), (p, r)
        Eigenvalues and eigenvectors of the source's scatter.
    plain : callable or None
        Least squares by its own solver, in which small columns count whose eigenvalues rounding drowns; None where rows
        are too few for it to be worth a trial.
    """

    penalties: Floats
    values: Floats
    vectors: Floats
    plain: Callable[[Floats], Floats] | None

    @classmethod
    def of(cls, train: PairMoments, penalties: Floats, *, centred: bool = True) -> Shrinkage:
        """Decompose the source of some rows."""
        values, vectors = eigen(train.xx, train.n)
        plain = least_squares(train.xx, train.n, centred=centred) if train.n > len(train.xx) + 1 else None
        return cls(penalties, np.clip(values, 0, None), vectors, plain)

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
        gains = np.sum(fitted * own, axis=-1) @ weights.T
        errors = total[..., None] - 2 * gains + np.sum((weights @ inner) * weights, axis=-1)
        first = np.full_like(total, np.inf) if plain is None else squared_errors(plain, test).sum(axis=-1)
        # Differences of sums: below this, errors are rounding, and all penalties are as good.
        rounding = resolution(len(inner)) * total[..., None]
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
        # Eigenvectors and the products of both folds along them.
        few = p > WIDE and 2 * whole.n < p and isinstance(parts, FoldMoments)
        self._span = span_of(whole.xx, whole.n) if few else None
        size = 8 * 3 * (whole.n if few else p) ** 2 * len(self._pairs)
        check_memory(f"Choosing the penalty of a linear map of {p} columns", size, "Give the penalty: --ridge 0.")
        parts = self._along(parts)
        self._paths = list(ordered_map(lambda pair: self._decomposed(parts, pair), self._pairs, workers=_workers(p)))

    def _along(self, parts: Folded) -> Folded:
        """The same where few rows take the place of many columns: maps of every penalty lie in the span of the rows."""
        return parts.along(self._span) if self._span is not None and isinstance(parts, FoldMoments) else parts

    def _decomposed(self, parts: Folded, pair: tuple[int, int]) -> tuple[Shrinkage, list[Floats]]:
        """What depends on the source alone."""
        train = self._about(parts.without(pair))
        path = Shrinkage.of(train, self.penalties, centred=self._translation)
        return path, [path.turned(train, self._about(parts.part(k))) for k in pair]

    def _about(self, moments: PairMoments) -> PairMoments:
        return (moments if self._translation else moments.about_origin()).scaled(*self._scales)

    def choose(self, parts: Folded, target: slice = ALL, *, least_gain: float = 0.0) -> Penalties:
        """The penalties that have the least error on each judging fold.

        `parts` has the source's moments of the beginning.

        Parameters
        ----------
        target : slice
            Columns of the target that count.
        least_gain : float
            Plain least squares is kept where no penalty lessens its error by this share.
        """
        *folds, whole = (_ridge(own) for own in self.choose_many(parts, target, least_gain=least_gain))
        return Penalties(tuple(folds), whole)

    def choose_many(self, parts: Folded, target: slice = ALL, *, least_gain: float = 0.0) -> list[Floats]:
        """The same for many targets at a time: for each fold, and last for all rows, of shape (judges, targets)."""
        if not self._pairs:
            return self._by_themselves(parts, target)
        parts = self._along(parts)
        tests = [self._about(parts.part(k)).target(target) for k in range(len(parts.counts))]

        def judge(at: int) -> list[tuple[int, Choice]]:
            (a, b), (path, (own, other)) = self._pairs[at], self._paths[at]
            train = self._about(parts.without((a, b))).target(target)
            errors = path.errors(train, (tests[b], tests[a]), (other, own))
            return [(fold, Choice.of(own, least_gain)) for fold, own in zip((a, b), errors, strict=True)]

        choices: list[list[Choice]] = [[] for _ in tests]
        for judged in ordered_map(judge, range(len(self._pairs)), workers=_workers(len(tests[0].mean_x))):
            for fold, chosen in judged:
                choices[fold].append(chosen)
        choices.append([chosen for own in choices for chosen in own])
        return [self._unit * self.penalties[_agreed(own, least_gain)] for own in choices]

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


def choose_each(parts: Folded, targets: Sequence[slice]) -> list[Penalties]:
    """The same for some columns of the target at a time, as for factors in units of their own."""
    judges = Judges(parts)
    return [judges.choose(parts, target, least_gain=LEAST_GAIN) for target in targets]


def penalty_of(x: Floats, y: Floats, *, translation: bool = True, folds: int = 5) -> Ridge:
    """The penalty, or several, for all of some rows in memory, chosen in folds at random; 0 if rows allow no three."""
    folds = min(folds, len(x) // 2)
    if folds < 3:
        return 0.0
    fold = assign(len(x), folds, seed=0)
    parts = [Moments.of(np.hstack([x[fold == k], y[fold == k]], dtype=np.float64)) for k in range(folds)]
    return choose_penalties(FoldMoments(parts, x.shape[1], None), translation=translation).whole


def _workers(width: int) -> int | None:
    """One worker with a threaded BLAS for wide sources; for narrow ones threads take longer to start than to work."""
    return 1 if width > WIDE or width <= NARROW else None


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
