"""Claims of a paper as predicates on a result, decided by intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from nearid.base.estimate import CONFIDENCE, Estimate

if TYPE_CHECKING:
    from nearid.lab.framework.experiment import Column
    from nearid.lab.framework.result import ExperimentResult


class Status(StrEnum):
    """Outcome of a claim in a run."""

    REPRODUCED = "reproduced"
    UNDECIDED = "undecided"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable here"
    NOT_JUDGED = "not judged: preset too short"


# The worst first.
ORDER = (Status.NOT_REPRODUCED, Status.NOT_JUDGED, Status.NOT_TESTABLE, Status.UNDECIDED, Status.REPRODUCED)
# The test is one-sided: an interval can miss a threshold only on one side.
LEVEL = (1 - CONFIDENCE) / 2
# The relative width of an interval that is due to rounding.
ROUNDING = 1e-12
# Seeds beyond which it does not matter how many would decide.
TOO_MANY = 100
# Significant digits beyond which the ends of a very narrow interval are shown as equal.
MOST_DIGITS = 10


@dataclass(frozen=True)
class Outcome:
    """Outcome of a claim in a run, or of one comparison of a claim with several.

    Attributes
    ----------
    sentence : str
        Sentence with the numbers that decided, of all comparisons.
    margin : float
        Distance by which the whole interval is beyond the threshold; negative if it is not, -inf if there is no
        interval.
    p_value : float
        P-value of a comparison, if it holds: the probability that seeds contradict it this clearly. NaN if no interval
        decides. Below LEVEL, the whole interval misses the threshold.
    needs : tuple of str
        Keys of needed rows that were not run.
    parts : tuple of Outcome
        The comparisons, if there are several.
    figure : str
        The estimate with its interval and the threshold alone, of one comparison.
    enough : int
        Of a comparison that the seeds do not decide: how many would, with the same mean and spread. 0 if not known.
    """

    status: Status
    sentence: str
    margin: float = -math.inf
    p_value: float = math.nan
    needs: tuple[str, ...] = ()
    parts: tuple[Outcome, ...] = ()
    figure: str = ""
    enough: int = 0

    @property
    def brief(self) -> str:
        """The sentence; for several comparisons, how many hold and which one decides."""
        if not self.parts:
            return self.sentence
        if self.needs and self.status is Status.NOT_TESTABLE:
            return _needed(self.needs)
        worst = self._deciding.sentence
        several = sum(p.status is self.status for p in self.parts) > 1
        return f"{self._counts()}. {'The worst: ' if several else ''}{worst}"

    @property
    def figures(self) -> str:
        """The figures that decided, for a cell of a table; the sentence where there are none."""
        if not self.parts or (self.needs and self.status is Status.NOT_TESTABLE):
            return self.figure or self.brief
        return f"{self._counts()}; {self._deciding.figure or self._deciding.sentence}"

    @property
    def _deciding(self) -> Outcome:
        return min((p for p in self.parts if p.status is self.status), key=lambda p: p.margin)

    def _counts(self) -> str:
        holding, failing = (
            sum(p.status is status for p in self.parts) for status in (Status.REPRODUCED, Status.NOT_REPRODUCED)
        )
        left_open = len(self.parts) - holding - failing
        counts = [f"{holding} of {len(self.parts)} comparisons hold{'s' if holding == 1 else ''}"]
        counts += [f"{failing} do{'es' if failing == 1 else ''} not"] if failing else []
        counts += [f"{left_open} {'is' if left_open == 1 else 'are'} not decided"] if left_open else []
        return ", ".join(counts)


# What decides a claim.
Test = Callable[["ExperimentResult"], Outcome]


@dataclass(frozen=True)
class Claim:
    """A claim, and its test on a result.

    Attributes
    ----------
    added : bool
        Whether nearid added it: a control, a finding, a further protocol or another reading of the paper. All other
        claims are stated by the paper in its text, theorems, tables or figures, perhaps for other networks or data.
        Thresholds are often nearid's.
    late : bool
        Whether it was added when scores that judge it had been seen.
    """

    text: str
    test: Test
    added: bool = False
    late: bool = False


def at_least(row: str, column: str, threshold: float) -> Test:
    """A test whether a score is no less than a threshold."""
    return lambda result: _against(result, row, column, threshold, above=True)


def at_most(row: str, column: str, threshold: float) -> Test:
    """A test whether a score is no more than a threshold."""
    return lambda result: _against(result, row, column, threshold, above=False)


def _against(result: ExperimentResult, row: str, column: str, threshold: float, *, above: bool) -> Outcome:
    estimate, label = result.estimate(row, column), result.label(row, column)
    return decide(result, [row], estimate, threshold, label, above=above, column=result.column(column))


def exceeds(higher: tuple[str, str], lower: tuple[str, str], by: float = 0.0) -> Test:
    """A test whether one score is greater than another by more than some margin; both are (row, column).

    Scores are paired by seed. Equal scores do not meet the claim.
    """

    def test(result: ExperimentResult) -> Outcome:
        a, b = result.scores(*higher), result.scores(*lower)
        differences = Estimate.over([a[seed] - b[seed] for seed in a if seed in b])
        label = f"{result.label(*higher)} minus {result.label(*lower)}"
        return decide(result, [higher[0], lower[0]], differences, by, label, above=True, strict=True)

    return test


def all_of(*tests: Test) -> Test:
    """A test that all of some tests must pass."""
    return lambda result: worst(*(test(result) for test in tests))


def for_parameters(make: Callable[[Any], Test]) -> Test:
    """A test that follows from the parameters of the run."""
    return lambda result: make(result.parameters)(result)


def worst(*outcomes: Outcome) -> Outcome:
    """The worst outcome, with the sentences of all; rows that were not run share one sentence.

    The claim holds if the interval of each part holds. This needs no correction. One miss among many may be chance, so
    misses are corrected by Holm's method over the parts.
    """
    parts = tuple(p for o in outcomes for p in (o.parts or (o,)))
    if len(parts) == 1:
        return parts[0]
    parts = _corrected(parts)
    needs = tuple(dict.fromkeys(row for p in parts for row in p.needs))
    sentences = [p.sentence for p in parts if not p.needs] + ([_needed(needs)] if needs else [])
    status = min((p.status for p in parts), key=ORDER.index)
    return Outcome(status, " ".join(sentences), min(p.margin for p in parts), needs=needs, parts=parts)


def _corrected(parts: Sequence[Outcome]) -> tuple[Outcome, ...]:
    """The parts; only those that miss after Holm's correction stay "not reproduced"."""
    tested = sorted((p.p_value, k) for k, p in enumerate(parts) if not math.isnan(p.p_value))
    clear = 0
    while clear < len(tested) and tested[clear][0] < LEVEL / (len(tested) - clear):
        clear += 1
    chance = {k for _, k in tested[clear:] if parts[k].status is Status.NOT_REPRODUCED}
    why = f"Of {len(tested)} comparisons, one may miss so far by chance (Holm's correction)."
    return tuple(
        replace(p, status=Status.UNDECIDED, sentence=f"{p.sentence} {why}") if k in chance else p
        for k, p in enumerate(parts)
    )


