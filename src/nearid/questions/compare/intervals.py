"""Intervals of held-out values that account for the fits: an infinitesimal jackknife with fixed folds.

The estimand is the procedure at this number of rows: the mean result of a fit on new rows, over training sets of this
size. Every row has two roles in a cross-validated value. It is judged in its own fold, and it influences the maps that
judge the other folds. Its influence is the sum of both. The second part is the derivative of each fit by the weight of
the row, which every group of the ladder declares. The variance is that of the influences, summed over the rows of a
block if rows belong together. The degrees of freedom of Student's t follow from the spread of the influences
(Satterthwaite), so a few dominant rows widen the interval. The variance from the choice of partners in a matching is
measured separately (`partners`).

With many rows for each column the second role is negligible and is left out. With few rows, derivatives are not
accurate enough, and there is no interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearid.base.estimate import CONFIDENCE
from nearid.base.student import student
from nearid.groups.ladder import Group
from nearid.moments import Floats
from nearid.questions.compare.errors import Fits, Gathered, Sample, row_norms
from nearid.questions.compare.many import Whole
from nearid.questions.compare.partners import choice_variances

# Rows for each column: below the first there is no interval, above the second fits no longer add to it.
FEW, MANY = 10, 50
# Rows, and numbers, that influences are taken from.
SAMPLE, NUMBERS = 20_000, 4_000_000
# The second role counts by this factor in errors. A term that two rows of different folds share is in the derivatives
# of both, so that squares of influences hold it twice: one half is right where all such terms are products, and
# simulations ask for more. Of squared errors, whose tails are heavier, they ask for all of it.
SECOND_ROLE = 0.75
# The relative error divides by squares, of which rows far out decide the mean. Its interval reaches as far as if so
# many further rows like the most influential one were there: set on simulations with Student's t3, whose squares have
# no variance.
FURTHER_ROWS = 2
# Root-mean-square errors below this share of the spread are rounding of sums over thousands of columns in float64, and
# so are their influences.
ROUNDED = 1e-12
# The mean of a sample of very many rows is so many standard errors from that of all rows only if the sample lacks rows
# that decide.
MISSED = 6
# An interval whose ends are further apart, as a ratio, is made of one row or two: it says nothing, and there is none.
WIDEST = 1000


@dataclass(frozen=True)
class Influences:
    """Influence of each row of a sample on the sums over all rows.

    Attributes
    ----------
    squares, errors : ndarray of shape (groups, m)
        Of squared errors, and of errors.
    spread : ndarray of shape (m,)
        Of squared errors of the constant guess.
    blocks : ndarray of int, shape (m,), or None
        Block of each row.
    n : int
        Rows in all.
    weights : ndarray of shape (m,) or None
        Number of rows that each row represents, if only the first rows of a block are in the sample.
    choice : ndarray of shape (groups,) or None
        Variance that the choice of partners adds to the logarithm of each group's squared error, see `partners`.
    """

    squares: Floats
    errors: Floats
    spread: Floats
    blocks: np.ndarray | None
    n: int
    weights: Floats | None = None
    choice: Floats | None = None

    def spread_of(self, values: Floats) -> Spread:
        """Spread of a mean over all rows, from the influence of each of these rows."""
        return spread_of_mean(values, self.n, self.blocks, self.weights)


@dataclass(frozen=True)
class Spread:
    """Standard error of a mean, its degrees of freedom, and the effect of the most influential row or block."""

    error: float
    freedom: float
    furthest: float


def spread_of_mean(values: Floats, n: int, blocks: np.ndarray | None = None, weights: Floats | None = None) -> Spread:
    """Spread of a mean over n rows, of which some are given.

    Parameters
    ----------
    values : ndarray of shape (m,)
        Influence of each of m rows on the sum over n rows.
    blocks : ndarray of int, shape (m,), optional
        Which of them belong together, counted from 0.
    weights : ndarray of shape (m,), optional
        Rows of its block that each stands for.
    """
    weights = np.ones(len(values)) if weights is None else weights
    values = values - np.average(values, weights=weights)
    sums = values if blocks is None else np.bincount(blocks, weights=weights * values)
    count, unit = len(sums), float(np.abs(sums).max())
    if count < 2:
        # One unit does not show how units vary.
        return Spread(math.nan, math.nan, math.nan)
    if not unit:
        return Spread(0.0, math.inf, 0.0)
    squares = (sums / unit) ** 2
    total = float(squares.sum())
    # Satterthwaite's degrees of freedom of a sum of independent squares.
    surplus = float(squares @ squares) - total**2 / count
    freedom = min(count - 1.0, 2 * total**2 / surplus if surplus > 0 else math.inf)
    variance = total * count / (count - 1) / float(weights.sum()) / n
    furthest = float(sums[np.argmax(squares)]) / n
    return Spread(unit * math.sqrt(variance), max(freedom, 1.0), furthest)


def influences(
    gathered: Gathered,
    groups: Sequence[Group],
    fits: Fits,
    errors: Floats,
    spread: Floats,
    judged: Sample | None = None,
) -> Influences | None:
    """Influences of the rows in use, or of a sample; None if there are too few rows for the columns.

    `errors` and `spread` are those of all rows, or of the rows of `judged`, as of `Evaluation`.
    """
    pair, blocks = gathered.pair, gathered.blocks
    n, widest = gathered.count, max(pair.x.shape[1], pair.y.shape[1])
    if n < FEW * widest:
        return None
    choice = choice_variances(gathered, groups, fits)
    # If rows belong together, the number of blocks must be large.
    units = n if blocks is None else gathered.block_count
    if units >= MANY * widest:
        if judged is not None:
            return Influences(errors**2, errors, spread**2, judged.blocks, n, judged.weights, choice)
        rows = gathered.used
        codes = None if blocks is None else np.unique(blocks.codes[rows], return_inverse=True)[1]
        return Influences(errors[:, rows] ** 2, errors[:, rows], spread[rows] ** 2, codes, n, choice=choice)
    most = min(SAMPLE, max(NUMBERS // (pair.x.shape[1] + pair.y.shape[1]), 1000))
    sample = gathered.sample(most, np.random.default_rng(0), None if judged is None else judged.rows)
    rows = sample.rows
    x, y = (np.asarray(side, dtype=np.float64) for side in pair.take(rows))
    at = rows if judged is None else np.searchsorted(judged.rows, rows)
    errors, spread = errors[:, at], spread[at]
    squares, plain, base = errors**2, np.zeros((len(groups), len(rows))), spread**2
    fold, translation = gathered.fold[rows], gathered.options["translation"]
    for k, (maps, guess) in enumerate(zip(fits.maps, fits.means, strict=True)):
        train = gathered.parts.without([k])
        own, other = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        if not len(own):
            continue
        # Sums over the fold, from the rows of the sample that lie in it.
        weight = gathered.parts.counts[k] / len(own)
        away = y[own] - guess
        base[other] -= 2 * weight / train.n * ((y[other] - guess) @ away.sum(axis=0))
        for g, (group, fitted) in enumerate(zip(groups, maps, strict=True)):
            options = {name: value for name, value in gathered.without_fold[k].items() if name in group.options}
            x_own, x_other = x[own] - fitted.source_centre, x[other] - fitted.source_centre
            y_other = y[other] - fitted.target_centre
            missed = y[own] - fitted.target_centre - fitted.turn(x_own)
            left = y_other - fitted.turn(x_other)
            size = row_norms(missed)
            for into, slope in ((squares, 2 * missed), (plain, missed / np.where(size > 0, size, 1.0)[:, None])):
                if translation:
                    into[g, other] -= weight / train.n * (left @ slope.sum(axis=0))
                if group.influence is not None:
                    gradient = -weight * x_own.T @ slope
                    into[g, other] += group.influence(train, fitted, gradient, x_other, y_other, **options)
    plain = errors + SECOND_ROLE * plain
    return Influences(squares, plain, base, sample.blocks, n, sample.weights, choice)


@dataclass(frozen=True)
class Interval:
    """Ends of a 95% interval; NaN if there is none."""

    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return math.isfinite(self.low)


def on_log_scale(
    value: float, spread: Spread, confidence: float = CONFIDENCE, *, choice: float = 0.0, further: float = 0.0
) -> Interval:
    """The interval of a positive figure, symmetric for its logarithm.

    Parameters
    ----------
    choice : float
        Further variance of the logarithm.
    further : float
        The end towards the most influential row is extended by this number of such rows.
    """
    if not value > 0:
        return Interval(value, value)
    half = student(spread.freedom, confidence) * math.hypot(spread.error / value, math.sqrt(choice))
    pull = further * spread.furthest / value
    ends = (value * math.exp(np.clip(x, -700, 700)) for x in (min(pull, 0) - half, max(pull, 0) + half))
    return Interval(*ends)


@dataclass(frozen=True)
class GroupIntervals:
    """Intervals of a group's mean error, of the same over the target's spread, and of its R2.

    `freedom` has the degrees of freedom of the interval of R2.
    """

    error: Interval = Interval()
    relative: Interval = Interval()
    r2: Interval = Interval()
    freedom: float = math.nan


def _missed(found: Influences, values: Floats, mean: float) -> bool:
    """Whether a sample of the rows does not have the few rows that decide the mean over all rows."""
    doubt = found.spread_of(values).error * math.sqrt(found.n / len(values))
    return abs(float(np.average(values, weights=found.weights)) - mean) > MISSED * doubt


def intervals(
    found: Influences | None,
    g: int,
    errors: Floats,
    spread: Floats,
    confidence: float = CONFIDENCE,
    whole: Whole | None = None,
) -> GroupIntervals:
    """Intervals of one group, from influences and from the errors of all rows in use, or their means."""
    if found is None:
        return GroupIntervals()
    mean, base = float(errors.mean()), float(np.mean(spread**2))
    square = float(np.mean(errors**2))
    if whole is not None:
        mean, base, square = float(whole.errors[g]), whole.base**2, float(whole.squares[g])
        if _missed(found, found.squares[g], square) or _missed(found, found.spread, base):
            return GroupIntervals()
    if not base:
        return GroupIntervals()
    share = square / base
    # Errors change with the choice of partners as the root of their squares does.
    choice = 0.0 if found.choice is None else float(found.choice[g])
    if math.isnan(choice):
        return GroupIntervals()
    error = on_log_scale(mean, found.spread_of(found.errors[g]), confidence, choice=choice / 4)
    relative = mean / math.sqrt(base)
    ratio = found.errors[g] / math.sqrt(base) - relative * found.spread / found.spread.mean() / 2
    by_spread = on_log_scale(relative, found.spread_of(ratio), confidence, choice=choice / 4, further=FURTHER_ROWS)
    unexplained = found.squares[g] / base - share * found.spread / base
    spread_of_share = found.spread_of(unexplained)
    missed = on_log_scale(share, spread_of_share, confidence, choice=choice)
    if share > ROUNDED**2 and any(own.high > WIDEST * own.low for own in (error, by_spread, missed)):
        return GroupIntervals()
    if 0 < share <= ROUNDED**2:
        # For rounding errors there is no distribution: the error is between 0 and the resolution of float64, and R2 is
        # 1.
        error, by_spread = Interval(0.0, ROUNDED * math.sqrt(base)), Interval(0.0, ROUNDED)
        missed = Interval(0.0, ROUNDED**2)
    return GroupIntervals(error, by_spread, Interval(1 - missed.high, 1 - missed.low), spread_of_share.freedom)
