"""Figures of each group's errors, and the verdict: the smallest group that explains what the best group explains.

The rule, on held-out rows:

1. *Anything at all?* A group counts only if the lower 99% bound of its explained variance is above what it reached on
   permuted rows, above 0, and its explained variance is at least 1%. If no group counts, the verdict is "none".
2. *The yardstick* is the counting group with the smallest squared error (nearly always the largest group; with few
   rows a large group overfits, and then it sets no bar).
3. *Walk the ladder from below*: the first group that suffices is the verdict. Groups are only partially ordered, but
   the ladder lists each after all that it contains, so that nothing that the verdict contains suffices. Of two groups
   that do not contain each other, the one with fewer parameters comes first.

A group suffices if, with 95% confidence over a paired bootstrap of rows, it explains at least 90% of the variance that
the yardstick explains **and** its root-mean-square error is at most 10% larger. The first alone would let 0.97 pass for
0.9999; the second alone would let 0.00 pass for 0.10. Errors below 0.1% of the target's spread count as equal, so that
rounding decides nothing.

The burden of proof is on the smaller group (a non-inferiority test with a margin), so more rows sharpen the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.engines.local import one_blas_thread
from nearid.groups.ladder import Group
from nearid.measures.diameter import Diameter
from nearid.moments import Floats
from nearid.questions.compare.errors import Chance

# Units that many rows are dealt into before they are resampled, and replicates.
UNITS = REPLICATES = 1000

MARGIN = 0.10
LEAST_EXPLAINED = 0.01
ROUNDING = 1e-3

STRENGTHS = ((0.99, "nearly exactly"), (0.9, "closely"), (0.5, "in part"), (0.0, "weakly"))
# What the efficiency of ICA is computed from.
NEEDED = ("permutation", "ica", "rigid")
# What its interval is of.
FOLDS = "folds, each with fits of its own, Student's t"


@dataclass(frozen=True)
class GroupResult:
    """How nearly one group makes the source the target.

    Attributes
    ----------
    name, title : str
    epsilon : Estimate
        Mean error of a row over the target's diameter; its chance level is that of permuted rows. In sample there is
        neither an interval nor a chance level, here and below.
    median, q95, max : float
        Quantiles of the same errors.
    r2 : Estimate
        Explained share of the target's variance; its chance level is the largest share reached on permuted rows.
    degrees_of_freedom : int
    """

    name: str
    title: str
    epsilon: Estimate
    median: float
    q95: float
    max: float
    r2: Estimate
    degrees_of_freedom: int


@dataclass(frozen=True)
class Replicates:
    """Mean error, and squared error over that of the constant guess, both (replicates, groups).

    All columns of a replicate saw the same resampled rows, so that differences are paired.
    """

    error: Floats
    unexplained: Floats


def bootstrap(errors: Floats, spread: Floats, seed: int) -> Replicates:
    """Resample rows with replacement.

    Millions of rows are first dealt at random into 1,000 units of equal size, and the units are resampled: for means
    of exchangeable rows that has the same spread, and a replicate becomes one row of a small matrix product.

    Parameters
    ----------
    errors : ndarray of shape (groups, n)
    spread : ndarray of shape (n,)
        Error of the constant guess.
    """
    rng = np.random.default_rng([seed, 3])
    n = len(spread)
    units = min(n, UNITS)
    unit = rng.permutation(n) % units

    def sums(values: Floats) -> Floats:
        return np.bincount(unit, weights=values, minlength=units).astype(np.float64)

    count = np.bincount(unit, minlength=units)
    # Row b counts how often replicate b drew each unit.
    draws = rng.integers(units, size=(REPLICATES, units)) + units * np.arange(REPLICATES)[:, None]
    weights = np.bincount(draws.ravel(), minlength=REPLICATES * units).reshape(REPLICATES, units).astype(np.float64)
    # Units of the data are taken out before squaring: 1e200 squared is no number.
    size = float(np.sqrt(np.mean((spread / (spread.max() or 1.0)) ** 2)) * (spread.max() or 1.0)) or 1.0
    # The last digits of a product depend on the threads of BLAS.
    with one_blas_thread:
        means = weights @ np.stack([sums(e) for e in errors], axis=1) / (weights @ count)[:, None]
        squares = weights @ np.stack([sums((e / size) ** 2) for e in errors], axis=1)
        base = weights @ sums((spread / size) ** 2)
    return Replicates(means, squares / base[:, None])


def interval(values: Floats, level: float = 0.95) -> tuple[float, float]:
    """Central percentile interval of replicates."""
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def summaries(
    groups: Sequence[Group],
    dims: tuple[int, int],
    errors: Floats,
    unexplained: Floats,
    diameter: Diameter,
    replicates: Replicates | None = None,
    chance: Chance | None = None,
) -> dict[str, GroupResult]:
    """Summaries of each group's errors; intervals and chance where they were measured."""
    size, nan, of = diameter.lower, math.nan, "rows, bootstrap" if replicates else ""
    results = {}
    for g, group in enumerate(groups):
        median, q95 = np.quantile(errors[g], [0.5, 0.95])
        low, high = interval(replicates.error[:, g]) if replicates else (nan, nan)
        r2_high, r2_low = (1 - v for v in interval(replicates.unexplained[:, g])) if replicates else (nan, nan)
        mean, by_chance = float(errors[g].mean()), float(chance.error[:, g].mean()) if chance else nan
        r2_chance = float(chance.r2[:, g].max()) if chance else nan
        results[group.name] = GroupResult(
            group.name,
            group.title,
            Estimate(mean / size, low / size, high / size, by_chance / size, of),
            float(median) / size,
            float(q95) / size,
            float(errors[g].max()) / size,
            Estimate(float(1 - unexplained[g]), r2_low, r2_high, r2_chance, of),
            group.degrees_of_freedom(*dims),
        )
    return results


