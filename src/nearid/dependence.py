"""Dependent rows: similar neighbours in the file, and near copies in any order."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from nearid.arrays import Pair
from nearid.base.alerts import Alert
from nearid.moments import Floats

# What is read to follow the rows along the file: so many numbers of both sides, so many rows, in so many stretches.
NUMBERS, ROWS, STRETCHES = 4_000_000, 32_768, 4

# What is done to find near copies: so many queries at most and at least, so many distances, so many products, and so
# many numbers of both sides that are read.
QUERIES, FEWEST, DISTANCES, PRODUCTS, READ = 512, 32, 8_000_000, 8_000_000_000, 64_000_000

# Neighbours among which a jump is looked for, and further ones that show what is usual.
NEAR, FAR = 24, range(30, 64)

# Spacings are exponential with mean 1 for independent rows. Means beyond this, and so many standard errors, are a
# jump: real images on a curved surface reach 1.2 (the 698 faces of Isomap). One spacing counts this much at most.
JUMP, ERRORS, LARGEST = 1.2, 3.0, 6.0

# Leading principal components of a side that are followed.
COMPONENTS = 32

# Correlation has decayed where it falls below this share of the correlation of neighbours; a block is so many times
# that lag. Rows of a group of g then decay after 2/3 of g, so that a block is longer than a group.
DECAYED, BLOCK = 1 / 3, 2
# Blocks in use that are shorter than this share of what they should be are worth a sentence.
SHORT = 0.9

# Blocks run on into each other where the squared distance across their borders is below this share of that of other
# rows near borders. So many borders are looked at.
RUNS_ON, BORDERS = 0.5, 512
# So few of other pairings of the borders may have as small a distance: of so many, all of those of few borders. Rows
# that are looked at on either side of a border.
LEVEL, ORDERS, ALL_ORDERS, LEAST_BORDERS, FURTHER = 0.05, 199, 5, 4, 4

# Rows nearer than this, in units of the median distance, are exact copies. Rows that are read at a time: few enough to
# stay in a core's cache.
COPY, CHUNK = 1e-7, 512
# Chunks whose distances are in memory at a time.
TOGETHER = 16
# Neighbouring rows that are read together for the search for near copies in a large file.
RUN = 32

_OVERRULE = (
    "To name the rows that belong together, give --blocks COLUMN (blocks=). If the rows are independent, give "
    '--blocks none (blocks="none").'
)


@dataclass(frozen=True)
class SerialRows:
    """Dependence of neighbouring rows on both sides.

    Attributes
    ----------
    length : int
        Number of rows of a contiguous block that is nearly independent of the others.
    decay : tuple of int
        For each side, the lag in rows at which the slowest correlation has decayed.
    correlation : tuple of float
        For each side, the largest correlation of a row with the next one, over linear combinations of columns.
    names : tuple of str
        Names of the sides.
    """

    length: int
    decay: tuple[int, int]
    correlation: tuple[float, float]
    names: tuple[str, str]

    def alert(self, cut: int) -> Alert:
        """Return the alert `serial_rows`. `cut` is the length of the blocks in use."""
        first, second = self.correlation
        # Pieces of equal length may be a little longer or shorter than requested.
        short = (
            f"They should have {self.length} rows, twice that lag, but every fold needs a block: neighbouring blocks "
            "still depend on each other, so held-out scores may be too high and intervals too narrow. "
            if cut < SHORT * self.length
            else ""
        )
        text = (
            f"Neighbouring rows are alike: the correlation with the next row reaches {first:.2f} in {self.names[0]} "
            f"and {second:.2f} in {self.names[1]}, and takes {min(self.decay)} rows to decay. Contiguous blocks of "
            f"about {cut} rows are held out and resampled. {short}{_OVERRULE}"
        )
        return Alert("serial_rows", text)


def serial_rows(pair: Pair, *, seed: int = 0) -> SerialRows | None:
    """Return the dependence of rows on their neighbours; None unless it is beyond chance on both sides.

    A spurious relation can appear only if both sides depend on their neighbours at the same lags. So the side whose
    correlation decays sooner determines the length. A row with a value that is not finite counts as the mean. `seed` is
    the seed of the random projection for the principal components of wide rows.
    """
    size = max(min(NUMBERS // (pair.x.shape[1] + pair.y.shape[1]), ROWS), 64 * STRETCHES)
    found, stride = None, 1
    while True:
        places = _stretches(pair.n, stride, size)
        limit = min(len(place) for place in places) // 4
        sides = _finite(pair.take(np.concatenate(places)))
        lags, first = zip(*(_decay(side, places, seed) for side in sides), strict=True)
        if limit < 2 or min(lags) == 0:
            return found
        decay = (stride * lags[0], stride * lags[1])
        length = min(BLOCK * min(decay), pair.n)
        found = SerialRows(length, decay, found.correlation if found else first, (pair.x.name, pair.y.name))
        # If the correlation has not decayed within a stretch, it is measured for rows that are further apart.
        if min(lags) < limit or len(np.concatenate(places)) * stride >= pair.n:
            return found
        stride *= limit // 2


def blocks_run_on(pair: Pair, codes: np.ndarray) -> bool:
    """Return whether given blocks are pieces of a series, because on both sides rows across their borders are similar.

    If rows at a border contain a value that is not finite, as lagged features do, rows further inside are used.

    Parameters
    ----------
    pair : Pair
    codes : ndarray of int, shape (n,)
        Block of each row.
    """
    borders = np.flatnonzero(codes[1:] != codes[:-1])
    borders = borders[:: 1 + len(borders) // BORDERS]
    # With fewer borders no order is rare enough for a test.
    for further in range(FURTHER if len(borders) >= LEAST_BORDERS else 0):
        last, first = borders - further, borders + 1 + further
        inside = (last >= 0) & (first < len(codes))
        last, first, at = last[inside], first[inside], borders[inside]
        whole = (codes[last] == codes[at]) & (codes[first] == codes[at + 1])
        places, where = np.unique(np.concatenate([last[whole], first[whole]]), return_inverse=True)
        sides = [np.asarray(side, dtype=np.float64)[where] for side in pair.take(places)]
        finite = np.asarray(np.isfinite(np.hstack(sides)).all(axis=1))
        good = finite[: len(finite) // 2] & finite[len(finite) // 2 :]
        if good.sum() > len(borders) / 2:
            return all(_near_across(*(half[good] for half in np.split(side, 2))) for side in sides)
    return False


def _near_across(ends: Floats, starts: Floats) -> bool:
    """Return whether the ends of blocks are closer to the starts of the next blocks than to others, beyond chance."""
    centre = (ends.mean(axis=0) + starts.mean(axis=0)) / 2
    ends, starts = ends - centre, starts - centre
    sizes = np.maximum(np.abs(ends).max(axis=0), np.abs(starts).max(axis=0))
    ends, starts = (rows / np.where(sizes > 0, sizes, 1.0) for rows in (ends, starts))
    squares = (ends**2).sum(axis=1)[:, None] + (starts**2).sum(axis=1) - 2 * ends @ starts.T
    m = len(squares)
    across = float(np.trace(squares))
    if across >= RUNS_ON * (float(squares.sum()) - across) / max(m - 1, 1):
        return False
    # All orders of few borders, some of many: four have 24, of which their own must be the best.
    rng, each = np.random.default_rng(0), np.arange(m)
    orders = list(permutations(range(m))) if m <= ALL_ORDERS else [rng.permutation(m) for _ in range(ORDERS)]
    return float(np.mean([squares[each, list(order)].sum() <= across for order in orders])) <= LEVEL


def _stretches(n: int, stride: int, size: int) -> list[np.ndarray]:
    """Return at most `size` positions of rows that are `stride` apart: all, or stretches spread over the file."""
    if -(-n // stride) <= size:
        return [np.arange(0, n, stride)]
    span = size // STRETCHES * stride
    return [
        start + np.arange(0, min(span, n - start), stride)
        for start in np.linspace(0, max(n - span, 0), min(STRETCHES, n // span)).astype(int)
    ]


def _finite(sides: Sequence[np.ndarray]) -> list[Floats]:
    """Return both sides in float64. A row with a value that is not finite is replaced by the mean."""
    result: list[Floats] = []
    for side in sides:
        values = np.array(side, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = values.sum(axis=1)
        # The sum of a row without such a value is finite, unless it overflows.
        if not np.isfinite(sums).all() and (bad := ~np.isfinite(values).all(axis=1)).any():
            values[bad] = values[~bad].mean(axis=0) if not bad.all() else 0.0
        result.append(values)
    return result


def _decay(side: Floats, places: list[np.ndarray], seed: int) -> tuple[int, float]:
    """Return the lag at which the slowest correlation has decayed (0: none), and the correlation of neighbours."""
    ends = np.cumsum([len(place) for place in places])
    limit = min(len(place) for place in places) // 4
    components = min(COMPONENTS, max(len(side) // 20, 1))
    longest, first = 0, 0.0
    # Products of products of the numbers must stay inside float64.
    side = side - side[0]
    unit = float(np.abs(side).max())
    if unit == 0:
        return 0, 0.0
    side = side / unit
    while True:
        parts = np.split(_whitened(side, components, seed), ends[:-1])
        lag, neighbours = _slowest(parts, limit)
        first = first or neighbours
        # Dependent rows support fewer components. With too many components the decay is wrong.
        components = max(len(side) // (5 * lag), 4) if lag else COMPONENTS
        if components >= parts[0].shape[1]:
            return max(longest, lag), first
        # Directions that never decay are accepted only with few components.
        longest = max(longest, lag) if lag < limit else longest


def _whitened(side: Floats, components: int, seed: int) -> Floats:
    """Return leading principal components with unit variance. Far rows are shortened, so that no few rows dominate."""
    rows = _drawn_in(side - side.mean(axis=0), 3.0)
    rows -= rows.mean(axis=0)
    if rows.shape[1] > 2 * components + 8:
        # A random projection, twice refined, holds the leading components of wide rows.
        basis = np.random.default_rng(seed).normal(size=(rows.shape[1], components + 8))
        for _ in range(2):
            basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
        rows = rows @ basis
    rows = _drawn_in(_sphered(rows, components), 1.0)
    return _sphered(rows - rows.mean(axis=0), components)


def _sphered(rows: Floats, components: int) -> Floats:
    variances, axes = np.linalg.eigh(rows.T @ rows / len(rows))
    kept = np.flatnonzero(variances > 1e-10 * max(variances[-1], 0.0))[-components:]
    return np.asarray(rows @ (axes[:, kept] / np.sqrt(variances[kept])))


def _drawn_in(rows: Floats, times: float) -> Floats:
    """Return the rows, with rows longer than `times` the typical length shortened to it."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    bound = times * np.median(length)
    return rows * np.where(length > bound, bound / np.where(length > 0, length, 1.0), 1.0)[:, None]


