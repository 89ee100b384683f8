"""The diameter of a set of points: the largest pairwise distance, exact if the search takes seconds.

With r_i the distance of row i from the mean, |y_i - y_j| <= r_i + r_j. If a pair at distance L is known, only pairs
with r_i + r_j > L can be longer. With rows sorted by r, the number of these pairs is known before they are computed: a
few rows for heavy-tailed features, most pairs for concentrated ones. If they fit the budget, they are searched block by
block, without an n x n array. Otherwise the answer is a proven lower and upper bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Lock

import numpy as np

from nearid.arrays import Rows, first_nonfinite, open_rows
from nearid.arrays.pair import Index, part_of, read_part, take_side
from nearid.base.errors import InputError
from nearid.base.options import checked
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks, open_engine, ordered_map
from nearid.folds import LARGEST
from nearid.measures.registry import Measured
from nearid.moments import Floats

# Maximum number of multiply-adds of an exact search: about three seconds on two cores.
BUDGET = 2e11
# Memory for the rows of a search.
SEARCH_BYTES = 128 << 20
# Number of rows farthest from the mean whose pairs give the first lower bound, within milliseconds.
EXTREMES = 1024
# With fewer multiply-adds, the search runs in this thread.
SMALL = 5e9
# Maximum number of passes over all rows for a bracket.
SWEEPS = 3
# Rows and columns of a tile of pairs: 2 MB in float32, which the second-level cache holds.
TILE, WIDTH = 512, 1024


@dataclass(frozen=True)
class Diameter:
    """The largest pairwise distance, or a bracket of it.

    Attributes
    ----------
    lower, upper : float
        Bounds of the diameter, equal up to rounding if `exact`. The lower bound is the distance of two actual rows.
    exact : bool
    pair : tuple of int
        The two rows whose distance is `lower`.
    """

    lower: float
    upper: float
    exact: bool
    pair: tuple[int, int]


@checked
def diameter(points: object, *, budget: float = BUDGET, engine: str | Engine | None = None) -> Measured:
    """Largest distance between two rows, or a lower and an upper bound of it.

    Parameters
    ----------
    points : array, tensor, path or Rows, of shape (n, d)
    budget : float
        Multiply-adds that an exact search may take. If it would take more, the result is a pair of bounds.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over all rows run; see `nearid.compare`. An exact search runs in this process.

    Returns
    -------
    Measured
        The value is `lower`, the distance of two actual rows, which `pair` names. `upper` is an upper bound, and
        `exact` says whether both are equal (up to rounding).

    Examples
    --------
    >>> import nearid
    >>> m = nearid.diameter([[0.0, 0.0], [3.0, 4.0], [1.0, 1.0]])
    >>> m.value, m.exact, sorted(m.pair)
    (5.0, True, [0, 1])
    """
    rows = open_rows(points)
    mean, parts = np.zeros(rows.shape[1]), blocks(*rows.shape)
    with open_engine(engine) as opened:
        for part in opened.map(_mean, parts, rows):
            with np.errstate(invalid="ignore", over="ignore"):
                mean += part
        if not np.isfinite(mean).all():
            _refuse_nonfinite(rows)
        centre = mean.astype(rows.dtype).astype(np.float64)
        radii = np.concatenate(list(opened.map(_radii, parts, rows, centre)))
        if not radii.max() < LARGEST:
            raise InputError(
                f"Squares of the values of {rows.name} leave the range of float64. Divide it by its typical size."
            )
        widest = search(rows, None, radii, centre, budget=budget, engine=opened)
    bounds = {"lower": widest.lower, "upper": widest.upper, "exact": widest.exact}
    return Measured(widest.lower, parts=bounds, arrays={"pair": widest.pair})


def _mean(block: tuple[int, int], rows: Rows) -> Floats:
    """Return the sum of the rows of a block over the number of all rows."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(rows.read(*block).sum(axis=0, dtype=np.float64) / rows.shape[0])


