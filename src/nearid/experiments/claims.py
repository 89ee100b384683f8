"""Claims of a paper as predicates on a result, decided by intervals over seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from nearid.experiments.estimate import Estimate

if TYPE_CHECKING:
    from nearid.experiments.result import Result


class Status(StrEnum):
    """What a run says of a claim."""

    REPRODUCED = "reproduced"
    NOT_REPRODUCED = "not reproduced"
    NOT_TESTABLE = "not testable here"


@dataclass(frozen=True)
class Outcome:
    """A status, and a sentence with the figures that decided."""

    status: Status
    sentence: str


@dataclass(frozen=True)
class Claim:
    """What the paper says, and a test of it on a result."""

    text: str
    test: Callable[[Result], Outcome]


def at_least(found: Result, row: str, column: str, threshold: float) -> Outcome:
    """Whether a score is no less than a threshold."""
    return decide(found, [row], found.estimate(row, column), threshold, found.label(row, column), above=True)


def at_most(found: Result, row: str, column: str, threshold: float) -> Outcome:
    """Whether a score is no more than a threshold."""
    return decide(found, [row], found.estimate(row, column), threshold, found.label(row, column), above=False)


def exceeds(found: Result, higher: tuple[str, str], lower: tuple[str, str], by: float = 0.0) -> Outcome:
    """Whether one score is greater than another by some margin; both are (row, column), paired by seed."""
    a, b = found.scores(*higher), found.scores(*lower)
    differences = Estimate.over([a[seed] - b[seed] for seed in a if seed in b])
    label = f"{found.label(*higher)} minus {found.label(*lower)}"
    return decide(found, [higher[0], lower[0]], differences, by, label, above=True)


def all_of(*outcomes: Outcome) -> Outcome:
    """The worst of some outcomes, with all their sentences."""
    order = (Status.NOT_REPRODUCED, Status.NOT_TESTABLE, Status.REPRODUCED)
    return Outcome(min((o.status for o in outcomes), key=order.index), " ".join(o.sentence for o in outcomes))


def decide(
    result: Result, rows: Sequence[str], found: Estimate, threshold: float, label: str, *, above: bool
) -> Outcome:
    """Reproduced where the whole interval is beyond the threshold, not reproduced where the mean falls short of it.

    In between, a mean that meets the threshold with an interval that does not, the seeds do not decide. Nor do the
    others decide where cells failed: a training that diverges may be the one that tells against the claim.
    """
    failed = sorted({seed for row in rows for seed in result.failed_seeds(row)})
    if failed:
        seeds = ", ".join(map(str, failed))
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result of seed {seeds}, of which cells failed.")
    if found.n == 0:
        return Outcome(Status.NOT_TESTABLE, f"{label}: there is no result.")
    asked = f"{'at least' if above else 'at most'} {threshold:g}"
    if found.n == 1:
        return Outcome(
            Status.NOT_TESTABLE, f"{label} is {found.mean:.4g} ({asked} is claimed), but one seed gives no interval."
        )
    told = f"{label} is {found.mean:.4g}, 95% interval [{found.low:.4g}, {found.high:.4g}] of {found.n} seeds"
    sign = 1 if above else -1
    if sign * (found.mean - threshold) < 0:
        return Outcome(Status.NOT_REPRODUCED, f"{told}; {asked} is claimed.")
    if sign * ((found.low if above else found.high) - threshold) < 0:
        return Outcome(Status.NOT_TESTABLE, f"{told}: so few seeds do not decide whether it is {asked}.")
    return Outcome(Status.REPRODUCED, f"{told}: {asked}, as claimed.")
