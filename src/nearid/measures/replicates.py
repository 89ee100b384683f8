"""Whether replicates of a perturbation match across batches: mean average precision, with p-values.

Each row ranks rows of other batches by cosine similarity. Those of its own label are to come first. The definition of
average precision, and a null distribution that depends only on the numbers of positive and negative rows, are those of
Kalinin et al. 2025 (copairs).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Literal

import numpy as np
from numba import njit

from nearid.moments import Floats

# Rows whose similarities to all others are held at a time.
BLOCK = 512
# Up to this number, all orders are listed; otherwise this number is drawn.
ORDERS = 10_000
# Drawing stops at about this many positive places over all sizes, but never below the smallest number of orders.
PLACES, FEWEST = 300_000_000, 1_000
# Orders are drawn once for all numbers of negatives within this relative step, unless positives are fewer than SMOOTH,
# where values are too coarse. The mean is exact for each, and the shape changes less than by another draw.
NEAR, SMOOTH = 0.04, 5
Against = Literal["all", "labels", "controls"]


@dataclass(frozen=True)
class Replicates:
    """How well replicates of a perturbation match across batches.

    Attributes
    ----------
    value : float
        Mean average precision over the perturbations. Each row ranks rows of other batches.
    chance : float
        Mean average precision of random rankings.
    per_label : dict of code -> float
    p, p_adjusted : dict of code -> float
        P-value of each perturbation, and the same after the correction of Benjamini and Hochberg. Empty if no null
        distribution was wanted.
    queries : ndarray of int, shape (q,)
        Rows that ranked others.
    precision : ndarray of shape (q,)
        Their average precision.
    """

    value: float
    chance: float
    per_label: dict[int, float]
    p: dict[int, float]
    p_adjusted: dict[int, float]
    queries: np.ndarray
    precision: Floats


class ReplicateSearch:
    """Which rows ask, which they should find, and which they should not: all that does not depend on the values.

    Parameters
    ----------
    labels, batches : ndarray of int, shape (n,)
    control : int, optional
        Label of rows that never ask.
    against : {"all", "labels", "controls"}
        Rows of other batches that should not be found: all of other labels, the same without the controls, or the
        controls alone.
    random_state : int, default=0
        Seed of the orders that are drawn.
    """

    def __init__(
        self,
        labels: np.ndarray,
        batches: np.ndarray,
        control: int | None = None,
        against: Against = "all",
        random_state: int = 0,
    ) -> None:
        self.labels, self.batches, self.random_state = labels, batches, random_state
        asking = np.ones(len(labels), dtype=bool) if control is None else labels != control
        is_control = ~asking
        self._others = {"all": np.ones_like(asking), "labels": asking, "controls": is_control}[against]
        self.queries = np.flatnonzero(asking)
        b, l = (np.unique(codes, return_inverse=True)[1] for codes in (batches, labels))
        cells = np.zeros((int(b.max()) + 1, int(l.max()) + 1), dtype=np.int64)
        np.add.at(cells, (b, l), 1)
        negatives = np.zeros_like(cells)
        np.add.at(negatives, (b[self._others], l[self._others]), 1)
        positive = cells.sum(axis=0)[l] - cells[b, l]
        every = negatives.sum() - negatives.sum(axis=1)[b]
        negative = every - (negatives.sum(axis=0)[l] - negatives[b, l])
        self.positives, self.negatives = positive[self.queries], negative[self.queries]
        known = (self.positives > 0) & (self.negatives > 0) if against == "controls" else self.positives > 0
        self.queries, self.positives, self.negatives = (
            a[known] for a in (self.queries, self.positives, self.negatives)
        )

    def measure(self, x: Floats, *, p_values: bool = True) -> Replicates:
        """The mean average precision of centred rows x, of shape (n, k)."""
        if not len(self.queries):
            nothing = np.empty(0)
            return Replicates(float("nan"), float("nan"), {}, {}, {}, self.queries, nothing)
        if x.shape[1] == 1:
            # All angles between rows are equal or opposite, so that nearly all ranks are ties.
            unknown = np.full(len(self.queries), np.nan)
            return Replicates(float("nan"), float("nan"), {}, {}, {}, self.queries, unknown)
        precision = np.concatenate(list(self._precisions(x)))
        of = self.labels[self.queries]
        codes = np.unique(of)
        each = {int(c): float(precision[of == c].mean()) for c in codes}
        guess = self._chance()
        by_chance = float(np.mean([guess[of == c].mean() for c in codes]))
        p: dict[int, float] = {}
        if p_values:
            p = {code: self.nulls[code].p(value) for code, value in each.items()}
        adjusted = dict(zip(p, adjust(np.array(list(p.values()))).tolist(), strict=True))
        value = float(np.mean(list(each.values())))
        return Replicates(value, by_chance, each, p, adjusted, self.queries, precision)

    def _precisions(self, x: Floats) -> Iterator[Floats]:
        norms = np.sqrt(np.einsum("ij,ij->i", x, x))
        unit = x / np.where(norms > 0, norms, 1)[:, None]
        for a in range(0, len(self.queries), BLOCK):
            part = self.queries[a : a + BLOCK]
            alike = unit[part] @ unit.T
            yield np.array([self._precision(row, scores) for row, scores in zip(part, alike, strict=True)])

    def _precision(self, row: int, scores: Floats) -> float:
        other, mine = self.batches != self.batches[row], self.labels == self.labels[row]
        same, rest = np.sort(scores[other & mine])[::-1], np.sort(scores[other & self._others & ~mine])
        # Last among equals: ties must not help.
        ahead = len(rest) - np.searchsorted(rest, same, side="left")
        place = np.arange(1, len(same) + 1)
        return float(np.mean(place / (place + ahead)))

    def _chance(self) -> Floats:
        """The mean over all orders of the rows that a query ranks."""
        return _expected(self.positives, self.positives + self.negatives)

    @cached_property
    def nulls(self) -> dict[int, Null]:
        """The null distribution of the mean average precision of each label."""
        sizes, counts = np.unique(
            np.column_stack([self.labels[self.queries], self.positives, self.negatives]),
            axis=0,
            return_counts=True,
        )
        different = np.unique(sizes[:, 1:], axis=0)
        alike = {(int(m), int(r)): _alike(int(m), int(r)) for m, r in different}
        draws = int(np.clip(PLACES // max(sum(m for m, _ in set(alike.values())), 1), FEWEST, ORDERS))
        made = {each: _orders(*each, draws, self.random_state) for each in sorted(set(alike.values()))}
        drawn = {each: _scaled(made[other], *each, *other) for each, other in alike.items()}
        nulls = {}
        for code in np.unique(sizes[:, 0]):
            mine = np.flatnonzero(sizes[:, 0] == code)
            own = [drawn[int(m), int(r)] for m, r in sizes[mine, 1:]]
            if len(own) == 1:
                nulls[int(code)] = own[0]
                continue
            # Rows with equal numbers share an order, as in copairs: rows of a label are far from independent.
            weights = counts[mine] / counts[mine].sum()
            mean = np.zeros(draws)
            for k, (weight, null) in enumerate(zip(weights, own, strict=True)):
                rng = np.random.default_rng([self.random_state, int(code), k])
                mean += weight * rng.choice(null.values, draws, replace=null.exact)
            nulls[int(code)] = Null(np.sort(mean), exact=False)
        return nulls


@dataclass(frozen=True)
class Null:
    """Sorted values of a null distribution: all of them, or a sample."""

    values: Floats
    exact: bool

    def p(self, value: float) -> float:
        """Share of values that are at least as large; of a sample, the value itself counts as one of them."""
        # Equal values may differ in the last digits.
        larger = len(self.values) - int(np.searchsorted(self.values, value - 1e-9, side="left"))
        return larger / len(self.values) if self.exact else (larger + 1) / (len(self.values) + 1)


def _expected(m: np.ndarray, n: np.ndarray) -> Floats:
    """The mean average precision over all orders of n rows, of which m are positive."""
    harmonic = np.concatenate([[0.0], np.cumsum(1 / np.arange(1, int(n.max()) + 1))])
    share = np.where(n > 1, (m - 1) / np.maximum(n - 1, 1), 1.0)
    return np.asarray(share + (1 - share) * harmonic[n] / n)


def _alike(positives: int, negatives: int) -> tuple[int, int]:
    """Numbers of rows whose random orders serve for these: nearly as many negatives, unless few orders differ."""
    if positives < SMOOTH or comb(positives + negatives, positives) <= ORDERS:
        return positives, negatives
    return positives, round(float(np.exp(NEAR * np.round(np.log(negatives) / NEAR))))


def _scaled(null: Null, positives: int, negatives: int, *other: int) -> Null:
    """A null distribution of other numbers of rows, with the exact mean of these."""
    if null.exact or (positives, negatives) == other:
        return null
    means = (_expected(np.array([m]), np.array([m + r]))[0] for m, r in ((positives, negatives), other))
    return Null(null.values * (next(means) / next(means)), exact=False)


def _orders(positives: int, negatives: int, draws: int, seed: int) -> Null:
    """Average precision of random orders of so many rows."""
    n = positives + negatives
    place = np.arange(1, positives + 1)
    if comb(n, positives) <= ORDERS:
        at = np.array(list(combinations(range(1, n + 1), positives)))
        return Null(np.sort(np.mean(place / at, axis=1)), exact=True)
    start = int(np.random.default_rng([seed, positives, negatives]).integers(1 << 31))
    return Null(np.sort(_drawn(positives, n, draws, start)), exact=False)


@njit(cache=True, nogil=True)
def _drawn(positives, n, draws, seed):  # type: ignore[no-untyped-def]
    """Average precision of orders of n rows that are drawn at random."""
    np.random.seed(seed)
    values, taken = np.empty(draws), np.zeros(n, np.bool_)
    chosen = np.empty(positives, np.int64)
    for i in range(draws):
        # Floyd's sample without replacement.
        for k in range(positives):
            j = n - positives + k
            t = np.random.randint(0, j + 1)
            chosen[k] = j if taken[t] else t
            taken[chosen[k]] = True
        ordered = np.sort(chosen)
        total = 0.0
        for k in range(positives):
            total += (k + 1) / (ordered[k] + 1)
            taken[ordered[k]] = False
        values[i] = total / positives
    return values


def adjust(p: Floats) -> Floats:
    """P-values after the correction of Benjamini and Hochberg."""
    order = np.argsort(-p, kind="stable")
    m = len(p)
    adjusted = np.empty(m)
    adjusted[order] = np.minimum(np.minimum.accumulate(p[order] * m / np.arange(m, 0, -1)), 1.0)
    return adjusted


def replicates(
    x: Floats, labels: np.ndarray, batches: np.ndarray, control: int | None = None, **options: Any
) -> Replicates:
    """Return the mean average precision of rows of the same perturbation among rows of other batches (by cosine).

    Rows x are centred. Labels and batches are whole numbers of shape (n,). Control rows are candidates in the rankings,
    but they are not queries. The options are those of `ReplicateSearch`.
    """
    return ReplicateSearch(labels, batches, control, **options).measure(x)