def _radii(block: tuple[int, int], rows: Rows, centre: Floats) -> Floats:
    return _distances(rows.read(*block), centre)


def _distances(block: Floats, point: Floats) -> Floats:
    """Return the distances of rows from a point, in float64."""
    gap = np.subtract(block, point, dtype=np.float64)
    with np.errstate(over="ignore"):
        lengths: Floats = np.sqrt(np.einsum("ij,ij->i", gap, gap))
    return lengths


def _refuse_nonfinite(rows: Rows) -> None:
    for start, stop in blocks(*rows.shape):
        bad = first_nonfinite(rows.read(start, stop), start)
        if bad:
            raise InputError(f"{rows.name} has {bad[2]} at row {bad[0]}, column {bad[1]} (counted from 0).")
    raise InputError(f"Sums of the values of {rows.name} leave the range of float64. Divide it by its typical size.")


@dataclass(frozen=True)
class InUse:
    """Rows of which only the outermost have known distances.

    Attributes
    ----------
    outermost : ndarray of int, shape (m,)
        The rows that are farthest from the centre, the farthest first.
    n : int
        Number of rows.
    kept : ndarray of bool, shape (n,), or None
        Rows in use; None for all.
    """

    outermost: np.ndarray
    n: int
    kept: np.ndarray | None


def search(
    rows: Rows,
    index: Index,
    radii: Floats,
    centre: Floats,
    *,
    outermost: InUse | None = None,
    budget: float = BUDGET,
    engine: Engine = LOCAL,
    tick: Callable[[], object] | None = None,
) -> Diameter:
    """Return the diameter of rows with known distances from a centre.

    Parameters
    ----------
    rows : Rows
    index : ndarray of int, shape (n,), or None
        Which of them; None for all.
    radii : ndarray of shape (n,)
        Distance of each row from `centre`, exact or rounded up. Rows with NaN are left out.
    centre : ndarray of shape (d,)
        A point near the middle that is exact in the precision of the rows.
    outermost : InUse, optional
        The rows whose distances are given, if these are not all rows.
    engine : Engine
        The engine that runs passes over all rows. A search among few rows runs in this process.
    """
    take = partial(take_side, rows, index)
    if outermost is None:
        order = np.argsort(-radii)
        order = order[: len(order) - int(np.isnan(radii).sum())]
        sorted_radii = radii[order]
    else:
        order, sorted_radii = outermost.outermost, radii
    d = len(centre)

    # A bound from a few rows is useful only if there are many more.
    n = len(order)
    first = n if n <= 4 * EXTREMES and n * n / 2 * d <= budget else min(n, EXTREMES)
    extremes = take(order[:first])
    best, pair = _farthest_pair(extremes, sorted_radii[:first], centre, 0.0)
    widest = (int(order[pair[0]]), int(order[pair[1]]))
    if n == first and outermost is None:
        return Diameter(best, best, True, widest)

    reach = _reach(sorted_radii, best)
    far, pairs = int(np.count_nonzero(reach)), float(reach.sum()) / 2
    itemsize = extremes.dtype.itemsize
    # Rows whose distances are unknown can be an end of a longer pair if the nearest known row can.
    known = outermost is None or far < n
    if known and pairs * d <= budget and far * d * itemsize <= SEARCH_BYTES:
        if far:
            farther, pair = _farthest_pair(take(order[:far]), sorted_radii[:far], centre, best)
            if farther > best:
                best, widest = farther, (int(order[pair[0]]), int(order[pair[1]]))
        return Diameter(best, best, True, widest)
    # For every centre, the sum of the two largest radii is an upper bound of the diameter.
    upper = float(sorted_radii[0] + sorted_radii[1])
    if outermost is None:
        passes = Sweeps(rows, index, len(radii), radii, None, float(sorted_radii[0]), centre, engine, tick)
    else:
        n, kept = outermost.n, outermost.kept
        passes = Sweeps(rows, index, n, None, kept, float(sorted_radii[0]), centre, engine, tick)
    return _bracket(passes, take, best, widest, upper)


