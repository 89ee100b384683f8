"""Means with standard errors, and paired tests between conditions on the same splits.

For one perturbation, splits are compared. Folds share most of their training rows, so the plain t test would be too
confident; its variance is enlarged by the ratio of test to training rows (Nadeau & Bengio 2003). Trainings on single
batches share no training rows, but most of their test rows. There the batch is the unit, and the variance is that of
the jackknife, which leaves out each batch in turn, from training and from all test rows. In the mean over all
perturbations, each counts once, with the mean of its differences. Perturbations share batches and controls, so the
common part in the same jackknife is added to the variance over perturbations. Within each family (one score, classifier
and direction) p-values are corrected by Holm's method, separately for single perturbations and for all together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from nearid.base.estimate import Estimate
from nearid.moments import Floats

# Name for all perturbations together; unlikely to be a label.
ALL = "(all)"
# Name of the guess that conditions are compared with.
GUESS = "chance"


@dataclass(frozen=True)
class MeanScore:
    """The mean of a score over splits, or over perturbations.

    Attributes
    ----------
    perturbation : str
        "(all)" for the mean over all perturbations.
    mean, se : float
        Mean of the defined values, and its standard error.
    splits : tuple of int
        Number of splits in which the score is defined, and number of all splits. If these differ between conditions,
        tests compare the common splits, and the means are of different sets.
    spread : float
        For the condition "random": standard deviation of the mean over rotations. NaN for other conditions.
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
    spread: float = math.nan

    @classmethod
    def of(
        cls, key: tuple[str, str, str, str, str], values: Sequence[float], splits: tuple[int, int] | None = None
    ) -> MeanScore:
        """The mean of values; NaN if none is defined. The key has the first five fields."""
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
        Conditions; the difference is second minus first.
    difference : Estimate
        Difference with its 95% interval, without correction for multiplicity, over `difference.n` splits or
        perturbations.
    p, p_holm : float
        P-value of a t test, and the same corrected within its family.
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


def mean_known(values: Floats) -> Floats:
    """Means of columns over the defined values; NaN if there are none."""
    known = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, values, 0.0).sum(axis=0) / known.sum(axis=0))


def deviation(values: Floats) -> float:
    """Standard deviation of the defined values; NaN if there are fewer than two."""
    known = values[~np.isnan(values)]
    return float(known.std(ddof=1)) if len(known) > 1 else math.nan


def t_test(differences: Floats, correction: float, of: str = "") -> tuple[Estimate, float]:
    """Mean with its 95% interval and p-value of paired differences; the variance of the mean is (1/m + correction) s^2.

    The interval and p are NaN if there are fewer than two differences, or if all are equal and not 0.
    """
    m = len(differences)
    variance = float((1 / m + correction) * differences.var(ddof=1)) if m > 1 else math.nan
    return _student(float(differences.mean()) if m else math.nan, variance, m - 1, of, m)


def _student(mean: float, variance: float, free: float, of: str, n: int) -> tuple[Estimate, float]:
    """A mean with its interval, and the p-value of 0, by Student's t."""
    from scipy.stats import t

    size = math.sqrt(variance)
    if mean == size == 0:
        return Estimate(0.0, 0.0, 0.0, of=of, n=n), 1.0
    if not size > 1e-12 * max(abs(mean), 1e-300):
        return Estimate(mean, of=of, n=n), math.nan
    reach = float(t.ppf(0.975, free)) * size
    return Estimate(mean, mean - reach, mean + reach, of=of, n=n), float(2 * t.sf(abs(mean) / size, free))


def jackknife(changes: Floats) -> float:
    """Jackknife variance of a mean, from its changes when each batch is left out; NaN if it is not defined."""
    return float((len(changes) - 1) / len(changes) * np.sum(changes**2))


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
    without: Mapping[str, Mapping[str, Floats]],
    corrections: Mapping[str, float | None],
) -> list[Paired]:
    """All pairs of conditions, for each perturbation and for all together.

    Intervals are cut to the range of a difference of the score. The true difference is in this range, so the coverage
    does not change.

    Parameters
    ----------
    values : dict of condition -> dict of perturbation -> scores of the splits
        Conditions are ordered: a later one is compared with an earlier one.
    without : dict of condition -> dict of perturbation -> ndarray of shape (splits, batches)
        The same without each batch; NaN if a split then has no training or test rows.
    corrections : dict of perturbation -> float or None
        Term that is added to 1 / splits in the variance; None for splits that share test rows.
    """
    # AUROC and sparsity are in [0, 1], concentration is itself a difference.
    most = 2.0 if score.startswith("concentration") else 1.0
    each: list[Paired] = []
    together: list[Paired] = []
    for first, second in combinations(values, 2):
        means, changes = [], []
        for perturbation, correction in corrections.items():
            if perturbation not in values[first] or perturbation not in values[second]:
                continue
            gap = np.asarray(values[second][perturbation]) - np.asarray(values[first][perturbation])
            there = ~np.isnan(gap)
            if not there.any():
                continue
            gap = gap[there]
            means.append(float(gap.mean()))
            changes.append(
                mean_known((without[second][perturbation] - without[first][perturbation])[there]) - gap.mean()
            )
            if correction is None:
                variance = jackknife(changes[-1]) if len(gap) > 1 else math.nan
                tested = _student(means[-1], variance, len(gap) - 1, "batches, jackknife, Student's t", len(gap))
            else:
                tested = t_test(gap, correction, "splits, Student's t")
            each.append(paired((direction, classifier, score, perturbation, first, second), tested, most))
        if means:
            tested = _together(np.array(means), np.array(changes), int(max(len(v) for v in values[first].values())))
            together.append(paired((direction, classifier, score, ALL, first, second), tested, most))
    return [*corrected(together), *corrected(each)]


