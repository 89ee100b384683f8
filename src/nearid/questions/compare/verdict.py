"""The verdict: the smallest group that explains what the best group explains.

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

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from nearid.groups.ladder import Group
from nearid.moments import Floats
from nearid.questions.compare.bootstrap import Replicates

MARGIN = 0.10
LEAST_EXPLAINED = 0.01
ROUNDING = 1e-3

STRENGTHS = ((0.99, "nearly exactly"), (0.9, "closely"), (0.5, "in part"), (0.0, "weakly"))


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
    return Verdict(groups[chosen].name, reason, _strength(float(r2[chosen])), groups[best].name)


def _suffices(mine: Floats, yardstick: Floats, negligible: float | None) -> bool:
    """Non-inferiority of one group's unexplained variance against the yardstick's, over paired replicates."""
    if negligible is not None and np.quantile(np.sqrt(mine), 0.95) <= negligible:
        return True
    explained = np.quantile((1 - mine) - (1 - MARGIN) * (1 - yardstick), 0.05) >= 0
    excess = np.sqrt(mine) - (1 + MARGIN) * np.sqrt(yardstick)
    return bool(explained and np.quantile(excess, 0.95) <= ROUNDING)


def _strength(r2: float) -> str:
    return next(words for least, words in STRENGTHS if r2 >= least)


def _reason(groups: Sequence[Group], r2: Floats, chosen: int, best: int) -> str:
    smaller = [k for k in range(chosen) if groups[k].name in groups[chosen].contains]
    said = f"A {groups[chosen].title} explains {_percent(r2[chosen])} of the target's variance on held-out rows"
    if chosen != best:
        said += f", within the margin of what a {groups[best].title} explains ({_percent(r2[best])})"
    elif smaller:
        said += ", and no smaller group explains as much"
    elif len(groups) > 1:
        said += f", and no {'other' if chosen else 'larger'} group does better"
    if smaller:
        said += f"; a {groups[smaller[-1]].title} explains {_percent(r2[smaller[-1]])}"
    return said + "."


def _percent(share: float) -> str:
    """A share in percent, with as many digits as tell it from 100."""
    share = float(share)
    if share > 0.99999:
        return "more than 99.999%"
    digits = 1 if share < 0.99 else int(np.ceil(-np.log10(1 - share)))
    return f"{100 * share:.{digits}f}%"
