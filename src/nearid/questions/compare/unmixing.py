"""Should I unmix? Whether matched components of the two sides correlate more than matched columns, on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from nearid.base.estimate import Estimate
from nearid.groups.fits import MatchMap, correlation, fit_permutation
from nearid.groups.ladder import Group
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.efficiency import FOLDS, half_over_folds
from nearid.questions.compare.errors import Fits, Gathered
from nearid.show.view import counted

Answer = Literal["helped", "nothing", "harm", "mixed", "unclear"]
# Smaller differences of matched correlations count as 0, and so do differences of mean errors below this share of the
# error of the constant guess.
NOTHING = 0.02
ANSWERS = {
    "helped": "ICA helped",
    "nothing": "ICA made no difference",
    "harm": "ICA did harm",
    "mixed": "ICA helped by one measure and hurt by the other",
    "unclear": "Correlations do not show whether ICA helped",
}


@dataclass(frozen=True)
class Benefit:
    """Matched correlation, held out, of the columns of the two sides and of their components.

    Attributes
    ----------
    answer : {"helped", "nothing", "harm", "mixed", "unclear"}
        "nothing" if the 95% interval of the difference lies within 0.02 of 0, unless errors clearly differ.
        Otherwise "helped" or "harm" if the interval lies above or below 0. "mixed" if mean errors then say the opposite
        by more than 0.02 of the error of the constant guess. "unclear" in all other cases.
    columns, components : float
        Mean correlation of matched columns, and of matched components; partners and signs are those of the other folds.
    difference : Estimate
        Components minus columns.
    sentence : str
        The answer in plain words, with these numbers.
    """

    answer: Answer
    columns: float
    components: float
    difference: Estimate
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**asdict(self), "difference": self.difference.to_dict()}


def benefit(
    gathered: Gathered, groups: Sequence[Group], fits: Fits, by_fold: Floats, guess: float, r2: Floats
) -> Benefit | None:
    """Compare components with columns; None unless both groups permutation and ica were compared.

    Parameters
    ----------
    by_fold : ndarray of shape (groups, folds)
        Mean held-out errors in each fold.
    guess : float
        Mean error of the constant guess.
    r2 : ndarray of shape (groups,)
    """
    names = [group.name for group in groups]
    if not {"permutation", "ica"} <= set(names):
        return None
    permutation, ica = names.index("permutation"), names.index("ica")
    matched, numbers = np.empty((2, len(fits.maps))), np.empty((2, len(fits.maps)), dtype=int)
    for k, (maps, own) in enumerate(zip(fits.maps, gathered.without_fold, strict=True)):
        train, test = gathered.parts.split(k)
        unmixed = [moments.through(own["source"], own["target"]) for moments in (train, test)]
        columns, components = maps[permutation], fit_permutation(unmixed[0], scale=False)
        assert isinstance(columns, MatchMap)
        for at, correlations in enumerate((_matched(columns, train, test), _matched(components, *unmixed))):
            matched[at, k], numbers[at, k] = correlations.mean(), len(correlations)
    rows = np.array(gathered.parts.counts, dtype=float)
    before, after = (float(np.average(each, weights=rows)) for each in matched)
    value, half = after - before, half_over_folds(matched[1] - matched[0])
    difference = Estimate(value, value - half, value + half, of=FOLDS)
    gain = (by_fold[permutation] - by_fold[ica]) / (guess or 1.0)
    gained, half = float(np.average(gain, weights=rows)), half_over_folds(gain)
    answer = _answer(difference, gained, half)
    of = [_number(each, name) for each, name in zip(numbers, ("column", "component"), strict=True)]
    low, high, with_components, with_columns = (
        f"{round(float(figure), 2) + 0.0:.2f}" for figure in (difference.low, difference.high, r2[ica], r2[permutation])
    )
    sentence = (
        f"{ANSWERS[answer]}: matched components of the two sides correlate by {after:.2f} on held-out rows (mean of "
        f"{of[1]}), matched columns by {before:.2f} (mean of {of[0]}). The difference is {round(value, 2) + 0.0:+.2f} "
        f"[{low}, {high}]. R2 of the target is {with_components} with components and {with_columns} with columns."
    )
    if answer == "unclear":
        sentence += _by_errors(gained, half)
    return Benefit(answer, before, after, difference, sentence)


def _number(counts: np.ndarray, name: str) -> str:
    """Number of pairs in a mean, over folds, in words."""
    least, most = int(counts.min()), int(counts.max())
    return counted(most, name) if least == most else f"{least} to {counted(most, name)}"


def _matched(match: MatchMap, train: PairMoments, test: PairMoments) -> Floats:
    """Correlation of each target column with its partner, with the fitted sign; constant columns have none."""
    targets = np.flatnonzero(match.weights)
    sources = match.columns[targets]
    live = (np.diag(train.xx)[sources] > 0) & (np.diag(train.yy)[targets] > 0)
    sources, targets = sources[live], targets[live]
    if not len(targets):
        return np.zeros(1)
    return np.asarray(np.sign(match.weights[targets]) * correlation(test)[sources, targets])


def _by_errors(gain: float, half: float) -> str:
    """Sentence about mean errors if correlations are inconclusive (the efficiency of ICA is based on errors)."""
    changed = "smaller" if gain - half > NOTHING else "larger" if gain + half < -NOTHING else ""
    return f" Mean errors are clearly {changed} with components." if changed else ""


def _answer(difference: Estimate, gain: float, half: float) -> Answer:
    """Judge a difference of matched correlations beside the gain in mean errors, with half its interval."""
    low, high = difference.low, difference.high
    better, worse = gain - half > NOTHING, gain + half < -NOTHING
    if low > -NOTHING and high < NOTHING:
        return "helped" if better else "harm" if worse else "nothing"
    # If errors point the other way, even without certainty, a one-word answer would mislead.
    if low > 0:
        return "mixed" if gain < -NOTHING else "helped"
    if high < 0:
        return "mixed" if gain > NOTHING else "harm"
    return "unclear"
