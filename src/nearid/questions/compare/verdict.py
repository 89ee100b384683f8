"""Statistics of each group's errors, and the verdict: the smallest group that explains as much as the best group.

The rule, on held-out rows:

1. *Anything at all?* The best group must beat what the best group reaches with the target's rows in another order
   (p <= 0.01, or more than in every repetition if there are fewer than 99). A group counts only if it beats chance by
   itself, the lower 99% bound of its explained variance is above 0, and it explains at least 1%. If the verdict's group
   explains less than 5%, the runs are almost unrelated.
2. *The yardstick* is the counting group with the smallest squared error (nearly always the largest group).
3. *Walk the ladder from below*: the first group that suffices is the verdict. Groups are only partially ordered, but
   the ladder lists each group after all groups that it contains. So no group that the verdict contains suffices. If
   neither of two groups contains the other, the one with fewer parameters comes first.

A group suffices if, with 95% confidence over a paired bootstrap, it explains at least 90% of the variance that the
yardstick explains **and** its root-mean-square error is at most 10% larger. The first condition alone would accept an
R2 of 0.97 instead of 0.9999. The second alone would accept 0.00 instead of 0.10. Errors below 0.1% of the target's
spread count as equal, so that rounding does not decide. With few rows a large group overfits, and a smaller one must
not pass for this reason. So it must also suffice by the errors expected with many rows, error * (1 - parameters per
target column / training rows), which is unbiased for least squares.

The burden of proof is on the smaller group (a non-inferiority test with a margin), so more rows sharpen the verdict. If
it neither suffices nor clearly fails, the verdict lies between the two groups. The same holds if a larger group beats
chance and explains more, but does not count because a few rows determine its R2.

A group that contains another cannot be worse than it. If its estimate is clearly worse, there are too few rows to
estimate it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.base.student import student
from nearid.engines.local import one_blas_thread
from nearid.groups.ladder import Group
from nearid.measures.diameter import Diameter
from nearid.moments import Floats
from nearid.questions.compare.chance import Chance
from nearid.questions.compare.errors import root_mean_square, unexplained_share
from nearid.questions.compare.intervals import Influences, intervals
from nearid.questions.compare.many import Whole
from nearid.show.view import fixed

# Units that many rows are dealt into before they are resampled, and replicates.
UNITS = REPLICATES = 1000

MARGIN = 0.10
LEAST_EXPLAINED = 0.01
ROUNDING = 1e-3
# Level of the test against rows in another order.
LEVEL = 0.01
# A group neither suffices nor clearly fails between these shares of the replicates.
CLEARLY = 0.05
# Explained variance that counts if chance cannot be measured. For slow rows less is enough, if it is this many times
# what any other order reaches: series that agree by chance also agree in other orders.
LEAST_WITHOUT_CHANCE, FAR, LEAST_FAR = 0.9, 10, 0.3
# Equal R2 of two orders of the rows may differ by this.
TIED = 1e-9
# With many rows, an error is assumed to shrink at most to this share.
LEAST_LIMIT = 0.1
# The sentence mentions chance if it reaches at least this share of what a group explains.
WORTH_SAYING = 0.1
# The sentence mentions a group with a lower R2 if its mean error is smaller by this factor.
NEARER = 0.9

STRENGTHS = ((0.99, "nearly exactly"), (0.9, "closely"), (0.5, "in part"), (0.0, "weakly"))
# Why a group has no interval.
FEW_ROWS = "there are fewer than 10 rows for each column"
NO_SPREAD = "one or two rows determine the errors"
OTHER_PARTNERS = "folds match columns differently, and there are too many columns to repeat the matching"
OTHER_COMPONENTS = "other rows would give other components, and nearid does not repeat ICA to measure that"


@dataclass(frozen=True)
class GroupResult:
    """How closely one group maps the source to the target.

    Attributes
    ----------
    name, title : str
    epsilon : Estimate
        Mean error of a row over the target's diameter; its chance level is that of rows in another order. In-sample
        values have no interval and no chance level.
    relative : Estimate
        Mean error of a row over the root-mean-square error of the constant guess. The diameter grows with the number of
        rows; this does not, so compare this one across data sets of different sizes.
    median, q95, max : float
        Quantiles of the errors over the diameter.
    r2 : Estimate
        Explained share of the target's variance; its chance level is the largest share reached by rows in another
        order.
    degrees_of_freedom : int
    p_value : float
        Add-one permutation p-value of r2; NaN where chance cannot be measured.
    penalty : tuple of float
        Smallest and largest ridge penalty of the folds' fits, if the group has one.
    estimable : bool
        False if the group contains another one that explains clearly more: there are too few rows to estimate it.
    freedom : float
        Degrees of freedom of Student's t in the interval of r2.
    no_interval : str
        Why held-out figures have no interval; empty if they have one.
    """

    name: str
    title: str
    epsilon: Estimate
    relative: Estimate
    median: float
    q95: float
    max: float
    r2: Estimate
    degrees_of_freedom: int
    p_value: float = math.nan
    penalty: tuple[float, ...] = ()
    estimable: bool = True
    freedom: float = math.nan
    no_interval: str = ""


def bootstrap(
    errors: Floats,
    spread: Floats,
    seed: int,
    blocks: np.ndarray | None = None,
    whole: Whole | None = None,
    weights: Floats | None = None,
) -> Floats:
    """Squared error over that of the constant guess of resampled rows, or whole blocks of rows: (replicates, groups).

    All columns of a replicate use the same rows, so differences are paired.

    Many rows are first assigned at random to 1,000 units, and the units are resampled. For means of exchangeable rows
    the spread is the same, and a replicate is one row of a small matrix product.

    Parameters
    ----------
    errors : ndarray of shape (groups, n)
    spread : ndarray of shape (n,)
        Error of the constant guess.
    blocks : ndarray of int, shape (n,), optional
        Block of each row.
    whole : Whole, optional
        Means over all rows, if these rows are a sample of them.
    weights : ndarray of shape (n,), optional
        Number of rows of its block that each row stands for, if the sample has only the first rows of long blocks.
    """
    rng = np.random.default_rng([seed, 3])
    if blocks is not None:
        blocks = np.unique(blocks, return_inverse=True)[1]
    n = len(spread) if blocks is None else int(blocks.max()) + 1
    units = min(n, UNITS)
    unit = rng.permutation(n) % units
    if blocks is not None:
        unit = unit[blocks]

    def sums(values: Floats) -> Floats:
        values = values if weights is None else weights * values
        return np.bincount(unit, weights=values, minlength=units).astype(np.float64)

    # Row b counts how often replicate b drew each unit.
    draws = rng.integers(units, size=(REPLICATES, units)) + units * np.arange(REPLICATES)[:, None]
    drawn = np.bincount(draws.ravel(), minlength=REPLICATES * units).reshape(REPLICATES, units).astype(np.float64)
    # Normalise before squaring: the square of 1e200 overflows.
    size = float(np.sqrt(np.mean((spread / (spread.max() or 1.0)) ** 2)) * (spread.max() or 1.0)) or 1.0
    # The last digits of a product depend on the threads of BLAS.
    with one_blas_thread:
        squares = drawn @ np.stack([sums((e / size) ** 2) for e in errors], axis=1)
        base = drawn @ sums((spread / size) ** 2)
    root = 1.0 if weights is None else np.sqrt(weights)
    shares, centre = squares / base[:, None], unexplained_share(errors * root, spread * root)
    if whole is None:
        return _apart(shares, centre, units)
    # Replicates of all rows are centred at their value, and closer together than those of a sample. With blocks the
    # sample may have all of them, so the distances are not reduced, and are never too small.
    share = len(spread) / whole.n if blocks is None else 1.0
    ratio = np.divide(shares, centre, out=np.ones_like(shares), where=centre > 0)
    return _apart(whole.unexplained * ratio ** math.sqrt(share), whole.unexplained, units)


def _apart(draws: Floats, centre: Floats, units: int) -> Floats:
    """Replicates moved away from the estimate to correct for few units (Hesterberg 2015).

    Resampled units vary less than units do, and their quantiles are not those of Student's t. The correction is on the
    log scale, because all values are positive.
    """
    if units > 100:
        return draws
    factor = math.sqrt(units / (units - 1)) * student(units - 1.0, CONFIDENCE) / student(math.inf, CONFIDENCE)
    centre = np.where(centre > 0, centre, 1.0)
    return np.asarray(centre * (draws / centre) ** factor)


def summaries(
    groups: Sequence[Group],
    dims: tuple[int, int],
    errors: Floats,
    spread: Floats,
    diameter: Diameter,
    influences: Influences | None = None,
    of: str = "",
    chance: Chance | None = None,
    penalties: Sequence[float] = (),
    whole: Whole | None = None,
    weights: Floats | None = None,
) -> dict[str, GroupResult]:
    """Summaries of each group's errors; with intervals and chance if they were measured.

    `of` describes what the intervals cover, `penalties` are those of the linear fits, and `whole` are means over all
    rows if the errors are those of a sample. `weights` are those of `Sample`, if they may differ.
    """
    size, nan, results = diameter.lower, math.nan, {}
    if whole is None:
        unexplained, base, guess = unexplained_share(errors, spread), root_mean_square(spread), float(spread.mean())
        means, largest = errors.mean(axis=1), errors.max(axis=1)
    else:
        unexplained, base, guess = whole.unexplained, whole.base, whole.spread
        means, largest = whole.errors, whole.largest
    observed = chance.comparable(1 - unexplained) if chance else np.full(len(groups), nan)
    for g, group in enumerate(groups):
        method: Literal["linear", "inverted_cdf"] = "linear" if weights is None else "inverted_cdf"
        median, q95 = np.quantile(errors[g], [0.5, 0.95], weights=weights, method=method)
        ends = intervals(influences, g, errors[g], spread, whole=whole)
        mean, r2 = float(means[g]), float(1 - unexplained[g])
        reached = chance.r2[:, g] if chance else np.array([nan])
        # The error of a map that explains this much, on average over the repetitions.
        by_chance = guess * float(np.mean(np.sqrt(1 - reached)))
        own = of if ends.r2.known else ""
        why = "" if own or not of else _without_interval(group, influences, g)
        results[group.name] = GroupResult(
            group.name,
            group.title,
            Estimate(mean / size, ends.error.low / size, ends.error.high / size, by_chance / size, own),
            Estimate(mean / base if base else nan, ends.relative.low, ends.relative.high, nan, own),
            float(median) / size,
            float(q95) / size,
            float(largest[g]) / size,
            Estimate(r2, ends.r2.low, ends.r2.high, float(reached.max()), own),
            group.degrees_of_freedom(*dims),
            add_one(reached, float(observed[g])) if chance else nan,
            (min(penalties), max(penalties)) if penalties and "ridge" in group.options else (),
            freedom=ends.freedom,
            no_interval=why,
        )
    return results


def _without_interval(group: Group, influences: Influences | None, g: int) -> str:
    """Why a group has no interval."""
    if influences is None:
        return FEW_ROWS
    if group.prepare:
        return OTHER_COMPONENTS
    doubtful = influences.choice is not None and np.isnan(influences.choice[g])
    return OTHER_PARTNERS if doubtful else NO_SPREAD


def add_one(reached: Floats, value: float) -> float:
    """Permutation p-value: the share of repetitions that reach the value, itself counted as one."""
    return float((1 + np.sum(reached >= value - TIED)) / (1 + len(reached)))


@dataclass(frozen=True)
class Verdict:
    """The answer in words and as data.

    Attributes
    ----------
    group : str
        Name of a group, or "none".
    reason : str
        Sentences with the numbers that decided.
    strength : str
        How much of the target the group explains: "nearly exactly" (>= 99%), "closely" (>= 90%), "in part" (>= 50%),
        "weakly". For the group "none": "almost unrelated" or "not at all".
    yardstick : str or None
        The group that the others were measured against.
    between : tuple of str
        The two groups that the rows do not decide between, the smaller one first; `group` is then the larger one.
    not_estimable : tuple of str
        Groups that contain another one which explains clearly more: rows are too few to estimate them.
    p_value : float
        P-value of the best group against the best group of rows in another order; NaN if chance cannot be measured.
    """

    group: str
    reason: str
    strength: str
    yardstick: str | None
    between: tuple[str, ...] = ()
    not_estimable: tuple[str, ...] = ()
    p_value: float = math.nan

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return asdict(self)


@dataclass(frozen=True)
class Rungs:
    """Input of the verdict, for the groups of the ladder in order.

    Attributes
    ----------
    unexplained : ndarray of shape (groups,)
        Held-out squared error over that of the constant guess (1 - R2).
    errors : ndarray of shape (groups,)
        Mean held-out error over the root-mean-square error of the constant guess: error / spread.
    chance : ndarray of shape (repetitions, groups)
        Explained variance (R2) of rows in another order.
    observed : ndarray of shape (groups,)
        The same of the rows in their own order.
    draws : ndarray of shape (replicates, groups)
        `unexplained` in bootstrap replicates.
    limits : ndarray of shape (groups,)
        Expected share of the squared error with many rows.
    unmeasured : str
        Why chance cannot be measured, as the beginning of a sentence; empty where it can.
    remedy : str
        Advice for this case, as sentences.
    slow : bool
        Whether the cause is a long dependence of rows on their neighbours.
    shrinks : bool
        Whether maps have a scale, so that they can always be as good as the constant guess.
    """

    groups: Sequence[Group]
    unexplained: Floats
    errors: Floats
    chance: Floats
    observed: Floats
    draws: Floats
    limits: Floats
    unmeasured: str = ""
    remedy: str = ""
    slow: bool = False
    shrinks: bool = True


def decide(rungs: Rungs, *, unrelated: float = 0.05, negligible: float | None = None) -> Verdict:
    """Apply the rule.

    Parameters
    ----------
    rungs : Rungs
    unrelated : float
        The runs are almost unrelated if the verdict's group explains less than this share.
    negligible : float, optional
        A group also suffices if, with 95% confidence, its root-mean-square error is at most this share of the target's
        spread.
    """
    groups, r2, reached = rungs.groups, 1 - rungs.unexplained, rungs.chance
    top, level = int(np.argmax(r2)), max(LEVEL, 1 / (1 + len(reached)))
    p_value = add_one(reached.max(axis=1), float(rungs.observed.max()))
    each = np.array([add_one(reached[:, g], float(rungs.observed[g])) for g in range(len(groups))])
    floor = 1 - np.quantile(rungs.draws, 0.99, axis=0)
    least = LEAST_WITHOUT_CHANCE if rungs.unmeasured else LEAST_EXPLAINED
    if rungs.slow:
        least = float(np.clip(FAR * reached.max(), LEAST_FAR, LEAST_WITHOUT_CHANCE))
    counts = (floor > 0) & (each <= level) & (r2 >= least)
    if not counts.any() or p_value > level:
        figures = f"The best, {groups[top].title}, reaches R2 = {fixed(r2[top])}."
        reason = f"No group explains held-out rows better than chance. {figures} {_in_other_orders(reached, p_value)}"
        if p_value <= level and each[top] <= level:
            bound = f"the lower 99% bound of its R2 is {floor[top]:.2f}"
            why = bound if floor[top] <= 0 else f"that is less than {100 * least:.2g}%"
            reason = f"No group explains enough of held-out rows. {figures} {_in_other_orders(reached, p_value)}"
            reason += f" It does not count because {why}."
        if rungs.unmeasured:
            reason = (
                f"{rungs.unmeasured} that chance cannot be measured. A group then counts only if it explains "
                f"{100 * least:.2g}%{_far(rungs, least)}. {figures} {rungs.remedy}"
            ).rstrip()
        return Verdict("none", reason, "not at all", None, p_value=p_value)
    best = int(np.argmin(np.where(counts, rungs.unexplained, np.inf)))
    lost = _not_estimable(rungs)
    # A group that the yardstick contains cannot gain more than it: the expected error with many rows is an estimate for
    # both.
    many = rungs.draws * np.maximum(rungs.limits, rungs.limits[best])

    def enough(smaller: int, larger: int) -> float:
        return min(_suffices(d[:, smaller], d[:, larger], negligible) for d in (rungs.draws, many))

    shares = [enough(g, best) for g in range(len(groups))]
    chosen = next(g for g in range(len(groups)) if counts[g] and (g == best or shares[g] >= 1 - CLEARLY))
    # Groups below the verdict that did not clearly fail.
    near = [g for g in range(chosen) if counts[g] and shares[g] > CLEARLY and groups[g].name in groups[chosen].contains]
    if r2[chosen] < unrelated:
        # There is no p-value where chance cannot be measured.
        beyond = "" if rungs.unmeasured else f"more than chance (p = {p_value:.2g}), but "
        reason = (
            f"A {groups[chosen].title} explains {_percent(r2[chosen])} of the target's variance on held-out rows"
            f"{_by_chance(rungs, chosen)}: {beyond}less than {100 * unrelated:g}%."
        )
        return Verdict("none", reason, "almost unrelated", groups[best].name, (), lost, p_value)
    # A larger group that beats chance and explains more, but does not count: the rows do not decide.
    open_above = [
        g
        for g in range(len(groups))
        if (each[g] <= level and r2[g] > r2[best] and r2[g] >= least and not counts[g])
        and groups[chosen].name in groups[g].contains
        and groups[g].name not in lost
        and enough(chosen, g) < 1 - CLEARLY
    ]
    above = max(open_above, key=lambda g: r2[g], default=chosen)
    low = near[-1] if near else chosen
    between = (groups[low].name, groups[above].name) if low != above else ()
    reason = _reason(rungs, r2, chosen, best, between, lost, floor)
    return Verdict(groups[above].name, reason, strength(float(r2[chosen])), groups[best].name, between, lost, p_value)


def _suffices(mine: Floats, yardstick: Floats, negligible: float | None) -> float:
    """Share of paired replicates in which one group's unexplained variance is not inferior to the yardstick's."""
    enough = (1 - mine >= (1 - MARGIN) * (1 - yardstick)) & (
        np.sqrt(mine) - (1 + MARGIN) * np.sqrt(yardstick) <= ROUNDING
    )
    if negligible is not None:
        enough |= np.sqrt(mine) <= negligible
    return float(np.mean(enough))


def _not_estimable(rungs: Rungs) -> tuple[str, ...]:
    """Groups whose estimate is worse than one that they contain.

    Either clearly worse, in 95% of the replicates, than another group that explains something; or worse than the
    constant guess, which a map with a scale or a penalty contains.
    """
    names = [g.name for g in rungs.groups]
    return tuple(
        group.name
        for g, group in enumerate(rungs.groups)
        if (rungs.shrinks and rungs.unexplained[g] > 1 + MARGIN)
        or any(
            name in group.contains
            and rungs.unexplained[s] < 1 - LEAST_EXPLAINED
            and _suffices(rungs.draws[:, g], rungs.draws[:, s], None) <= CLEARLY
            for s, name in enumerate(names)
        )
    )


def strength(r2: float) -> str:
    """How much of the target is explained, in words."""
    return next(words for least, words in STRENGTHS if r2 >= least)


def _far(rungs: Rungs, least: float) -> str:
    """Origin of the share that slow rows must explain, in words."""
    return f", {FAR} times what other orders reach" if rungs.slow and LEAST_FAR < least < LEAST_WITHOUT_CHANCE else ""


def _in_other_orders(reached: Floats, p_value: float) -> str:
    """What the best group reaches by chance."""
    return (
        f"With the target's rows in another order the best group reaches up to {max(float(reached.max()), 0.0):.3f} "
        f"(p = {p_value:.2g})."
    )


def _by_chance(rungs: Rungs, g: int) -> str:
    """What a group reaches by chance, in words, if that is a large part of what it explains."""
    reached = float(rungs.chance[:, g].max())
    if rungs.unmeasured or reached <= WORTH_SAYING * (1 - rungs.unexplained[g]):
        return ""
    return f", where chance alone reaches {_percent(reached)}"


def _reason(
    rungs: Rungs,
    r2: Floats,
    chosen: int,
    best: int,
    between: tuple[str, ...],
    lost: tuple[str, ...],
    floor: Floats,
) -> str:
    groups = rungs.groups
    # Groups that do not count may explain more than all groups that count.
    best_of_all = max((g for g in range(len(groups)) if groups[g].name not in lost), key=lambda g: r2[g], default=best)
    more = _percent(r2[best_of_all]) != _percent(r2[best]) and r2[best_of_all] > r2[best]
    smaller = [k for k in range(chosen) if groups[k].name in groups[chosen].contains]
    reason = f"A {groups[chosen].title} explains {_percent(r2[chosen])} of the target's variance on held-out rows"
    reason += _by_chance(rungs, chosen)
    if chosen != best:
        reason += f", about as much as a {groups[best].title} ({_percent(r2[best])})"
    elif smaller and all(groups[k].name in lost for k in smaller):
        reason += ", and there are too few rows to estimate a smaller group"
    elif more:
        pass
    elif smaller and not between:
        unknown = [groups[k].title for k in smaller if groups[k].name in lost]
        reason += (
            f", and there are too few rows to estimate a {unknown[-1]}"
            if unknown
            else ", and no smaller group explains as much"
        )
    elif len(groups) > 1 and not between:
        reason += f", and no {'other' if chosen else 'larger'} group does better"
    if smaller and groups[smaller[-1]].name not in lost:
        reason += f"; a {groups[smaller[-1]].title} explains {_percent(r2[smaller[-1]])}"
    if more:
        reason += (
            f"; a {groups[best_of_all].title} explains {_percent(r2[best_of_all])}, but these rows do not establish "
        )
        reason += (
            f"that: the lower 99% bound of its R2 is {floor[best_of_all]:.2f}"
            if floor[best_of_all] <= 0
            else "that it is better than chance"
        )
    reason += "."
    if between:
        low = next(g.title for g in groups if g.name == between[0])
        reason += f" These rows do not show whether a {low} is enough: other folds or rows may change the answer."
    above = [g.title for g in groups if g.name in lost and groups[chosen].name in g.contains]
    if above:
        reason += (
            f" A {above[0]} contains this group and could explain more, but there are too few rows to estimate it."
        )
    if rungs.unmeasured:
        reason += (
            f" {rungs.unmeasured} that chance cannot be measured, so there are no p-values. {rungs.remedy}".rstrip()
        )
    nearest = int(np.argmin(np.where(r2 >= LEAST_EXPLAINED, rungs.errors, np.inf)))
    apart = rungs.errors[chosen] > ROUNDING and rungs.errors[nearest] < NEARER * rungs.errors[chosen]
    if nearest != best and apart:
        reason += (
            f" By mean error a {groups[nearest].title} is better (error / spread {rungs.errors[nearest]:.3f} against "
            f"{rungs.errors[chosen]:.3f}), because a few rows dominate R2."
        )
        if groups[chosen].name in groups[nearest].contains:
            reason += f" These rows do not rule out a {groups[nearest].title}."
    return reason


def _percent(share: float) -> str:
    """A share in percent, with enough digits to distinguish it from 100."""
    share = float(share)
    if share > 0.99999:
        return "more than 99.999%"
    digits = 1 if share < 0.99 else int(np.ceil(-np.log10(1 - share)))
    return f"{100 * share:.{digits}f}%"
