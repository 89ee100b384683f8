"""Views of experiments: the paper's table with the claims, a planned run, and the list of all."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

from nearid.base.estimate import Estimate
from nearid.lab.framework.cells import rows_of
from nearid.lab.framework.claims import ORDER, Status, is_same
from nearid.lab.framework.scoreboard import compared, dots
from nearid.lab.framework.settings import USUAL, described, shown
from nearid.show.figures import Curve, Figure, Lines
from nearid.show.view import BAD, CAREFUL, GOOD, Cell, Column, Row, Table, View, cell_lines, counted, number

if TYPE_CHECKING:
    from nearid.lab.framework.claims import Claim
    from nearid.lab.framework.experiment import Column as Scored, Experiment, Published
    from nearid.lab.framework.result import ExperimentResult
    from nearid.lab.framework.run import Plan

# Sign and colour of the outcome of a claim.
MARKS = {
    Status.REPRODUCED: ("✓", GOOD),
    Status.UNDECIDED: ("?", CAREFUL),
    Status.NOT_TESTABLE: ("?", CAREFUL),
    Status.NOT_JUDGED: ("?", CAREFUL),
    Status.NOT_REPRODUCED: ("✗", BAD),
}
# Mark after a published value that was not verified in the paper.
UNVERIFIED = "*"
# Largest number of characters: of a line in the head of a column; of all columns together, on screen and on paper; and
# of the names of the settings.
HEAD, ROOM, NAMES = 20, 96, 34


def view(result: ExperimentResult) -> View:
    """The table, the claims, training curves and the figures of the experiment itself."""
    e = result.experiment
    statuses = [outcome.status for _, outcome in result.outcomes]
    cells = len(result.cells) + len(result.failures)
    failed = [f"{len(result.failures)} of {counted(cells, 'cell')} failed"] if result.failures else []
    return View(
        question=f"{e.name}: {e.shows}",
        subject=f"{e.name}: {e.shows}",
        headline=", ".join([*failed, *(f"{counted(statuses.count(s), 'claim')} {s}" for s in MARKS if s in statuses)]),
        reason=e.about,
        colour=MARKS[min(statuses, key=ORDER.index)][1] if statuses else CAREFUL,
        alerts=result.alerts,
        tables=[*_scores(result), _claims(result), *_comparisons(result), _cells(result)],
        facts=_facts(result),
        figures=[*_drawn(result), *_training(result), *_own(result)],
        provenance=result.provenance,
    )


def cited(e: Experiment[Any]) -> str:
    """The paper of an experiment."""
    return f"{e.paper.authors}: {e.paper.title}. {e.paper.venue}. {e.paper.url}"


def told(claim: Claim) -> str:
    """A claim, whether nearid added it, and whether results had been seen by then."""
    notes = ["Added by nearid."] * claim.added + ["Added after results were seen."] * claim.late
    return f"{claim.text} ({' '.join(notes)})" if notes else claim.text


def how_run(result: ExperimentResult) -> str:
    """Preset and seeds, and how the run differs from the preset."""
    parts = [f"preset {result.preset}, {counted(len(result.seeds), 'seed')}"]
    if result.changes:
        both = result.changes.items()
        parts.append("set: " + ", ".join(f"{name} = {shown(a)} (preset: {shown(b)})" for name, (a, b) in both))
    if result.only:
        parts.append(f"{'rows' if len(result.only) > 1 else 'row'} {', '.join(result.only)} only")
    return "; ".join(parts)


def _scores(result: ExperimentResult) -> list[Table]:
    """Published and measured values side by side; columns that do not fit on the page follow in further tables.

    Intervals are shown within the range of their score.
    """
    names = [f"{r.title} (violates: {', '.join(r.violated)})" if r.violated else r.title for r in result.rows]
    room = ROOM - min(NAMES, max(map(len, names), default=0))
    parts: list[list[tuple[Column, list[Cell]]]] = []
    for column in result.experiment.columns:
        title = fill(column.title, HEAD)
        published: list[Cell] = [_published(row.published.get(column.key), column.digits) for row in result.rows]
        measured: list[Cell] = [_measured(result.estimate(row.key, column.key), column) for row in result.rows]
        both = [(Column(f"{title}\nmeasured", column.digits), measured)]
        if any(published):
            both.insert(0, (Column(f"{title}\npublished", column.digits), published))
        if parts and sum(map(_width, [*parts[-1], *both])) <= room:
            parts[-1] += both
        else:
            parts.append(both)
    several = [f", part {k + 1} of {len(parts)}" for k in range(len(parts))] if len(parts) > 1 else [""]
    return [
        Table(
            f"Published and measured{which}",
            [Column("setting", left=True), *(column for column, _ in part)],
            [Row([name, *(cells[k] for _, cells in part)]) for k, name in enumerate(names)],
        )
        for which, part in zip(several, parts, strict=True)
    ]


def _measured(estimate: Estimate, column: Scored) -> Estimate:
    """The estimate as it is shown: its interval within the range of the score, and none where all seeds agree."""
    return Estimate(estimate.value) if is_same(estimate) else estimate.within(column.least, column.most)


def _width(shown: tuple[Column, list[Cell]]) -> int:
    """Characters of a column, with the space between two."""
    column, cells = shown
    lines = [*column.title.split("\n"), *(line for cell in cells for line in cell_lines(cell, column))]
    return 3 + max(map(len, lines))


def _published(value: Published | None, digits: int) -> str:
    if value is None:
        return ""
    return number(value.value, digits) + ("" if value.verified else UNVERIFIED)


def _claims(result: ExperimentResult) -> Table:
    columns = [Column("verdict", left=True), Column("claim", left=True)]
    rows = [[f"{MARKS[o.status][0]} {o.status}", told(claim)] for claim, o in result.outcomes]
    if result.judged:
        columns.append(Column("what decided", left=True))
        rows = [[*row, o.brief] for row, (_, o) in zip(rows, result.outcomes, strict=True)]
    return Table("Claims", columns, [Row(row) for row in rows])


def _comparisons(result: ExperimentResult) -> list[Table]:
    """All comparisons of the claims that make several."""
    if not result.judged:
        return []
    columns = [Column("verdict", left=True), Column("comparison", left=True)]
    return [
        Table(
            f"All {len(o.parts)} comparisons: {claim.text}",
            columns,
            [Row([str(part.status), part.sentence]) for part in o.parts],
            folded=True,
        )
        for claim, o in result.outcomes
        if o.parts
    ]


def _cells(result: ExperimentResult) -> Table:
    columns = result.experiment.columns
    return Table(
        "Cells",
        [
            Column("setting", left=True),
            Column("seed"),
            *(Column(c.title, c.digits) for c in columns),
            Column("seconds", 1),
        ],
        [
            Row([f.cell.row.title, f.cell.seed, *(f.data["scores"].get(c.key) for c in columns), f.seconds])
            for f in result.cells
        ],
        folded=True,
    )


def _facts(result: ExperimentResult) -> dict[str, str]:
    """Source of the table and remarks about its values."""
    published = [value for row in result.rows for value in row.published.values()]
    interval = "[95% interval of the mean, Student's t, cut where a score ends]"
    over = f"mean over {counted(len(result.seeds), 'seed')} {interval}"
    if draw := result.experiment.seeds_draw:
        over += f". Seeds draw {draw}"
    facts = {
        "paper": cited(result.experiment),
        "run": how_run(result),
        "measured": "one seed, so without intervals" if len(result.seeds) == 1 else over,
    }
    fewer = [row.title for row in result.rows if result.failed_seeds(row.key)]
    if fewer:
        facts["of fewer seeds, as cells failed"] = "; ".join(fewer)
    # Time of all cells, including those of earlier runs.
    core = sum(f.core_seconds for f in result.cells) / 60
    facts["time"] = f"{core:.1f} minutes of one core for {counted(len(result.cells), 'cell')}"
    for source, count in result.reused.items():
        facts[f"from {source.file}"] = f"{counted(count, 'cell')}, computed with nearid {source.nearid}"
    if any(not value.verified for value in published):
        facts[UNVERIFIED] = "not verified in the paper itself"
    facts |= {row.title: row.note for row in result.rows if row.note}
    notes = sorted({value.note.removeprefix("Published: ") for value in published if value.note})
    return facts | ({"published": " ".join(notes)} if notes else {})


def _drawn(result: ExperimentResult) -> list[Figure]:
    """Published beside measured values, where the paper gives some for a row that was run."""
    drawn = dots(result) if compared(result) else None
    return [] if drawn is None else [drawn]


def _own(result: ExperimentResult) -> Sequence[Figure]:
    """The figures of the experiment itself; none if cells were reused that lack what these figures show."""
    figures = result.experiment.figures
    try:
        return () if figures is None else figures(result)
    except KeyError as missing:
        if missing.args != ("views",) or not result.reused:
            raise
        return ()


def _training(result: ExperimentResult) -> list[Figure]:
    """Training curves: a line for each cell, a colour for each row."""
    figures: list[Figure] = []
    for axes in result.experiment.curves:
        curves: dict[str, list[Curve]] = {}
        for (row, seed), curve in result.curves(axes.key).items():
            curves.setdefault(row, []).append(Curve(curve["x"], curve["y"], hover=f"seed {seed}"))
        if curves:
            figures.append(Lines(axes.title, "A line for each seed.", axes.x, axes.y, curves, wide=True))
    return figures


def view_of_plan(plan: Plan) -> View:
    """Parameters, rows and claims of a planned run."""
    e = plan.experiment
    parameters = [Row([name, shown(value), about]) for name, value, about in described(plan.parameters)]
    rows = [Row([row.key, row.title]) for row in rows_of(e, plan.parameters, plan.only)]
    presets = [Row([name, preset.time, preset.seeds]) for name, preset in e.presets.items()]
    return View(
        question=e.name,
        subject=e.name,
        headline=e.shows,
        reason=f"{e.about}\n{cited(e)}",
        tables=[
            Table("Presets", _columns("preset", "time", "seeds"), presets),
            Table(f"Parameters, preset {plan.preset}", _columns("parameter", "value", "meaning"), parameters),
            Table("Rows", _columns("key", "setting"), rows),
            Table("Claims", _columns("claim"), [Row([told(claim)]) for claim in e.claims]),
        ],
    )


def view_of_all(experiments: Sequence[Experiment[Any]], lacking: Mapping[str, Sequence[str]]) -> View:
    """All experiments by paper, a line each: what they show, how long they take and whether they can run here.

    Parameters
    ----------
    lacking : mapping
        By the name of an experiment, what it cannot run without here.
    """
    rows: list[Row] = []
    for paper in dict.fromkeys(e.paper for e in experiments):
        rows.append(Row([paper.short, "", "", ""], strong=True))
        for e in experiments:
            if e.paper == paper:
                here = f"needs {', '.join(lacking[e.name])}" if lacking[e.name] else "yes"
                rows.append(Row([e.name, e.shows, _time(e), here], faint=here != "yes"))
    ready = sum(not lacking[e.name] for e in experiments)
    return View(
        question="experiments",
        subject="",
        headline=f"{counted(len(experiments), 'experiment')}, {ready} can run here",
        reason="nearid reproduce NAME runs one, with --show prints what it is.",
        colour=GOOD if ready else CAREFUL,
        tables=[Table("", _columns("experiment", "shows", "time", "runs here"), rows)],
    )


def _time(e: Experiment[Any]) -> str:
    """About how long the usual preset takes, in few letters: names beside it must not be broken."""
    time = re.split(r" on | of |[,;(]", e.presets[USUAL].time)[0].strip().removeprefix("about ")
    return re.sub(r"(?<=\d) minutes?$", " min", re.sub(r"(?<=\d) hours?$", " h", time))


def _columns(*titles: str) -> list[Column]:
    return [Column(title, left=True) for title in titles]
