"""Two passes over paired rows: moments of every fold, then each row's error under the maps that have not seen it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import or_
from typing import Any

import numpy as np

from nearid.arrays import Pair, Rows
from nearid.arrays.pair import Index, part_of, read_part
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.base.progress import Progress, silent
from nearid.engines.base import Engine
from nearid.engines.device import current_device
from nearid.engines.local import LOCAL, blocks
from nearid.folds import EXACT, Blocks, FoldMoments, Places, assign, fold_moments, refuse_constant, refuse_small_folds
from nearid.groups.fits import Map
from nearid.groups.ladder import Group, Prepared
from nearid.groups.ridge import Judges
from nearid.measures.canonical import Canonical, Grid, held_out
from nearid.measures.diameter import SWEEPS, Diameter, InUse, search
from nearid.moments import Floats, PairMoments, leading_eigen, total
from nearid.questions.compare.many import Tally, Whole
from nearid.questions.compare.on_device import squares_of

Options = dict[str, Any]

# Number of leading principal components along which chance is measured if a side is wider.
LEADING = 64
# Seed of the sample of very many rows. It is not that of folds and tests, so that it is the same for all of them.
SAMPLE_SEED = 11


@dataclass(frozen=True)
class Sample:
    """A sample of the rows in use; of incomplete blocks, the first rows.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Their numbers, ascending.
    weights : ndarray of shape (m,)
        Number of rows of its block that each row represents.
    blocks : ndarray of int, shape (m,), or None
        Block of each, counted from 0 within the sample.
    """

    rows: np.ndarray
    weights: Floats
    blocks: np.ndarray | None


@dataclass(frozen=True)
class Gathered:
    """Result of the first pass.

    Attributes
    ----------
    fold : ndarray of uint8, shape (n,)
        Fold of each row.
    moments : PairMoments
        Of all rows in use.
    options, without_fold : dict, list of dict
        Of the fits on all rows, and on the rows outside each fold.
    alerts : tuple of Alert
        Alerts about what was prepared on each side alone.
    blocks : Blocks or None
        Rows that belong together; None if all rows are independent.
    judges : Judges or None
        What chose the penalties of linear maps; None where they are given.
    """

    pair: Pair
    fold: np.ndarray
    parts: FoldMoments
    moments: PairMoments
    options: Options
    without_fold: list[Options]
    alerts: tuple[Alert, ...] = ()
    blocks: Blocks | None = None
    judges: Judges | None = None

    @property
    def kept(self) -> slice | np.ndarray:
        """Rows in use, as an index."""
        return slice(None) if self.parts.kept is None else self.parts.kept

    @property
    def used(self) -> np.ndarray:
        """Rows in use, by their number."""
        return np.arange(self.pair.n)[self.kept]

    @property
    def block_count(self) -> int:
        """Blocks that have rows in use."""
        return 0 if self.blocks is None else len(np.unique(self.blocks.codes[self.kept]))

    @property
    def count(self) -> int:
        """Number of rows in use."""
        return self.moments.n

    def random_rows(self, most: int, rng: np.random.Generator) -> np.ndarray:
        """So many different rows in use, in random order."""
        # The numbers of all rows take more memory than these.
        return np.asarray(rng.choice(self.pair.n if self.parts.kept is None else self.used, most, replace=False))

    def sample(self, most: int, rng: np.random.Generator, among: np.ndarray | None = None) -> Sample:
        """About `most` random rows, or all if there are fewer; whole blocks if rows belong together.

        `among` are the rows to choose from. Default: all rows in use.
        """
        if self.blocks is None:
            if among is None and self.count > most:
                rows = np.sort(self.random_rows(most, rng))
            else:
                rows = self.used if among is None else among
                rows = np.sort(rng.choice(rows, most, replace=False)) if len(rows) > most else rows
            return Sample(rows, np.ones(len(rows)), None)
        sizes = np.bincount(self.blocks.codes[self.used], minlength=self.blocks.count)
        rows = self.used if among is None else among
        rows = self.blocks.sample(rows, most, rng) if len(rows) > most else rows
        own = self.blocks.codes[rows]
        codes = np.unique(own, return_inverse=True)[1]
        return Sample(rows, sizes[own] / np.bincount(codes)[codes], codes)

    @cached_property
    def eigen_x(self) -> tuple[Floats, Floats]:
        """Eigenvalues and leading eigenvectors of the source's scatter."""
        return leading_eigen(self.moments.xx, self.moments.n, LEADING)

    @cached_property
    def eigen_y(self) -> tuple[Floats, Floats]:
        """The same of the target's."""
        return leading_eigen(self.moments.yy, self.moments.n, LEADING)


