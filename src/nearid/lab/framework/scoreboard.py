"""Results side by side: published and measured by one rule, claims counted, and the figure of each experiment."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import LEVEL, TOO_MANY, Claim, Outcome, Status
from nearid.lab.framework.settings import USUAL, preset_of, shown
from nearid.show.figures import Curve, Dots, Figure, Lines
from nearid.show.view import Column as Head, Row as Line, Table, View, counted, number

if TYPE_CHECKING:
    from nearid.lab.framework.experiment import Column, Curve as Stored, Row
    from nearid.lab.framework.result import ExperimentResult

# The statuses that are counted, in the order of the columns.
COUNTED = (Status.REPRODUCED, Status.NOT_REPRODUCED, Status.UNDECIDED, Status.NOT_TESTABLE)
# The fewest seeds that a count of reproduced claims asks for.
ENOUGH_SEEDS = 3
MEASURED, PUBLISHED = "measured", "published"
# The share of a training whose end shows whether it had ended.
LAST = 0.2
# Title of the page of all results.
TITLE = "The papers"
# Rows that a picture has room for, and characters of the name of a row in one line.
MANY, NAME = 40, 34


@dataclass(frozen=True)
class Compared:
    """Published and measured values of one score, over all rows that have both."""

    column: Column
    rows: Sequence[Row]
    published: Sequence[float]
    measured: Sequence[float]

    def _range(self, values: Sequence[float]) -> str:
        ends = dict.fromkeys(f"{value:.{self.column.digits}f}" for value in (min(values), max(values)))
        return " to ".join(ends)

    @property
    def published_range(self) -> str:
        """Least and largest published value."""
        return self._range(self.published)

    @property
    def measured_range(self) -> str:
        """Least and largest measured value."""
        return self._range(self.measured)

    @property
    def largest(self) -> tuple[Row, float]:
        """The row where both differ most, and measured minus published there."""
        differences = [m - p for m, p in zip(self.measured, self.published, strict=True)]
        k = max(range(len(differences)), key=lambda k: abs(differences[k]))
        return self.rows[k], differences[k]


def compared(result: ExperimentResult) -> Compared | None:
    """The first score for which the paper gives a value in a row that was run; None where there is none."""
    for column in result.experiment.columns:
        both = [
            (row, row.published[column.key].value, result.estimate(row.key, column.key).value)
            for row in result.rows
            if column.key in row.published
        ]
        known = [values for values in both if math.isfinite(values[2])]
        if known:
            rows, published, measured = zip(*known, strict=True)
            return Compared(column, rows, published, measured)
    return None


def brief(result: ExperimentResult) -> tuple[str, str, str] | None:
    """The line of the scoreboard that a section gives: score, published, measured; None if rows of it were not run."""
    words = result.experiment.section.brief
    try:
        return None if words is None else (words[0], words[1], filled(words[2], result))
    except InputError:
        return None


def filled(words: str, result: ExperimentResult) -> str:
    """A text with the mean of a score in the place of each {row:column}, and a curve's last change for {row:curve^}."""

    def value(found: re.Match[str]) -> str:
        row, key, curve = found[1], found[2], found[3]
        if row in result.ran and curve:
            changes = [_last_change(f.data["curves"][key]) for f in result.of_row(row) if key in f.data["curves"]]
            if changes:
                return f"{np.mean(changes):+.2g}"
        if row in result.ran and not curve and key in {c.key for c in result.experiment.columns}:
            return number(result.estimate(row, key).value, result.column(key).digits)
        raise InputError(f"The section of {result.experiment.name} names {found[0]}, which is not stored.")

    return re.sub(r"\{([\w.+-]+):(\w+)(\^?)\}", value, words)


def _last_change(curve: Stored) -> float:
    """By how much a curve changes over the last part of its steps."""
    before = curve["x"][-1] * (1 - LAST)
    return curve["y"][-1] - float(np.interp(before, curve["x"], curve["y"]))


def reason(claim: Claim, outcome: Outcome, result: ExperimentResult) -> str:
    """Why a claim is not reproduced: what its section says, and how far the seeds are from a decision."""
    if outcome.status not in (Status.NOT_REPRODUCED, Status.UNDECIDED):
        return ""
    given = (why for words, why in result.experiment.section.reasons.items() if claim.text.startswith(words))
    said = [filled(why, result) for why in given]
    if outcome.status is Status.UNDECIDED:
        said.append(_undecided(outcome))
    unknown = "No reason is known." if outcome.status is Status.NOT_REPRODUCED else "The seeds do not decide."
    return " ".join(filter(None, said)) or unknown


