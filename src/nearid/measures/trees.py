"""Gradient boosting of shallow trees on latents that are cut into bins once.

The algorithm is that of LightGBM with its defaults: leaf-wise growth, gains of second order, at least 20 rows in a
leaf, a learning rate of 0.1. Scores and gains agree to rounding in most fits. In some fits of classes to few rows
single splits differ, for a reason that is not known.
With many latents most rounds look at the best of them only (`WIDE`), where LightGBM looks at all.

Three things make many fits on the same latents cheap. Bins are made once for all folds and replicates. Latents stand
in tiles of eight, whose sums stay in the cache of a core. Nothing is allocated while trees grow. Gradients
are rounded to whole numbers of a small unit, so that their sums in float64 are exact.
Results then do not depend on the order of summation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from nearid.measures.registry import MANY_LATENTS
from nearid.moments import Floats

# Bins of a latent, and the least number of rows in one. A fold of three trains on two thirds: LightGBM's three rows.
BINS, LEAST_IN_BIN = 127, 5
# Least number of rows in a leaf, and least sum of second derivatives.
LEAST_ROWS, LEAST_HESSIAN = 20, 1e-3
RATE = 0.1
# Latents of a tile: a vector of float64, and the histograms of one tile fit the fastest cache.
TILE = 8
EPSILON = 1e-15
# Up to so many binary digits of the number of rows, a sum of slopes and a count share a float64.
PACKED_BITS = 15
# Of more latents than WIDE, trees see the CLOSEST, chosen among all in one round of EVERY: those with the largest gains
# of a cut of all rows.
WIDE, CLOSEST, EVERY = MANY_LATENTS, 128, 20


class Binned(NamedTuple):
    """Latents as numbers of bins.

    Attributes
    ----------
    codes : ndarray of uint8, shape (tiles, n, TILE)
        Latent j of a row is at [j // TILE, row, j % TILE].
    width : int
        Number of latents. The last tile may have further columns, which are 0.
    bins : int
        Largest number of bins of a latent.
    """

    codes: np.ndarray
    width: int
    bins: int

    def take(self, rows: np.ndarray | None) -> Binned:
        """Some rows, in the same bins."""
        return self if rows is None else self._replace(codes=np.ascontiguousarray(self.codes[:, rows]))


def bin_latents(x: Floats) -> Binned:
    """Cut every latent into at most 127 bins of about equally many rows."""
    n, d = x.shape
    codes = np.zeros((-(-d // TILE), n, TILE), dtype=np.uint8)
    bins = 1
    for j, column in enumerate(np.ascontiguousarray(x.T)):
        order = np.argsort(column, kind="stable")
        bins = max(bins, _cut(column, order, codes[j // TILE, :, j % TILE]))
    return Binned(codes, d, bins)


@njit(cache=True, nogil=True, error_model="numpy")
def _cut(column, order, codes):  # type: ignore[no-untyped-def]
    """Write the bin of each row of a column; the number of bins."""
    n = len(column)
    # Rows of each distinct value.
    counts, distinct = np.zeros(n, np.int64), -1
    for at in range(n):
        if at == 0 or column[order[at]] != column[order[at - 1]]:
            distinct += 1
        counts[distinct] += 1
    ends = np.empty(distinct + 1, np.int64)
    found = _bin_ends(counts[: distinct + 1], ends)
    at = code = 0
    for value in range(distinct + 1):
        for _ in range(counts[value]):
            codes[order[at]] = code
            at += 1
        if code < found and ends[code] == value:
            code += 1
    return found + 1


@njit(cache=True, nogil=True, error_model="numpy")
def _bin_ends(counts, ends):  # type: ignore[no-untyped-def]
    """Places of the distinct values that end a bin; the number of them."""
    distinct, found, inside = len(counts), 0, 0
    if distinct <= BINS:
        for i in range(distinct - 1):
            inside += counts[i]
            if inside >= LEAST_IN_BIN:
                ends[found] = i
                found += 1
                inside = 0
        return found
    rest = counts.sum()
    bins = max(min(BINS, rest // LEAST_IN_BIN), 1)
    # A value that fills a bin has one of its own. The others share the remaining bins equally.
    size = rest / bins
    large = counts >= size
    left = bins
    for i in range(distinct):
        if large[i]:
            left -= 1
            rest -= counts[i]
    size = rest / left if left else np.inf
    for i in range(distinct - 1):
        if found == bins - 1:
            break
        if not large[i]:
            rest -= counts[i]
        inside += counts[i]
        if large[i] or inside >= size or (large[i + 1] and inside >= max(1.0, size * 0.5)):
            ends[found] = i
            found += 1
            inside = 0
            if not large[i]:
                left -= 1
                size = rest / left if left else np.inf
    return found


class Boosted(NamedTuple):
    """Predictions for unseen rows, of shape (classes, rows) or (1, rows), and the gain of each latent."""

    scores: Floats
    gains: Floats


def boost(
    binned: Binned, train: np.ndarray, y: np.ndarray, unseen: np.ndarray, *, classes: int, trees: int, leaves: int
) -> Boosted:
    """Fit boosted trees to some rows, and return their predictions for other rows with the gain of each latent.

    Parameters
    ----------
    binned : Binned
    train, unseen : ndarray of int
        Rows.
    y : ndarray
        Targets of the rows in `train`: numbers, or classes 0, 1, ... that all occur.
    classes : int
        Number of classes; 0 for a regression.
    trees, leaves : int
        Number of trees (for each class, if there are more than two) and of leaves in each.
    """
    seen = np.ascontiguousarray(binned.codes[:, train])
    # By latents, as a split asks for one latent of all rows.
    other = np.ascontiguousarray(binned.codes[:, unseen].transpose(0, 2, 1).reshape(len(seen) * TILE, len(unseen)))
    gains = np.zeros(len(seen) * TILE)
    scores = _boost(seen, other, binned.bins, np.asarray(y, dtype=np.float64), classes, trees, leaves, gains)
    return Boosted(scores, gains[: binned.width])


class Work(NamedTuple):
    """Arrays that every tree of a fit uses again.

    Attributes
    ----------
    rows, spare : ndarray of uint32, shape (n,)
        Rows leaf by leaf, and a place to sort them.
    bounds : ndarray of int, shape (leaves, 2)
        Where the rows of each leaf begin and end.
    splits : ndarray of int, shape (leaves, 3)
        Leaf, latent and last bin of the left side. Split s makes leaf s + 1 of the right side.
    sums : ndarray of shape (leaves, tiles, bins * TILE), or twice as wide for two derivatives
        Sums of derivatives in every bin, of second ones in the other half.
    scratch : ndarray of shape (4, bins * TILE)
        Of the cuts of a tile: both derivatives and rows on the right, and gains.
    totals : ndarray of shape (leaves, 2)
        Sums of the derivatives of each leaf.
    best : ndarray of shape (leaves, 3)
        Gain, latent and last bin on the left of each split.
    found : ndarray of shape (leaves, 3)
        The same of the best cut of each leaf.
    values : ndarray of shape (leaves,)
    """

    rows: np.ndarray
    spare: np.ndarray
    bounds: np.ndarray
    splits: np.ndarray
    sums: Floats
    scratch: Floats
    totals: Floats
    best: Floats
    found: Floats
    values: Floats


@njit(cache=True, nogil=True, error_model="numpy")
def _boost(seen, other, bins, y, classes, trees, leaves, gains):  # type: ignore[no-untyped-def]
    tiles, n, several = seen.shape[0], seen.shape[1], classes if classes > 2 else 1
    scores, made = np.empty((several, n)), np.empty((several, other.shape[1]))
    for c in range(several):
        start = y.mean()
        if classes:
            share = np.mean(y == (c if classes > 2 else 1))
            start = np.log(share) if classes > 2 else np.log(share / (1 - share))
        scores[c], made[c] = start, start
    # Derivatives are whole numbers of a unit, a power of two so small that sums of n of them are exact in float64. The
    # second derivatives of a regression are all 1: their sums are counts, and share a number with the first (`pack`).
    bits = np.ceil(np.log2(n + 1.0))
    packed = classes == 0 and bits <= PACKED_BITS
    pack = 2.0**bits if packed else 0.0
    largest = 1.0 if classes else 2.0 ** np.ceil(np.log2(max(np.abs(y - scores[0, 0]).max(), 1e-300) * 2))
    unit = 2.0 ** min(30.0, 51.0 - bits * (2 if packed else 1)) / largest
    curve_unit = unit if classes else 1.0
    slope, curve = np.empty((several, n)), np.ones((several, n))
    leaf_of = np.empty(other.shape[1], np.uint8)
    wide = tiles * TILE > WIDE
    best_gains = np.empty(tiles * TILE if wide else 0)
    closest = np.empty((several, CLOSEST if wide else 0), np.int64)
    narrow = np.empty((several, closest.shape[1] // TILE, n, TILE), np.uint8)
    work = Work(
        np.empty(n, np.uint32),
        np.empty(n, np.uint32),
        np.zeros((leaves, 2), np.int64),
        np.zeros((leaves, 3), np.int64),
        np.empty((leaves, narrow.shape[1] if wide else tiles, bins * TILE * (1 if packed else 2))),
        np.empty((4, bins * TILE)),
        np.zeros((leaves, 2)),
        np.zeros((leaves, 3)),
        np.zeros((leaves, 3)),
        np.zeros(leaves),
    )
    for tree in range(trees):
        _derive(scores, y, classes, unit, slope, curve)
        grown, every = False, not wide or tree % EVERY == 0
        for c in range(several):
            if wide and every:
                _screen(seen, bins, pack, slope[c], curve[c], curve_unit, work, best_gains)
                _choose(best_gains, closest[c])
                _gather(seen, closest[c], narrow[c])
            count = _grow(narrow[c] if wide else seen, bins, pack, slope[c], curve[c], curve_unit, leaves, work)
            if count == 1:
                continue
            if wide:
                for s in range(count - 1):
                    work.splits[s, 1] = closest[c, work.splits[s, 1]]
            grown = True
            for s in range(count - 1):
                gains[work.splits[s, 1]] += work.best[s, 0] * curve_unit / unit**2
            score, predicted, rows = scores[c], made[c], work.rows
            for leaf in range(count):
                value = -RATE * work.totals[leaf, 0] / work.totals[leaf, 1] * (curve_unit / unit)
                work.values[leaf] = value
                for at in range(work.bounds[leaf, 0], work.bounds[leaf, 1]):
                    score[rows[at]] += value
            _place(other, work.splits, count, leaf_of)
            for at in range(len(predicted)):
                predicted[at] += work.values[leaf_of[at]]
        if every and not grown:
            break
    return made


@njit(cache=True, nogil=True, error_model="numpy")
def _derive(scores, y, classes, unit, slope, curve):  # type: ignore[no-untyped-def]
    """First and second derivatives of the loss in every row, in whole units."""
    several, n = scores.shape
    if classes == 0:
        for i in range(n):
            slope[0, i] = np.rint((scores[0, i] - y[i]) * unit)
        return
    if several == 1:
        for i in range(n):
            share = 1 / (1 + np.exp(-scores[0, i]))
            slope[0, i] = np.rint((share - y[i]) * unit)
            curve[0, i] = np.rint(share * (1 - share) * unit)
        return
    factor = several / (several - 1)
    for i in range(n):
        top = scores[0, i]
        for c in range(1, several):
            top = max(top, scores[c, i])
        total = 0.0
        for c in range(several):
            slope[c, i] = np.exp(scores[c, i] - top)
            total += slope[c, i]
        for c in range(several):
            share = slope[c, i] / total
            slope[c, i] = np.rint((share - (1.0 if y[i] == c else 0.0)) * unit)
            curve[c, i] = np.rint(factor * share * (1 - share) * unit)


@njit(cache=True, nogil=True, error_model="numpy")
def _place(codes, splits, count, leaf_of):  # type: ignore[no-untyped-def]
    """The leaf of each row."""
    leaf_of[:] = 0
    for s in range(count - 1):
        parent, cut, new, own = np.uint8(splits[s, 0]), np.uint8(splits[s, 2]), np.uint8(s + 1), codes[splits[s, 1]]
        for at in range(len(leaf_of)):
            leaf_of[at] = new if (leaf_of[at] == parent) & (own[at] > cut) else leaf_of[at]


@njit(cache=True, nogil=True, error_model="numpy")
def _screen(codes, bins, pack, slope, curve, curve_unit, work, best_gains):  # type: ignore[no-untyped-def]
    """The gain of the best cut of all rows by each latent."""
    rows, sums, scratch, totals, found = work.rows, work.sums[0, 0], work.scratch, work.totals[0], work.found[0]
    for at in range(len(rows)):
        rows[at] = at
    totals[0], totals[1], found[0] = slope.sum(), curve.sum(), 0.0
    cuts = scratch[0], scratch[1], scratch[2], scratch[3]
    best_gains[:] = 0.0
    for t in range(len(codes)):
        _fill(sums, codes[t], pack, rows, slope, curve)
        _search(sums, t, bins, pack, len(rows), totals, curve_unit, cuts, found, best_gains)


@njit(cache=True, nogil=True, error_model="numpy")
def _grow(codes, bins, pack, slope, curve, curve_unit, leaves, work):  # type: ignore[no-untyped-def]
    """Grow one tree; the number of its leaves. `work.best[s]` is then the cut of split s."""
    rows, spare, bounds, splits, sums, scratch, totals, best, found, _ = work
    n = len(rows)
    for at in range(n):
        rows[at] = at
    bounds[0, 0], bounds[0, 1] = 0, n
    totals[0, 0], totals[0, 1] = slope.sum(), curve.sum()
    found[0] = 0.0
    # Views are made here, not in the loops over tiles: they take longer to make than some of the loops to run.
    cuts = scratch[0], scratch[1], scratch[2], scratch[3]
    own, whole, top, no_gains = sums[0], totals[0], found[0], np.empty(0)
    for t in range(len(codes)):
        _fill(own[t], codes[t], pack, rows, slope, curve)
        _search(own[t], t, bins, pack, n, whole, curve_unit, cuts, top, no_gains)
    count = 1
    while count < leaves:
        leaf = 0
        for other in range(1, count):
            if found[other, 0] > found[leaf, 0]:
                leaf = other
        if found[leaf, 0] <= 0:
            break
        new = count
        best[new - 1] = found[leaf]
        latent, cut = np.int64(found[leaf, 1]), np.int64(found[leaf, 2])
        low, high = bounds[leaf]
        left = _part(codes[latent // TILE], latent % TILE, cut, rows[low:high], spare) + low
        splits[new - 1, 0], splits[new - 1, 1], splits[new - 1, 2] = leaf, latent, cut
        bounds[leaf, 1], bounds[new, 0], bounds[new, 1] = left, left, high
        g, h = 0.0, 0.0
        for at in range(left, high):
            g += slope[rows[at]]
            h += curve[rows[at]]
        totals[new, 0], totals[new, 1] = g, h
        totals[leaf, 0] -= g
        totals[leaf, 1] -= h
        count += 1
        found[leaf, 0] = found[new, 0] = -np.inf
        if count == leaves or max(left - low, high - left) < 2 * LEAST_ROWS:
            continue
        # Sums of the smaller side are made, those of the larger are the rest. Tile by tile, as these are in the cache.
        found[leaf, 0] = found[new, 0] = 0.0
        parent, other_side = sums[leaf], sums[new]
        of_leaf, of_new, best_of_leaf, best_of_new = totals[leaf], totals[new], found[leaf], found[new]
        is_right = high - left <= left - low
        smaller = rows[left:high] if is_right else rows[low:left]
        for t in range(len(codes)):
            above, below = other_side[t], parent[t]
            _fill(above, codes[t], pack, smaller, slope, curve)
            if is_right:
                _subtract(below, above)
            else:
                _exchange(below, above)
            if left - low >= 2 * LEAST_ROWS:
                _search(below, t, bins, pack, left - low, of_leaf, curve_unit, cuts, best_of_leaf, no_gains)
            if high - left >= 2 * LEAST_ROWS:
                _search(above, t, bins, pack, high - left, of_new, curve_unit, cuts, best_of_new, no_gains)
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _choose(best_gains, closest):  # type: ignore[no-untyped-def]
    """The latents with the largest gains; of equal ones the first."""
    least, count = np.partition(best_gains, len(best_gains) - len(closest))[len(best_gains) - len(closest)], 0
    # Those above the least are fewer than there are places, which those at the least fill.
    free = len(closest) - np.sum(best_gains > least)
    for j in range(len(best_gains)):
        if best_gains[j] > least or (best_gains[j] == least and free > 0):
            free -= best_gains[j] == least
            closest[count] = j
            count += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _gather(codes, latents, narrow):  # type: ignore[no-untyped-def]
    """Copy some latents into tiles of their own."""
    for at in range(len(latents)):
        own, place = codes[latents[at] // TILE], latents[at] % TILE
        for i in range(own.shape[0]):
            narrow[at // TILE, i, at % TILE] = own[i, place]


@njit(cache=True, nogil=True, error_model="numpy")
def _part(codes, place, cut, rows, spare):  # type: ignore[no-untyped-def]
    """Bring rows up to the cut to the front, both sides in their order; the number of them."""
    left, right = np.uint32(0), np.uint32(0)
    for row in rows:
        above = codes[row, place] > cut
        rows[left] = row
        spare[right] = row
        right += np.uint32(above)
        left += np.uint32(not above)
    for at in range(right):
        rows[left + at] = spare[at]
    return np.int64(left)


@njit(cache=True, nogil=True, error_model="numpy")
def _fill(sums, codes, pack, rows, slope, curve):  # type: ignore[no-untyped-def]
    """Sums of the derivatives in every bin of the latents of a tile, over some rows."""
    sums[:] = 0.0
    if pack:
        for row in rows:
            both = slope[row] * pack + 1.0
            for j in range(TILE):
                sums[np.uint32(codes[row, j]) * np.uint32(TILE) + np.uint32(j)] += both
    else:
        half = np.uint32(len(sums) // 2)
        for row in rows:
            g, h = slope[row], curve[row]
            for j in range(TILE):
                at = np.uint32(codes[row, j]) * np.uint32(TILE) + np.uint32(j)
                sums[at] += g
                sums[at + half] += h


@njit(cache=True, nogil=True, error_model="numpy")
def _subtract(large, small):  # type: ignore[no-untyped-def]
    for i in range(len(large)):
        large[i] -= small[i]


@njit(cache=True, nogil=True, error_model="numpy")
def _exchange(parent, small):  # type: ignore[no-untyped-def]
    """Put the smaller side in the place of the parent, and the rest of it in the other."""
    for i in range(len(parent)):
        rest = parent[i] - small[i]
        parent[i] = small[i]
        small[i] = rest


@njit(cache=True, nogil=True, error_model="numpy")
def _search(sums, tile, bins, pack, n, totals, curve_unit, cuts, best, best_gains):  # type: ignore[no-untyped-def]
    """Put the best cut of a tile into `best` (gain, latent, last bin of the left side) if it is better than that.

    Of equal cuts the first latent and the last bin count. `best_gains`, of shape (latents,) unless it is empty, gets
    the best gain of each latent.
    """
    slope, curve = totals[0], totals[1] + 2 * EPSILON * curve_unit
    before, size = slope * slope / curve, (bins - 1) * TILE
    right_g, right_h, right_n, gains = cuts
    if pack:
        _add_packed(sums, pack, right_g, right_h, bins)
        _rate(right_g, right_h, right_h, gains, size, float(n), slope, curve, curve_unit)
    else:
        half = len(sums) // 2
        _add_pairs(sums[:half], sums[half:], n / curve, right_g, right_h, right_n, bins)
        _rate(right_g, right_h, right_n, gains, size, float(n), slope, curve, curve_unit)
    top = _largest(gains, size)
    if top - before > best[0]:
        at = -1
        for k in range(size):
            if gains[k] == top and (at < 0 or k % TILE <= at % TILE):
                at = k
        best[0], best[1], best[2] = top - before, tile * TILE + at % TILE, at // TILE
    if len(best_gains):
        own = best_gains[tile * TILE : (tile + 1) * TILE]
        for k in range(0, size, TILE):
            for j in range(TILE):
                own[j] = max(own[j], gains[k + j] - before)


# Small loops over whole arrays, which the compiler turns into vector instructions only if each stands alone.


@njit(cache=True, nogil=True, error_model="numpy")
def _add_packed(own, pack, right_g, right_h, bins):  # type: ignore[no-untyped-def]
    """Sums of slopes and counts of rows in all bins after each."""
    for j in range(TILE):
        right_g[(bins - 1) * TILE + j] = 0.0
    for k in range((bins - 1) * TILE - 1, -1, -1):
        right_g[k] = right_g[k + TILE] + own[k + TILE]
    over = 1 / pack
    for k in range((bins - 1) * TILE):
        g = np.floor(right_g[k] * over)
        right_h[k] = right_g[k] - g * pack
        right_g[k] = g


@njit(cache=True, nogil=True, error_model="numpy")
def _add_pairs(slopes, curves, per_row, right_g, right_h, right_n, bins):  # type: ignore[no-untyped-def]
    """The same of slopes and curves, and the rows that these stand for: as in LightGBM, curves share out the rows."""
    last = (bins - 1) * TILE
    for k in range(last):
        right_n[k] = np.floor(curves[k + TILE] * per_row + 0.5)
    for j in range(TILE):
        right_g[last + j] = right_h[last + j] = right_n[last + j] = 0.0
    for k in range(last - 1, -1, -1):
        right_g[k] = right_g[k + TILE] + slopes[k + TILE]
    for k in range(last - 1, -1, -1):
        right_h[k] = right_h[k + TILE] + curves[k + TILE]
    for k in range(last - 1, -1, -1):
        right_n[k] += right_n[k + TILE]


@njit(cache=True, nogil=True, error_model="numpy")
def _rate(right_g, right_h, right_n, gains, size, n, slope, curve, unit):  # type: ignore[no-untyped-def]
    """Gains of all cuts, up to that of no cut; 0 where a side is too small."""
    slack, least = EPSILON * unit, LEAST_HESSIAN * unit
    for k in range(size):
        g, h = right_g[k], right_h[k] + slack
        left_g, left_h = slope - g, curve - h
        rows, curves = min(right_n[k], n - right_n[k]), min(h, left_h)
        gain = (g * g * left_h + left_g * left_g * h) / (h * left_h)
        gains[k] = gain if min(rows - LEAST_ROWS, curves - least) >= 0 else 0.0


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"nnan", "nsz"})
def _largest(gains, size):  # type: ignore[no-untyped-def]
    # Side by side, as each maximum waits for the one before.
    a = b = c = d = 0.0
    for k in range(0, size, 4):
        a, b, c, d = max(a, gains[k]), max(b, gains[k + 1]), max(c, gains[k + 2]), max(d, gains[k + 3])
    return max(max(a, b), max(c, d))