def decide(
    result: ExperimentResult,
    rows: Sequence[str],
    estimate: Estimate,
    threshold: float,
    label: str,
    *,
    above: bool,
    column: Column | None = None,
    strict: bool = False,
) -> Outcome:
    """Reproduced if the whole interval meets the threshold, not reproduced if the whole interval misses it.

    Otherwise the seeds do not decide, on whichever side the mean is. If cells failed, the other seeds do not decide
    either: the diverged training might have contradicted the claim.

    Parameters
    ----------
    rows : sequence of str
        Keys of the rows that the estimate is of.
    label : str
        Name of the estimated quantity.
    above : bool
        Whether the claim is "at least the threshold"; otherwise "at most".
    column : Column, optional
        Column whose range limits the shown interval.
    strict : bool
        Whether the threshold itself is not enough.
    """
    needs = tuple(row for row in rows if row not in result.ran)
    if needs:
        return Outcome(Status.NOT_TESTABLE, _needed(needs), needs=needs)
    failed = sorted({seed for row in rows for seed in result.failed_seeds(row)})
    if failed:
        seeds = ", ".join(map(str, failed))
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result of seed {seeds}, because its cells failed.")
    if estimate.n == 0:
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result.")
    words = ("more than" if above else "less than") if strict else ("at least" if above else "at most")
    claimed = f"{words} {threshold:g}"
    if estimate.n == 1:
        return Outcome(
            Status.UNDECIDED,
            f"{label} is {estimate.value:.4g} ({claimed} is claimed), but one seed gives no interval.",
            figure=f"{estimate.value:.3g} of one seed, claimed: {claimed}",
        )
    shown = estimate if column is None else estimate.within(column.least, column.most)
    if is_same(estimate):
        figures = f"{label} is {estimate.value:.4g} with each of {estimate.n} seeds"
        brief = f"{estimate.value:.3g} with each seed"
    else:
        value, interval = _digits(shown, threshold, 4)
        figures = f"{label} is {value}, 95% interval {interval} of {estimate.n} seeds"
        brief = " ".join(_digits(shown, threshold, 3))
    figure = f"{brief}, claimed: {claimed}"
    sign = 1 if above else -1
    margin = sign * ((estimate.low if above else estimate.high) - threshold)
    p_value = _miss(estimate, threshold, sign, strict)
    if p_value < LEVEL:
        return Outcome(Status.NOT_REPRODUCED, f"{figures}; {claimed} is claimed.", margin, p_value, figure=figure)
    if _short(margin, strict):
        sentence = f"{figures}: so few seeds do not decide whether it is {claimed}."
        enough = _enough(estimate, threshold)
        return Outcome(Status.UNDECIDED, sentence, margin, p_value, figure=figure, enough=enough)
    return Outcome(Status.REPRODUCED, f"{figures}: {claimed}, as claimed.", margin, p_value, figure=figure)