def _slowest(parts: list[Floats], limit: int) -> tuple[int, float]:
    """Return the lag at which the correlation of the slowest directions has decayed, and the largest one at lag 1.

    Directions whose correlation at a lag is beyond chance are found in one half of the rows and tested in the other
    half, where a direction that was slow by chance is not slow.
    """
    middle = len(parts[0]) // 2
    halves = (parts[::2], parts[1::2]) if len(parts) > 1 else ([parts[0][:middle]], [parts[0][middle:]])
    longest, first, lag = 0, 0.0, 1
    while lag <= limit:
        lagged = [_lagged(half, lag) for half in halves]
        eigenvalues = np.linalg.eigvalsh((lagged[0] + lagged[1]) / 2)
        first = first or float(eigenvalues[-1])
        beyond = int((eigenvalues > _chance(len(eigenvalues), sum(map(len, parts)) - 2 * lag)).sum())
        if beyond:
            curve = np.zeros(limit)
            for own, other in ((0, 1), (1, 0)):
                values, axes = np.linalg.eigh(lagged[own])
                curve += _autocovariance(halves[other], axes[:, -beyond:], limit) @ np.maximum(values[-beyond:], 0)
            if curve[0] > 0:
                decayed = np.flatnonzero(curve < DECAYED * curve[0])
                longest = max(longest, int(decayed[0]) + 1 if len(decayed) else limit)
        lag *= 2
    return longest, first