def _undecided(outcome: Outcome) -> str:
    """What the comparisons that are not decided lack."""
    left_open = [p for p in outcome.parts or (outcome,) if p.status is Status.UNDECIDED]
    corrected = sum(p.p_value < LEVEL for p in left_open)
    few = [p for p in left_open if p.enough]
    parts = []
    if few:
        # Above one half, the mean meets the threshold.
        meeting = sum(p.p_value > 0.5 for p in few)
        most = max(p.enough for p in few)
        needed = f"{TOO_MANY} seeds or more" if most >= TOO_MANY else f"about {most} seeds"
        if len(few) == 1:
            said = f"The mean {'meets' if meeting else 'misses'} the threshold."
        else:
            how_many = {0: "none", len(few): "all"}.get(meeting, str(meeting))
            said = f"{len(few)} comparisons are open; in {how_many} of them the mean meets the threshold."
        parts.append(f"{said} With this spread {needed} would decide.")
    if corrected:
        parts.append(f"{counted(corrected, 'comparison')} would miss alone; among so many it may be chance.")
    return " ".join(parts)


def counts(result: ExperimentResult, *, stated: bool = False) -> list[int]:
    """Claims of each counted status: all, or those that the paper states."""
    statuses = [outcome.status for claim, outcome in result.outcomes if not (stated and claim.added)]
    return [statuses.count(status) for status in COUNTED]


def over_seeds(result: ExperimentResult) -> bool:
    """Whether intervals are over enough seeds, each with data or networks of its own."""
    return len(result.seeds) >= ENOUGH_SEEDS and not result.experiment.seeds_draw


def core_minutes(result: ExperimentResult) -> float:
    """What all cells took of one core."""
    return sum(f.core_seconds for f in result.cells) / 60


def command(result: ExperimentResult) -> str:
    """The command that runs a result again."""
    parts = ["nearid", "reproduce", result.experiment.name]
    parts += [] if result.preset == USUAL else ["--preset", result.preset]
    usual = preset_of(result.experiment, result.preset).seeds
    parts += [] if len(result.seeds) == usual else ["--seeds", str(len(result.seeds))]
    parts += [part for row in result.only for part in ("--row", row)]
    parts += [part for name, (value, _) in result.changes.items() for part in ("--set", f"{name}={shown(value)}")]
    return shlex.join(parts)


def figure(result: ExperimentResult) -> Figure | None:
    """The figure of an experiment: its own, or published beside measured values, row by row."""
    own = result.experiment.section.figure
    return (own(result) if own is not None else None) or dots(result)


def dots(result: ExperimentResult, columns: Sequence[str] = (), rows: Sequence[str] = ()) -> Figure | None:
    """A dot for each row and score with its interval, and the published value beside it.

    Parameters
    ----------
    columns : sequence of str
        Keys of the scores; by default the one that is compared, or the first.
    rows : sequence of str
        Keys of the rows; by default those with a published value, or all.
    """
    both = compared(result)
    keys = columns or (both.column.key if both else result.experiment.columns[0].key,)
    heads = [column for column in result.experiment.columns if column.key in keys]
    if not heads:
        return None
    drawn = [row for row in result.rows if row.key in rows] if rows else list(both.rows if both else result.rows)
    groups: dict[str, list[Estimate | None]] = {}
    for head in heads:
        name = MEASURED if len(heads) == 1 else head.title
        groups[name] = [_known(result.estimate(row.key, head.key).within(head.least, head.most)) for row in drawn]
        values = [row.published.get(head.key) for row in drawn]
        if any(values):
            name = PUBLISHED if len(heads) == 1 else f"{head.title}, {PUBLISHED}"
            groups[name] = [None if value is None else Estimate(value.value) for value in values]
    kept = [k for k in range(len(drawn)) if any(group[k] is not None for group in groups.values())][:MANY]
    if not kept:
        return None
    title = f"{result.experiment.name}: {heads[0].title if len(heads) == 1 else result.experiment.shows}"
    unit = heads[0].title if len(heads) == 1 else ""
    caption = _mean_of(result)
    groups = {name: [group[k] for k in kept] for name, group in groups.items()}
    return Dots(title, caption, unit, [drawn[k].title for k in kept], groups, name_width=NAME)


