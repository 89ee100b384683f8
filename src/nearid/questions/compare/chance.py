"""What the same fits reach by chance: the whole cross-validation again, with the target's rows in another order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearid.base.progress import Progress
from nearid.engines.local import ordered_map
from nearid.folds import Blocks, reordered
from nearid.groups.fits import squared_errors
from nearid.groups.ladder import Group
from nearid.groups.ridge import Judges, Penalties
from nearid.measures.similarity import debiased_cka, fourth_moments, pooled
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.errors import Gathered, Options, Similarities, fit_split

# More repetitions than this take for ever and tell nothing.
MOST_PERMUTATIONS = 100_000
# Repetitions by default: the first where they take less than about so many operations, at least the second.
PERMUTATIONS, LEAST_PERMUTATIONS, OPERATIONS = 99, 3, 1e11
# Rows on which chance is measured, and the memory they may take.
ROWS = 10_000
BYTES = 128 << 20
# Repetitions that similarities are averaged over.
SIMILARITIES = 3


@dataclass(frozen=True)
class Chance:
    """Explained variance, (repetitions, groups), by chance; mean similarities; and the rows in use."""

    r2: Floats
    similarity: Similarities
    rows: int


class CrossFolds:
    """Moments of every fold of rows in memory, where only the order of the target's rows changes.

    Sums are about the means of all rows. It offers what `Judges` and the fits ask of `FoldMoments`; of the target's own
    products the diagonal alone, which is all that maps need.
    """

    def __init__(self, x: Floats, y: Floats, fold: np.ndarray, folds: int) -> None:
        self.mean_x, self.mean_y = x.mean(axis=0), y.mean(axis=0)
        self.x, self.y = x - self.mean_x, y - self.mean_y
        self.rows = [np.flatnonzero(fold == k) for k in range(folds)]
        self.counts = [len(rows) for rows in self.rows]
        self.first_x = np.stack([self.x[rows].sum(axis=0) for rows in self.rows])
        self.xx = np.stack([self.x[rows].T @ self.x[rows] for rows in self.rows])
        self.give(np.arange(len(x)))

    def give(self, order: np.ndarray) -> CrossFolds:
        """Pair each source row with the target row of this number."""
        targets = [self.y[order[rows]] for rows in self.rows]
        self.first_y = np.stack([y.sum(axis=0) for y in targets])
        self.squares_y = np.stack([np.einsum("ij,ij->j", y, y) for y in targets])
        self.xy = np.stack([self.x[rows].T @ y for rows, y in zip(self.rows, targets, strict=True)])
        return self

    def given(self, order: np.ndarray) -> CrossFolds:
        """The same for a thread of its own: the source's sums are shared."""
        other = object.__new__(CrossFolds)
        other.__dict__.update(self.__dict__)
        return other.give(order)

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
        n = sum(self.counts[k] for k in folds)
        x, y = self.first_x[folds].sum(axis=0) / n, self.first_y[folds].sum(axis=0) / n
        xx, xy = self.xx[folds].sum(axis=0) - n * np.outer(x, x), self.xy[folds].sum(axis=0) - n * np.outer(x, y)
        spread = np.clip(self.squares_y[folds].sum(axis=0) - n * y**2, 0, None)
        return PairMoments(n, x + self.mean_x, y + self.mean_y, xx, xy, np.diag(spread))


