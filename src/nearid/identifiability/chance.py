"""The chance level: what the same fits reach when the target's rows are permuted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Pair
from nearid.groups.ladder import Group
from nearid.groups.maps import apply
from nearid.identifiability.evaluate import Options, Similarities, fit_split, row_norms, unexplained_share
from nearid.measures.similarity import debiased_cka, fourth_moments
from nearid.moments import Floats, PairMoments
from nearid.progress import Progress

# Rows on which chance is measured, and the memory they may take.
ROWS = 20_000
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
    """Permute the target's rows, fit on all folds but one, judge on that one; a sample of rows where there are many."""
    rng = np.random.default_rng([seed, 1])
    width = pair.x.shape[1] + pair.y.shape[1]
    most = max(4 * folds, min(max(ROWS, 20 * width), BYTES // (8 * width)))
    rows = np.arange(pair.n) if kept is None else np.flatnonzero(kept)
    if len(rows) > most:
        rows = np.sort(rng.choice(rows, most, replace=False))
    x, y = pair.take(rows)
    test = max(len(rows) // folds, 1)
    tick = progress("chance", permutations)
    errors, r2, similar = [], [], []
    for _ in range(permutations):
        # Permuted rows are exchangeable, so one fold is as good as another.
        a, b = x[rng.permutation(len(x))], y[rng.permutation(len(y))]
        train, judged = PairMoments.of(a[test:], b[test:]), PairMoments.of(a[:test], b[:test])
        maps, cca, svcca = fit_split(train, judged, groups, options, svcca_k)
        error = np.array([row_norms(apply(m, a[:test]) - b[:test]) for m in maps])
        spread = row_norms(b[:test] - train.mean_y)
        errors.append(error.mean(axis=1))
        r2.append(1 - unexplained_share(error, spread))
        fourth = fourth_moments(a[:test] - judged.mean_x, b[:test] - judged.mean_y)
        similar.append(Similarities(cca, float(np.mean(svcca)), debiased_cka(judged, fourth)))
        tick()
    mean = Similarities(
        np.mean([s.cca for s in similar], axis=0),
        float(np.mean([s.svcca for s in similar])),
        float(np.mean([s.cka for s in similar])),
    )
    return Chance(np.array(errors), np.array(r2), mean, len(rows))
