"""Two passes over paired rows: moments of every fold, then each row's error under the maps that have not seen it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid.arrays import Pair
from nearid.base.errors import InputError
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.engines.local import blocks, ordered_map
from nearid.folds import FoldMoments, fold_moments
from nearid.groups.fits import Map
from nearid.groups.ladder import Group
from nearid.measures.similarity import canonical_products, pooled
from nearid.moments import Floats, PairMoments

Options = dict[str, Any]


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


@dataclass(frozen=True)
class Fits:
    """What is fitted on moments alone.

    Attributes
    ----------
    maps : list over folds of lists over groups
    means : list over folds
        The target's mean over the rows fitted on: the constant guess.
    cca : ndarray
        Canonical correlations.
    svcca : float
    """

    maps: list[list[Map]]
    means: list[Floats]
    cca: Floats
    svcca: float


@dataclass(frozen=True)
class Evaluation:
    """What the second pass finds.

    Attributes
    ----------
    errors : ndarray of shape (groups, n)
        Euclidean error of each row under each group, in the target's units. NaN for rows left out, here and below.
    spread : ndarray of shape (n,)
        Error of the constant guess: the mean of the rows that the maps were fitted on.
    radii : ndarray of shape (n,)
        Distance of each target row from `origin`, rounded up.
    origin : ndarray of shape (q,)
        The target's mean, rounded to the precision of the inputs.
    fourth : ndarray of shape (3,)
        Fourth-order sums for the debiased CKA.
    source_radii : ndarray of shape (n,)
        Distance of each source row from the source's mean.
    same : bool
        Whether both sides hold the same numbers in every row.
    """

    errors: Floats
    spread: Floats
    radii: Floats
    origin: Floats
    fourth: Floats
    source_radii: Floats
    same: bool


def gather(
    pair: Pair, fold: np.ndarray, folds: int, *, drop_nonfinite: bool, engine: Engine, progress: Progress
) -> tuple[FoldMoments, PairMoments]:
    """First pass: the moments."""
    tick = progress("moments", len(blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])))
    parts = fold_moments(pair, fold, folds, drop_nonfinite=drop_nonfinite, engine=engine, tick=tick)
    return parts, parts.all


def fit_held_out(parts: FoldMoments, groups: Sequence[Group], options: Sequence[Options], k: int | None) -> Fits:
    """Fit on all folds but one, for each with its own options; correlations are those of the fold left out."""
    return _collect(parts.map_splits(lambda fold, train, test: fit_split(train, test, groups, options[fold], k)))


def fit_in_sample(moments: PairMoments, groups: Sequence[Group], options: Options, k: int | None) -> Fits:
    """Fit and judge on all rows."""
    return _collect([fit_split(moments, moments, groups, options, k)])


def _collect(splits: list[tuple[list[Map], Floats, Floats, Floats]]) -> Fits:
    maps, means, plain, leading = zip(*splits, strict=True)
    return Fits(list(maps), list(means), pooled(plain), float(np.mean(pooled(leading))))


def fit_split(
    train: PairMoments, test: PairMoments, groups: Sequence[Group], options: Options, k: int | None
) -> tuple[list[Map], Floats, Floats, Floats]:
    """Maps of every group fitted on `train`, its target's mean, and products in `test` for CCA and SVCCA."""
    maps = [g.fitted(train, options) for g in groups]
    plain, leading = canonical_products(train, test), canonical_products(train, test, leading=True, k=k)
    return maps, train.mean_y, plain, leading


