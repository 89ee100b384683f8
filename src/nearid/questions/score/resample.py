"""Intervals and chance levels of any measure of recovery, from its values on other rows.

Intervals are those of the grouped jackknife: rows are assigned to ten random groups, and the measure is computed
without each of them. Unlike in a bootstrap, no row occurs twice in a sample. A copy of a row would be seen in training,
and would be its own nearest neighbour. The chance level is the measure of permuted factors. Rows of a block stay
together in the groups, and whole blocks are permuted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.folds import Blocks, assign, reordered
from nearid.measures.factors import Factors
from nearid.measures.registry import Earlier, Measure, Measured
from nearid.moments import Floats
from nearid.questions.score.result import ScoredMeasure

GROUPS = 10
# Number of rows to estimate the spread of a measure if each of its values needs many fits.
COSTLY_ROWS = 2_000


def estimand(measure: Measure, rows: int, options: Mapping[str, Any], *, blocked: bool) -> str:
    """Description of what the intervals of a measure of this many rows cover."""
    what = "blocks of rows" if blocked else "rows"
    over = f"jackknife over ten groups of {what}"
    folds = options.get("folds") or measure.default("folds")
    if not measure.held_out or folds is None or folds == 1:
        return f"the value of another sample of {rows} rows, with the bias of that many; {over}"
    return f"fits on {rows - round(rows / folds)} rows, judged on new {what}; {over}"


def resample(
    measure: Measure,
    measured: Measured,
    rows: int,
    x: Floats,
    factors: Factors,
    *,
    options: Mapping[str, Any],
    permutations: int,
    seed: int,
    tick: Callable[[], object],
) -> ScoredMeasure:
    """A measure with the interval and the chance level of its value, its parts and its value for each factor.

    Parameters
    ----------
    measure : Measure
    measured : Measured
        Its result for `rows` rows.
    x, factors
        A sample of these rows, without NaN. If it is smaller, or made smaller because values are expensive, the
        interval of the sample is narrowed by the square root of the ratio of rows. With blocks it is not narrowed: more
        rows of the same blocks may add no information.
    options : mapping
        Options of the measure.
    permutations, seed : int
    tick : callable
        Called after each of the GROUPS + permutations values.
    """
    from scipy.special import stdtrit

    rng = np.random.default_rng([seed, 6])
    # Rows of x among those of `measured`, which are others where it was streamed.
    origin = np.arange(len(x))
    if measure.costly and len(x) > COSTLY_ROWS:
        picked = np.sort(rng.choice(len(x), COSTLY_ROWS, replace=False))
        x, factors, origin = x[picked], factors.take(picked), picked

    def again(index: np.ndarray, factor_index: np.ndarray) -> Measured | None:
        permuted = index is not factor_index
        earlier = None if measured.kept is None else Earlier(measured.kept, origin[index], permuted)
        try:
            # Blocks belong to the rows of the latents. They are not permuted with the factors.
            blocks = None if factors.blocks is None else factors.blocks[index]
            taken = replace(factors.take(factor_index), blocks=blocks)
            return measure.of_loaded(x if permuted else x[index], taken, earlier=earlier, **options)
        except InputError:
            # Too few rows, or factors that are constant in the remaining rows.
            return None
        finally:
            tick()

    codes = factors.block_codes
    blocks = None if codes is None else Blocks(codes)
    units = len(x) // 2 if blocks is None else min(blocks.count, len(x) // 2)
    groups = assign(len(x), GROUPS, seed, codes) if units >= GROUPS else None
    others = [] if groups is None else [np.flatnonzero(groups != g) for g in range(GROUPS)]
    without = [again(index, index) for index in others]
    every = np.arange(len(x))
    mixed = [again(every, reordered(len(x), blocks, rng, all_move=True)) for _ in range(permutations)]
    narrowed = np.sqrt(len(x) / rows) if blocks is None else 1.0
    of = estimand(measure, rows, options, blocked=blocks is not None)

    def estimate(figure: Callable[[Measured], float], low: float, high: float) -> Estimate:
        value, spread = figure(measured), np.nan
        if without:
            figures = np.array([np.nan if m is None else figure(m) for m in without])
            variance = (GROUPS - 1) / GROUPS * np.sum((figures - figures.mean()) ** 2)
            spread = np.sqrt(variance) * narrowed * stdtrit(GROUPS - 1, 0.975)
        chance = np.mean([np.nan if m is None else figure(m) for m in mixed])
        # Not by max and min, which would lose a NaN.
        least, most = float(np.maximum(value - spread, low)), float(np.minimum(value + spread, high))
        return Estimate(float(value), least, most, float(chance), of)

    def joint(figure: Callable[[Measured], float]) -> Callable[[Measured], float]:
        # A mean over different factors is a different quantity.
        return lambda m: figure(m) if set(m.factors) == set(measured.factors) else np.nan

    def of_factor(name: str) -> Callable[[Measured], float]:
        return lambda m: float(m.per_factor[m.factors.index(name)]) if name in m.factors else np.nan

    parts = {
        name: estimate(joint(lambda m, name=name: m.parts[name]), part.low, part.high)  # type: ignore[misc]
        for name, part in measure.parts.items()
    }
    named = measured.factors if len(measured.per_factor) else ()
    each = {name: estimate(of_factor(name), measure.each_low, measure.high) for name in named}
    return ScoredMeasure(
        measure.name,
        measure,
        estimate(joint(float), measure.low, measure.high),
        parts,
        {name: own for name, own in each.items() if not np.isnan(own.value)},
        measured.matrix,
        measured.factors,
    )