def _reach(sorted_radii: Floats, bound: float) -> np.ndarray:
    """Return, for each row, the number of outermost rows with which it could form a pair longer than `bound`."""
    return np.searchsorted(-sorted_radii, sorted_radii - bound, side="left")


def _farthest_pair(points: Floats, sorted_radii: Floats, centre: Floats, bound: float) -> tuple[float, tuple[int, int]]:
    """Return the longest pair among points sorted by descending radius, if it is longer than `bound`.

    Products of centred rows in the precision of the points find the candidates. Only these are measured in float64, so
    the result is the same as for all pairs in float64.
    """
    size = float(sorted_radii[0]) or 1.0
    z = _unit_rows(points, centre, size)
    left, right = _half_squares(z)
    slack = 4 * z.shape[1] * float(np.finfo(z.dtype).eps)
    best = Longest(bound)

    def search_row(block: tuple[int, int]) -> None:
        i, end = block
        # Radii fall along the rows, so the first row of a tile reaches farthest.
        for j in range(i, len(z), WIDTH):
            if sorted_radii[i] + sorted_radii[j] <= best.length:
                break
            tile = left[i:end] @ right[j : j + WIDTH].T
            top = float(tile.max())
            floor = (best.length / size) ** 2 / 2
            if top + slack > floor:
                best.offer(*_measure(points, tile, max(top, floor) - slack, i, j))

    # For a small search, starting threads takes longer than the search. BLAS then uses its own threads.
    workers = 1 if float(len(z)) ** 2 * z.shape[1] < SMALL else None
    for _ in ordered_map(search_row, [(i, min(i + TILE, len(z))) for i in range(0, len(z), TILE)], workers=workers):
        pass
    return best.length, best.pair


class Longest:
    """The longest pair so far, shared by threads."""

    def __init__(self, length: float) -> None:
        self.length, self.pair, self._lock = length, (0, 0), Lock()

    def offer(self, length: float, pair: tuple[int, int]) -> None:
        """Keep the pair if it is longer."""
        with self._lock:
            if length > self.length:
                self.length, self.pair = length, pair


def _unit_rows(rows: Floats, centre: Floats, size: float) -> Floats:
    """Rows about the centre, in units of `size` and in their own precision, in which any size is safe to square."""
    z = rows - centre.astype(rows.dtype)
    z /= rows.dtype.type(size)
    return z


def _half_squares(z: Floats) -> tuple[Floats, Floats]:
    """Rows [z, h, 1] and [-z, 1, h] with h = |z|^2 / 2: their product is |z_i - z_j|^2 / 2, with no further sweep."""
    half = np.einsum("ij,ij->i", z, z)[:, None] / 2
    one = np.ones_like(half)
    return np.hstack([z, half, one]), np.hstack([-z, one, half])


def _measure(points: Floats, tile: Floats, floor: float, i: int, j: int) -> tuple[float, tuple[int, int]]:
    """Measure in float64 the pairs of a tile that stand above the floor; the longest of them."""
    close = tile >= floor
    if int(np.count_nonzero(close)) > 4096:
        # Many ties (points on a grid): one product in float64 is cheaper than pair by pair.
        rows, cols = (points[a : a + m].astype(np.float64) for a, m in zip((i, j), tile.shape, strict=True))
        middle = rows.mean(axis=0)
        size = float(np.abs(rows - middle).max()) or 1.0
        tile = _half_squares((rows - middle) / size)[0] @ _half_squares((cols - middle) / size)[1].T
        close = tile >= tile.max()
    p, q = (at[:4096] for at in np.nonzero(close))
    if not len(p):
        return 0.0, (0, 0)
    gap = np.subtract(points[p + i], points[q + j], dtype=np.float64)
    lengths = np.linalg.norm(gap, axis=1)
    k = int(lengths.argmax())
    return float(lengths[k]), (int(p[k] + i), int(q[k] + j))