def recognised(
    direction: str,
    classifier: str,
    values: Mapping[str, Mapping[str, Sequence[float]]],
    without: Mapping[str, Mapping[str, Floats]],
    corrections: Mapping[str, float | None],
) -> list[Paired]:
    """AUROC within batches of every condition minus 0.5 (a guess), tested like two conditions in `compared`.

    A guess has 0.5 only within batches: over all batches, a classifier that recognises batches may have more.
    """
    tests: list[Paired] = []
    for condition, scores in values.items():
        both = {GUESS: {name: [0.5] * len(own) for name, own in scores.items()}, condition: scores}
        left = {GUESS: {name: np.full_like(own, 0.5) for name, own in without[condition].items()}}
        left[condition] = dict(without[condition])
        tests += compared(direction, classifier, "auroc_within", both, left, corrections)
    return [replace(test, difference=test.difference.within(-0.5, 0.5)) for test in tests]


def over_rows(gaps: Floats, batches: np.ndarray, of: str = "batches, jackknife, Student's t") -> tuple[Estimate, float]:
    """The mean difference of rows, tested by a jackknife that leaves out the rows of each batch in turn."""
    counts = np.bincount(batches).astype(np.float64)
    sums = np.bincount(batches, gaps)[counts > 0]
    counts = counts[counts > 0]
    mean = float(gaps.mean()) if len(gaps) else math.nan
    if len(counts) < 2:
        return Estimate(mean, of=of, n=len(counts)), math.nan
    changes = (sums.sum() - sums) / (counts.sum() - counts) - mean
    return _student(mean, jackknife(changes), len(counts) - 1, of, len(counts))


def over_labels(gaps: Floats, labels: np.ndarray, batches: np.ndarray) -> tuple[Estimate, float]:
    """The mean over labels of the mean difference of their rows, tested like the mean over all perturbations."""
    codes = np.unique(labels)
    if len(codes) < 2:
        return over_rows(gaps, batches)
    means, changes = [], []
    for code in codes:
        mine = labels == code
        counts = np.bincount(batches[mine], minlength=int(batches.max()) + 1)
        sums = np.bincount(batches[mine], gaps[mine], minlength=len(counts))
        means.append(float(gaps[mine].mean()))
        with np.errstate(invalid="ignore"):
            changes.append((sums.sum() - sums) / (counts.sum() - counts) - means[-1])
    there = np.bincount(batches) > 0
    return _together(np.array(means), np.array(changes)[:, there], int(there.sum()))


def _together(means: Floats, changes: Floats, splits: int) -> tuple[Estimate, float]:
    """The mean over perturbations; its variance includes their common variation over batches.

    The common part is the jackknife variance of the mean minus the part of the single perturbations, which is already
    in the variance over perturbations. Degrees of freedom are those of Welch and Satterthwaite.
    """
    m = len(means)
    if m < 2:
        return _student(float(means.mean()), math.nan, 0, "", m)
    over = float(means.var(ddof=1)) / m
    common = mean_known(changes)
    own = mean_known((changes - common) ** 2) / (m - 1)
    shared = jackknife(common) - jackknife(np.sqrt(own))
    shared = 0.0 if shared < 0 else shared
    spread = over**2 / (m - 1) + shared**2 / max(splits - 1, 1)
    free = (over + shared) ** 2 / spread if spread > 0 else m - 1
    return _student(float(means.mean()), over + shared, free, "perturbations and batches, Student's t", m)


def paired(key: tuple[str, str, str, str, str, str], tested: tuple[Estimate, float], most: float) -> Paired:
    return Paired(*key, tested[0].within(-most, most), tested[1])


def corrected(tests: list[Paired]) -> list[Paired]:
    return [replace(test, p_holm=p) for test, p in zip(tests, holm([t.p for t in tests]), strict=True)]