def evaluate(
    pair: Pair, fold: np.ndarray, parts: FoldMoments, moments: PairMoments, fits: Fits, *, progress: Progress
) -> Evaluation:
    """Second pass: errors of every row under the maps of its fold (under the only ones, when fitted in sample)."""
    # Products are taken in the precision of the inputs. The point that is subtracted first has that precision too, so
    # that the subtraction is exact near it; what it misses of the mean is part of each map's offset.
    dtype = np.result_type(pair.x.dtype, pair.y.dtype)
    x_frame = Frame(moments.mean_x.astype(dtype), _units(np.sqrt(np.diag(moments.xx) / moments.n)))
    # The target's own precision too: the search for its diameter starts from the same point.
    y_frame = Frame(
        moments.mean_y.astype(pair.y.dtype).astype(dtype), _units(np.sqrt([np.trace(moments.yy) / moments.n]))
    )
    unit = float(y_frame.units[0])
    plans = [[_plan(m, x_frame, y_frame, dtype) for m in row] for row in fits.maps]
    guesses = [((mean - y_frame.origin) / unit).astype(dtype) for mean in fits.means]
    # Sums of d rounded products are off by at most d units in the last place: radii are rounded up by that.
    up = unit * (1 + pair.y.shape[1] * float(np.finfo(dtype).eps))

    errors = np.full((len(plans[0]), pair.n), np.nan)
    spread, radii, source_radii = (np.full(pair.n, np.nan) for _ in range(3))
    alike = pair.x.shape[1] == pair.y.shape[1]

    def judge(block: tuple[int, int]) -> tuple[Floats, bool]:
        start, stop = block
        x, y = pair.read(start, stop)
        same = alike and np.array_equal(x, y, equal_nan=True)
        sums = np.zeros(3)
        for k, (row, guess) in enumerate(zip(plans, guesses, strict=True)):
            mine = fold[start:stop] == k if len(plans) > 1 else np.ones(stop - start, dtype=bool)
            if parts.kept is not None:
                mine &= parts.kept[start:stop]
            rows = np.flatnonzero(mine)
            xk, yk, where = x_frame.enter(x[rows]), y_frame.enter(y[rows]), rows + start
            near, far = x_frame.squares(xk), np.einsum("ij,ij->i", yk, yk).astype(np.float64)
            sums += [near @ (far * unit**2), near @ near, far @ far * unit**4]
            source_radii[where] = np.sqrt(near)
            radii[where] = np.sqrt(far) * up
            # |y - guess|^2 from products at hand; the guess is near the origin, so nothing cancels.
            apart = far - 2 * (yk @ guess) + guess @ guess
            spread[where] = np.sqrt(np.maximum(apart, 0)) * unit
            for g, (turn, offset) in enumerate(row):
                residual = turn(xk)
                residual -= yk
                residual += offset
                errors[g, where] = row_norms(residual) * unit
        return sums, same

    work, fourth = blocks(pair.n, pair.x.shape[1] + pair.y.shape[1]), np.zeros(3)
    for sums, same in ordered_map(judge, work, tick=progress("errors", len(work))):
        fourth += sums
        alike &= same
    if not np.isfinite(errors if parts.kept is None else errors[:, parts.kept]).all():
        raise InputError(f"Errors leave the range of {dtype}: give float64, or columns of more similar size.")
    return Evaluation(errors, spread, radii, y_frame.origin.astype(np.float64), fourth, source_radii, alike)


@dataclass(frozen=True)
class Frame:
    """Where one side's rows are measured from, and in what units.

    Attributes
    ----------
    origin : ndarray of shape (d,)
        The mean, rounded to the precision of the rows.
    units : ndarray of shape (d,) or (1,)
        1, or typical sizes where squares of such numbers would leave the range of float32.
    """

    origin: Floats
    units: Floats

    def enter(self, rows: Floats) -> Floats:
        """Rows of a fresh array, moved and scaled in place."""
        rows = rows.astype(self.origin.dtype, copy=False)
        rows -= self.origin
        if np.any(self.units != 1):
            rows /= self.units.astype(rows.dtype)
        return rows

    def squares(self, rows: Floats) -> Floats:
        """Squared norms, in the original units, of rows that have entered."""
        if np.any(self.units != 1):
            rows = rows * self.units
        squares: Floats = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        return squares


def _units(sizes: Floats) -> Floats:
    live = sizes[sizes > 0]
    usual = not len(live) or (live.min() > 1e-6 and live.max() < 1e6)
    return np.ones_like(sizes) if usual else np.where(sizes > 0, sizes, 1.0)


def _plan(fitted: Map, x_frame: Frame, y_frame: Frame, dtype: np.dtype) -> tuple[Callable[[Floats], Floats], Floats]:
    """The map between the two frames: a turn and a constant offset."""
    start = x_frame.origin.astype(np.float64) - fitted.source_centre
    shift = fitted.turn(start[None])[0] + fitted.target_centre - y_frame.origin
    unit = float(y_frame.units[0])
    return fitted.rescaled(x_frame.units, unit, dtype).turn, (shift / unit).astype(dtype)


def row_norms(rows: Floats) -> Floats:
    """Euclidean norm of each row."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def unexplained_share(errors: Floats, spread: Floats) -> Floats:
    """Squared error over that of the constant guess (1 - R2), per group; 1 where there is nothing to explain."""
    size = float(spread.max())
    if size == 0:
        return np.ones(len(errors))
    return np.asarray(np.sum((errors / size) ** 2, axis=1) / np.sum((spread / size) ** 2))