@dataclass(frozen=True)
class Sweeps:
    """Passes over all rows, see `search`.

    Attributes
    ----------
    n : int
        Number of rows.
    radii : ndarray of shape (n,) or None
        Their distances from the centre, NaN for rows that are left out. None: they are computed again.
    kept : ndarray of bool, shape (n,), or None
        In this case the rows in use; None for all.
    largest : float
        The largest distance.
    """

    rows: Rows
    index: Index
    n: int
    radii: Floats | None
    kept: np.ndarray | None
    largest: float
    centre: Floats
    engine: Engine
    tick: Callable[[], object] | None

    def farthest(self, points: Floats) -> tuple[Floats, np.ndarray]:
        """Return the distance (rounded up) and the number of the row that is farthest from each point."""
        size = self.largest or 1.0
        look = _Look(self.centre, (points - self.centre) / size, size)
        work = [
            _Piece(
                cut,
                part_of(self.index, *cut),
                None if self.radii is None else self.radii[slice(*cut)],
                None if self.kept is None else self.kept[slice(*cut)],
            )
            for cut in blocks(self.n, 8 * points.shape[1])
        ]
        longest, where = np.zeros(len(points)), np.zeros(len(points), dtype=np.intp)
        for length, row in self.engine.map(_farthest, work, look, self.rows, tick=self.tick):
            where = np.where(length > longest, row, where)
            longest = np.maximum(longest, length)
        return longest, where


@dataclass(frozen=True)
class _Piece:
    """Rows of a block: which ones, their radii if they are known, and which are in use (None: all)."""

    block: tuple[int, int]
    index: Index
    radii: Floats | None
    kept: np.ndarray | None


@dataclass(frozen=True)
class _Look:
    """Points from which distances are measured, about the centre and in units of `size`."""

    centre: Floats
    around: Floats
    size: float


def _farthest(piece: _Piece, look: _Look, source: Rows) -> tuple[Floats, np.ndarray]:
    """Return the distance (rounded up) and the number of the row of a block that is farthest from each point."""
    rows = read_part(source, piece.index, *piece.block)
    # |y - t|^2 = |y - c|^2 - 2 (y - c).(t - c) + |t - c|^2, of which the radii know the first term.
    z = _unit_rows(rows, look.centre, look.size)
    inner = z @ look.around.T.astype(rows.dtype)
    if piece.radii is not None:
        known = piece.radii / look.size
    else:
        known = np.sqrt(np.einsum("ij,ij->i", z, z).astype(np.float64))
        if piece.kept is not None:
            known[~piece.kept] = np.nan
    far = (known**2)[:, None] - 2 * inner + np.einsum("ij,ij->i", look.around, look.around)
    far[np.isnan(known)] = 0
    # Products of rows of unit size are off by at most d units in the last place, twice for the rounding of rows.
    slack = 8 * rows.shape[1] * float(np.finfo(rows.dtype).eps)
    return np.sqrt(far.max(axis=0) + slack) * look.size, far.argmax(axis=0) + piece.block[0]


def _bracket(
    passes: Sweeps, take: Callable[[np.ndarray], Floats], best: float, widest: tuple[int, int], upper: float
) -> Diameter:
    """Return a lower bound by farthest-point sweeps from the longest pair, and an upper bound by enclosing balls."""
    for _ in range(SWEEPS):
        ends = take(np.array(widest)).astype(np.float64)
        lengths, rows = passes.farthest(np.vstack([ends, ends.mean(axis=0)]))
        upper = min(upper, 2 * float(lengths[2]))
        # Found in the rows' own precision, measured in float64.
        others = take(rows[:2]).astype(np.float64)
        measured = np.linalg.norm(others - ends, axis=1)
        k = int(measured.argmax())
        if measured[k] <= best:
            break
        best, widest = float(measured[k]), (widest[k], int(rows[k]))
    return Diameter(best, max(upper, best), False, widest)
