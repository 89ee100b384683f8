"""The best and the worst of several pairs: intervals that account for the choice, and the best by chance.

The best of many similar estimates is too good on average, and its own interval covers the truth too rarely: for the
best of 45 similar pairs, in 65% of simulations. The interval of the best of m pairs fails in one of m + 1 events. It
lies too high only if one of the m estimates does. It lies too low only if that of the truly best pair does, because the
best estimate is at least as large. Each of these has probability 0.05 / (m + 1) if a single interval is taken with the
confidence 1 - 0.1 / (m + 1), whatever the dependence between pairs. Standard errors are taken to be about equal.

The best of many pairs also reaches more by chance than a single pair. So its chance level is the best of all pairs with
the target's rows in another order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.base.student import student
from nearid.questions.compare.verdict import GroupResult, add_one
from nearid.show.view import counted, number

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison


@dataclass(frozen=True)
class Best:
    """The best, or the worst, of several pairs.

    Attributes
    ----------
    source, target : str
    value : Estimate
        Its interval accounts for the choice among all pairs. Its chance level is the largest value that the best of all
        pairs reached with the target's rows in another order.
    pairs : int
        Number of pairs that it was chosen from.
    p_value : float
        Add-one permutation p-value of the best against the best of all pairs by chance.
    unmeasured : str
        Why chance cannot be measured, as the beginning of a sentence. Then there is no chance level and no p-value.
    """

    source: str
    target: str
    value: Estimate
    pairs: int
    p_value: float = math.nan
    unmeasured: str = ""

    @property
    def text(self) -> str:
        """The value in words, with its interval and chance level."""
        known = []
        if self.value.has_interval:
            ends = f"{number(self.value.low)} to {number(self.value.high)}"
            known.append(f"95% interval {ends}, allowing for the choice")
        if math.isfinite(self.p_value):
            known.append(f"best by chance up to {number(self.value.chance)}, p = {self.p_value:.2g}")
        if self.unmeasured:
            known.append(f"{self.unmeasured[0].lower()}{self.unmeasured[1:]} that chance cannot be measured")
        return number(self.value.value) + (f" ({'; '.join(known)})" if known else "")


def confidence_of_best(count: int) -> float:
    """Confidence that a single interval needs so that the interval of the best of `count` pairs has 95%."""
    return 1 - 2 * (1 - CONFIDENCE) / (count + 1)


def chosen_among(of: str, count: int) -> str:
    """Description of what the interval of the best of `count` pairs covers."""
    return f"{of}; chosen among {counted(count, 'pair')}"


def extremes(results: Sequence[Comparison], group: str) -> tuple[Best, Best] | None:
    """Best and worst R2 of a group among several comparisons, both directions; None if none is estimable."""
    ways = [way for c in results for way in (c, c.reverse) if way is not None]
    r2 = np.array([_estimable(way.groups[group]) for way in ways])
    if np.isnan(r2).all():
        return None
    ends = [ways[int(np.nanargmax(r2))], ways[int(np.nanargmin(r2))]]
    best, worst = (Best(*way.names, _widened(way.groups[group], len(ways)), len(ways)) for way in ends)
    unmeasured = next((way.unmeasured for way in ways if way.unmeasured), "")
    if unmeasured:
        return replace(best, unmeasured=unmeasured), worst
    # Pairs with the same rows have the same orders. Otherwise their orders are practically independent.
    at, repetitions = list(ways[0].groups).index(group), min(len(way.by_chance) for way in ways)
    reached = np.max([way.by_chance[:repetitions, at] for way in ways], axis=0)
    chance = replace(best.value, chance=float(reached.max()))
    return replace(best, value=chance, p_value=add_one(reached, float(ends[0].own_order[at]))), worst


def _estimable(group: GroupResult) -> float:
    return group.r2.value if group.estimable else math.nan


def _widened(group: GroupResult, count: int) -> Estimate:
    """R2 with an interval that accounts for the choice among `count` pairs, symmetric in log(1 - R2)."""
    r2 = replace(group.r2, chance=math.nan)
    missed = 1 - r2.value
    if not r2.has_interval or not missed > 0:
        return r2
    wider = student(group.freedom, confidence_of_best(count)) / student(group.freedom, CONFIDENCE)
    low, high = (1 - missed * ((1 - end) / missed) ** wider for end in (r2.low, r2.high))
    return replace(r2, low=low, high=high, of=chosen_among(r2.of, count))
