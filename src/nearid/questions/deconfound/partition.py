"""How much of the variance is batch, how much label, and how much could be either.

The model is additive: a mean for each batch plus a mean for each label, by least squares. The variance of a component
is split in four (commonality analysis): what only the batch explains, beyond the label; what only the label explains,
beyond the batch; what either explains, because labels and batches occur together; and the rest. With v() for residual
squares over their degrees of freedom, as in adjusted R2:

    batch alone = v(label) - v(both)        either = v(nothing) - v(batch) - v(label) + v(both)
    label alone = v(batch) - v(both)        rest   = v(both)

each divided by v(nothing), the variance. The four sum to 1, and pure noise has 0, 0, 0 and 1 on average. "Either" is 0
in balanced designs, and can be negative if the effects of batch and label oppose each other. Intervals are those of a
jackknife over batches: each batch is left out in turn. For the share of the batch this is also done on the logit scale.
Blocks count once, with their mean. Everything follows from sums
of cells (label in a batch).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import Cells, fit_additive, group_sums

PARTS = ("batch", "label", "either", "rest")
OVER = "batches, jackknife, Student's t"
# The jackknife leaves out single batches up to this number of them, beyond so many groups of batches.
GROUPS = 100
# The least share, and the least rest, on the logit scale.
LEAST = 1e-3
# With more means on both sides a fit takes a second, so that fewer groups must do.
MANY_MEANS, FEW_GROUPS = 300, 20


class Shares(NamedTuple):
    """Shares of the variance: of batch alone, label alone, either, and the rest."""

    batch: Estimate
    label: Estimate
    either: Estimate
    rest: Estimate

    def adding_up(self) -> Shares:
        """The shares as people read them: none below 0, and together 1.

        If the effects of batch and label oppose each other, "either" is negative, and the others sum to more than 1.
        They are then divided by their sum, and so are their intervals.
        """
        whole = sum(np.maximum(each.value, 0.0) for each in self)

        def part(end: float) -> float:
            return float(np.clip(end / whole, 0.0, 1.0))

        return Shares(*(replace(e, value=part(e.value), low=part(e.low), high=part(e.high)) for e in self))

    @property
    def percentages(self) -> list[int]:
        """The shares of `adding_up` in whole percent, rounded such that they sum to 100; none if they are not known."""
        if not all(math.isfinite(each.value) for each in self):
            return []
        exact = [100 * each.value for each in self.adding_up()]
        found = [int(each) for each in exact]
        # The largest remainders are rounded up.
        for at in sorted(range(len(exact)), key=lambda k: found[k] - exact[k])[: 100 - sum(found)]:
            found[at] += 1
        return found

    @property
    def texts(self) -> list[str]:
        """The shares of `adding_up` in percent, with their intervals where these are known."""

        def ends(percent: int, each: Estimate) -> str:
            return f" [{min(percent, round(100 * each.low))}, {max(percent, round(100 * each.high))}]"

        pairs = zip(self.percentages, self.adding_up(), strict=False)
        return [f"{percent}%{ends(percent, each) if each.has_interval else ''}" for percent, each in pairs]


@dataclass(frozen=True)
class Partition:
    """Shares of batch, label, either and the rest in the variance of each component, and of all together.

    Attributes
    ----------
    whole : Shares
        Of the sum of the variances, each weighted as given.
    values, low, high : ndarray of shape (4, k)
        Shares of each component in the order of `PARTS`, and their 95% intervals over batches. NaN where there are too
        few rows, or fewer than three batches.
    """

    whole: Shares
    values: Floats
    low: Floats
    high: Floats

    def of(self, component: int) -> Shares:
        """Of one component."""
        ends = zip(self.values[:, component], self.low[:, component], self.high[:, component], strict=True)
        return Shares(*(Estimate(float(value), float(low), float(high), of=OVER) for value, low, high in ends))


def partition(units: Cells, weights: Floats | None = None, *, seed: int = 0) -> Partition:
    """Split the variance of components between batch and label.

    Parameters
    ----------
    units : Cells
        Sums by cell, as `observe` returns them.
    weights : ndarray of shape (k,), optional
        Weight of each component's variance in the whole, such as the squared scales of columns that were divided by
        them. Default: 1.
    seed : int
        Of the groups of batches, where these are many.
    """
    k = units.sums.shape[1]
    weights = np.ones(k) if weights is None else weights
    count = len(units.batch_squares)
    table = np.zeros((count, int(units.l.max()) + 1))
    table[units.b, units.l] = units.sizes
    by_batch, by_label = group_sums(units.sums, units.b), group_sums(units.sums, units.l)
    squares = units.batch_squares.sum(axis=0)
    value = _split(table, by_batch, by_label, squares, weights)
    group = _groups(*table.shape, seed)
    without = []
    for g in range(int(group.max()) + 1):
        kept, mine = group != g, group[units.b] == g
        # Batches that are left out take labels with them.
        left = np.zeros_like(by_label)
        there, at = np.unique(units.l[mine], return_inverse=True)
        left[there] = group_sums(units.sums[mine], at)
        still = table[kept].any(axis=0)
        some = squares - units.batch_squares[~kept].sum(axis=0)
        without.append(_split(table[kept][:, still], by_batch[kept], (by_label - left)[still], some, weights))
    low, high = _interval(value, np.array(without))
    whole = [Estimate(float(value[p, k]), float(low[p, k]), float(high[p, k]), of=OVER) for p in range(len(PARTS))]
    return Partition(Shares(*whole), value[:, :k], low[:, :k], high[:, :k])


def _split(table: Floats, by_batch: Floats, by_label: Floats, squares: Floats, weights: Floats) -> Floats:
    """Shares of each component, and in the last column of the weighted sum of all; of shape (4, k + 1)."""
    n = table.sum()
    fit = fit_additive(table, by_batch, by_label, squares)
    if fit.params >= n:
        return np.full((len(PARTS), len(squares) + 1), np.nan)
    total = (squares - by_batch.sum(axis=0) ** 2 / n) / (n - 1)
    rest = fit.left / (n - fit.params)
    of_batch, of_label = fit.left_b / (n - fit.batches), fit.left_l / (n - fit.labels)
    parts = np.array([of_label - rest, of_batch - rest, total - of_batch - of_label + rest, rest])
    parts, total = (np.append(each, (each @ weights)[..., None], axis=-1) for each in (parts, total))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(total > 0, parts / total, np.nan))


def _groups(batches: int, labels: int, seed: int) -> np.ndarray:
    """The group of each batch that the jackknife leaves out together."""
    most = GROUPS if min(batches, labels) <= MANY_MEANS else FEW_GROUPS
    if batches <= most:
        return np.arange(batches)
    return np.asarray(np.random.default_rng([seed, 7]).permutation(batches) % most)


def _interval(value: Floats, without: Floats) -> tuple[Floats, Floats]:
    """Ends of the intervals, from the shares of all batches and without each group; NaN below three groups.

    The share of the batch is a variance of few batches, so that its error is skewed and grows with the share. Its
    interval is therefore also made on the logit scale, and reaches as far as either.
    """
    reach = _reach(without)
    low, high = value - reach, value + reach
    batch = PARTS.index("batch")
    skewed = _reach(_logit(without[:, batch]))
    middle = _logit(value[batch])
    low[batch] = np.fmin(low[batch], 1 / (1 + np.exp(skewed - middle)))
    high[batch] = np.fmax(high[batch], 1 / (1 + np.exp(-skewed - middle)))
    return low, high


def _logit(share: Floats) -> Floats:
    """Logarithm of the odds; shares near 0 and 1, and those that noise made negative, are moved inside."""
    inside = np.clip(share, LEAST, 1 - LEAST)
    return np.asarray(np.log(inside / (1 - inside)))


def _reach(without: Floats) -> Floats:
    """Half the width of the intervals, from the shares without each group; NaN below three groups."""
    from scipy.special import stdtrit

    m = len(without)
    if m < 3:
        return np.full(without.shape[1:], np.nan)
    error = np.sqrt((m - 1) / m * np.sum((without - without.mean(axis=0)) ** 2, axis=0))
    return np.asarray(stdtrit(m - 1, (1 + CONFIDENCE) / 2) * error)
