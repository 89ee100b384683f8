"""Two passes over paired rows: moments of every fold, then each row's error under the maps that have not seen it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Pair
from nearid.engines.local import blocks, ordered_map
from nearid.folds import FoldMoments, fold_moments
from nearid.groups.ladder import Group
from nearid.groups.maps import Map
from nearid.measures.similarity import canonical_correlations, mean_over_folds
from nearid.moments import Floats, PairMoments
from nearid.progress import Progress

Options = dict[str, float | bool]


@dataclass(frozen=True)
class Evaluation:
    """What two passes find.

    Attributes
    ----------
    errors : ndarray of shape (groups, n)
        Euclidean error of each row under each group, in the target's units. NaN for rows left out.
    spread : ndarray of shape (n,)
        Error of the constant guess: the mean of the rows that the maps were fitted on.
    radii : ndarray of shape (n,)
        Distance of each target row from the mean of all, rounded up; NaN for rows left out.
    fourth : ndarray of shape (3,)
        Fourth-order sums for the debiased CKA.
    """

    errors: Floats
    spread: Floats
    radii: Floats
    fourth: Floats


def gather(
    pair: Pair, fold: np.ndarray, folds: int, *, drop_nonfinite: bool, progress: Progress
) -> tuple[FoldMoments, PairMoments]:
    """First pass: the moments."""
    tick = progress("moments", len(blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])))
    parts = fold_moments(pair, fold, folds, drop_nonfinite=drop_nonfinite, tick=tick)
    return parts, parts.all


def evaluate(
    pair: Pair,
    fold: np.ndarray,
    parts: FoldMoments,
    moments: PairMoments,
    maps: Sequence[Sequence[Map]],
    *,
    progress: Progress,
) -> Evaluation:
    """Second pass: errors of every row.

    Parameters
    ----------
    maps : sequence over folds of sequences over groups
        maps[k][g] judges the rows of fold k. One fold with all rows gives in-sample errors.
    """
    # Products are taken in the precision of the inputs. The point that is subtracted first has that precision too, so
    # that the subtraction is exact near it; what it misses of the mean is part of each map's offset.
    dtype = np.result_type(pair.x.dtype, pair.y.dtype)
    x_frame, y_frame = (
        _frame(mean, scatter, moments.n, dtype)
        for mean, scatter in ((moments.mean_x, moments.xx), (moments.mean_y, moments.yy))
    )
    plans = [[_plan(m, x_frame, y_frame, dtype) for m in row] for row in maps]
    guesses = [((row[0].target_centre - y_frame.origin) / y_frame.unit).astype(dtype) for row in maps]
    # Sums of d rounded products are off by at most d units in the last place: radii are rounded up by that.
    up = y_frame.unit * (1 + pair.y.shape[1] * float(np.finfo(dtype).eps))

    errors = np.full((len(maps[0]), pair.n), np.nan)
    spread, radii, fourth = np.full(pair.n, np.nan), np.full(pair.n, np.nan), np.zeros(3)

    def judge(block: tuple[int, int]) -> Floats:
        start, stop = block
        x, y = pair.read(start, stop)
        sums = np.zeros(3)
        for k, (row, guess) in enumerate(zip(plans, guesses, strict=True)):
            mine = fold[start:stop] == k if len(plans) > 1 else np.ones(stop - start, dtype=bool)
            if parts.kept is not None:
                mine &= parts.kept[start:stop]
            rows = np.flatnonzero(mine)
            xk, yk, where = x_frame.enter(x[rows]), y_frame.enter(y[rows]), rows + start
            x_squares, y_squares = (np.einsum("ij,ij->i", z, z).astype(np.float64) for z in (xk, yk))
            sums += [x_squares @ y_squares, x_squares @ x_squares, y_squares @ y_squares]
            radii[where] = np.sqrt(y_squares) * up
            # |y - guess|^2 from products at hand; the guess is near the origin, so nothing cancels.
            apart = y_squares - 2 * (yk @ guess) + guess @ guess
            spread[where] = np.sqrt(np.maximum(apart, 0)) * y_frame.unit
            for g, (turn, offset) in enumerate(row):
                residual = turn(xk)
                residual -= yk
                residual += offset
                errors[g, where] = row_norms(residual) * y_frame.unit
        return sums

    work = blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])
    for sums in ordered_map(judge, work, tick=progress("errors", len(work))):
        fourth += sums
    a, b = x_frame.unit**2, y_frame.unit**2
    return Evaluation(errors, spread, radii, fourth * [a * b, a * a, b * b])


@dataclass(frozen=True)
class Frame:
    """Where one side's rows are measured from, and in what unit.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        The mean, rounded to the precision of the rows.
    unit : float
        1, or the rows' typical size where squares of such rows would leave the range of float32.
    """

    origin: Floats
    unit: float

    def enter(self, rows: Floats) -> Floats:
        """Rows of a fresh array, moved and scaled in place."""
        rows = rows.astype(self.origin.dtype, copy=False)
        rows -= self.origin
        if self.unit != 1:
            rows /= self.unit
        return rows


def _frame(mean: Floats, scatter: Floats, n: int, dtype: np.dtype) -> Frame:
    size = float(np.sqrt(np.trace(scatter) / n)) or 1.0
    return Frame(mean.astype(dtype), 1.0 if 1e-6 < size < 1e6 else size)


def _plan(fitted: Map, x_frame: Frame, y_frame: Frame, dtype: np.dtype) -> tuple[Callable[[Floats], Floats], Floats]:
    """The map between the two frames: a turn and a constant offset."""
    start = x_frame.origin.astype(np.float64) - fitted.source_centre
    shift = fitted.turn(start[None])[0] + fitted.target_centre - y_frame.origin
    return fitted.rescaled(x_frame.unit, y_frame.unit, dtype).turn, (shift / y_frame.unit).astype(dtype)


def row_norms(rows: Floats) -> Floats:
    """Euclidean norm of each row."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def unexplained_share(errors: Floats, spread: Floats) -> Floats:
    """Squared error over that of the constant guess (1 - R2), per group."""
    size = float(spread.max()) or 1.0
    return np.asarray(np.sum((errors / size) ** 2, axis=1) / np.sum((spread / size) ** 2))


