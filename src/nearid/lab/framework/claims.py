"""Claims of a paper as predicates on a result, decided by intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from nearid.base.estimate import Estimate

if TYPE_CHECKING:
    from nearid.lab.framework.experiment import Column
    from nearid.lab.framework.result import ExperimentResult


class Status(StrEnum):
    """What a run says of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable here"


# The worst first.
ORDER = (Status.NOT_REPRODUCED, Status.NOT_TESTABLE, Status.REPRODUCED)


@dataclass(frozen=True)
class Outcome:
    """What a run says of a claim, or of one comparison of a claim that makes several.

    Attributes
    ----------
    sentence : str
        With the figures that decided, of all comparisons.
    margin : float
        How far the whole interval is beyond the threshold, below 0 where it is not; -inf where there is no interval.
    needs : tuple of str
        Keys of rows that it needs and that were not run.
    parts : tuple of Outcome
        The comparisons, where there are several.
    """

    status: Status
    sentence: str
    margin: float = -math.inf
    needs: tuple[str, ...] = ()
    parts: tuple[Outcome, ...] = ()

    @property
    def brief(self) -> str:
        """The sentence; of several comparisons how many hold, and the one that decides."""
        if not self.parts:
            return self.sentence
        if self.needs and self.status is Status.NOT_TESTABLE:
            return _needed(self.needs)
        holding, failing, left_open = (
            sum(p.status is status for p in self.parts)
            for status in (Status.REPRODUCED, Status.NOT_REPRODUCED, Status.NOT_TESTABLE)
        )
        counts = [f"{holding} of {len(self.parts)} comparisons hold{'s' if holding == 1 else ''}"]
        counts += [f"{failing} do{'es' if failing == 1 else ''} not"] if failing else []
        counts += [f"{left_open} {'is' if left_open == 1 else 'are'} not decided"] if left_open else []
        deciding = [p for p in self.parts if p.status is self.status]
        worst = min(deciding, key=lambda p: p.margin).sentence
        return f"{', '.join(counts)}. {'The worst: ' if len(deciding) > 1 else ''}{worst}"


# What decides a claim.
Test = Callable[["ExperimentResult"], Outcome]


@dataclass(frozen=True)
class Claim:
    """What the paper says, and a test of it on a result."""

    text: str
    test: Test


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

    They are paired by seed. Equal scores do not differ: a tie is not greater.
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
    """The worst of some outcomes, with all their sentences; of rows that were not run there is one for all."""
    parts = tuple(p for o in outcomes for p in (o.parts or (o,)))
    if len(parts) == 1:
        return parts[0]
    needs = tuple(dict.fromkeys(row for p in parts for row in p.needs))
    sentences = [p.sentence for p in parts if not p.needs] + ([_needed(needs)] if needs else [])
    status = min((p.status for p in parts), key=ORDER.index)
    return Outcome(status, " ".join(sentences), min(p.margin for p in parts), needs, parts)


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
    """Reproduced where the whole interval is beyond the threshold, not reproduced where the mean falls short of it.

    In between, a mean that meets the threshold with an interval that does not, the seeds do not decide. Nor do the
    others decide where cells failed: a training that diverges may be the one that tells against the claim.

    Parameters
    ----------
    rows : sequence of str
        Keys of the rows that the estimate is of.
    label : str
        What is estimated, in words.
    above : bool
        Whether the claim is that it is at least the threshold; at most otherwise.
    column : Column, optional
        Whose range the shown interval is cut to.
    strict : bool
        Whether the threshold itself is not enough.
    """
    needs = tuple(row for row in rows if row not in result.ran)
    if needs:
        return Outcome(Status.NOT_TESTABLE, _needed(needs), needs=needs)
    failed = sorted({seed for row in rows for seed in result.failed_seeds(row)})
    if failed:
        seeds = ", ".join(map(str, failed))
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result of seed {seeds}, of which cells failed.")
    if estimate.n == 0:
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result.")
    words = ("more than" if above else "less than") if strict else ("at least" if above else "at most")
    claimed = f"{words} {threshold:g}"
    if estimate.n == 1:
        return Outcome(
            Status.NOT_TESTABLE,
            f"{label} is {estimate.value:.4g} ({claimed} is claimed), but one seed gives no interval.",
        )
    shown = estimate if column is None else estimate.within(column.least, column.most)
    figures = f"{label} is {estimate.value:.4g}, 95% interval [{shown.low:.4g}, {shown.high:.4g}] of {estimate.n} seeds"
    sign = 1 if above else -1
    margin = sign * ((estimate.low if above else estimate.high) - threshold)
    if _short(sign * (estimate.value - threshold), strict):
        return Outcome(Status.NOT_REPRODUCED, f"{figures}; {claimed} is claimed.", margin)
    if _short(margin, strict):
        return Outcome(Status.NOT_TESTABLE, f"{figures}: so few seeds do not decide whether it is {claimed}.", margin)
    return Outcome(Status.REPRODUCED, f"{figures}: {claimed}, as claimed.", margin)


def _short(margin: float, strict: bool) -> bool:
    return margin < 0 or (strict and margin == 0)


def _needed(rows: Sequence[str]) -> str:
    if len(rows) == 1:
        return f"Needs the row {rows[0]}, which was not run."
    return f"Needs the rows {', '.join(rows)}, which were not run."