@dataclass(frozen=True)
class Verdict:
    """The answer in words and as data.

    Attributes
    ----------
    group : str
        Name of a group, or "none".
    reason : str
        One or two sentences with the figures that decided.
    strength : str
        How much of the target the group explains: "nearly exactly" (>= 99%), "closely" (>= 90%), "in part" (>= 50%),
        "weakly", or "not at all".
    yardstick : str or None
        The group that the others were measured against.
    """

    group: str
    reason: str
    strength: str
    yardstick: str | None

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


def decide(
    groups: Sequence[Group],
    unexplained: Floats,
    chance: Floats,
    replicates: Replicates,
    negligible: float | None = None,
) -> Verdict:
    """Apply the rule.

    Parameters
    ----------
    groups : sequence of Group
        In the ladder's order.
    unexplained : ndarray of shape (groups,)
        Held-out squared error over that of the constant guess (1 - R2).
    chance : ndarray of shape (groups,)
        Largest explained variance (R2) reached on permuted rows.
    replicates : Replicates
    negligible : float, optional
        A group also suffices if, with 95% confidence, its root-mean-square error is at most this share of the target's
        spread.
    """
    r2, draws = 1 - unexplained, replicates.unexplained
    floor = 1 - np.quantile(draws, 0.99, axis=0)
    counts = (floor > np.maximum(chance, 0)) & (r2 >= LEAST_EXPLAINED)
    if not counts.any():
        top = int(np.argmax(r2))
        reason = (
            f"No group explains held-out rows better than chance: the best, {groups[top].title}, reaches "
            f"R2 = {r2[top]:.3f} against {max(float(chance[top]), 0.0):.3f} on permuted rows."
        )
        return Verdict("none", reason, "not at all", None)
    best = int(np.argmin(np.where(counts, unexplained, np.inf)))
    chosen = next(
        g for g in range(len(groups)) if counts[g] and (g == best or _suffices(draws[:, g], draws[:, best], negligible))
    )
    reason = _reason(groups, r2, chosen, best)
    return Verdict(groups[chosen].name, reason, strength(float(r2[chosen])), groups[best].name)


def _suffices(mine: Floats, yardstick: Floats, negligible: float | None) -> bool:
    """Non-inferiority of one group's unexplained variance against the yardstick's, over paired replicates."""
    if negligible is not None and np.quantile(np.sqrt(mine), 0.95) <= negligible:
        return True
    explained = np.quantile((1 - mine) - (1 - MARGIN) * (1 - yardstick), 0.05) >= 0
    excess = np.sqrt(mine) - (1 + MARGIN) * np.sqrt(yardstick)
    return bool(explained and np.quantile(excess, 0.95) <= ROUNDING)


def strength(r2: float) -> str:
    """How much of the target is explained, in words."""
    return next(words for least, words in STRENGTHS if r2 >= least)


