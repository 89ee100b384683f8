"""Held-out folds of paired rows, the pass that computes the moments of every fold, and repeated rows."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from heapq import heapreplace
from typing import NamedTuple, TypeVar

import numpy as np

from nearid.arrays import Pair, Rows, Single, first_nonfinite, nonfinite
from nearid.arrays.pair import Index, read_side
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.engines.base import Engine, held_nodes
from nearid.engines.device import current_device
from nearid.engines.local import LOCAL, blocks, ordered_map
from nearid.moments import Floats, Moments, PairMoments, total

T = TypeVar("T")

# Beyond this size (or below its inverse) products of second moments overflow or vanish.
LARGEST = 1e70

# Correlations within fewer rows than this are too low on average.
ROWS_PER_FOLD = 10

# With fewer independent stretches of a sequence than this, the chance level cannot be measured.
STRETCHES = 10

# Minimum number of blocks in a sample of rows, unless there are fewer.
LEAST_BLOCKS = 100

# Bytes that are stored for every row at least: its fold, its errors and its distances. Above `EXACT` rows the errors
# are summed and sampled, folds are dealt in portions of so many rows, and only the fold and its copies are stored.
ROW_BYTES, EXACT, FOLD_BYTES = 64, 1 << 20, 8

# Rows are kept in addition to their moments if there are fewer than so many per column of the wider side.
KEPT = 2

# Products of float32 rows are taken in float32 from this many rows and columns on. A part of the rows must have shown
# that the smallest eigenvalue of the correlations of all columns is above this, and that no column is constant or
# outside of this range of sizes.
SINGLE_ROWS, SINGLE_WIDTH, SINGLE_LEAST, SINGLE_SIZES = 50_000, 64, 1e-3, (1e-12, 1e12)
# The rows that show it: so many per column, in so many stretches.
SHOWN, STRETCHES_SHOWN = 4, 8
# The largest distance of a shift from the mean, in standard deviations, with sums in float64 and in float32.
FAR, SINGLE_FAR = 1e3, 1.0

# From this width of both sides on, products of each side and of both are taken one by one, from rows that are not put
# side by side before.
APART = 128

# Above this many bytes of partial sums, one worker with BLAS threads is used instead of one thread per block.
PARTIAL_BYTES = 256 << 20


def assign(n: int, folds: int, seed: int, blocks: np.ndarray | None = None) -> np.ndarray:
    """Return the fold of each of n rows: balanced and random, and the same for the same seed.

    `blocks` holds the block number of each row. Rows of a block are held out together.
    """
    if not 1 <= folds <= 255:
        raise InputError(f"folds must be between 2 and 255, not {folds}.")
    if n < 2 * folds:
        raise InputError(
            f"{n} paired rows are too few for {folds} folds: give at least {2 * folds} rows or fewer folds."
        )
    # A few numbers per row, such as its errors, are in memory, even if the rows themselves are read from a file.
    need = ROW_BYTES * min(n, EXACT) + FOLD_BYTES * max(n - EXACT, 0)
    check_memory(f"A comparison of {n} rows", need, "Take a sample of the rows.")
    rng = np.random.default_rng(seed)
    if blocks is None:
        portions = (rng.permutation(min(EXACT, n - start)) for start in range(0, n, EXACT))
        return np.concatenate([(portion % folds).astype(np.uint8) for portion in portions])
    return np.asarray(_deal(np.bincount(blocks), folds, rng)[blocks])


def _deal(sizes: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Return a random fold for each block: large blocks first, each into the fold with the fewest rows so far."""
    if len(sizes) < folds:
        count = f"{len(sizes)} blocks of rows are" if len(sizes) > 1 else "One block of rows is"
        raise InputError(
            f"{count} too few for {folds} folds, because each fold needs its own block. Use fewer folds with folds= "
            "(--folds), or smaller blocks."
        )
    # Random order among blocks of similar size, so that another seed gives other folds.
    order = rng.permutation(len(sizes))
    order = order[np.argsort(-np.log2(np.maximum(sizes, 1))[order].astype(int), kind="stable")]
    fold = np.empty(len(sizes), dtype=np.uint8)
    lightest = [(0, k) for k in range(folds)]
    for block in order:
        rows, k = lightest[0]
        fold[block] = k
        heapreplace(lightest, (rows + int(sizes[block]), k))
    return fold