@dataclass(frozen=True)
class Similarities:
    """Similarity of the two sides beside the ladder: means of CCA and SVCCA, linear CKA.

    Attributes
    ----------
    cca, svcca, cka : Estimate
    correlations : ndarray of shape (r,)
        All canonical correlations.
    directions : dict of str to list of int
        Number of canonical directions of CCA and SVCCA in each fold.
    """

    cca: Estimate
    svcca: Estimate
    cka: Estimate
    correlations: Floats
    directions: dict[str, list[int]]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        means = {name: getattr(self, name).to_dict() for name in ("cca", "svcca", "cka")}
        return {**means, "correlations": self.correlations.tolist(), "directions": self.directions}


@dataclass(frozen=True)
class Fits:
    """Fits that need only moments: maps by fold and group, the target's mean by fold (the constant guess), CCA."""

    maps: list[list[Map]]
    means: list[Floats]
    cca: Canonical
    svcca: Canonical

    def similarities(self, cka: float) -> Similarities:
        """Similarities without intervals; CKA is given, because it fits nothing."""
        directions = {"cca": self.cca.ranks, "svcca": self.svcca.ranks}
        means = Estimate(self.cca.value), Estimate(self.svcca.value)
        return Similarities(*means, Estimate(cka), self.cca.correlations, directions)


@dataclass(frozen=True)
class Evaluation:
    """Result of the second pass.

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
        Whether both sides have the same numbers in every row.
    sample : Sample or None
        The rows of which there are figures, if there are so many that not all were kept. n is then their number.
    whole : Whole or None
        In this case the means over all rows, and the rows farthest out.
    """

    errors: Floats
    spread: Floats
    radii: Floats
    origin: Floats
    fourth: Floats
    source_radii: Floats
    same: bool
    sample: Sample | None = None
    whole: Whole | None = None

    def of(self, gathered: Gathered) -> slice | np.ndarray:
        """The columns of the figures that are those of rows in use."""
        return slice(None) if self.sample is not None else gathered.kept

    @property
    def mean_errors(self) -> Floats:
        """Mean error of each group, if all rows are in use."""
        return np.asarray(self.errors.mean(axis=1) if self.whole is None else self.whole.errors)


def gather(
    pair: Pair,
    folds: int,
    options: Options,
    seed: int,
    *,
    together: Blocks | None,
    drop_nonfinite: bool,
    prepare: Iterable[Callable[..., Prepared]],
    engine: Engine,
    progress: Progress,
) -> Gathered:
    """First pass: the moments of every fold, penalties, and preparations of some groups on each side alone.

    `together` are the blocks of rows that are held out together.
    """
    fold = assign(pair.n, folds, seed, None if together is None else together.codes)
    tick = progress("moments", len(blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])))
    parts = fold_moments(pair, fold, folds, drop_nonfinite=drop_nonfinite, engine=engine, tick=tick)
    moments = parts.all
    refuse_small_folds(parts.counts, blocks=together is not None)
    refuse_constant((pair.x.name, pair.y.name), moments)
    prepared, judges = [one(pair, fold, parts) for one in prepare], None
    if options["ridge"] == "auto":
        judges = Judges(parts, translation=options["translation"])
        penalties = judges.choose(parts)
        prepared.append(Prepared({"ridge": penalties.whole}, [{"ridge": own} for own in penalties.folds], ()))
    whole = reduce(or_, (own.whole for own in prepared), options)
    without_fold = [reduce(or_, (own.folds[k] for own in prepared), options) for k in range(folds)]
    alerts = tuple(alert for own in prepared for alert in own.alerts)
    return Gathered(pair, fold, parts, moments, whole, without_fold, alerts, together, judges)


def fit_held_out(gathered: Gathered, groups: Sequence[Group], k: int | None) -> Fits:
    """Fit on all folds but one; correlations are those of the fold left out."""
    return Fits(*held_out_maps(gathered, groups), *_correlated(gathered.parts, k))


def held_out_maps(gathered: Gathered, groups: Sequence[Group]) -> tuple[list[list[Map]], list[Floats]]:
    """The maps of every group, and the mean of the target, of the rows outside each fold."""
    options, parts = gathered.without_fold, gathered.parts
    fitted = parts.map_splits(lambda fold, train, _: ([g.fitted(train, options[fold]) for g in groups], train.mean_y))
    maps, means = (list(each) for each in zip(*fitted, strict=True))
    return maps, means


def fit_in_sample(gathered: Gathered, groups: Sequence[Group], k: int | None) -> Fits:
    """Fit and judge on all rows."""
    whole, parts = gathered.moments, replace(gathered.parts, parts=[total(gathered.parts.parts)])
    maps = [[g.fitted(whole, gathered.options) for g in groups]]
    return Fits(maps, [whole.mean_y], *_correlated(parts, k))


