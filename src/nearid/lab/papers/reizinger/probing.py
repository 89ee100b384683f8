"""Logistic probes: whether a yes or no can be decoded from features, and by how many tests that is more than chance."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats

# Share of the rows that a probe is fitted on; it is judged on the others.
FITTED = 0.7
# The least rows of the rarer answer: fewer leave less than three to judge on.
FEWEST = 10
CHANCE = 0.5


def split(answers: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rows to fit on and rows to judge on: of either answer the same share, and in both parts equally many of each.

    Rows of the more frequent answer that are left over are not used.
    """
    sides = [rng.permutation(np.flatnonzero(answers == answer)) for answer in (False, True)]
    cuts = [round(FITTED * len(side)) for side in sides]
    fitted, judged = min(cuts), judged_on(answers) // 2
    return (
        np.concatenate([side[:fitted] for side in sides]),
        np.concatenate([side[cut : cut + judged] for side, cut in zip(sides, cuts, strict=True)]),
    )


def judged_on(answers: np.ndarray) -> int:
    """How many rows a probe is judged on, whatever the split."""
    counts = (int((~answers).sum()), int(answers.sum()))
    return 2 * min(n - round(FITTED * n) for n in counts)


def probe(features: Floats, answers: np.ndarray, rng: np.random.Generator) -> float | None:
    """Held-out accuracy of a logistic regression on z-scored features; None where an answer is too rare.

    Parameters
    ----------
    features : ndarray of shape (n, d)
        In whatever precision: the fit keeps it.
    rng : numpy.random.Generator
        Draws the split.
    """
    import warnings

    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if min(int(answers.sum()), int((~answers).sum())) < FEWEST:
        return None
    fitted, judged = split(answers, rng)
    seen = features[fitted]
    mean, spread = seen.mean(axis=0), seen.std(axis=0)
    # What does not vary tells nothing.
    scale = np.where(spread > 0, spread, np.inf).astype(features.dtype)
    with warnings.catch_warnings():
        # A hundred iterations are what the usual probe has; accuracies no longer change much by then.
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression().fit((seen - mean) / scale, answers[fitted])
    return float(np.mean(model.predict((features[judged] - mean) / scale) == answers[judged]))


@dataclass(frozen=True)
class AboveChance:
    """Accuracies of a probe over random splits of the same rows, against chance.

    Attributes
    ----------
    mean, error : float
        Mean accuracy and its standard error over splits.
    p_splits : float
        Of Student's t with splits taken for independent, two-sided, as published. They are not: they share their rows,
        so that noise passes far too often.
    p_value : float
        The same with the variance of Nadeau and Bengio (2003), which allows for the rows that splits share; no less
        than the p-value of guesses at the judged rows, as a few splits may agree by chance.
    """

    mean: float
    error: float
    p_splits: float
    p_value: float

    @classmethod
    def over(cls, accuracies: Iterable[float], judged: int) -> AboveChance | None:
        """The tests of accuracies that are each of so many judged rows; None of fewer than two splits."""
        from scipy.special import ndtr, stdtr

        x = np.asarray(list(accuracies))
        if len(x) < 2:
            return None
        mean, spread = float(x.mean()), float(x.std(ddof=1))

        def p_value(error: float) -> float:
            if error == 0:
                return float(mean == CHANCE)
            return 2 * float(stdtr(len(x) - 1, -abs(mean - CHANCE) / error))

        error, shared = spread / math.sqrt(len(x)), math.sqrt(1 / len(x) + (1 - FITTED) / FITTED)
        # The variance of guesses is known, so that the test is the normal one.
        guessed = shared * math.sqrt(CHANCE * (1 - CHANCE) / judged)
        guesses = 2 * float(ndtr(-abs(mean - CHANCE) / guessed))
        return cls(mean, error, p_value(error), max(p_value(shared * spread), guesses))

    def decodes(self, level: float) -> bool:
        """Whether the mean is above chance by the test that allows for shared rows."""
        return self.mean > CHANCE and self.p_value < level

    def decodes_as_published(self, level: float) -> bool:
        """Whether it is by the test that does not."""
        return self.mean > CHANCE and self.p_splits < level


def told(tests: Mapping[str, AboveChance]) -> str:
    """Accuracies in percent with their standard errors."""
    return ", ".join(f"{name} {100 * t.mean:.1f} ± {100 * t.error:.1f}" for name, t in tests.items())
