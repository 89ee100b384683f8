"""Claims of a paper as predicates on a result, decided by intervals over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from nearid.lab.framework.estimate import Estimate

if TYPE_CHECKING:
    from nearid.lab.framework.experiment import Column
    from nearid.lab.framework.result import Result


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
    status : Status
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


@dataclass(frozen=True)
class Claim:
    """What the paper says, and a test of it on a result."""

    text: str
    test: Callable[[Result], Outcome]


def at_least(found: Result, row: str, column: str, threshold: float) -> Outcome:
    """Whether a score is no less than a threshold."""
    return _against(found, row, column, threshold, above=True)


def at_most(found: Result, row: str, column: str, threshold: float) -> Outcome:
    """Whether a score is no more than a threshold."""
    return _against(found, row, column, threshold, above=False)


def _against(found: Result, row: str, column: str, threshold: float, *, above: bool) -> Outcome:
    estimate, label = found.estimate(row, column), found.label(row, column)
    return decide(found, [row], estimate, threshold, label, above=above, column=found.column(column))


def exceeds(found: Result, higher: tuple[str, str], lower: tuple[str, str], by: float = 0.0) -> Outcome:
    """Whether one score is greater than another by more than some margin; both are (row, column), paired by seed.

    Equal scores do not differ: a tie is not greater.
    """
    a, b = found.scores(*higher), found.scores(*lower)
    differences = Estimate.over([a[seed] - b[seed] for seed in a if seed in b])
    label = f"{found.label(*higher)} minus {found.label(*lower)}"
    return decide(found, [higher[0], lower[0]], differences, by, label, above=True, strict=True)


def all_of(*outcomes: Outcome) -> Outcome:
    """The worst of some outcomes, with all their sentences; of rows that were not run there is one for all."""
    parts = tuple(p for o in outcomes for p in (o.parts or (o,)))
    if len(parts) == 1:
        return parts[0]
    needs = tuple(dict.fromkeys(row for p in parts for row in p.needs))
    sentences = [p.sentence for p in parts if not p.needs] + ([_needed(needs)] if needs else [])
    worst = min((p.status for p in parts), key=ORDER.index)
    return Outcome(worst, " ".join(sentences), min(p.margin for p in parts), needs, parts)


def decide(
    result: Result,
    rows: Sequence[str],
    found: Estimate,
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
    result : Result
    rows : sequence of str
        Keys of the rows that the estimate is of.
    found : Estimate
    threshold : float
    label : str
        What is estimated, in words.
    above : bool
        Whether the claim is that it is at least the threshold; at most otherwise.
    column : Column, optional
        Whose range the interval is told within.
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
    if found.n == 0:
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result.")
    words = ("more than" if above else "less than") if strict else ("at least" if above else "at most")
    asked = f"{words} {threshold:g}"
    if found.n == 1:
        return Outcome(
            Status.NOT_TESTABLE, f"{label} is {found.mean:.4g} ({asked} is claimed), but one seed gives no interval."
        )
    shown = found if column is None else found.within(column.least, column.most)
    told = f"{label} is {found.mean:.4g}, 95% interval [{shown.low:.4g}, {shown.high:.4g}] of {found.n} seeds"
    sign = 1 if above else -1
    margin = sign * ((found.low if above else found.high) - threshold)
    if _short(sign * (found.mean - threshold), strict):
        return Outcome(Status.NOT_REPRODUCED, f"{told}; {asked} is claimed.", margin)
    if _short(margin, strict):
        return Outcome(Status.NOT_TESTABLE, f"{told}: so few seeds do not decide whether it is {asked}.", margin)
    return Outcome(Status.REPRODUCED, f"{told}: {asked}, as claimed.", margin)


def _short(margin: float, strict: bool) -> bool:
    return margin < 0 or (strict and margin == 0)


def _needed(rows: Sequence[str]) -> str:
    if len(rows) == 1:
        return f"Needs the row {rows[0]}, which was not run."
    return f"Needs the rows {', '.join(rows)}, which were not run."