@dataclass(frozen=True)
class Fits:
    """What is fitted on moments alone.

    Attributes
    ----------
    maps : list over folds of lists over groups
    cca : ndarray
        Canonical correlations.
    svcca : float
    """

    maps: list[list[Map]]
    cca: Floats
    svcca: float


def fit_held_out(parts: FoldMoments, groups: Sequence[Group], options: Options, k: int | None) -> Fits:
    """Fit on all folds but one, for each; correlations are those of the fold left out."""
    return _collect(parts.map_splits(lambda train, test: fit_split(train, test, groups, options, k)))


def fit_in_sample(moments: PairMoments, groups: Sequence[Group], options: Options, k: int | None) -> Fits:
    """Fit and judge on all rows."""
    return _collect([fit_split(moments, moments, groups, options, k)])


def _collect(splits: list[tuple[list[Map], Floats, Floats]]) -> Fits:
    maps, plain, leading = zip(*splits, strict=True)
    return Fits(list(maps), mean_over_folds(plain), float(np.mean(mean_over_folds(leading))))


def fit_split(
    train: PairMoments, test: PairMoments, groups: Sequence[Group], options: Options, k: int | None
) -> tuple[list[Map], Floats, Floats]:
    """Maps of every group fitted on `train`, and the CCA and SVCCA correlations in `test`."""
    maps = [g.fitted(train, options) for g in groups]
    return maps, canonical_correlations(train, test), canonical_correlations(train, test, leading=True, k=k)


@dataclass(frozen=True)
class Similarities:
    """Similarity of the two sides beside the ladder.

    Attributes
    ----------
    cca : ndarray
        Canonical correlations.
    svcca : float
    cka : float
    """

    cca: Floats
    svcca: float
    cka: float