def _correlated(parts: FoldMoments, k: int | None) -> tuple[Canonical, Canonical]:
    """CCA and SVCCA."""
    grid = Grid.of(parts)
    leading = held_out(parts, leading=True, k=k) if k else grid.held_out(leading=True)[0][0]
    return grid.held_out(leading=False)[0][0], leading


@dataclass(frozen=True)
class _Piece:
    """Rows of a block: which ones of each side, and the fold of each; -1 for rows that are left out."""

    block: tuple[int, int]
    indices: tuple[Index, Index]
    fold: np.ndarray


@dataclass(frozen=True)
class Judging:
    """What judges the rows of a block: the map of every group, and the constant guess, by fold.

    Radii are multiplied by `up`, to be rounded up.
    """

    x_frame: Frame
    y_frame: Frame
    plans: list[list[tuple[Map, Floats]]]
    guesses: list[Floats]
    up: float


def _judge(piece: _Piece, how: Judging, *sides: Rows) -> tuple[Floats, Floats, bool]:
    """Figures of each row (errors by group, spread, radii of target and source), fourth-order sums, and `same`."""
    x, y = (read_part(rows, index, *piece.block) for rows, index in zip(sides, piece.indices, strict=True))
    # A single row tells most runs apart.
    same = x.shape == y.shape and all(np.array_equal(x[s], y[s], equal_nan=True) for s in (slice(1), slice(1, None)))
    device = current_device()
    if device is not None and (squares := squares_of(x, y, piece.fold, how, device)) is not None:
        return *_from_squares(squares, piece.fold, how), same
    unit, sums = float(how.y_frame.units[0]), np.zeros(3)
    figures = np.full((len(how.plans[0]) + 3, len(piece.fold)), np.nan)
    *errors, spread, radii, source_radii = figures
    each = [np.flatnonzero(piece.fold == k) for k in range(len(how.plans))]
    most, dtype = max(map(len, each)), how.x_frame.origin.dtype
    places, room = Places((x, y), most, dtype), np.empty((most, y.shape[1]), dtype)
    for rows, row, guess in zip(each, how.plans, how.guesses, strict=True):
        xk, yk = (frame.enter(side) for frame, side in zip((how.x_frame, how.y_frame), places.take(rows), strict=True))
        near, far = how.x_frame.squares(xk), np.einsum("ij,ij->i", yk, yk).astype(np.float64)
        sums += [near @ (far * unit**2), near @ near, far @ far * unit**4]
        source_radii[rows] = np.sqrt(near)
        radii[rows] = np.sqrt(far) * how.up
        # |y - guess|^2 from products at hand; the guess is near the origin, so nothing cancels.
        apart = far - 2 * (yk @ guess) + guess @ guess
        spread[rows] = np.sqrt(np.maximum(apart, 0)) * unit
        for own, (fitted, offset) in zip(errors, row, strict=True):
            residual = fitted.turn(xk, room[: len(rows)])
            residual -= yk
            residual += offset
            own[rows] = row_norms(residual) * unit
    return figures, sums, same


def _from_squares(squares: Floats, fold: np.ndarray, how: Judging) -> tuple[Floats, Floats]:
    """The figures and sums of `_judge` from what a device computed, see `squares_of`."""
    *residuals, near, far, product = squares
    # The last guess is of no row, and stands for rows that are left out.
    sizes = np.array([float(guess @ guess) for guess in how.guesses] + [np.nan])[fold]
    spread = np.sqrt(np.maximum(far - 2 * product + sizes, 0))
    used = fold >= 0
    sums = np.array([near[used] @ far[used], near[used] @ near[used], far[used] @ far[used]])
    return np.array([*map(np.sqrt, residuals), spread, np.sqrt(far) * how.up, np.sqrt(near)]), sums