def _mean_of(result: ExperimentResult) -> str:
    """What a dot is."""
    n = len(result.seeds)
    return f"Mean over {counted(n, 'seed')} with its 95% interval." if n > 1 else "One seed, so without intervals."


def scores(*columns: str) -> Callable[[ExperimentResult], Figure | None]:
    """A figure of some scores in all rows."""
    return lambda result: dots(result, columns, [row.key for row in result.rows])


def training(result: ExperimentResult, key: str, rows: Sequence[str] = ()) -> Figure | None:
    """Training curves of some rows (all by default), each the mean over seeds."""
    axes = next((axes for axes in result.experiment.curves if axes.key == key), None)
    lines: dict[str, Curve] = {}
    used: set[int] = set()
    for row in result.rows:
        stored = [curve for f in result.of_row(row.key) if (curve := f.data.get("curves", {}).get(key)) is not None]
        # Seeds that were looked at at other steps have no mean.
        alike = [curve for curve in stored if curve["x"] == stored[0]["x"]]
        if alike and (not rows or row.key in rows):
            # Cells store None for a value that is not finite. The line has a gap there.
            mean = np.mean([np.array(curve["y"], dtype=float) for curve in alike], axis=0)
            lines[row.title] = Curve(alike[0]["x"], mean.tolist())
            used.add(len(alike))
    if axes is None or not lines:
        return None
    fewest = "" if len(used) == 1 else f"{min(used)} to "
    caption = f"Each line is the mean over {fewest}{counted(max(used), 'seed')}."
    return Lines(f"{result.experiment.name}: {axes.title}", caption, axes.x, axes.y, lines, wide=True)


def all_published(result: ExperimentResult) -> Figure | None:
    """Every published value beside the measured one: a line for each row and score that has both."""
    lines = [
        (f"{row.title}, {column.title}", result.estimate(row.key, column.key).within(column.least, column.most), value)
        for row in result.rows
        for column in result.experiment.columns
        if (value := row.published.get(column.key)) is not None
    ]
    lines = [line for line in lines if math.isfinite(line[1].value)]
    if not lines:
        return None
    names, measured, published = zip(*lines, strict=True)
    groups = {MEASURED: list(measured), PUBLISHED: [Estimate(value.value) for value in published]}
    caption = _mean_of(result)
    return Dots(f"{result.experiment.name}: {result.experiment.shows}", caption, "", names, groups, name_width=NAME)


def _known(estimate: Estimate) -> Estimate | None:
    return estimate if math.isfinite(estimate.value) else None


def view_of_results(results: Sequence[ExperimentResult], reports: Mapping[str, str]) -> View:
    """The scoreboard of some results: published, measured and claims of each, and their sum.

    Parameters
    ----------
    reports : mapping
        Addresses of the reports by the name of their experiment.
    """
    heads = [
        Head("experiment", left=True),
        Head("score", left=True, wide=True),
        *(Head(title, left=True) for title in ("published", "measured")),
        *(Head(title) for title in ("claims\n✓/✗/?/-", "core\nminutes")),
    ]
    totals = [sum(column) for column in zip(*map(counts, results), strict=True)]
    stated = [sum(column) for column in zip(*(counts(result, stated=True) for result in results), strict=True)]
    said = [f"{n} {status}" for n, status in zip(totals, COUNTED, strict=True) if n]
    papers = f" {stated[0]} of the {counted(sum(stated), 'claim')} that the papers state are reproduced; nearid added "
    papers = f"{papers}the other claims." if said else " The preset smoke is too short to judge any."
    rows = []
    for result in results:
        both, e, minutes = compared(result), result.experiment, core_minutes(result)
        found = [both.column.title, both.published_range, both.measured_range] if both else ["-", "-", "-"]
        found = list(brief(result) or found)
        counted_claims = "/".join(map(str, counts(result))) if result.judged else "not judged"
        time = f"{minutes:.0f}" if minutes >= 1 else "<1"
        rows.append(Line([e.name, *found, counted_claims, time], link=reports.get(e.name, "")))
    return View(
        question=TITLE,
        subject="scoreboard",
        headline=f"{counted(sum(totals), 'claim')}: {', '.join(said)}" if said else "No claim was judged.",
        reason="The score is the first one for which the paper gives a value in a row that was run, with ranges over "
        "all such rows, or the one that shows the paper's claim in words. The claims are counted as reproduced/not "
        f"reproduced/undecided/not testable.{papers}",
        tables=[Table("", heads, rows)],
        figures=[drawn for result in results if (drawn := figure(result)) is not None],
    )
