"""The chance level: what the same fits reach when the target's rows are permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearid.arrays import Pair
from nearid.base.progress import Progress
from nearid.engines.local import ordered_map
from nearid.groups.fits import apply
from nearid.groups.ladder import Group
from nearid.measures.similarity import debiased_cka, fourth_moments, pooled
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.evaluate import Options, Similarities, fit_split, row_norms, unexplained_share

# More repetitions than this take for ever and tell nothing.
MOST_PERMUTATIONS = 100_000
# Rows on which chance is measured, and the memory they may take.
ROWS = 10_000
BYTES = 128 << 20


@dataclass(frozen=True)
class Chance:
    """What the ladder reaches by chance.

    Attributes
    ----------
    error, r2 : ndarray of shape (permutations, groups)
        Mean error and explained share of variance.
    similarity : Similarities
        Mean over permutations.
    rows : int
        Rows in use.
    """

    error: Floats
    r2: Floats
    similarity: Similarities
    rows: int


class Part:
    """Centred rows of one part of a split, and the moments that permuting them leaves alone."""

    def __init__(self, x: Floats, y: Floats) -> None:
        self.moments = PairMoments.of(x, y)
        self.x, self.y = x - self.moments.mean_x, y - self.moments.mean_y

    def permuted(self, rng: np.random.Generator) -> tuple[PairMoments, Floats]:
        """Moments with the rows of y permuted, and those (centred) rows."""
        mixed = self.y[rng.permutation(len(self.y))]
        return replace(self.moments, xy=self.x.T @ mixed), mixed


def chance_level(
    pair: Pair,
    kept: np.ndarray | None,
    groups: Sequence[Group],
    options: Options,
    folds: int,
    svcca_k: int | None,
    permutations: int,
    seed: int,
    progress: Progress,
) -> Chance:
    """Fit on permuted rows and judge on others, in the folds' proportion; a sample where rows are many."""
    rng = np.random.default_rng([seed, 1])
    width = pair.x.shape[1] + pair.y.shape[1]
    most = max(4 * folds, min(max(ROWS, 10 * width), BYTES // (8 * width)))
    rows = np.arange(pair.n) if kept is None else np.flatnonzero(kept)
    sampled = len(rows) > most
    if sampled:
        rows = rng.choice(rows, most, replace=False)
    # Rows are exchangeable once permuted, so one split is as good as another. The target is permuted within each part:
    # then only the products of x with y change, and the rest is computed once.
    rng.shuffle(rows)
    x, y = pair.take(rows)
    cut = max(len(rows) // folds, 2)
    train, test = Part(x[cut:], y[cut:]), Part(x[:cut], y[:cut])

    def mixed_up(seeds: np.random.SeedSequence) -> tuple[Floats, Floats, Similarities]:
        own = np.random.default_rng(seeds)
        fitted_on, _ = train.permuted(own)
        judged, mixed = test.permuted(own)
        maps, guess, cca, svcca = fit_split(fitted_on, judged, groups, options, svcca_k)
        error = np.array([row_norms(apply(m, x[:cut]) - mixed - judged.mean_y) for m in maps])
        spread = row_norms(mixed + judged.mean_y - guess)
        cka = debiased_cka(judged, fourth_moments(test.x, mixed))
        level, r2 = error.mean(axis=1), 1 - unexplained_share(error, spread)
        if sampled:
            # With all the rows a fit to noise would be nearer to the constant guess than with these few; but without a
            # scale it cannot shrink, and misses by more than the guess whatever the rows.
            shrinks = np.array([options["scale"] or "scale" not in g.options for g in groups])
            level = np.where(shrinks, np.minimum(level, spread.mean()), level)
            r2 = np.where(shrinks, np.maximum(r2, 0), r2)
        return level, r2, Similarities(pooled([cca]), float(np.mean(pooled([svcca]))), cka)

    each = np.random.SeedSequence([seed, 4]).spawn(permutations)
    tick = progress("chance", permutations)
    levels, r2, similar = zip(*ordered_map(mixed_up, each, tick=tick), strict=True)
    mean = Similarities(
        np.mean([s.cca for s in similar], axis=0),
        float(np.mean([s.svcca for s in similar])),
        float(np.mean([s.cka for s in similar])),
    )
    return Chance(np.array(levels), np.array(r2), mean, len(rows))
