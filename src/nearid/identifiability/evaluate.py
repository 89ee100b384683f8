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
from nearid.measures.similarity import canonical_correlations, fourth_moments, mean_over_folds
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
        Distance of each target row from the mean of all; NaN for rows left out.
    moments : PairMoments
        Of all rows in use.
    parts : FoldMoments
    fourth : ndarray of shape (3,)
        Fourth-order sums for the debiased CKA.
    """

    errors: Floats
    spread: Floats
    radii: Floats
    moments: PairMoments
    parts: FoldMoments
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
    p, q = pair.x.shape[1], pair.y.shape[1]
    mean_x, mean_y = moments.mean_x, moments.mean_y
    unit_x, unit_y = (np.sqrt(np.trace(s) / moments.n) or 1.0 for s in (moments.xx, moments.yy))
    # Rows are centred in float64 and brought to unit size, so float32 is safe for the products of float32 inputs.
    dtype = np.result_type(pair.x.dtype, pair.y.dtype)
    plans = [[_plan(m, mean_x, mean_y, unit_x, unit_y, dtype) for m in row] for row in maps]
    guesses = [((row[0].target_centre - mean_y) / unit_y).astype(dtype) if row else np.zeros(q, dtype) for row in maps]

    errors = np.full((len(maps[0]), pair.n), np.nan)
    spread, radii, fourth = np.full(pair.n, np.nan), np.full(pair.n, np.nan), np.zeros(3)

    def judge(block: tuple[int, int]) -> Floats:
        start, stop = block
        x, y = pair.read(start, stop)
        rows = np.arange(start, stop)
        if parts.kept is not None:
            kept = parts.kept[start:stop]
            x, y, rows = x[kept], y[kept], rows[kept]
        centred_x, centred_y = np.subtract(x, mean_x, dtype=np.float64), np.subtract(y, mean_y, dtype=np.float64)
        radii[rows] = np.sqrt(np.einsum("ij,ij->i", centred_y, centred_y))
        sums = fourth_moments(centred_x, centred_y)
        centred_x /= unit_x
        centred_y /= unit_y
        x, y = centred_x.astype(dtype, copy=False), centred_y.astype(dtype, copy=False)
        for k, (row, guess) in enumerate(zip(plans, guesses, strict=True)):
            mine = np.flatnonzero(fold[rows] == k) if len(plans) > 1 else slice(None)
            xk, yk, where = x[mine], y[mine], rows[mine]
            spread[where] = row_norms(yk - guess) * unit_y
            for g, (turn, offset) in enumerate(row):
                residual = turn(xk)
                residual -= yk
                residual += offset
                errors[g, where] = row_norms(residual) * unit_y
        return sums

    work = blocks(pair.n, p + q)
    for sums in ordered_map(judge, work, tick=progress("errors", len(work))):
        fourth += sums
    return Evaluation(errors, spread, radii, moments, parts, fourth)


def _plan(
    fitted: Map, mean_x: Floats, mean_y: Floats, unit_x: float, unit_y: float, dtype: np.dtype
) -> tuple[Callable[[Floats], Floats], Floats]:
    """The map between rows centred on the means of all, in unit sizes: a turn and a constant offset."""
    shift = fitted.turn((mean_x - fitted.source_centre)[None])[0] + fitted.target_centre - mean_y
    return fitted.rescaled(unit_x, unit_y, dtype).turn, (shift / unit_y).astype(dtype)


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
