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
from nearid.groups.fits import DenseMap, least_squares, squared_errors
from nearid.moments import Floats, PairMoments, eigen

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

    def errors(self, train: PairMoments, tests: Sequence[PairMoments]) -> list[Floats]:
        """Squared errors on each of `tests` of the map of each penalty that is fitted on `train`, shape (m,).

        `train` has the source's scatter that was decomposed; its target may be another one, as with permuted rows.
        """
        plain = None if self.plain is None else DenseMap(train.mean_x, train.mean_y, self.plain(train.xy))
        fitted = self.vectors.T @ train.xy
        among, weights = fitted @ fitted.T, self.weights
        return [self._errors(train, test, fitted, among, weights, plain) for test in tests]

    def _errors(
        self,
        train: PairMoments,
        test: PairMoments,
        fitted: Floats,
        among: Floats,
        weights: Floats,
        plain: DenseMap | None,
    ) -> Floats:
        apart_x, apart_y = test.mean_x - train.mean_x, test.mean_y - train.mean_y
        shift = self.vectors.T @ apart_x
        own = self.vectors.T @ test.xy + test.n * np.outer(shift, apart_y)
        inner = (self.vectors.T @ test.xx @ self.vectors + test.n * np.outer(shift, shift)) * among
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
        Three folds or more.
    translation : bool
    """

    def __init__(self, parts: Folded, *, translation: bool = True) -> None:
        whole = parts.all if translation else parts.all.about_origin()
        p = len(whole.mean_x)
        # One unit for all folds: the best penalty of a sum of squared errors does not grow with the rows. Products of
        # products are taken in units of both sides, which keeps them inside float64.
        self._translation, self._unit = translation, float(np.trace(whole.xx)) / p or 1.0
        self._scales = self._unit**-0.5, (float(np.trace(whole.yy)) or 1.0) ** -0.5
        self.penalties = np.concatenate([[0.0], GRID])
        self._pairs = list(_pairs(len(parts.counts), wide=p > WIDE))
        decompose = ordered_map(
            lambda pair: Shrinkage.of(self._about(parts.without(pair)), self.penalties),
            self._pairs,
            workers=_workers(p),
        )
        self._paths = list(decompose)

    def _about(self, moments: PairMoments) -> PairMoments:
        return (moments if self._translation else moments.about_origin()).scaled(*self._scales)

    def choose(self, parts: Folded) -> Penalties:
        """The penalty with the least error on the judging folds; `parts` has the source's moments of the beginning."""
        tests = [self._about(parts.part(k)) for k in range(len(parts.counts))]
        errors = np.zeros((len(tests), len(self.penalties)))

        def judge(at: int) -> list[tuple[int, Floats]]:
            (a, b), path = self._pairs[at], self._paths[at]
            train = self._about(parts.without((a, b)))
            return list(zip((a, b), path.errors(train, (tests[b], tests[a])), strict=True))

        for judged in ordered_map(judge, range(len(self._pairs)), workers=_workers(len(tests[0].mean_x))):
            for fold, error in judged:
                errors[fold] += error
        best = [self._unit * float(self.penalties[np.argmin(row)]) for row in (*errors, errors.sum(axis=0))]
        return Penalties(tuple(best[:-1]), best[-1])


def choose_penalties(parts: Folded, *, translation: bool = True) -> Penalties:
    """Penalties for the rows outside each fold and for all rows; those of a fold are chosen by other folds."""
    if len(parts.counts) > 2:
        return Judges(parts, translation=translation).choose(parts)
    # Without two folds nothing is left to fit on: each training set judges itself.
    sets = [parts.without([k]) for k in range(len(parts.counts))] if len(parts.counts) == 2 else []
    *folds, whole = (generalised_penalty(m, translation=translation) for m in (*sets, parts.all))
    return Penalties(tuple(folds), whole)


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
    unit = float(np.trace(train.xx)) / len(train.xx) or 1.0
    train = train.scaled(unit**-0.5, (float(np.trace(train.yy)) or 1.0) ** -0.5)
    path = Shrinkage.of(train, np.concatenate([[0.0], GRID]))
    gains, w = np.sum((path.vectors.T @ train.xy) ** 2, axis=1), path.weights
    residual = float(np.trace(train.yy)) - (2 * w - w**2 * path.values) @ gains
    freedom = (w * path.values).sum(axis=1) + translation
    left = np.clip(1 - freedom / train.n, 0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(left > 0, np.clip(residual, 0, None) / left**2, np.inf)
    return unit * float(path.penalties[1 + int(np.argmin(scores))])