def _reason(groups: Sequence[Group], r2: Floats, chosen: int, best: int) -> str:
    smaller = [k for k in range(chosen) if groups[k].name in groups[chosen].contains]
    reason = f"A {groups[chosen].title} explains {_percent(r2[chosen])} of the target's variance on held-out rows"
    if chosen != best:
        reason += f", within the margin of what a {groups[best].title} explains ({_percent(r2[best])})"
    elif smaller:
        reason += ", and no smaller group explains as much"
    elif len(groups) > 1:
        reason += f", and no {'other' if chosen else 'larger'} group does better"
    if smaller:
        reason += f"; a {groups[smaller[-1]].title} explains {_percent(r2[smaller[-1]])}"
    return reason + "."


def _percent(share: float) -> str:
    """A share in percent, with as many digits as tell it from 100."""
    share = float(share)
    if share > 0.99999:
        return "more than 99.999%"
    digits = 1 if share < 0.99 else int(np.ceil(-np.log10(1 - share)))
    return f"{100 * share:.{digits}f}%"


@dataclass(frozen=True)
class Efficiency(Estimate):
    """(e_permutation - e_ica) / (e_permutation - e_rigid), of mean held-out errors; NaN where there is no answer.

    How much of what a rigid motion gains over a signed permutation ICA gains without seeing a single pair.

    Attributes
    ----------
    in_sample : float
        Of the in-sample errors, where these were asked for.
    reason : str
        A sentence with the figures, or why there are none.
    """

    in_sample: float = math.nan
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {**super().to_dict(), "in_sample": self.in_sample, "reason": self.reason}


def efficiency(
    names: Sequence[str], by_fold: Floats, rows: np.ndarray, guess: float, in_sample: Floats | None
) -> Efficiency:
    """Judge ICA between the signed permutation and the rigid motion.

    Every fold has fits of its own and judges them on its own rows: the spread over folds is one over whole fits.
    Fits share rows: the variance of a mean over K folds is (1/K + 1/(K - 1)) times that over folds (Nadeau & Bengio
    2003, with the share of rows held out over the share fitted on as the correlation of folds), by Student's t.

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
    """
    if not set(NEEDED) <= set(names):
        return Efficiency(math.nan, reason="Not known: it needs the groups permutation and rigid beside ica.")
    order = [list(names).index(n) for n in NEEDED]
    permutation, ica, rigid = by_fold[order]
    gain = float(np.average(permutation - rigid, weights=rows))
    # Where a rigid motion gains nothing for certain, the ratio is one of noise to noise.
    if gain - _half_over_folds(permutation - rigid) <= ROUNDING * guess:
        reason = "There is none: a rigid motion does not clearly gain over a signed permutation."
        return Efficiency(math.nan, reason=reason)
    value = float(np.average(permutation - ica, weights=rows)) / gain
    # How far each fold moves the ratio of the two means.
    half = _half_over_folds((permutation - ica - value * (permutation - rigid)) / gain)
    low, high = value - half, value + half
    figures = f"{100 * value:.0f}% [{100 * low:.0f}%, {100 * high:.0f}%]"
    if low > 0:
        reason = f"ICA of each side alone removes {figures} of the error that a rigid motion removes"
    else:
        loss = "does worse than" if high < 0 else "gains nothing certain over"
        reason = f"ICA of each side alone {loss} matching the columns as they are: its efficiency is {figures}"
    within = math.nan
    if in_sample is not None and in_sample[order[0]] > in_sample[order[2]]:
        within = float(_ratio(in_sample[order]))
        reason += f"; in sample {100 * within:.0f}%"
    return Efficiency(value, low, high, of=FOLDS, in_sample=within, reason=f"{reason}.")


def _half_over_folds(values: Floats) -> float:
    """Half the 95% interval of a mean over folds whose fits share rows."""
    from scipy.special import stdtrit

    k = len(values)
    spread = float(np.std(values, ddof=1)) * math.sqrt(1 / k + 1 / (k - 1))
    return float(stdtrit(k - 1, (1 + CONFIDENCE) / 2)) * spread


def _ratio(errors: Floats) -> Floats:
    permutation, ica, rigid = np.moveaxis(errors, -1, 0)
    return np.asarray((permutation - ica) / (permutation - rigid))
