"""The penalty of a linear map, chosen by cross-validation over folds from their moments alone.

The squared error of a linear map on a fold is a function of that fold's moments, so that no further pass is needed: one
eigendecomposition of the source's scatter gives the maps of every penalty, and the error of each is a small product.

The penalty for a held-out fold must not have seen it. The rows without two folds a and b are decomposed once; fold b
then judges the maps for a, and fold a those for b.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from nearid.engines.local import ordered_map
from nearid.groups.fits import fit_linear, squared_errors
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
    """

    penalties: Floats
    values: Floats
    vectors: Floats

    @classmethod
    def of(cls, train: PairMoments, penalties: Floats) -> Shrinkage:
        """Decompose the source of some rows."""
        values, vectors = eigen(train.xx, train.n)
        return cls(penalties, np.clip(values, 0, None), vectors)

    @property
    def weights(self) -> Floats:
        """1 / (eigenvalue + penalty) of each positive penalty and eigenvector, shape (m - 1, r)."""
        return np.asarray(1 / (self.values + self.penalties[1:, None]))

    def errors(self, train: PairMoments, test: PairMoments) -> Floats:
        """Squared error on `test` of the map of each penalty that is fitted on `train`, shape (m,).

        `train` has the source's scatter that was decomposed; its target may be another one, as with permuted rows.
        """
        # Least squares by its own solver: small columns, whose eigenvalues rounding drowns, count there.
        plain = float(squared_errors(fit_linear(train), test).sum())
        apart_x, apart_y = test.mean_x - train.mean_x, test.mean_y - train.mean_y
        fitted, own = self.vectors.T @ train.xy, self.vectors.T @ test.xy
        shift = self.vectors.T @ apart_x
        own = own + test.n * np.outer(shift, apart_y)
        inner = self.vectors.T @ test.xx @ self.vectors + test.n * np.outer(shift, shift)
        inner *= fitted @ fitted.T
        total = float(np.trace(test.yy)) + test.n * float(apart_y @ apart_y)
        w = self.weights
        penalised = total - 2 * w @ np.sum(fitted * own, axis=1) + np.sum((w @ inner) * w, axis=1)
        return np.concatenate([[plain], np.clip(penalised, 0, None)])


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
        self._translation = translation
        whole = parts.all
        p = len(whole.mean_x)
        # One unit for all folds: the best penalty of a sum of squared errors does not grow with the rows.
        unit = float(np.trace(self._about(whole).xx)) / p or 1.0
        self.penalties = np.concatenate([[0.0], unit * GRID])
        self._pairs = list(_pairs(len(parts.counts), wide=p > WIDE))
        decompose = ordered_map(
            lambda pair: Shrinkage.of(self._about(parts.without(pair)), self.penalties),
            self._pairs,
            workers=_workers(p),
        )
        self._paths = list(decompose)

    def _about(self, moments: PairMoments) -> PairMoments:
        return moments if self._translation else moments.about_origin()

    def choose(self, parts: Folded) -> Penalties:
        """The penalty with the least error on the judging folds; `parts` has the source's moments of the beginning."""
        tests = [self._about(parts.part(k)) for k in range(len(parts.counts))]
        errors = np.zeros((len(tests), len(self.penalties)))

        def judge(at: int) -> list[tuple[int, Floats]]:
            (a, b), path = self._pairs[at], self._paths[at]
            train = self._about(parts.without((a, b)))
            return [(a, path.errors(train, tests[b])), (b, path.errors(train, tests[a]))]

        for judged in ordered_map(judge, range(len(self._pairs)), workers=_workers(len(tests[0].mean_x))):
            for fold, error in judged:
                errors[fold] += error
        best = [float(self.penalties[np.argmin(row)]) for row in (*errors, errors.sum(axis=0))]
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
    path = Shrinkage.of(train, np.concatenate([[0.0], (float(np.trace(train.xx)) / len(train.xx) or 1.0) * GRID]))
    gains, w = np.sum((path.vectors.T @ train.xy) ** 2, axis=1), path.weights
    residual = float(np.trace(train.yy)) - (2 * w - w**2 * path.values) @ gains
    freedom = (w * path.values).sum(axis=1) + translation
    left = np.clip(1 - freedom / train.n, 0, None)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(left > 0, np.clip(residual, 0, None) / left**2, np.inf)
    return float(path.penalties[1 + int(np.argmin(scores))])