@dataclass(frozen=True)
class Blocks:
    """Blocks of rows that belong together and are held out, resampled and permuted as a unit.

    Attributes
    ----------
    codes : ndarray of int, shape (n,)
        Number of each row's block, from 0.
    serial : bool
        Whether the blocks are pieces of one sequence of rows, cut by nearid itself.
    chained : bool
        Whether consecutive blocks are similar, so that the blocks are not independent.
    slow : bool
        Whether rows depend on their neighbours over such long distances that fewer than ten stretches are independent.
    """

    codes: np.ndarray
    serial: bool = False
    chained: bool = False
    slow: bool = False

    @classmethod
    def cut(cls, n: int, length: int, folds: int) -> Blocks:
        """Return pieces of about this length of a sequence of n rows, or shorter ones if folds need more pieces."""
        pieces = max(n // length, folds)
        return cls(np.arange(n) * pieces // n, serial=True, slow=n < STRETCHES * length)

    @property
    def unmeasured(self) -> tuple[str, str]:
        """For slow rows, why chance cannot be measured (the start of a sentence) and what to do; else empty."""
        if not self.slow:
            return "", ""
        if self.serial:
            return (
                "Rows depend on their neighbours for so long",
                "Give the rows that belong together with --blocks COLUMN (blocks=), or give --blocks none "
                '(blocks="none") if the order of the rows means nothing.',
            )
        return (
            "Blocks of rows depend on the blocks that follow them for so long",
            "If these belong together, like the plates of one day, give the larger unit as --blocks (blocks=). If the "
            "order of the blocks has no meaning, as in a sorted table, shuffle the blocks.",
        )

    @property
    def count(self) -> int:
        """Number of blocks."""
        return int(self.codes.max()) + 1

    @property
    def lags(self) -> range:
        """The possible circular shifts of the target, in rows, if the blocks are pieces of a sequence."""
        n = len(self.codes)
        least = min(int(np.bincount(self.codes).max()), n // 3)
        return range(least, n - least + 1)

    def take(self, rows: np.ndarray) -> Blocks:
        """Return the blocks of some rows."""
        return replace(self, codes=np.unique(self.codes[rows], return_inverse=True)[1])

    def sample(self, rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
        """Return about `most` of some rows, from random blocks: whole blocks, or the first rows of long blocks."""
        codes = np.unique(self.codes[rows], return_inverse=True)[1]
        sizes = np.bincount(codes)
        order = rng.permutation(len(sizes))
        whole = int(np.searchsorted(np.cumsum(sizes[order]), most, side="right"))
        count = max(whole, min(len(sizes), LEAST_BLOCKS))
        place = np.empty(len(rows), dtype=np.intp)
        place[np.argsort(codes, kind="stable")] = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        longest = len(rows) if count == whole else max(most // count, 2)
        return rows[np.isin(codes, order[:count]) & (place < longest)]


def reordered(n: int, blocks: Blocks | None, rng: np.random.Generator, *, all_move: bool = False) -> np.ndarray:
    """Return, for each of n rows, the row whose target it gets under the null hypothesis of no relation.

    Independent rows are permuted. A sequence is shifted circularly by a random lag of at least one block, which keeps
    its order. Other blocks exchange places with blocks of similar length. The order within a block is kept, and a
    shorter block is repeated. With few blocks some may keep their place, as a test over all orders requires. With
    `all_move` none keeps its place, because a mean over orders must not contain a part of the true pairing.
    """
    if blocks is None:
        return rng.permutation(n)
    if blocks.serial:
        return turned(n, int(rng.integers(blocks.lags.start, blocks.lags.stop)))
    sizes = np.bincount(blocks.codes)
    partner = _swapped(sizes, rng, all_move)
    rows = np.argsort(blocks.codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    place = np.arange(n) - np.repeat(starts, sizes)
    other = np.repeat(partner, sizes)
    chosen = np.empty(n, dtype=np.intp)
    chosen[rows] = rows[starts[other] + place % sizes[other]]
    return chosen


def turned(n: int, lag: int) -> np.ndarray:
    """Return, for each of n rows, the row that is `lag` rows later, continuing with the first after the last."""
    return np.asarray((np.arange(n) + lag) % n)


# Up to so many blocks have too few cyclic orders, so other orders are used, too.
FEW_CYCLES = 6
# Blocks of similar length that exchange places: at least so many, and at least this share of all.
LEAST_SWAPPED, SWAPPED_SHARE = 10, 0.1


def _swapped(sizes: np.ndarray, rng: np.random.Generator, all_move: bool) -> np.ndarray:
    """Return another block of similar length for each block. No block keeps its place, except with few blocks."""
    order = rng.permutation(len(sizes))
    if len(sizes) <= FEW_CYCLES and not all_move:
        return order if np.any(order != np.arange(len(sizes))) else _swapped(sizes, rng, all_move)
    order = order[np.argsort(sizes[order], kind="stable")]
    width = len(sizes) if sizes.min() == sizes.max() else max(LEAST_SWAPPED, int(SWAPPED_SHARE * len(sizes)))
    # Windows begin anywhere, so that every block meets all its neighbours; the last one is joined to a short rest.
    edges = np.arange(int(rng.integers(width)) if width < len(sizes) else 0, len(sizes), width)
    pieces = [piece for piece in np.split(order, edges) if len(piece)]
    if len(pieces) > 1 and len(pieces[0]) < 2:
        pieces[:2] = [np.concatenate(pieces[:2])]
    if len(pieces) > 1 and len(pieces[-1]) < 2:
        pieces[-2:] = [np.concatenate(pieces[-2:])]
    partner = np.empty(len(sizes), dtype=np.intp)
    for piece in pieces:
        mixed = rng.permutation(piece)
        partner[mixed] = np.roll(mixed, 1)
    return partner


def few_rows_per_fold(measure: str, n: int, folds: int) -> tuple[Alert, ...]:
    """Return an alert about a measure that is a mean of correlations within folds, if folds have few rows."""
    if folds == 1 or n >= ROWS_PER_FOLD * folds:
        return ()
    fewer = n // ROWS_PER_FOLD
    advice = f"folds={fewer} (--folds {fewer})" if fewer >= 2 else f"at least {2 * ROWS_PER_FOLD} rows and fewer folds"
    text = f"{measure} is too low: {n} rows in {folds} folds leave {n // folds} per fold, too few for a correlation."
    return (Alert("few_rows_per_fold", f"{text} Use {advice}."),)


@dataclass(frozen=True)
class FoldMoments:
    """Moments of each fold of a pair of inputs.

    Attributes
    ----------
    parts : list of Moments
        Joint moments of the concatenated rows [x, y] of each fold.
    width : int
        Number of columns of x.
    kept : ndarray of bool, shape (n,), or None
        Rows in use. None means all rows.
    traits : ndarray
        A number for each row in use, in any order, that is equal for copies of a row. Empty if nothing is held out. Of
        more than `EXACT` rows, only some of the numbers are kept, with all of their copies.
    """

    parts: list[Moments]
    width: int
    kept: np.ndarray | None
    traits: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def counts(self) -> list[int]:
        """Rows of each fold."""
        return [part.n for part in self.parts]

    @property
    def spreads_y(self) -> list[Floats]:
        """Centred sum of squares of each column of y, in each fold."""
        return [np.diag(part.scatter)[self.width :] for part in self.parts]

    @cached_property
    def all(self) -> PairMoments:
        """Moments of all rows."""
        return PairMoments.split(total(self.parts), self.width)

    def mean_of(self, folds: Sequence[int]) -> Floats:
        """Mean of the rows of some folds."""
        counts, means = (np.array([getattr(self.parts[k], name) for k in folds]) for name in ("n", "mean"))
        return np.asarray(means[0] + counts @ (means - means[0]) / counts.sum())

    def rows_of(self, folds: Sequence[int], centre: Floats) -> tuple[Floats, Floats]:
        """Return both sides of the rows of some folds, minus a point. The rows must have been kept."""
        each = [(self.parts[k].rows, self.parts[k].mean) for k in folds]
        assert all(own is not None for own, _ in each)
        rows = np.concatenate([own + (mean - centre) for own, mean in each if own is not None])
        return rows[:, : self.width], rows[:, self.width :]

    def part(self, k: int) -> PairMoments:
        """Moments of fold k."""
        return PairMoments.split(self.parts[k], self.width)

    def without(self, folds: Sequence[int]) -> PairMoments:
        """Return the moments of the rows outside some folds, by adding the other folds, so that nothing cancels."""
        return PairMoments.split(total([p for j, p in enumerate(self.parts) if j not in folds]), self.width)

    def split(self, k: int) -> tuple[PairMoments, PairMoments]:
        """(train, test) moments with fold k left out."""
        return self.without([k]), self.part(k)

    def map_splits(self, function: Callable[[int, PairMoments, PairMoments], T]) -> list[T]:
        """Return function(fold, train, test) for every fold, in threads if the moments are small enough."""
        workers = 1 if self.parts[0].scatter.nbytes > PARTIAL_BYTES // 4 else None
        return list(ordered_map(lambda k: function(k, *self.split(k)), range(len(self.parts)), workers=workers))


def fold_moments(
    pair: Pair,
    fold: np.ndarray,
    folds: int,
    *,
    drop_nonfinite: bool = False,
    engine: Engine = LOCAL,
    tick: Callable[[], object] | None = None,
) -> FoldMoments:
    """Return the moments of every fold, computed in one pass.

    Parameters
    ----------
    pair : Pair
    fold : ndarray of uint8, shape (n,)
        Fold of each row.
    folds : int
    drop_nonfinite : bool
        Whether to leave out pairs of rows with NaN or infinity. Otherwise such a value raises an error that names its
        row and column.
    engine : Engine
        The engine that runs the pass.
    """
    return FoldMoments(*_moments(pair, fold, folds, drop_nonfinite, engine, tick))


def row_moments(
    rows: Rows,
    *,
    only: np.ndarray | None = None,
    drop_nonfinite: bool = False,
    engine: Engine = LOCAL,
    tick: Callable[[], object] | None = None,
) -> tuple[Moments, np.ndarray | None]:
    """Return the moments of the rows of one input, or of a part of them, and which rows are not dropped.

    Parameters
    ----------
    only : ndarray of bool, shape (n,), optional
        Rows to use. Default: all rows. The other rows may contain NaN.
    """
    fold = None if only is None else np.where(only, 0, 1).astype(np.uint8)
    parts, _, kept, _ = _moments(Single(rows), fold, 1, drop_nonfinite, engine, tick)
    return parts[0], kept


def _moments(
    source: Pair | Single,
    fold: np.ndarray | None,
    folds: int,
    drop_nonfinite: bool,
    engine: Engine,
    tick: Callable[[], object] | None,
) -> tuple[list[Moments], int, np.ndarray | None, Floats]:
    """Moments of every fold, the width of the first side, the rows in use, and traits where folds are held out."""
    indices = tuple(index for _, index in source.sides)
    sample = _sample(source)
    # By the source alone: the same for all of its targets, which share what is worked out of it.
    few = folds > 1 and source.n < KEPT * source.sides[0][0].shape[1]
    weights = trait_weights(sample) if folds > 1 else None
    plan = FoldPass(indices, fold, folds, drop_nonfinite, _shift(sample), weights, few)
    if folds > 1 and _single_suffices(source):
        gathered = _gather_single(source, replace(plan, dtype=np.dtype(np.float32)), engine, _twice(tick))
        if gathered is not None:
            parts, kept, row_traits = gathered
            return parts, source.sides[0][0].shape[1], None if kept.all() else kept, row_traits
        tick = None
    parts, kept, row_traits = _gather(source, plan, engine, tick)
    whole = total(parts)
    # Far from the mean, a shift lets digits cancel: then the mean just found is a better one.
    if _far(whole, plan.shift, FAR):
        parts, kept, row_traits = _gather(source, replace(plan, shift=whole.mean), engine, None)
    return parts, source.sides[0][0].shape[1], None if kept.all() else kept, row_traits


def _far(whole: Moments, shift: Floats, most: float) -> bool:
    """Whether a shift is farther from the mean than so many standard deviations, in any column."""
    spread = np.sqrt(np.diag(whole.scatter) / max(whole.n, 1))
    return bool(np.any(np.abs(whole.mean - shift) > most * spread))


def _single_suffices(source: Pair | Single) -> bool:
    """Whether sums of products in float32 will do, by some stretches of the rows.

    Within a block such sums have relative errors of about 1e-7, which average out over many blocks. Where columns are
    nearly linear combinations of others, on one side or between both, fits would amplify them.
    """
    width = sum(rows.shape[1] for rows, _ in source.sides)
    if source.n < SINGLE_ROWS or width < SINGLE_WIDTH or any(rows.dtype != np.float32 for rows, _ in source.sides):
        return False
    length = min(-(-SHOWN * width // STRETCHES_SHOWN), source.n // STRETCHES_SHOWN)
    starts = np.linspace(0, source.n - length, STRETCHES_SHOWN).astype(int)
    stretches = [[read_side(*side, a, a + length) for side in source.sides] for a in starts.tolist()]
    rows = np.concatenate([np.hstack(sides, dtype=np.float64) for sides in stretches])
    return _well_conditioned(Moments.of(rows[np.isfinite(rows).all(axis=1)]))


def _well_conditioned(moments: Moments) -> bool:
    """Whether no column is constant, very large, very small or nearly a linear combination of others."""
    sizes = np.sqrt(np.diag(moments.scatter) / max(moments.n, 1))
    if moments.n <= len(sizes) or not np.all((sizes > SINGLE_SIZES[0]) & (sizes < SINGLE_SIZES[1])):
        return False
    correlations = moments.scatter / sizes[:, None] / sizes / moments.n
    return bool(np.linalg.eigvalsh(correlations)[0] > SINGLE_LEAST)


def _twice(tick: Callable[[], object] | None) -> Callable[[], object] | None:
    """What counts a block of a pass in float32, which has the rows of two that the progress counts."""
    return None if tick is None else lambda: (tick(), tick())


def _gather_single(
    source: Pair | Single, plan: FoldPass, engine: Engine, tick: Callable[[], object] | None
) -> tuple[list[Moments], np.ndarray, Floats] | None:
    """The pass in float32; None if all rows are not what a part of them promised."""
    # A shift of the same precision is subtracted without rounding errors from all that is near it.
    shift = _shift(_sample(source), near=0.25).astype(plan.dtype).astype(np.float64)
    try:
        gathered = _gather(source, replace(plan, shift=shift), engine, tick)
    except OutOfRange:
        return None
    whole = total(gathered[0])
    return gathered if not _far(whole, shift, SINGLE_FAR) and _well_conditioned(whole) else None


@dataclass(frozen=True)
class FoldPass:
    """What the pass over the blocks needs to know beside the rows; see `fold_moments`.

    Attributes
    ----------
    indices : tuple of (ndarray or None)
        Rows of each side that make up the pairs.
    fold : ndarray of uint8, shape (n,), or None
        Fold of each row. None: all rows are in fold 0, and nothing that grows with the rows is sent to workers.
    shift : ndarray of shape (width,)
        Sums are taken about this point.
    weights : ndarray of shape (width,) or None
        Of the columns in the traits of the rows; None where these are not needed.
    keep : bool
        Whether the rows are kept beside their sums.
    dtype : numpy.dtype
        Precision of the products within a block. They are added over blocks in float64.
    """

    indices: tuple[Index, ...]
    fold: np.ndarray | None
    folds: int
    drop_nonfinite: bool
    shift: Floats
    weights: Floats | None
    keep: bool
    dtype: np.dtype = field(default_factory=lambda: np.dtype(np.float64))


class Sums(NamedTuple):
    """Count, sum and sum of products of the shifted rows of a fold; the numbers of rows that were dropped.

    Of the others their traits and, where they are to be kept, the shifted rows themselves.
    """

    n: int
    first: Floats
    second: Floats
    dropped: np.ndarray
    traits: Floats
    rows: Floats


def _sums(block: tuple[int, int], plan: FoldPass, *rows: Rows) -> Iterator[Sums]:
    """Sums over a block, fold by fold."""
    sides = [read_side(side, index, *block) for side, index in zip(rows, plan.indices, strict=True)]
    cuts = list(itertools.pairwise(itertools.accumulate((side.shape[1] for side in sides), initial=0)))
    label = np.zeros(len(sides[0]), np.uint8) if plan.fold is None else plan.fold[slice(*block)]
    folds = [np.flatnonzero(label == k) for k in range(plan.folds)]
    n_pairs = rows[0].shape[0] if plan.indices[0] is None else len(plan.indices[0])
    places = Places(sides, max(map(len, folds)), plan.dtype)
    for at in folds:
        dropped, n = at[:0], len(at)
        z = places.take(at)
        for side, cut in zip(z, cuts, strict=True):
            shift = plan.shift[slice(*cut)]
            if shift.any():
                side -= shift.astype(plan.dtype)
        # Infinities of both signs have no sum; they are refused or dropped here.
        with np.errstate(invalid="ignore", over="ignore"):
            first = _column_sums(z)
        if not np.isfinite(first).all():
            if not plan.drop_nonfinite:
                refuse_nonfinite(list(zip(rows, plan.indices, strict=True)), sides, block[0])
            good = np.all([np.isfinite(side).all(axis=1) for side in z], axis=0)
            dropped, n = at[~good] + block[0], int(good.sum())
            z = [side[good] for side in z]
            first = _column_sums(z)
        own: Floats = np.empty(0)
        if plan.weights is not None:
            each = [traits(side, plan.weights[slice(*cut)]) for side, cut in zip(z, cuts, strict=True)]
            own = some_traits(sum(each[1:], each[0]), n_pairs)
        kept = np.concatenate(z, axis=1) if plan.keep else np.empty((0, cuts[-1][1]))
        yield Sums(n, first, _products(z), dropped, own, kept)


def _column_sums(sides: Sequence[Floats]) -> Floats:
    return np.concatenate([side.sum(axis=0) for side in sides], dtype=np.float64)


def _products(sides: Sequence[Floats]) -> Floats:
    """Sums of products of all columns."""
    # Values whose products leave float64 are refused by name when the pass is over.
    device = current_device()
    with np.errstate(over="ignore", invalid="ignore"):
        if device is not None:
            return np.asarray(device.gram(np.concatenate(sides, axis=1)), dtype=np.float64)
        if len(sides) == 1 or min(side.shape[1] for side in sides) < APART:
            z = np.concatenate(sides, axis=1)
            return np.asarray(z.T @ z, dtype=np.float64)
        x, y = sides
        found, width = np.empty((x.shape[1] + y.shape[1],) * 2, x.dtype), x.shape[1]
        np.matmul(x.T, x, out=found[:width, :width])
        np.matmul(x.T, y, out=found[:width, width:])
        np.matmul(y.T, y, out=found[width:, width:])
        found[width:, :width] = found[:width, width:].T
        return np.asarray(found, dtype=np.float64)


def _add(into: Sums, part: Sums) -> Sums:
    np.add(into.first, part.first, out=into.first)
    with np.errstate(over="ignore", invalid="ignore"):
        np.add(into.second, part.second, out=into.second)
    each = ((into.dropped, part.dropped), (into.traits, part.traits), (into.rows, part.rows))
    return Sums(into.n + part.n, into.first, into.second, *(np.concatenate(both) for both in each))


def _gather(
    source: Pair | Single, plan: FoldPass, engine: Engine, tick: Callable[[], object] | None
) -> tuple[list[Moments], np.ndarray, Floats]:
    """One pass: moments of each fold from sums about the shift, which rows are in use, and their traits."""
    width = len(plan.shift)
    check_memory(
        f"The second moments of {' and '.join(rows.name for rows, _ in source.sides)} ({width} columns)",
        8 * width * (width * (plan.folds + 1) + source.n * plan.keep),
        "Reduce the columns first, for example to their principal components.",
    )
    # The size of a block is in bytes: twice as many rows in float32, whose products are faster for it.
    cut = blocks(source.n, -(-width * plan.dtype.itemsize // 8))
    # The tree's nodes, and what a few threads have ready for it. Beyond the bound one fold's products at a time are
    # held, and BLAS has all threads to itself.
    large = (held_nodes(len(cut)) + 3) * 8 * plan.folds * width**2 > PARTIAL_BYTES
    gathered = engine.reduce(_sums, cut, plan, *(rows for rows, _ in source.sides), merge=_add, large=large, tick=tick)
    kept = np.ones(source.n, dtype=bool)
    for sums in gathered:
        kept[sums.dropped] = False
    start = 0
    for rows, _ in source.sides:
        columns = slice(start, start + rows.shape[1])
        start = columns.stop
        largest = float(np.max([sums.second.diagonal()[columns] for sums in gathered]))
        refuse_range(rows.name, largest, any(sums.first[columns].any() for sums in gathered))
    parts = [Moments.from_sums(*s[:3], plan.shift, s.rows if plan.keep else None) for s in gathered]
    return parts, kept, np.concatenate([sums.traits for sums in gathered])


def refuse_small_folds(counts: Sequence[int], *, blocks: bool) -> None:
    """Refuse folds of fewer than two rows; `blocks` tells whether whole blocks are held out."""
    if min(counts) >= 2:
        return
    if not blocks:
        raise InputError(
            f"Only {sum(counts)} rows are left without NaN or Inf, too few for {len(counts)} folds. Use fewer folds "
            "with folds= (--folds), or more rows."
        )
    raise InputError(
        f"A fold has fewer than 2 of the {sum(counts)} rows in use: the blocks of rows are too few or too small for "
        f"{len(counts)} folds. Use fewer folds with folds= (--folds) or other blocks with blocks= (--blocks)."
    )


class OutOfRange(InputError):
    """Squares of the values overflow or vanish."""


def refuse_range(name: str, largest: float, nonzero: bool) -> None:
    """Refuse values whose sums of squares, `largest` in any column, overflow or vanish although some are not zero."""
    if not largest < LARGEST**2 or 0 < largest < LARGEST**-2 or (largest == 0 and nonzero):
        raise OutOfRange(
            f"Fourth powers of the values of {name} leave the range of float64. Divide it by its typical size."
        )


def _sample(source: Pair | Single) -> Floats:
    """Some rows, all sides side by side."""
    return np.hstack(source.take(np.unique(np.linspace(0, source.n - 1, 256).astype(int))), dtype=np.float64)


def _shift(sample: Floats, near: float = 4.0) -> Floats:
    """A point amid the rows to take sums about: 0 where that is as good, so that nothing need be subtracted.

    `near` is the distance from 0, in units of the spread, at which 0 is as good.
    """
    shift = np.zeros(sample.shape[1])
    if not len(sample):
        return shift
    whole = np.isfinite(sample).all(axis=0)
    shift[whole] = _middle(sample[:, whole], near)
    for j in np.flatnonzero(~whole):
        seen = sample[np.isfinite(sample[:, j]), j]
        if len(seen):
            shift[j] = _middle(seen, near)
    return shift


def _middle(sample: Floats, near: float) -> Floats:
    """The median of each column, or 0 where it is near."""
    low, middle, high = np.quantile(sample, [0.1, 0.5, 0.9], axis=0)
    return np.where(np.abs(middle) > near * (high - low), middle, 0.0)


class Places:
    """Room for some rows of each side of a block at a time. Fresh memory for each would take longer than copying them.

    Parameters
    ----------
    sides : sequence of ndarray of shape (n, d)
    most : int
        The largest number of rows at a time.
    dtype : numpy.dtype
        Precision of what is taken.
    """

    def __init__(self, sides: Sequence[np.ndarray], most: int, dtype: np.dtype) -> None:
        # Other layouts would be copied as a whole for every part.
        self._sides = [np.ascontiguousarray(side, dtype) for side in sides]
        self._rooms = [np.empty((most, side.shape[1]), dtype) for side in sides]

    def take(self, rows: np.ndarray) -> list[Floats]:
        """Return these rows of each side, until the next call. They may be overwritten."""
        each = zip(self._sides, self._rooms, strict=True)
        # The numbers are within range, so nothing is clipped. To check them, numpy would use fresh memory.
        return [np.take(side, rows, axis=0, out=room[: len(rows)], mode="clip") for side, room in each]


def refuse_constant(names: tuple[str, str], moments: PairMoments) -> None:
    """Refuse a side without any variation."""
    for name, scatter in zip(names, (moments.xx, moments.yy), strict=True):
        if not np.any(np.diag(scatter) > 0):
            raise InputError(f"Every column of {name} is constant, so there is no representation to compare.")


def refuse_nonfinite(sources: Sequence[tuple[Rows, Index]], sides: Sequence[Floats], start: int) -> None:
    """Name the first value that is not finite, in the row numbers of its own input."""
    for (rows, index), block in zip(sources, sides, strict=True):
        bad = first_nonfinite(block, start)
        if bad:
            row, column, value = bad
            raise nonfinite(rows.name, row if index is None else int(index[row]), column, value, rows.columns)


def trait_weights(sample: Floats) -> Floats:
    """Weights of columns, of which a sample of rows is given, for `traits`: at random, in units of their spread."""
    finite = np.where(np.isfinite(sample), sample, 0.0)
    # Halved and by the range, so that nothing overflows.
    spread = finite.max(axis=0) / 2 - finite.min(axis=0) / 2
    generic = np.random.default_rng(0).normal(size=sample.shape[1])
    # Over a spread that is hardly a normal number the quotient would overflow.
    return np.asarray(generic / np.where(spread > 1e3 * np.finfo(float).tiny, spread, 1.0))


def traits(rows: Floats, weights: Floats) -> Floats:
    """A number that a row shares with its copies, and hardly with any other row."""
    # Not by BLAS, whose last digits depend on the place of a row.
    return np.asarray(np.einsum("ij,j->i", rows, weights))


def some_traits(each: Floats, n: int) -> Floats:
    """Return the traits of a block of n rows in all; if these are very many, about one in n / EXACT of the numbers."""
    step = -(-n // EXACT)
    if step == 1:
        return each
    # By the number itself, so that copies are kept or left out together. The product mixes its digits.
    mixed = each.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
    return np.asarray(each[mixed % np.uint64(step) == 0])


def copies_among(some: Floats, used: int, n: int) -> int:
    """Return about how many of the rows in use repeat others, from the traits that `some_traits` kept of n rows."""
    step = -(-n // EXACT)
    # Each value is kept or left out with all of its copies, however many. So different values are counted, not rows.
    return max((len(some) if step == 1 else used) - step * len(np.unique(some)), 0)


def pair_traits(x: Floats, y: Floats) -> Floats:
    """Traits of rows that are held in memory, of both sides together."""
    rows = np.hstack([x - x.mean(axis=0), y - y.mean(axis=0)])
    return traits(rows, trait_weights(rows))


def repeated_rows(row_traits: Floats, used: int, n: int | None = None, *, in_blocks: bool = False) -> tuple[Alert, ...]:
    """Return an alert about rows whose traits repeat.

    `used` of n rows (default: all) are in use; of very many rows, only some traits were kept. `in_blocks` states
    whether whole blocks are held out.
    """
    copies = copies_among(row_traits, used, used if n is None else n)
    if copies <= max(0.005 * used, 1):
        return ()
    text = f"About {copies} of {used} rows repeat others"
    if in_blocks:
        text += ". Copies of one block are held out together; copies in different blocks make errors too small."
    else:
        text += (
            ": copies of a held-out row are fitted on, so errors are too small and scores too high. Drop repeated rows."
        )
    return (Alert("repeated_rows", text),)
