"""Chance level of the fits: the whole cross-validation is repeated with the target's rows in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from nearid.base.estimate import Estimate
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, ordered_map
from nearid.folds import Blocks, reordered, turned
from nearid.groups.fits import squared_errors
from nearid.groups.ladder import Group
from nearid.groups.ridge import Judges
from nearid.measures.canonical import directions_between, pooled, products_along, whiteners_like
from nearid.measures.similarity import debiased_cka, fourth_moments
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.errors import LEADING, Fits, Gathered, Options, Similarities

# More repetitions than this take very long and add nothing.
MOST_PERMUTATIONS = 100_000
PERMUTATIONS = 99
# With fewer different orders, p cannot reach .05 even if all are beaten.
LEAST_ORDERS = 19
# Repetitions that are computed at a time, and the width up to which starting threads takes longer than the work.
AT_A_TIME, NARROW = 11, 32
# Orders to draw for each repetition if few orders differ.
TRIES = 8
# With so few independent rows, the same order may be drawn twice.
FEW_ROWS = 20
# Rows on which chance is measured, and the memory they may take.
ROWS = 10_000
BYTES = 128 << 20
# Repetitions that similarities are averaged over.
SIMILARITIES = 3
# Precision of R2 from row errors in the precision of the rows.
PRECISION = 1e-6


@dataclass(frozen=True)
class Chance:
    """Results of reordered rows.

    Attributes
    ----------
    r2 : ndarray of shape (different repetitions, groups)
        Explained variance.
    similarity : Similarities
        Means over a few repetitions.
    rows : int
        Rows in use.
    own_order : ndarray of shape (groups,) or None
        Explained variance of the rows in their own order, measured like `r2`; None if chance was measured on a sample
        or on leading components.
    """

    r2: Floats
    similarity: Similarities
    rows: int
    own_order: Floats | None = None

    def comparable(self, r2: Floats) -> Floats:
        """The R2 of each group to compare with chance. Orders with the same result must count as ties."""
        return r2 - PRECISION if self.own_order is None else self.own_order


class CrossFolds:
    """Moments of every fold of rows in memory, with the target's rows in one or several other orders.

    Sums are centred at the means of all rows. It has the interface of `FoldMoments` that `Judges` and the fits use,
    with a leading axis for the orders. It stores only the diagonal of the target's own products, which is all that maps
    need.
    """

    def __init__(self, x: Floats, y: Floats, fold: np.ndarray, folds: int) -> None:
        self.mean_x, self.mean_y = x.mean(axis=0), y.mean(axis=0)
        self.x, self.y = x - self.mean_x, y - self.mean_y
        self.rows = [np.flatnonzero(fold == k) for k in range(folds)]
        self.counts = [len(rows) for rows in self.rows]
        self.first_x = np.stack([self.x[rows].sum(axis=0) for rows in self.rows])
        self.xx = np.stack([self.x[rows].T @ self.x[rows] for rows in self.rows])
        self.known: dict[tuple[int, ...], tuple[int, Floats, Floats]] = {}
        self._give([np.arange(len(x))])

    def given(self, orders: Sequence[np.ndarray]) -> CrossFolds:
        """The same with reordered target rows: each source row gets the target row of this number."""
        other = object.__new__(CrossFolds)
        other.__dict__.update(self.__dict__)
        other._give(orders)
        return other

    def _give(self, orders: Sequence[np.ndarray]) -> None:
        shape = len(orders), len(self.rows), self.y.shape[1]
        self.first_y, self.squares_y = np.empty(shape), np.empty(shape)
        self.xy = np.empty((*shape[:2], self.x.shape[1], shape[2]))
        x, room = [self.x[rows].T for rows in self.rows], np.empty((max(self.counts), shape[2]))
        for at, order in enumerate(orders):
            for k, rows in enumerate(self.rows):
                # The numbers are within range, so nothing is clipped. To check them, numpy would use fresh memory.
                y = np.take(self.y, order[rows], axis=0, out=room[: len(rows)], mode="clip")
                y.sum(axis=0, out=self.first_y[at, k])
                np.einsum("ij,ij->j", y, y, out=self.squares_y[at, k])
                np.matmul(x[k], y, out=self.xy[at, k])

    @property
    def all(self) -> PairMoments:
        """Moments of all rows."""
        return self._of(list(range(len(self.rows))))

    def part(self, k: int) -> PairMoments:
        """Moments of fold k."""
        return self._of([k])

    def without(self, folds: Sequence[int]) -> PairMoments:
        """Moments of the rows outside some folds."""
        return self._of([k for k in range(len(self.rows)) if k not in folds])

    def _of(self, folds: list[int]) -> PairMoments:
        n, x, xx = self._source(tuple(folds))
        y = self.first_y[:, folds].sum(axis=1) / n
        xy = self.xy[:, folds].sum(axis=1) - (n * x)[:, None] * y[:, None]
        spread = np.clip(self.squares_y[:, folds].sum(axis=1) - n * y**2, 0, None)
        yy = spread[:, None] * np.eye(y.shape[1])
        return PairMoments(n, x + self.mean_x, y + self.mean_y, xx, xy, yy)

    def _source(self, folds: tuple[int, ...]) -> tuple[int, Floats, Floats]:
        """Number, mean and products of the source rows of some folds; they do not depend on the target's order."""
        if folds not in self.known:
            at = list(folds)
            n = sum(self.counts[k] for k in at)
            x = self.first_x[at].sum(axis=0) / n
            self.known[folds] = n, x, self.xx[at].sum(axis=0) - (n * x)[:, None] * x
        return self.known[folds]


