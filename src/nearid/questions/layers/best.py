"""The best pair of layers: an interval that accounts for the choice, and the best value by chance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from nearid.arrays import Pair, pair_rows
from nearid.base.estimate import Estimate
from nearid.base.progress import Progress, silent
from nearid.engines.base import Engine
from nearid.folds import fold_moments
from nearid.groups.ladder import GROUPS, Group
from nearid.measures.canonical import Canonical, held_out
from nearid.measures.similarity import cka_influence
from nearid.moments import Floats
from nearid.questions.compare.best import Best, chosen_among, confidence_of_best
from nearid.questions.compare.errors import Fits, Gathered, evaluate, gather
from nearid.questions.compare.intervals import FEW, Interval, influences, intervals
from nearid.questions.compare.run import estimand
from nearid.questions.compare.similar import DIRECTIONS, POPULATION, rows_looked_at, with_interval
from nearid.questions.layers.chance import BestByChance, Shuffles, has_chance
from nearid.questions.layers.result import group_of, is_error, place_of_best
from nearid.questions.layers.tiles import Fitting, Layers


def best_pairs(
    pair: Pair,
    left: Layers,
    right: Layers,
    measures: Mapping[str, object],
    values: Mapping[str, Floats],
    how: Fitting,
    permutations: int | None,
    progress: Progress,
    *,
    itself: bool,
) -> tuple[dict[str, Best], dict[str, BestByChance]]:
    """The best of all pairs of layers by each measure, and its chance level if that is known.

    Parameters
    ----------
    pair : Pair
        All layers of both sides, side by side.
    measures : mapping of name -> name or function
    values : mapping of name -> matrix
    permutations : int or None
        As of `compare_layers`.
    itself : bool
        Whether both sides are the same model. A layer is then not compared with itself.
    """
    best, reached = {}, {}
    rows = list(left.values()), list(right.values())
    shuffles = Shuffles(pair, *rows, how)
    widest = max(layer.shape[1] for side in rows for layer in side)
    for name, measure in measures.items():
        compared = np.isfinite(values[name])
        if itself and len(compared) > 1:
            np.fill_diagonal(compared, False)
        at = place_of_best(name, np.where(compared, values[name], np.nan))
        if at is None:
            continue
        (i, j), count = at, int(compared.sum())
        estimate = Estimate(float(values[name][at]))
        if isinstance(measure, str):
            estimate = with_interval_of_best(estimate, measure, pair_rows(rows[0][i], rows[1][j]), count, how)
        best[name] = Best(list(left)[i], list(right)[j], estimate, count)
        # If rows depend on their neighbours for too long, no order is independent of the others.
        slow = how.blocks is not None and how.blocks.slow
        found = None
        if permutations != 0 and not slow and isinstance(measure, str) and has_chance(measure, widest):
            found = shuffles.best(measure, compared, permutations, progress)
        if found is not None:
            chance = replace(estimate, chance=float(found.reached.max()))
            best[name] = replace(best[name], value=chance, p_value=float(found.p_values[at]))
            reached[name] = found
    return best, reached


def with_interval_of_best(estimate: Estimate, measure: str, pair: Pair, count: int, how: Fitting) -> Estimate:
    """The value of the best of `count` pairs of layers, with its interval; none for `mcc` and for few rows."""
    confidence = confidence_of_best(count)
    group = group_of(measure, "r2") or group_of(measure, "epsilon")
    if group is not None:
        # Choosing a penalty is slow, so skip it if the group needs none.
        ridge = how.ridge if "ridge" in GROUPS[group].options else 0.0
        if pair.n < FEW * max(pair.x.shape[1], pair.y.shape[1]):
            return estimate
        gathered = gather(
            pair,
            how.folds,
            {"translation": True, "scale": True, "ridge": ridge},
            how.seed,
            together=how.blocks,
            drop_nonfinite=False,
            prepare=(),
            engine=how.engine,
            progress=silent,
        )
        ends = _of_group(gathered, GROUPS[group], estimate.value, is_error(measure), confidence, how.engine)
        if not ends.known:
            return estimate
        return replace(estimate, low=ends.low, high=ends.high, of=chosen_among(estimand(gathered), count))
    if measure not in ("cka", "cca", "svcca"):
        return estimate
    held = 1 if measure == "cka" else how.folds
    fold = how.deal(pair.n, held)
    parts = fold_moments(pair, fold, held, engine=how.engine)
    gathered = Gathered(pair, fold, parts, parts.all, {}, [], blocks=how.blocks)
    sample, x, y = rows_looked_at(gathered, how.seed)
    if measure == "cka":
        moved, of = cka_influence(x, y, gathered.moments), chosen_among(POPULATION, count)
        return with_interval(estimate, moved, of, gathered, sample, confidence=confidence)
    found = held_out(parts, leading=measure == "svcca", k=how.k if measure == "svcca" else None)
    moved, of = found.influence(x, y, fold[sample.rows], parts), chosen_among(DIRECTIONS, count)
    return with_interval(estimate, moved, of, gathered, sample, found, confidence)


def _of_group(
    gathered: Gathered, group: Group, value: float, error: bool, confidence: float, engine: Engine
) -> Interval:
    """Ends of the interval of a group's R2, or of its mean error over the diameter."""
    options, none = gathered.without_fold, Canonical([], [])
    maps = gathered.parts.map_splits(lambda k, train, _: [group.fitted(train, options[k])])
    fits = Fits(maps, gathered.parts.map_splits(lambda _, train, __: train.mean_y), none, none)
    seen = evaluate(gathered, fits, engine=engine)
    moved = influences(gathered, [group], fits, seen.errors, seen.spread, seen.sample)
    ends = intervals(moved, 0, seen.errors[0], seen.spread, confidence, seen.whole)
    if not error:
        return ends.r2
    # The diameter is the one that was measured.
    size = float(seen.mean_errors[0]) / value if value else 1.0
    return Interval(ends.error.low / size, ends.error.high / size)