def is_same(estimate: Estimate) -> bool:
    """Whether all seeds gave one value. They are no sample of anything, so an interval of no length would mislead."""
    return estimate.high - estimate.low <= ROUNDING * abs(estimate.value)


def _digits(estimate: Estimate, threshold: float, fewest: int) -> tuple[str, str]:
    """A value and its interval with so many significant digits that they differ from each other and the threshold.

    A value that lies at the end of its range, such as a perfect score, is equal to the end of its interval.
    """
    numbers = {estimate.value, estimate.low, estimate.high, threshold}
    apart = (k for k in range(fewest, MOST_DIGITS + 1) if len({f"{x:.{k}g}" for x in numbers}) == len(numbers))
    digits = next(apart, fewest)
    return f"{estimate.value:.{digits}g}", f"[{estimate.low:.{digits}g}, {estimate.high:.{digits}g}]"


def _miss(estimate: Estimate, threshold: float, sign: int, strict: bool) -> float:
    """P-value of a mean that meets the threshold, by Student's t: small if the seeds clearly miss it."""
    from scipy.special import stdtr, stdtrit

    beyond = sign * (estimate.value - threshold)
    error = (estimate.high - estimate.low) / 2 / float(stdtrit(estimate.n - 1, 1 - LEVEL))
    # All seeds gave the same value.
    if error == 0:
        return 0.0 if _short(beyond, strict) else 1.0
    return float(stdtr(estimate.n - 1, beyond / error))


def _enough(estimate: Estimate, threshold: float) -> int:
    """How many seeds of the same mean and spread have an interval that does not reach the threshold, or TOO_MANY."""
    from scipy.special import stdtrit

    half, n = (estimate.high - estimate.low) / 2, estimate.n
    spread = half / float(stdtrit(n - 1, 1 - LEVEL)) * math.sqrt(n)
    distance = abs(estimate.value - threshold)
    more = range(n + 1, TOO_MANY)
    return next((m for m in more if spread * float(stdtrit(m - 1, 1 - LEVEL)) < distance * math.sqrt(m)), TOO_MANY)


def _short(margin: float, strict: bool) -> bool:
    return margin < 0 or (strict and margin == 0)


def _needed(rows: Sequence[str]) -> str:
    if len(rows) == 1:
        return f"Needs the row {rows[0]}, which was not run."
    return f"Needs the rows {', '.join(rows)}, which were not run."
