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

from nearid.base.estimate import Estimate
from nearid.moments import Floats

# Stands for all perturbations together; no label is likely to be called so.
ALL = "(all)"


@dataclass(frozen=True)
class MeanScore:
    """The mean of a score over splits, or over perturbations.

    Attributes
    ----------
    perturbation : str
        "(all)" for the mean over all perturbations.
    mean, se : float
        Of the values that are defined, and the standard error.
    splits : tuple of int
        In how many splits the score is defined, and how many there are. Where these differ between conditions, tests
        compare the common splits, and the means are of different sets.
    """

    direction: str
    classifier: str
    score: str
    condition: str
    perturbation: str
    mean: float
    se: float
    values: tuple[float, ...]
    splits: tuple[int, int]

    @classmethod
    def of(
        cls, key: tuple[str, str, str, str, str], values: Sequence[float], splits: tuple[int, int] | None = None
    ) -> MeanScore:
        """The mean of values; NaN where none is defined. The key has the first five fields."""
        known = np.array([v for v in values if not math.isnan(v)])
        mean = float(known.mean()) if len(known) else math.nan
        se = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else math.nan
        return cls(*key, mean, se, tuple(values), splits or (len(known), len(values)))


@dataclass(frozen=True)
class Paired:
    """Difference of two conditions.

    Attributes
    ----------
    perturbation : str
        "(all)" for all perturbations together.
    first, second : str
        Conditions; the difference is second less first.
    difference : Estimate
        With its 95% interval, without correction for multiplicity, over `difference.n` splits or perturbations.
    p, p_holm : float
        Of a t test; and corrected within its family.
    """

    direction: str
    classifier: str
    score: str
    perturbation: str
    first: str
    second: str
    difference: Estimate
    p: float
    p_holm: float = math.nan


def t_test(differences: Floats, correction: float, of: str = "") -> tuple[Estimate, float]:
    """Mean with its 95% interval and p-value of paired differences; the variance of the mean is (1/m + correction) s^2.

    The interval and p are NaN where fewer than two differences, or equal ones that are not 0, show no spread.
    """
    from scipy.stats import t

    m = len(differences)
    mean = float(differences.mean()) if m else math.nan
    size = float(np.sqrt((1 / m + correction) * differences.var(ddof=1))) if m > 1 else 0.0
    if m > 1 and mean == size == 0:
        return Estimate(0.0, 0.0, 0.0, of=of, n=m), 1.0
    if m < 2 or size <= 1e-12 * max(abs(mean), 1e-300):
        return Estimate(mean, of=of, n=m), math.nan
    reach = float(t.ppf(0.975, m - 1)) * size
    return Estimate(mean, mean - reach, mean + reach, of=of, n=m), float(2 * t.sf(abs(mean) / size, m - 1))


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
            tested = t_test(gap, correction, "splits, Student's t")
            each.append(Paired(direction, classifier, score, perturbation, first, second, *tested))
        if means:
            tested = t_test(np.array(means), 0.0, "perturbations, Student's t")
            together.append(Paired(direction, classifier, score, ALL, first, second, *tested))
    return [*_corrected(together), *_corrected(each)]


def _corrected(tests: list[Paired]) -> list[Paired]:
    return [replace(test, p_holm=p) for test, p in zip(tests, holm([t.p for t in tests]), strict=True)]