def _lagged(parts: list[Floats], lag: int) -> Floats:
    """Covariance of rows with those `lag` later, made symmetric."""
    product = np.sum([part[:-lag].T @ part[lag:] for part in parts], axis=0) / sum(len(part) - lag for part in parts)
    return np.asarray(product + product.T) / 2


def _chance(components: int, rows: int) -> float:
    """Bound of the largest eigenvalue of `_lagged` for independent rows.

    The entries then have variance 1 / (2 rows), twice that on the diagonal: a Gaussian orthogonal matrix, whose largest
    eigenvalue is at 2 sqrt(p) and varies by p^(-1/6) times a Tracy-Widom variable, which exceeds 4.5 once in 1e5.
    """
    return float((2 * np.sqrt(components) + 4.5 * components ** (-1 / 6)) / np.sqrt(2 * rows))


def _autocovariance(parts: list[Floats], axes: Floats, limit: int) -> Floats:
    """Autocovariance at lags 1 to `limit` along some axes, shape (limit, axes)."""
    total, lags = np.zeros((limit, axes.shape[1])), np.arange(1, limit + 1)
    counts = np.zeros(limit)
    for part in parts:
        size = 1 << (len(part) + limit).bit_length()
        spectrum = np.abs(np.fft.rfft(part @ axes, size, axis=0)) ** 2
        total += np.fft.irfft(spectrum, size, axis=0)[lags]
        counts += len(part) - lags
    return np.asarray(total / counts[:, None])