def chance_level(
    gathered: Gathered,
    groups: Sequence[Group],
    fits: Fits,
    permutations: int | None,
    seed: int,
    progress: Progress,
    engine: Engine = LOCAL,
) -> Chance:
    """Explained variance of every group with the target's rows in another order; on a sample if there are many rows.

    The repetitions run on the engine.
    """
    pair, folds = gathered.pair, len(gathered.parts.parts)
    rng = np.random.default_rng([seed, 1])
    widths = pair.x.shape[1], pair.y.shape[1]
    most = max(4 * folds, min(max(ROWS, 10 * sum(widths)), BYTES // (8 * sum(widths))))
    blocks, sampled = gathered.blocks, gathered.count > most
    if not sampled:
        rows = gathered.used
    elif blocks is None:
        rows = gathered.random_rows(most, rng)
    else:
        rows = blocks.sample(gathered.used, most, rng)
    rows = np.sort(rows)
    own = None if blocks is None else blocks.take(rows)
    fold = gathered.fold[rows]
    used, fold = np.unique(fold, return_inverse=True)
    x, y = (np.asarray(side, dtype=np.float64) for side in pair.take(rows))
    options = [gathered.without_fold[k] for k in used]
    reduced = max(widths) > LEADING
    if reduced:
        # A cross-validation of all columns would take minutes, and 99 of them hours.
        bases = gathered.eigen_x[1][:, :LEADING], gathered.eigen_y[1][:, :LEADING]
        x, y = x @ bases[0], y @ bases[1]
        options = [_projected(each, *bases) for each in options]
    similarity = _similar(x, y, fold, own, fits, np.random.default_rng([seed, 9]))
    base = CrossFolds(x, y, fold, len(used))
    judges = gathered.judges
    if judges is not None and (sampled or reduced):
        judges = Judges(base, translation=options[0]["translation"])
    repeats = permutations or PERMUTATIONS
    own_order = None if sampled or reduced else explained(base, groups, options, judges)[0]

    each = Orders(len(rows), own, repeats, np.random.SeedSequence([seed, 4]))
    repeated = _Repeated(each, base, groups, options, judges)
    work = [range(len(each))[at : at + AT_A_TIME] for at in range(0, len(each), AT_A_TIME)]
    tick = progress("chance", len(work))
    if max(x.shape[1], y.shape[1]) > NARROW:
        r2 = np.concatenate(list(engine.map(_repeat, work, repeated, tick=tick)))
    else:
        r2 = np.concatenate(list(ordered_map(lambda some: _repeat(some, repeated), work, workers=1, tick=tick)))
    if sampled:
        # With all rows a fit to noise would be closer to the constant guess than with these few. But without a scale it
        # cannot shrink, and its error exceeds that of the guess for any number of rows.
        shrinks = np.array([options[0]["scale"] or "scale" not in g.options for g in groups])
        r2 = np.where(shrinks, np.maximum(r2, 0), r2)
    return Chance(r2, similarity, len(rows), own_order)


@dataclass(frozen=True)
class _Repeated:
    """The cross-validation that is repeated, and the orders of the target's rows."""

    orders: Orders
    base: CrossFolds
    groups: Sequence[Group]
    options: list[Options]
    judges: Judges | None


def _repeat(some: range, repeated: _Repeated) -> Floats:
    """Explained variance of each group in some repetitions. One with two orders counts with the worse one."""
    r, ways = repeated, zip(*(repeated.orders[at] for at in some), strict=True)
    each = [explained(r.base.given(orders), r.groups, r.options, r.judges) for orders in ways]
    return np.asarray(np.max(each, axis=0))


class Orders:
    """Different orders of the target's rows; fewer than requested if there are not so many.

    Few blocks have few orders, and a repeated order adds nothing. One block has only its own order. Each order is drawn
    again when it is needed, because storing all of them would fill the memory.
    """

    def __init__(self, n: int, blocks: Blocks | None, count: int, seeds: np.random.SeedSequence) -> None:
        self._n, self._blocks = n, blocks
        self._each: Sequence[int | np.random.SeedSequence]
        if blocks is not None and blocks.serial and len(blocks.lags) <= count:
            self._each = blocks.lags
        elif blocks is None and n > FEW_ROWS:
            self._each = seeds.spawn(count)
        else:
            self._each = self._different(count, seeds) if blocks is None or blocks.count > 1 else []

    def _different(self, count: int, seeds: np.random.SeedSequence) -> list[np.random.SeedSequence]:
        different: dict[bytes, np.random.SeedSequence] = {}
        for _ in range(TRIES * count):
            seed = seeds.spawn(1)[0]
            order = reordered(self._n, self._blocks, np.random.default_rng(seed))
            different.setdefault(blake2b(order.tobytes(), digest_size=16).digest(), seed)
            if len(different) == count:
                break
        return list(different.values())

    def __len__(self) -> int:
        return len(self._each)

    @property
    def ways(self) -> int:
        """Orders of each repetition."""
        return 2 if self._blocks is not None and self._blocks.chained else 1

    def __getitem__(self, at: int) -> list[np.ndarray]:
        """The orders of a repetition.

        If consecutive blocks are similar, there are two orders: a permutation, and a rotation of all rows, which keeps
        this similarity.
        """
        seed = self._each[at]
        if isinstance(seed, int):
            return [turned(self._n, seed)]
        rng = np.random.default_rng(seed)
        orders = [reordered(self._n, self._blocks, rng)]
        if self._blocks is not None and self._blocks.chained:
            orders.append(reordered(self._n, replace(self._blocks, serial=True), rng))
        return orders


def _projected(options: Options, x_basis: Floats, y_basis: Floats) -> Options:
    """Options of fits to rows projected on two bases; the components of each side, if any, are projected too."""
    if "source" not in options:
        return options
    source, target, mixing = (options[name] for name in ("source", "target", "mixing"))
    return {**options, "source": source @ x_basis, "target": target @ y_basis, "mixing": y_basis.T @ mixing}


def explained(parts: CrossFolds, groups: Sequence[Group], options: list[Options], judges: Judges | None) -> Floats:
    """Held-out share of the variance that each group explains, for each order of the target's rows."""
    penalties = None if judges is None else judges.choose_many(parts)
    orders = len(parts.xy)
    error, spread = np.zeros((orders, len(groups))), np.zeros(orders)
    for k in range(len(parts.rows)):
        train, test = parts.without([k]), parts.part(k)
        fitted_on, judged = (
            [replace(m, mean_y=m.mean_y[at], xy=m.xy[at], yy=m.yy[at]) for at in range(orders)] for m in (train, test)
        )
        own = [options[k]] * orders
        if penalties is not None:
            own = [{**options[k], "ridge": tuple(each)} for each in penalties[k].T.tolist()]
        for g, group in enumerate(groups):
            maps = group.fitted_to_many(fitted_on, own)
            error[:, g] += [float(squared_errors(m, on).sum()) for m, on in zip(maps, judged, strict=True)]
        spread += np.trace(test.yy, axis1=1, axis2=2) + test.n * np.sum((test.mean_y - train.mean_y) ** 2, axis=1)
    return 1 - np.divide(error, spread[:, None], out=np.ones_like(error), where=spread[:, None] > 0)


def _similar(
    x: Floats, y: Floats, fold: np.ndarray, blocks: Blocks | None, fits: Fits, rng: np.random.Generator
) -> Similarities:
    """Mean similarities of reordered rows: CCA and SVCCA of one split each, CKA of all rows."""
    test, train = np.flatnonzero(fold == 0), np.flatnonzero(fold != 0)
    correlations: tuple[list[Floats], list[Floats]] = ([], [])
    alike = []
    for _ in range(SIMILARITIES):
        mixed = y[reordered(len(y), blocks, rng, all_move=True)]
        fitted_on, judged = (PairMoments.of(x[rows], mixed[rows]) for rows in (train, test))
        for into, chosen, leading in zip(correlations, (fits.cca, fits.svcca), (False, True), strict=True):
            wx, wy = whiteners_like(chosen, fitted_on, leading=leading)
            a, b, _ = directions_between(wx, fitted_on.xy, wy)
            into.append(pooled([products_along(a, b, judged)]))
        # CKA fits nothing, so all rows count, as in the value itself.
        whole = PairMoments.of(x, mixed)
        alike.append(debiased_cka(whole, fourth_moments(x - whole.mean_x, mixed - whole.mean_y)))
    cca, svcca = (np.mean([own[: min(map(len, each))] for own in each], axis=0) for each in correlations)
    means = [Estimate(float(np.mean(values))) for values in (cca, svcca, alike)]
    return Similarities(means[0], means[1], means[2], cca, {"cca": [len(cca)], "svcca": [len(svcca)]})