def evaluate(gathered: Gathered, fits: Fits, progress: Progress = silent, engine: Engine = LOCAL) -> Evaluation:
    """Second pass: errors of every row under the maps of its fold (in sample there is only one set of maps)."""
    pair, fold, parts, moments = gathered.pair, gathered.fold, gathered.parts, gathered.moments
    # Products use the precision of the inputs. The point that is subtracted first has this precision too, so that the
    # subtraction is exact near it. Its difference from the mean is part of each map's offset.
    dtype = np.result_type(pair.x.dtype, pair.y.dtype)
    x_frame = Frame(moments.mean_x.astype(dtype), _units(np.sqrt(np.diag(moments.xx) / moments.n)))
    # The target's own precision too: the search for its diameter starts from the same point.
    y_frame = Frame(
        moments.mean_y.astype(pair.y.dtype).astype(dtype), _units(np.sqrt([np.trace(moments.yy) / moments.n]))
    )
    unit = float(y_frame.units[0])
    plans = [[_plan(m, x_frame, y_frame, dtype) for m in row] for row in fits.maps]
    guesses = [((mean - y_frame.origin) / unit).astype(dtype) for mean in fits.means]
    # The error of sums of d rounded products is at most d units in the last place. Radii are rounded up by this error.
    up = unit * (1 + pair.y.shape[1] * float(np.finfo(dtype).eps))
    how = Judging(x_frame, y_frame, plans, guesses, up)
    # In sample there is only one set of maps.
    label = fold.astype(np.int16) if len(plans) > 1 else np.zeros(pair.n, dtype=np.int16)
    if parts.kept is not None:
        label[~parts.kept] = -1
    work = [
        _Piece(cut, (part_of(pair.x_index, *cut), part_of(pair.y_index, *cut)), label[slice(*cut)])
        for cut in blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])
    ]
    sample, tally = None, None
    if gathered.count > EXACT:
        sample = gathered.sample(EXACT, np.random.default_rng(SAMPLE_SEED))
        tally = Tally(len(plans[0]), len(plans), sample.rows)
    figures = np.empty((len(plans[0]) + 3, pair.n)) if tally is None else tally.figures
    fourth, same = np.zeros(3), True
    found = engine.map(_judge, work, how, pair.x, pair.y, tick=progress("errors", len(work)))
    for piece, (part, sums, alike) in zip(work, found, strict=True):
        if not np.isfinite(part[:-3, piece.fold >= 0]).all():
            raise InputError(
                f"Errors exceed the range of {dtype}. Convert the arrays to float64, or rescale the columns "
                f"to similar sizes."
            )
        if tally is None:
            figures[:, slice(*piece.block)] = part
        else:
            tally.add(piece.block[0], piece.fold, part)
        fourth += sums
        same &= alike
    errors, (spread, radii, source_radii) = figures[:-3], figures[-3:]
    whole = None if tally is None else tally.whole()
    origin = y_frame.origin.astype(np.float64)
    return Evaluation(errors, spread, radii, origin, fourth, source_radii, same, sample, whole)


def target_diameter(
    gathered: Gathered, evaluation: Evaluation, progress: Progress = silent, engine: Engine = LOCAL
) -> Diameter:
    """The largest distance between two rows of the target."""
    pair = gathered.pair
    tick = progress("diameter", SWEEPS * len(blocks(pair.n, 8 * pair.y.shape[1])))
    whole, radii, used = evaluation.whole, evaluation.radii, None
    if whole is not None:
        radii, used = whole.target.radii, InUse(whole.target.rows, pair.n, gathered.parts.kept)
    return search(pair.y, pair.y_index, radii, evaluation.origin, outermost=used, engine=engine, tick=tick)


@dataclass(frozen=True)
class Frame:
    """Origin and unit for the rows of one side. The origin is the mean, rounded to their precision.

    The unit is 1, or a typical size if squares of the numbers would exceed the range of float32.
    """

    origin: Floats
    units: Floats

    def enter(self, rows: Floats) -> Floats:
        """Centre and scale rows in place."""
        rows -= self.origin
        if np.any(self.units != 1):
            rows /= self.units.astype(rows.dtype)
        return rows

    def squares(self, rows: Floats) -> Floats:
        """Squared norms, in the original units, of centred and scaled rows."""
        if np.any(self.units != 1):
            rows = rows * self.units
        squares: Floats = np.einsum("ij,ij->i", rows, rows).astype(np.float64)
        return squares


def _units(sizes: Floats) -> Floats:
    live = sizes[sizes > 0]
    usual = not len(live) or (live.min() > 1e-6 and live.max() < 1e6)
    return np.ones_like(sizes) if usual else np.where(sizes > 0, sizes, 1.0)


def _plan(fitted: Map, x_frame: Frame, y_frame: Frame, dtype: np.dtype) -> tuple[Map, Floats]:
    """The map between the two frames, and a constant offset."""
    start = x_frame.origin.astype(np.float64) - fitted.source_centre
    shift = fitted.turn(start[None])[0] + fitted.target_centre - y_frame.origin
    unit = float(y_frame.units[0])
    return fitted.rescaled(x_frame.units, unit, dtype), (shift / unit).astype(dtype)


def row_norms(rows: Floats) -> Floats:
    """Euclidean norm of each row."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


def root_mean_square(values: Floats) -> float:
    """Root of the mean square, of values of any size."""
    unit = float(values.max()) or 1.0
    return unit * float(np.sqrt(np.mean((values / unit) ** 2)))


def unexplained_share(errors: Floats, spread: Floats) -> Floats:
    """Squared error over that of the constant guess (1 - R2), per group; 1 if there is nothing to explain."""
    size = float(spread.max())
    if size == 0:
        return np.ones(len(errors))
    return np.asarray(np.sum((errors / size) ** 2, axis=1) / np.sum((spread / size) ** 2))
