"""Means with standard errors, and paired tests between conditions on the same splits.

For one perturbation, splits are compared: folds share most of their training rows, so that the plain t test would be
too sure; its variance is enlarged by the ratio of test to training rows (Nadeau & Bengio 2003). Trainings on single
batches share no training row, and are compared by the plain test; most of their test rows are the same, so that its
p-values are somewhat too small. For all perturbations together, each counts once,
with the mean of its differences, and these are compared by the plain t test; perturbations that share controls are not
independent, so that its p-values are somewhat too small. Within each family (one score, classifier and direction)
p-values are corrected by Holm's method, those of single perturbations and those of all together each among themselves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from nearid.moments import Floats

# Stands for all perturbations together; no label is likely to be called so.
ALL = "(all)"


@dataclass(frozen=True)
class Mean:
    """A mean over splits (or over perturbations), its standard error, and the values.

    `splits` are those in which it is defined, and all: where they differ between conditions, tests compare the common
    ones, and means are of unlike sets.
    """

    mean: float
    se: float
    values: tuple[float, ...]
    splits: tuple[int, int]

    @classmethod
    def of(cls, values: Sequence[float]) -> Mean:
        """Of those values that are defined."""
        kept = np.array([v for v in values if not math.isnan(v)])
        splits = len(kept), len(values)
        if not len(kept):
            return cls(math.nan, math.nan, tuple(values), splits)
        se = float(kept.std(ddof=1) / np.sqrt(len(kept))) if len(kept) > 1 else math.nan
        return cls(float(kept.mean()), se, tuple(values), splits)

    @classmethod
    def over(cls, means: Sequence[Mean]) -> Mean:
        """Of perturbations, each counted once."""
        defined, every = (sum(m.splits[i] for m in means) for i in (0, 1))
        return replace(cls.of([m.mean for m in means]), splits=(defined, every))


@dataclass(frozen=True)
class Paired:
    """Difference of two conditions.

    Attributes
    ----------
    direction, classifier, score : str
    perturbation : str
        "(all)" for all perturbations together.
    first, second : str
        Conditions; the difference is second less first.
    difference : float
    low, high : float
        95% interval, without correction for multiplicity.
    p : float
    p_holm : float
        Corrected within its family.
    pairs : int
        Splits, or perturbations, that were compared.
    """

    direction: str
    classifier: str
    score: str
    perturbation: str
    first: str
    second: str
    difference: float
    low: float
    high: float
    p: float
    p_holm: float
    pairs: int


def t_test(differences: Floats, correction: float) -> tuple[float, float, float, float]:
    """Mean, 95% interval and p-value of paired differences; the variance of the mean is (1/m + correction) s^2.

    NaN where fewer than two differences, or equal ones that are not 0, say nothing about their spread.
    """
    from scipy.stats import t

    m = len(differences)
    mean = float(differences.mean()) if m else math.nan
    if m < 2:
        return mean, math.nan, math.nan, math.nan
    size = float(np.sqrt((1 / m + correction) * differences.var(ddof=1)))
    if size <= 1e-12 * max(abs(mean), 1e-300):
        return (0.0, 0.0, 0.0, 1.0) if mean == 0 else (mean, math.nan, math.nan, math.nan)
    reach = float(t.ppf(0.975, m - 1)) * size
    return mean, mean - reach, mean + reach, float(2 * t.sf(abs(mean) / size, m - 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down correction; NaN stays NaN and is not counted."""
    p = np.asarray(p_values, dtype=float)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    corrected = np.full(len(p), np.nan)
    steps = (len(order) - np.arange(len(order))) * p[order]
    corrected[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else []
    return corrected.tolist()


def compared(
    direction: str,
    classifier: str,
    score: str,
    values: Mapping[str, Mapping[str, Sequence[float]]],
    corrections: dict[str, float],
) -> list[Paired]:
    """All pairs of conditions, for each perturbation and for all together.

    Parameters
    ----------
    values : dict of condition -> dict of perturbation -> scores of the splits
        In the order in which a later condition is compared with an earlier one.
    corrections : dict of perturbation -> float
        What is added to 1 / splits in the variance.
    """
    each: list[Paired] = []
    together: list[Paired] = []
    for first, second in combinations(values, 2):
        means = []
        for perturbation, correction in corrections.items():
            if perturbation not in values[first] or perturbation not in values[second]:
                continue
            gap = np.asarray(values[second][perturbation]) - np.asarray(values[first][perturbation])
            gap = gap[~np.isnan(gap)]
            if not len(gap):
                continue
            means.append(float(gap.mean()))
            found = t_test(gap, correction)
            each.append(Paired(direction, classifier, score, perturbation, first, second, *found, math.nan, len(gap)))
        if means:
            found = t_test(np.array(means), 0.0)
            together.append(Paired(direction, classifier, score, ALL, first, second, *found, math.nan, len(means)))
    return [*_corrected(together), *_corrected(each)]


def _corrected(tests: list[Paired]) -> list[Paired]:
    return [replace(test, p_holm=p) for test, p in zip(tests, holm([t.p for t in tests]), strict=True)]