@dataclass(frozen=True)
class ClusteredRows:
    """Groups of rows that are close to each other on both sides, like near copies.

    Attributes
    ----------
    size : int
        Typical number of rows in a group.
    share : float
        Lower bound of the share of rows that are in a group.
    """

    size: int
    share: float

    @property
    def alert(self) -> Alert:
        """Return the alert `clustered_rows`."""
        text = (
            f"Rows lie in groups of about {self.size} that are much nearer to each other on both sides than to other "
            f"rows, as near copies of one sample are ({100 * self.share:.0f}% of the rows clearly). All figures assume "
            f"independent rows: errors may be too small and scores too high. {_OVERRULE}"
        )
        return Alert("clustered_rows", text)


def clustered_rows(pair: Pair, *, seed: int = 0) -> ClusteredRows | None:
    """Return groups of near copies among rows in any order; None if nearest rows are as far as for independent rows.

    The distance of two rows is the larger one of both sides, each in units of its median. So rows are close only if
    they are close on both sides. For independent rows and small k, k log(d_(k+1) / d_k) of the distances to the nearest
    rows is exponential with mean 1 / dimension for all k and any density. In groups of c near copies it jumps at
    k = c - 1. Exact copies are left out. `seed` is the seed of the sample of rows.
    """
    spacings = _spacings(pair, seed)
    if spacings is None:
        return None
    excess = []
    for k in range(1, NEAR + 1):
        window = np.minimum(spacings[:, k - k // 4 - 1 : k + k // 4], LARGEST)
        excess.append(window.mean() - ERRORS / np.sqrt(window.size))
    if max(excess) <= JUMP:
        return None
    # Of independent rows hardly one in twenty has a spacing as large as this among so many.
    grouped = spacings[:, :NEAR].max(axis=1) > LARGEST
    at = spacings[grouped, :NEAR].argmax(axis=1) if grouped.mean() > 0.1 else [np.argmax(excess)]
    # A jump at k = 1 (index 0) means groups of two.
    return ClusteredRows(int(np.median(at)) + 2, float(grouped.mean()))


def _spacings(pair: Pair, seed: int) -> Floats | None:
    """k log(d_(k+1) / d_k) of some rows, k = 1, 2, ..., in units of the mean at the far k; None for too few rows."""
    wanted = 3 * FAR.stop
    # One more shows that there are more rows than that.
    nearest = _nearest(_distances(pair, seed), wanted + 1)
    if nearest.shape[1] <= wanted:
        return None
    nearest = nearest[:, :wanted]
    # Exact copies of another row have the same distance as that row and are left out, too.
    nearest[:, 1:][nearest[:, 1:] < (1 + COPY) * nearest[:, :-1]] = np.inf
    nearest = np.sort(nearest, axis=1)[:, : FAR.stop + 1]
    nearest = nearest[np.isfinite(nearest).all(axis=1)]
    nearest = nearest[nearest[:, 0] > 0]
    spacings = np.arange(1, FAR.stop + 1) * np.diff(np.log(nearest), axis=1)
    usual = spacings[:, FAR.start :].mean() if len(nearest) else 0.0
    return spacings / usual if usual > 0 else None


def _nearest(distances: Iterator[Floats], count: int) -> Floats:
    """Return the `count` smallest distances of each query, ascending, or all if there are fewer rows."""
    nearest: Floats | None = None
    # A few chunks at a time, so that never all distances are in memory.
    while further := list(itertools.islice(distances, TOGETHER)):
        nearest = np.concatenate(further if nearest is None else [nearest, *further], axis=1)
        if nearest.shape[1] > count:
            nearest = np.partition(nearest, count - 1, axis=1)[:, :count]
    assert nearest is not None
    return np.sort(nearest, axis=1)


def _distances(pair: Pair, seed: int) -> Iterator[Floats]:
    """Yield distances of some rows to all rows, or to a sample, by chunk; infinite to themselves and exact copies."""
    rng = np.random.default_rng(seed)
    rows = np.arange(pair.n)
    width = pair.x.shape[1] + pair.y.shape[1]
    budget = min(DISTANCES, PRODUCTS // width)
    most = max(min(budget // FEWEST, READ // width), 1)
    if len(rows) > most:
        # In short stretches: single rows from all over a large file take longer to read than to compare.
        run = min(RUN, most)
        starts = run * np.sort(rng.choice(pair.n // run, most // run, replace=False))
        rows = (starts[:, None] + np.arange(run)).ravel()
    count = min(max(budget // max(len(rows), 1), FEWEST), QUERIES, len(rows))
    taken = pair.take(np.sort(rng.choice(rows, count, replace=False)))
    # Squares of numbers of half the precision stay within the range. Others are taken in units of their spread.
    small = [side.dtype.itemsize < np.dtype(np.float64).itemsize for side in taken]
    queries = _finite(taken)
    centres = [query[0] for query in queries]
    spreads = [float(np.abs(query - centre).max()) or 1.0 for query, centre in zip(queries, centres, strict=True)]
    units = [1.0 if no_unit else spread for no_unit, spread in zip(small, spreads, strict=True)]
    queries = [(query - centre) / unit for query, centre, unit in zip(queries, centres, units, strict=True)]
    rooms = [np.empty((min(CHUNK, len(rows)), query.shape[1])) for query in queries]

    def squares(some: np.ndarray) -> Iterator[list[Floats]]:
        for start in range(0, len(some), CHUNK):
            each = zip(pair.take(some[start : start + CHUNK]), queries, centres, units, rooms, strict=True)
            yield [_apart(side, query, centre, unit, room[: len(side)]) for side, query, centre, unit, room in each]

    usual = [float(np.median(np.hstack(own))) for own in zip(*squares(rows[:: 1 + len(rows) // 1000]), strict=True)]
    # Most rows of a side may be one and the same: then none is near another there.
    scales = [own if own > 0 else 1.0 for own in usual]
    for both in squares(rows):
        for side, scale in zip(both, scales, strict=True):
            side /= scale
        largest = np.maximum(both[0], both[1], out=both[0])
        np.sqrt(np.maximum(largest, 0, out=largest), out=largest)
        largest[largest < COPY] = np.inf
        yield largest


def _apart(rows: np.ndarray, query: Floats, centre: Floats, unit: float, room: Floats) -> Floats:
    """Squared distances of rows from every query, which is about a centre and in a unit; `room` is overwritten."""
    # A row that is farther than any number can tell is no neighbour.
    with np.errstate(over="ignore", invalid="ignore"):

        def moved(own: np.ndarray) -> Floats:
            np.subtract(own, centre, out=room)
            if unit != 1:
                np.divide(room, unit, out=room)
            return np.asarray(np.einsum("ij,ij->i", room, room))

        sizes = moved(rows)
        if not np.isfinite(sizes).all():
            sizes = moved(_finite([rows])[0])
        apart = query @ room.T
        apart *= -2
        apart += sizes
        apart += np.einsum("ij,ij->i", query, query)[:, None]
    return apart if np.isfinite(apart).all() else np.nan_to_num(apart, nan=np.inf, posinf=np.inf)
