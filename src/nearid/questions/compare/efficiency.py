"""Efficiency of ICA: its gain over matching columns as a share of the gain of a rigid motion."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.base.student import student
from nearid.moments import Floats
from nearid.questions.compare.intervals import Influences
from nearid.questions.compare.verdict import ROUNDING
from nearid.show.view import number

# Groups that the efficiency of ICA is computed from.
NEEDED = ("permutation", "ica", "rigid")
# An efficiency above this is clearly more than 1.
BEYOND = 1.05
# Description of the interval of the efficiency.
FOLDS = "folds, each with fits of its own, Student's t"


@dataclass(frozen=True)
class Efficiency(Estimate):
    """(e_permutation - e_ica) / (e_permutation - e_rigid), of mean held-out errors; NaN if it is not defined.

    The gain of ICA over a signed permutation, as a share of the gain of a rigid motion, at most 1. ICA does not see the
    pairing of rows. It also whitens, so its error may be below that of a rigid motion. The efficiency is then 1, and
    `reason` explains it.

    Attributes
    ----------
    in_sample : float
        The same from in-sample errors, if they were requested, as papers print it; it may exceed 1.
    reason : str
        A sentence with the numbers, or why there are none.
    """

    in_sample: float = math.nan
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**super().to_dict(), "in_sample": self.in_sample, "reason": self.reason}


def efficiency(
    names: Sequence[str],
    by_fold: Floats,
    rows: np.ndarray,
    guess: float,
    in_sample: Floats | None,
    least_gain: float = math.nan,
) -> Efficiency:
    """Judge ICA between the signed permutation and the rigid motion.

    Every fold has its own fits and judges them on its own rows, so the spread over folds includes the fits. Fits share
    rows, so the variance of a mean over K folds is (1/K + 1/(K - 1)) times that over folds (Nadeau & Bengio 2003, with
    the share of rows held out over the share fitted on as the correlation of folds), by Student's t.

    Parameters
    ----------
    names : sequence of str
        The groups compared.
    by_fold : ndarray of shape (groups, folds)
        Mean held-out errors in each fold.
    rows : ndarray of shape (folds,)
        Rows of each fold.
    guess : float
        Mean error of the constant guess.
    in_sample : ndarray of shape (groups,) or None
    least_gain : float
        Lower end of the interval, over rows, of the gain of a rigid motion (`least_gain_of_rigid`). A few folds cannot
        give it precisely.
    """
    if not set(NEEDED) <= set(names):
        return Efficiency(math.nan, reason="It is not known: it needs the groups permutation and rigid beside ica.")
    order = [list(names).index(n) for n in NEEDED]
    permutation, ica, rigid = by_fold[order]
    gain = float(np.average(permutation - rigid, weights=rows))
    # If the gain of a rigid motion is not clearly above 0, the ratio is noise divided by noise.
    if not max(gain - half_over_folds(permutation - rigid), np.nan_to_num(least_gain)) > ROUNDING * guess:
        reason = "It is not defined: a rigid motion is not clearly better than a signed permutation."
        return Efficiency(math.nan, reason=reason)
    value = float(np.average(permutation - ica, weights=rows)) / gain
    # Influence of each fold on the ratio of the two means.
    half = half_over_folds((permutation - ica - value * (permutation - rigid)) / gain)
    beyond = value > BEYOND
    value, low, high = (min(each, 1.0) for each in (value, value - half, value + half))
    figures = f"{100 * value:.0f}% [{100 * low:.0f}%, {100 * high:.0f}%]"
    if beyond and low > 0:
        with_ica, with_rigid = (number(float(np.average(by_fold[at], weights=rows)) / guess) for at in order[1:])
        reason = (
            f"ICA of each side alone removes all of the error that a rigid motion removes, and more. Mean error over "
            f"that of a constant guess: {with_ica} with ICA and {with_rigid} with a rigid motion, which does not "
            f"whiten. The efficiency is {figures}"
        )
    elif low > 0:
        reason = f"ICA of each side alone removes {figures} of the error that a rigid motion removes"
    else:
        loss = "is worse than" if high < 0 else "is not clearly better than"
        reason = f"ICA of each side alone {loss} matching the columns themselves: the efficiency is {figures}"
    within = math.nan
    if in_sample is not None and in_sample[order[0]] > in_sample[order[2]]:
        within = float(_ratio(in_sample[order]))
        reason += f"; in sample {100 * within:.0f}%"
    return Efficiency(value, low, high, of=FOLDS, in_sample=within, reason=f"{reason}.")


def least_gain_of_rigid(
    names: Sequence[str], errors: Floats, influences: Influences | None, means: Floats | None = None
) -> float:
    """The lower end of the 95% interval, over rows, of the gain of a rigid motion over a signed permutation.

    NaN if there is no interval.

    Parameters
    ----------
    errors : ndarray of shape (groups, n)
        Of each row.
    means : ndarray of shape (groups,), optional
        Means over all rows, if these are a sample.
    """
    if influences is None or not set(NEEDED) <= set(names):
        return math.nan
    permutation, _, rigid = (list(names).index(n) for n in NEEDED)
    spread = influences.spread_of(influences.errors[permutation] - influences.errors[rigid])
    mean = errors.mean(axis=1) if means is None else means
    # Errors change with the choice of partners as the root of their squares does.
    choice = 0.0 if influences.choice is None else float(influences.choice[permutation])
    half = student(spread.freedom, CONFIDENCE) * math.hypot(spread.error, mean[permutation] * math.sqrt(choice / 4))
    return float(mean[permutation] - mean[rigid] - half)


def half_over_folds(values: Floats) -> float:
    """Half the 95% interval of a mean over folds whose fits share rows."""
    k = len(values)
    spread = float(np.std(values, ddof=1)) * math.sqrt(1 / k + 1 / (k - 1))
    return student(k - 1, CONFIDENCE) * spread


def _ratio(errors: Floats) -> Floats:
    permutation, ica, rigid = np.moveaxis(errors, -1, 0)
    return np.asarray((permutation - ica) / (permutation - rigid))
