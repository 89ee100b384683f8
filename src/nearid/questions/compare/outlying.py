"""A few outlying rows that determine a comparison, because they dominate the squared errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nearid.arrays import Pair
from nearid.arrays.names import few
from nearid.arrays.pair import Index
from nearid.base.errors import InputError
from nearid.moments import Floats
from nearid.questions.compare.errors import Evaluation
from nearid.questions.compare.many import Farthest

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison

# Of fewer rows a quantile says little. Rows this many times as far from the mean as 99% of the rows lie far out. They
# decide where they hold more than this share of the variance.
ENOUGH, FAR_OUT, DECIDE = 200, 4, 0.5
# Rows beside which others do not look far out are looked for so often.
ROUNDS = 3
# Alerts about such rows.
ABOUT_OUTLYING = ("outlying_source", "heavy_tails")


@dataclass(frozen=True)
class Outlying:
    """Rows that decide a comparison.

    Attributes
    ----------
    rows : ndarray of int
        Their places among the pairs, ascending.
    source_rows : tuple of int
        Their places in the source.
    held : dict of str to (tuple of int, float)
        For each side of which some of them hold more than half of the variance: these, by their places there, and the
        share that they hold.
    """

    rows: np.ndarray
    source_rows: tuple[int, ...]
    held: dict[str, tuple[tuple[int, ...], float]]

    @property
    def sentence(self) -> str:
        """The outlying rows and their share of the variance, in words."""
        text = " and ".join(
            f"{'rows' if len(rows) > 1 else 'row'} {few(map(str, rows), 5)} of {name} "
            f"{'hold' if len(rows) > 1 else 'holds'} {share:.0%} of its variance"
            for name, (rows, share) in self.held.items()
        )
        return text[0].upper() + text[1:]


def outlying(pair: Pair, evaluation: Evaluation) -> Outlying | None:
    """The few rows with more than half of the variance of a side; None if there are none."""
    rows: list[np.ndarray] = []
    held = {}

    def places(index: Index, chosen: np.ndarray) -> tuple[int, ...]:
        return tuple((chosen if index is None else index[chosen]).tolist())

    whole = evaluation.whole
    sides = (
        (pair.x, pair.x_index, evaluation.source_radii, None if whole is None else whole.source),
        (pair.y, pair.y_index, evaluation.radii, None if whole is None else whole.target),
    )
    for side, index, radii, farthest in sides:
        far = far_out(radii, farthest)
        share = held_by(radii, far, farthest)
        if share > DECIDE:
            rows.append(far)
            held[side.name] = places(index, far), share
    if not rows:
        return None
    every = np.unique(np.concatenate(rows))
    return Outlying(every, places(pair.x_index, every), held)


def far_out(radii: Floats, farthest: Farthest | None = None) -> np.ndarray:
    """Places of rows that lie far out; rows that are not in use have no radius.

    If the radii are those of a sample, the rows are among the given farthest ones of all.
    """
    used = radii[np.isfinite(radii)]
    if len(used) < ENOUGH:
        return np.zeros(0, dtype=int)
    bound = FAR_OUT * float(np.quantile(used, 0.99))
    if farthest is None:
        return np.flatnonzero(radii > bound)
    return np.sort(farthest.rows[farthest.radii > bound])


def held_by(radii: Floats, rows: np.ndarray, farthest: Farthest | None = None) -> float:
    """Share of the variance of some rows, from the distances from the mean; `farthest` as in `far_out`."""
    if farthest is not None:
        own = farthest.radii[np.isin(farthest.rows, rows)]
        return float(own @ own) / (farthest.squares or 1.0)
    largest = float(np.nanmax(radii))
    squares = (radii / largest) ** 2 if largest > 0 else np.zeros_like(radii)
    return float(squares[rows].sum() / (np.nansum(squares) or 1.0))


def without(pair: Pair, rows: np.ndarray) -> Pair:
    """The pairs without some of them."""
    kept = np.delete(np.arange(pair.n), rows)

    def of(index: Index) -> np.ndarray:
        return kept if index is None else index[kept]

    rest = Pair(pair.x, pair.y, len(kept), of(pair.x_index), of(pair.y_index))
    rest.notes = pair.notes
    return rest


def judged_without(answer: Comparison, far: Outlying, again: Callable[[], Comparison]) -> Comparison:
    """The comparison with the verdict of the other rows, if it differs; `again` compares these rows."""
    try:
        rest = again()
    except InputError:
        # Without these rows there is nothing to compare, for example if only they vary.
        return answer
    own, other = answer.verdict, rest.verdict
    if (own.group, own.strength) == (other.group, other.strength):
        return answer
    best = max((g for g in answer.groups.values() if g.estimable), key=lambda g: g.r2.value)
    reason = (
        f"{far.sentence}, so {'these rows determine' if len(far.rows) > 1 else 'this row determines'} R2 of all rows "
        f"({best.r2.value:.3f} for the best group, {best.title}). Look for damaged values. Without "
        f"{'them' if len(far.rows) > 1 else 'it'}: {other.reason}"
    )
    # Other alerts about rows are those of the rows of the verdict.
    kept = [*(alert for alert in answer.alerts if alert.code in ABOUT_OUTLYING), *rest.alerts]
    verdict = replace(other, reason=reason)
    # The remaining rows may have outlying rows too, which the first ones hid.
    left_out = tuple(sorted({*far.source_rows, *rest.outlying_rows}))
    alerts = list(dict.fromkeys(kept))
    return replace(answer, verdict=verdict, bulk=rest.judged, outlying_rows=left_out, alerts=alerts)
