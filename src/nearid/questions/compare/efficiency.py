"""How much of what a rigid motion gains over a signed permutation ICA gains without seeing a single pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats
from nearid.questions.compare.bootstrap import interval
from nearid.questions.compare.verdict import ROUNDING

NEEDED = ("permutation", "ica", "rigid")


@dataclass(frozen=True)
class Efficiency:
    """(e_permutation - e_ica) / (e_permutation - e_rigid), of mean errors.

    Attributes
    ----------
    value, low, high : float
        On held-out rows, with a 95% interval; NaN where there is no answer.
    in_sample : float
        Of the in-sample errors, where these were asked for.
    reason : str
        A sentence with the figures, or why there are none.
    """

    value: float
    low: float
    high: float
    in_sample: float
    reason: str


def efficiency(
    names: Sequence[str], errors: Floats, replicates: Floats, guess: float, in_sample: Floats | None
) -> Efficiency:
    """Judge ICA between the signed permutation and the rigid motion.

    Parameters
    ----------
    names : sequence of str
        The groups compared.
    errors : ndarray of shape (groups,)
        Mean held-out errors.
    replicates : ndarray of shape (b, groups)
        The same in bootstrap replicates, paired.
    guess : float
        Mean error of the constant guess.
    in_sample : ndarray of shape (groups,) or None
    """
    if not set(NEEDED) <= set(names):
        return _none("Efficiency of ICA: not known, for it needs the groups permutation and rigid beside ica.")
    order = [list(names).index(n) for n in NEEDED]
    drawn = replicates[:, order]
    # Where a rigid motion gains nothing for certain, the ratio is one of noise to noise.
    if (drawn[:, 0] - drawn[:, 2]).min() <= ROUNDING * guess:
        return _none(
            "Efficiency of ICA: there is none, for a rigid motion does not clearly gain over a signed permutation."
        )
    value, (low, high) = float(_ratio(errors[order])), interval(_ratio(drawn))
    shown = f"{100 * value:.0f}% [{100 * low:.0f}%, {100 * high:.0f}%]"
    if low > 0:
        said = f"ICA of each side alone removes {shown} of the error that a rigid motion removes"
    else:
        gain = "does worse than" if high < 0 else "gains nothing certain over"
        said = f"ICA of each side alone {gain} matching the columns as they are: its efficiency is {shown}"
    within = math.nan
    if in_sample is not None and in_sample[order[0]] > in_sample[order[2]]:
        within = float(_ratio(in_sample[order]))
        said += f"; in sample {100 * within:.0f}%"
    return Efficiency(value, low, high, within, f"{said}.")


def _ratio(errors: Floats) -> Floats:
    permutation, ica, rigid = np.moveaxis(errors, -1, 0)
    return np.asarray((permutation - ica) / (permutation - rigid))


def _none(reason: str) -> Efficiency:
    return Efficiency(math.nan, math.nan, math.nan, math.nan, reason)
