"""Whether a verdict on source and target holds for target and source too.

Errors are those of the target, so the two directions may have different verdicts. Without the other direction, three
cases leave no doubt about it:

- a signed permutation or rigid motion between equally many columns with next to no error: its inverse does as well;
- a linear map with next to no error of which every canonical correlation is next to 1, where a rigid motion misses by
  far: its inverse does as well, and Procrustes errors are the same both ways;
- no relation at all: the squared canonical correlations bound what any linear map explains, in both directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from nearid.groups.ladder import GROUPS
from nearid.questions.compare.verdict import LEAST_EXPLAINED, ROUNDING, Verdict

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

# Root-mean-square errors below this share of the spread count as none in either direction, with room for the bootstrap.
NONE = ROUNDING / 2
# A rigid motion misses by far if its error is more than this.
FAR = 10 * ROUNDING


@dataclass(frozen=True)
class Direction:
    """What is known of the other direction.

    Attributes
    ----------
    status : {"same", "differs", "not computed", "cannot differ"}
    text : str
        A sentence for the headline; empty where there is nothing to add.
    """

    status: Literal["same", "differs", "not computed", "cannot differ"]
    text: str


def other_direction(c: Comparison) -> Direction:
    """Whether the verdict of the other direction is another one, is the same, or is not known."""
    if c.reverse is not None and c.one_way is not None:
        there, back = c.one_way, c.reverse.verdict
        if (there.group, there.strength) == (back.group, back.strength):
            return Direction("same", "")
        x, y = c.names
        return Direction(
            "differs", f"The directions differ: {_reached(there)} from {x} to {y}, {_reached(back)} from {y} to {x}"
        )
    if _cannot_differ(c):
        return Direction("cannot differ", "")
    return Direction(
        "not computed", "The other direction was not computed and may differ: use --symmetric (symmetric=True)"
    )


def _reached(verdict: Verdict) -> str:
    if verdict.group == "none":
        return "up to no group"
    return f"{verdict.strength} up to a {GROUPS[verdict.group].title}"


def _cannot_differ(c: Comparison) -> bool:
    group, correlations = c.verdict.group, c.similarity.cca
    if group == "none":
        return bool(np.max(np.abs(correlations), initial=0.0) ** 2 < LEAST_EXPLAINED)
    missed = {name: np.sqrt(max(1 - g.r2, 0.0)) for name, g in c.groups.items()}
    if c.dims[0] != c.dims[1] or missed[group] > NONE:
        return False
    if group != "linear":
        return True
    whole = len(correlations) == c.dims[0] and np.min(correlations) >= np.sqrt(1 - NONE**2)
    return bool(whole and missed.get("rigid", np.inf) > FAR)
