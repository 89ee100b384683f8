"""Claims that `diet` and `supervised` share, as predicates on their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from nearid.lab.framework.claims import Claim, Outcome, all_of, at_least, at_most, exceeds
from nearid.lab.papers.reizinger.cross_entropy_table import MORE

if TYPE_CHECKING:
    from nearid.lab.framework.result import Result

HEADS = ("unit", "free")
# What counts as the published R2, in points.
POINTS = 2.0
# What counts as singular values that are what they should be: their mean relative error.
NEAR_EQUAL = 0.1
# A failure costs at least this many points of R2; what is tolerated costs at most as many.
FAILS, TOLERATED = 10.0, 5.0


def near_published(base: tuple[Sequence[float], Sequence[float]]) -> Claim:
    """That the base rows come near their published R2, given as (z~->z, w->v) for either head."""

    def test(found: Result) -> Outcome:
        return all_of(
            *(
                at_least(found, f"base-{head}", column, value - POINTS)
                for head, values in zip(HEADS, base, strict=True)
                for column, value in zip(("r2_z", "r2_w"), values, strict=False)
            )
        )

    return Claim(f"Base: R2 is high (at least the published value less {POINTS:g} points).", test)


def robustness() -> list[Claim]:
    """What the assumptions are worth: of each, what happens to R2 z~->z when it is stretched or broken."""
    return [
        Claim(
            "R2 decays as d grows.", _both(lambda found, head: _falls(found, head, "base", "double-d", "quadruple-d"))
        ),
        Claim(
            f"R2 breaks down at high kappa (by at least {FAILS:g} points).",
            _both(lambda found, head: _falls(found, head, "base", "high-kappa", by=FAILS)),
        ),
        Claim(
            "With fewer classes than d + 1, where diversity fails, R2 is lower than with little more than enough, "
            f"2.5 d (by at least {FAILS:g} points).",
            _both(
                lambda found, head: all_of(
                    _falls(found, head, "enough-double-d", "few-classes-double-d", by=FAILS),
                    _falls(found, head, "enough-quadruple-d", "few-classes-quadruple-d", by=FAILS),
                )
            ),
        ),
        Claim(
            f"A normal conditional of the same spread is tolerated (at most {TOLERATED:g} points of R2).",
            _both(lambda found, head: _holds(found, head, "normal")),
        ),
        Claim(
            f"Label noise of up to 80% is tolerated (at most {TOLERATED:g} points of R2; 80% with {MORE} times the "
            "rows).",
            _both(lambda found, head: all_of(*(_holds(found, head, f"noise-{s}") for s in ("20", "50", "80-more")))),
        ),
        Claim(
            f"Label noise of 100% is not: R2 falls (by at least {FAILS:g} points), and W knows nothing of the classes "
            "(R2 w->v at most 10).",
            _both(
                lambda found, head: all_of(
                    _falls(found, head, "base", "noise-100", by=FAILS),
                    at_most(found, f"noise-100-{head}", "r2_w", 10.0),
                )
            ),
        ),
    ]


def _both(test: Callable[[Result, str], Outcome]) -> Callable[[Result], Outcome]:
    """A test that normalised and free W must both pass."""
    return lambda found: all_of(*(test(found, head) for head in HEADS))


def _falls(found: Result, head: str, *settings: str, by: float = 0.0) -> Outcome:
    """Whether R2 falls from each setting to the next."""
    return all_of(
        *(exceeds(found, (f"{a}-{head}", "r2_z"), (f"{b}-{head}", "r2_z"), by) for a, b in pairwise(settings))
    )


def _holds(found: Result, head: str, setting: str) -> Outcome:
    """Whether R2 is little below that of the base."""
    return exceeds(found, (f"{setting}-{head}", "r2_z"), (f"base-{head}", "r2_z"), -TOLERATED)