def chance_level(
    gathered: Gathered,
    groups: Sequence[Group],
    svcca_k: int | None,
    permutations: int | None,
    seed: int,
    progress: Progress,
) -> Chance:
    """Explained variance of every group with the target's rows in another order; on a sample where rows are many."""
    pair, folds = gathered.pair, len(gathered.parts.parts)
    rng = np.random.default_rng([seed, 1])
    widths = pair.x.shape[1], pair.y.shape[1]
    most = max(4 * folds, min(max(ROWS, 10 * sum(widths)), BYTES // (8 * sum(widths))))
    rows, blocks = gathered.used, gathered.blocks
    sampled = len(rows) > most
    if sampled:
        rows = rng.choice(rows, most, replace=False) if blocks is None else blocks.sample(rows, most, rng)
    rows = np.sort(rows)
    own = None if blocks is None else blocks.take(rows)
    fold = gathered.fold[rows]
    used, fold = np.unique(fold, return_inverse=True)
    x, y = (np.asarray(side, dtype=np.float64) for side in pair.take(rows))
    base = CrossFolds(x, y, fold, len(used))
    options = [gathered.without_fold[k] for k in used]
    judges = gathered.judges if not sampled else _judges(base, options[0], gathered)
    cost = operations(len(rows), *widths, len(used))
    repeats = permutations or int(np.clip(OPERATIONS / cost, LEAST_PERMUTATIONS, PERMUTATIONS))
    # Of wide rows a repetition is a single split: a cross-validation would take minutes.
    tested = range(len(used)) if cost * repeats <= 2 * OPERATIONS or permutations else range(1)

    def repeat(seeds: np.random.SeedSequence) -> Floats:
        order = reordered(len(rows), own, np.random.default_rng(seeds))
        return _explained(base.given(order), groups, options, judges, tested)

    each = np.random.SeedSequence([seed, 4]).spawn(repeats)
    r2 = np.array(list(ordered_map(repeat, each, tick=progress("chance", repeats))))
    if sampled:
        # With all the rows a fit to noise would be nearer to the constant guess than with these few; but without a
        # scale it cannot shrink, and misses by more than the guess whatever the rows.
        shrinks = np.array([options[0]["scale"] or "scale" not in g.options for g in groups])
        r2 = np.where(shrinks, np.maximum(r2, 0), r2)
    return Chance(r2, _similar(base, own, svcca_k, np.random.default_rng([seed, 9])), len(rows))


def operations(n: int, p: int, q: int, folds: int) -> float:
    """About how many floating-point operations one repetition takes."""
    return 2.0 * n * p * q + folds * 60.0 * min(p, q) ** 2 * max(p, q)


def _judges(base: CrossFolds, options: Options, gathered: Gathered) -> Judges | None:
    if gathered.judges is None or len(base.rows) < 3:
        return None
    return Judges(base, translation=options["translation"])


def _explained(
    parts: CrossFolds, groups: Sequence[Group], options: list[Options], judges: Judges | None, tested: Sequence[int]
) -> Floats:
    """Held-out share of the variance that each group explains, over the tested folds."""
    penalties: Penalties | None = None if judges is None else judges.choose(parts)
    error, spread = np.zeros(len(groups)), 0.0
    for k in tested:
        train, test = parts.without([k]), parts.part(k)
        own = options[k] if penalties is None else {**options[k], "ridge": penalties.folds[k]}
        error += [float(squared_errors(g.fitted(train, own), test).sum()) for g in groups]
        spread += float(np.trace(test.yy)) + test.n * float(np.sum((test.mean_y - train.mean_y) ** 2))
    return 1 - error / spread if spread else np.zeros(len(groups))


def _similar(base: CrossFolds, blocks: Blocks | None, k: int | None, rng: np.random.Generator) -> Similarities:
    """Mean similarities of reordered rows, of one split each."""
    test, train = base.rows[0], np.concatenate(base.rows[1:])
    similar = []
    for _ in range(SIMILARITIES):
        y = base.y[reordered(len(base.y), blocks, rng)]
        fitted_on, judged = (PairMoments.of(base.x[rows], y[rows]) for rows in (train, test))
        _, _, cca, svcca = fit_split(fitted_on, judged, (), {}, k)
        cka = debiased_cka(judged, fourth_moments(base.x[test] - judged.mean_x, y[test] - judged.mean_y))
        similar.append(Similarities(pooled([cca]), float(np.mean(pooled([svcca]))), cka))
    return replace(
        similar[0],
        cca=np.mean([s.cca for s in similar], axis=0),
        svcca=float(np.mean([s.svcca for s in similar])),
        cka=float(np.mean([s.cka for s in similar])),
    )
