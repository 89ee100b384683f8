"""Intervals and chance levels of any measure of recovery, from its values on other rows.

Intervals are those of the grouped jackknife: rows are dealt into ten groups at random and the measure is taken without
each of them. No row ever stands twice in a sample, as it would in a bootstrap: a copy of a row would be seen in
training, and would be its own nearest neighbour. Chance is the measure of permuted factors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from nearid.base.errors import InputError
from nearid.folds import assign
from nearid.measures.declarations import Declaration
from nearid.measures.factors import Factors
from nearid.measures.recovery import FactorRecovery, Recovery
from nearid.moments import Floats

GROUPS = 10
# Rows that are enough to see how a measure varies, where each of its values costs many fits.
COSTLY_ROWS = 2_000


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95% interval and its chance level; NaN for what is not known."""

    value: float
    low: float = float("nan")
    high: float = float("nan")
    chance: float = float("nan")


def figures(found: Recovery, declared: Declaration, names: Sequence[str]) -> Floats:
    """Value, parts and values of each named factor in one vector; NaN for what is not defined."""
    parts = [getattr(found, part) for part in declared.parts]
    each = dict(zip(found.factors, found.per_factor, strict=True)) if isinstance(found, FactorRecovery) else {}
    listed = [found.value, *parts, *(each.get(name) for name in names)]
    return np.array([np.nan if figure is None else float(figure) for figure in listed])


def estimates(
    measure: Callable[[Floats, Factors], Recovery],
    declared: Declaration,
    found: Recovery,
    rows: int,
    x: Floats,
    factors: Factors,
    *,
    permutations: int,
    seed: int,
    tick: Callable[[], object],
) -> list[Estimate]:
    """Estimates of all figures of a measure.

    Parameters
    ----------
    measure : callable
    declared : Declaration
    found : Recovery
        What it gave for `rows` rows.
    x, factors
        A sample of these rows. Where it is smaller, or made smaller because values are costly, the interval is that of
        the sample, narrowed as the square root of the number of rows.
    permutations : int
    seed : int
    tick : callable
        Called after each of the GROUPS + permutations values.
    """
    from scipy.stats import t

    rng = np.random.default_rng([seed, 6])
    if declared.costly and len(x) > COSTLY_ROWS:
        picked = np.sort(rng.choice(len(x), COSTLY_ROWS, replace=False))
        x, factors = x[picked], factors.take(picked)

    def value(rows: np.ndarray | slice, factor_rows: np.ndarray) -> Floats:
        try:
            again = measure(x[rows], factors.take(factor_rows))
        except InputError:
            # Too few rows, or factors that are constant without the others.
            got = np.full(size, np.nan)
        else:
            got = figures(again, declared, found.factors)
            if set(again.factors) != set(found.factors):
                # A mean over other factors is another quantity.
                got[: 1 + len(declared.parts)] = np.nan
        tick()
        return got

    point = figures(found, declared, found.factors)
    size = len(point)
    groups = assign(len(x), GROUPS, seed) if len(x) >= 2 * GROUPS else np.zeros(0)
    others = [np.flatnonzero(groups != g) for g in range(GROUPS) if len(groups)]
    without = np.array([value(index, index) for index in others])
    mixed = np.array([value(slice(None), rng.permutation(len(x))) for _ in range(permutations)])
    spread = np.full(size, np.nan)
    if len(without):
        variance = (GROUPS - 1) / GROUPS * np.sum((without - without.mean(axis=0)) ** 2, axis=0)
        spread = np.sqrt(variance * len(x) / rows) * t.ppf(0.975, GROUPS - 1)
    each = [(declared.each_low, declared.high)] * len(found.factors)
    least, most = np.array([(declared.low, declared.high), *declared.parts.values(), *each]).T
    low, high = np.maximum(point - spread, least), np.minimum(point + spread, most)
    return [Estimate(*map(float, row)) for row in zip(point, low, high, mixed.mean(axis=0), strict=True)]
