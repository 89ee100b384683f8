"""The penalty of a linear map, chosen by cross-validation over folds from their moments alone.

The squared error of a linear map on a fold is a function of that fold's moments, so that no further pass is needed: one
eigendecomposition of the source's scatter gives the maps of every penalty, and the error of each is a small product.

The penalty for a held-out fold must not have seen it. The rows without two folds a and b are decomposed once; fold b
then judges the maps for a, and fold a those for b.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nearid.engines.local import ordered_map
from nearid.folds import FoldMoments, assign
from nearid.groups.fits import DenseMap, least_squares, squared_errors
from nearid.moments import Floats, Moments, PairMoments, eigen, resolution

# Penalties in units of the mean eigenvalue of the source's scatter. Plain least squares (0) is tried beside them.
GRID = np.geomspace(1e-8, 1e4, 49)
# Sources wider than this are judged by one fold instead of two: fewer decompositions, which then take the time.
WIDE = 512


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
        """Squared errors on each of `tests` of the map of each penalty that is fitted on `train`, shape (m,).

        `train` has the source's scatter that was decomposed, and `turned` is of the source in `tests`; the target may
        be another one than then, as with permuted rows.
        """
        plain = None if self.plain is None else DenseMap(train.mean_x, train.mean_y, self.plain(train.xy))
        fitted = self.vectors.T @ train.xy
        among, weights = fitted @ fitted.T, self.weights
        each = zip(tests, turned, strict=True)
        return [self._errors(train, test, fitted, products * among, weights, plain) for test, products in each]

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
        own = self.vectors.T @ test.xy + test.n * np.outer(shift, apart_y)
        total = float(np.trace(test.yy)) + test.n * float(apart_y @ apart_y)
        errors = total - 2 * weights @ np.sum(fitted * own, axis=1) + np.sum((weights @ inner) * weights, axis=1)
        first = np.inf if plain is None else float(squared_errors(plain, test).sum())
        return np.concatenate([[first], np.clip(errors, 0, None)])


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
    """Chosen penalties: for the rows outside each fold, and for all rows."""

    folds: tuple[float, ...]
    whole: float


class Judges:
    """Pairs of folds whose complement is decomposed once, to choose penalties for one or many targets.

    Parameters
    ----------
    parts : FoldMoments or the like
        Without two folds of two nothing is left to fit on: there each training set judges itself.
    translation : bool
    """

    def __init__(self, parts: Folded, *, translation: bool = True) -> None:
        self._translation = translation
        whole = parts.all
        p = len(whole.mean_x)
        # One unit for all folds: the best penalty of a sum of squared errors does not grow with the rows.
        unit = float(np.trace(self._about(whole).xx)) / p or 1.0
        self.penalties = np.concatenate([[0.0], unit * GRID])
        self._pairs = list(_pairs(len(parts.counts), wide=p > WIDE)) if len(parts.counts) > 2 else []
        self._paths = list(ordered_map(lambda pair: self._decomposed(parts, pair), self._pairs, workers=_workers(p)))

    def _decomposed(self, parts: Folded, pair: tuple[int, int]) -> tuple[Shrinkage, list[Floats]]:
        """What depends on the source alone."""
        train = self._about(parts.without(pair))
        path = Shrinkage.of(train, self.penalties)
        return path, [path.turned(train, self._about(parts.part(k))) for k in pair]

    def _about(self, moments: PairMoments) -> PairMoments:
        return moments if self._translation else moments.about_origin()

    def choose(self, parts: Folded) -> Penalties:
        """The penalty with the least error on the judging folds; `parts` has the source's moments of the beginning."""
        if not self._pairs:
            return self._by_themselves(parts)
        tests = [self._about(parts.part(k)) for k in range(len(parts.counts))]
        errors = np.zeros((len(tests), len(self.penalties)))

        def judge(at: int) -> list[tuple[int, Floats]]:
            (a, b), (path, (own, other)) = self._pairs[at], self._paths[at]
            train = self._about(parts.without((a, b)))
            return list(zip((a, b), path.errors(train, (tests[b], tests[a]), (other, own)), strict=True))

        for judged in ordered_map(judge, range(len(self._pairs)), workers=_workers(len(tests[0].mean_x))):
            for fold, error in judged:
                errors[fold] += error
        best = [float(self.penalties[np.argmin(row)]) for row in (*errors, errors.sum(axis=0))]
        return Penalties(tuple(best[:-1]), best[-1])

    def _by_themselves(self, parts: Folded) -> Penalties:
        sets = [parts.without([k]) for k in range(len(parts.counts))] if len(parts.counts) > 1 else []
        *folds, whole = (generalised_penalty(m, translation=self._translation) for m in (*sets, parts.all))
        return Penalties(tuple(folds), whole)


def choose_penalties(parts: Folded, *, translation: bool = True) -> Penalties:
    """Penalties for the rows outside each fold and for all rows; those of a fold are chosen by other folds."""
    return Judges(parts, translation=translation).choose(parts)


def penalty_of(x: Floats, y: Floats, *, translation: bool = True, folds: int = 5) -> float:
    """The penalty for all of some rows in memory, chosen in folds at random; 0 where rows are too few for three."""
    folds = min(folds, len(x) // 2)
    if folds < 3:
        return 0.0
    fold = assign(len(x), folds, seed=0)
    parts = [Moments.of(np.hstack([x[fold == k], y[fold == k]], dtype=np.float64)) for k in range(folds)]
    return choose_penalties(FoldMoments(parts, x.shape[1], None), translation=translation).whole


def _workers(width: int) -> int | None:
    """One worker with a threaded BLAS for wide sources."""
    return 1 if width > WIDE else None


def _pairs(folds: int, wide: bool) -> Iterator[tuple[int, int]]:
    """Pairs of folds such that each fold is in two of them; of wide sources in one or two."""
    step = 2 if wide else 1
    for k in range(0, folds, step):
        yield k, (k + 1) % folds


def generalised_penalty(train: PairMoments, *, translation: bool = True) -> float:
    """The penalty with the least generalised cross-validation error (Golub, Heath & Wahba 1979) of some rows.

    For training sets without folds of their own. It takes the rows as independent.
    """
    if not translation:
        train = train.about_origin()
    path = Shrinkage.of(train, np.concatenate([[0.0], (float(np.trace(train.xx)) / len(train.xx) or 1.0) * GRID]))
    # Directions that exist; rounding leaves something in the others.
    most = train.n - translation
    rank = min(int(np.sum(path.values > resolution(len(train.xx)) * path.values[0])), most)
    explained = np.sum((path.vectors[:, :rank].T @ train.xy) ** 2, axis=1) / path.values[:rank]
    shrunk = path.penalties[1:, None] * path.weights[:, :rank]
    # Sums of what is left, not differences: with few rows small penalties leave next to nothing of either.
    rest = max(float(np.trace(train.yy)) - float(explained.sum()), 0.0) if rank < most else 0.0
    scores = (rest + shrunk**2 @ explained) / (most - rank + shrunk.sum(axis=1)) ** 2
    return float(path.penalties[1 + int(np.argmin(scores))])
