"""An experiment as the paper's table, published and measured side by side, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from nearid.lab.framework.cells import rows_of
from nearid.lab.framework.result import TOO_SHORT
from nearid.lab.framework.settings import described, shown
from nearid.questions.compare.tables import WIDE, number, span, warned

if TYPE_CHECKING:
    from nearid.lab.framework.estimate import Estimate
    from nearid.lab.framework.experiment import Column, Experiment, Published, Row
    from nearid.lab.framework.result import Result
    from nearid.lab.framework.run import Plan

# Both lines of a column's head; the title and the values of a row.
Head = tuple[str, str]
Line = tuple[str, list[str]]
# Sign and colour of each status.
MARKS = {"reproduced": ("✓", "green"), "not reproduced": ("✗", "red"), "not testable here": ("?", "yellow")}
UNVERIFIED = "*"
# What the names of the settings have at least, margins included, in a narrow and in a wide terminal.
SETTINGS = (22, 34)


def as_text(found: Result, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: Result, width: int) -> RenderableType:
    """The table, the claims and what went wrong, for so many columns of text."""
    e = found.experiment
    title = Text(f"{e.name}: {e.shows} of {e.paper.authors}, {e.paper.title}", style="bold")
    said = Text(f"{e.about}\n{how_run(found)}", style="dim")
    failed = [f"{f.cell.label} failed: {f.failure.error}" for f in found.failures]
    notes = [Text(note, style="dim") for note in footnotes(found)]
    return Group(title, said, *_tables(found, width), *notes, Text(""), *_claims(found), *warned(failed))


def how_run(found: Result) -> str:
    """Preset and seeds, and in what the run departs from the preset."""
    said = [f"preset {found.preset}, {counted(len(found.seeds), 'seed')}"]
    if found.changes:
        both = found.changes.items()
        said.append("set: " + ", ".join(f"{name} = {shown(a)} (preset: {shown(b)})" for name, (a, b) in both))
    if found.only:
        said.append(f"{'rows' if len(found.only) > 1 else 'row'} {', '.join(found.only)} alone")
    return "; ".join(said)


def _tables(found: Result, width: int) -> list[Table]:
    """The table; columns for which there is no room beside the others follow in further ones below."""
    gap = 3 if width >= WIDE else 2
    tables = []
    for heads, rows in tables_of(found, width - 1, gap, SETTINGS[width >= WIDE] - gap - 1):
        needed = _needed(heads, rows)
        longest = max((len(title) for title, _ in rows), default=0)
        # What the names of the settings have in any case; the frame of the table takes one.
        names = min(SETTINGS[width >= WIDE] - gap - 1, longest)
        spare = width - names - gap - 1 - sum(n + gap for n in needed)
        # What is left goes to the names, so that they are broken less, and then to the heads of the columns.
        wider = min(spare, longest - names)
        each = (spare - wider) // len(heads)
        table = Table(box=SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 0, 0, 1))
        table.add_column("setting", overflow="fold", width=max(names + wider, len("setting")))
        for head, n in zip(heads, needed, strict=True):
            more = min(each, max(0, max(map(len, head)) - n))
            table.add_column("\n".join(head), justify="right", width=n + more)
        for title, values in rows:
            table.add_row(escape(title), *(value.replace(" [", "\n[") for value in values))
        tables.append(table)
    return tables


def tables_of(found: Result, room: int, gap: int = 3, names: int = SETTINGS[1]) -> list[tuple[list[Head], list[Line]]]:
    """Heads and rows of tables of so many characters, those between columns and for the settings included."""
    heads, rows = columns_and_rows(found)
    names = min(names, max((len(title) for title, _ in rows), default=0))
    parts = _parts([title for title, _ in heads], [n + gap for n in _needed(heads, rows)], room - names - gap)
    return [([heads[k] for k in part], [(title, [v[k] for k in part]) for title, v in rows]) for part in parts]


def _needed(heads: Sequence[Head], rows: Sequence[Line]) -> list[int]:
    """Characters that each column has at least: an interval stands below its mean, and neither is broken."""
    texts = [[value.replace(" [", "\n[").split("\n") for value in values] for _, values in rows]
    return [
        max(len(word) for word in (*" ".join(head).split(), *(line for values in texts for line in values[k])))
        for k, head in enumerate(heads)
    ]


def _parts(titles: Sequence[str], widths: Sequence[int], room: int) -> list[list[int]]:
    """Columns that fit beside one another; what is published and what is measured of a score stay together."""
    parts: list[list[int]] = []
    for _, group in groupby(range(len(titles)), key=lambda k: titles[k]):
        columns = list(group)
        if parts and sum(widths[k] for k in parts[-1] + columns) <= room:
            parts[-1] += columns
        else:
            parts.append(columns)
    return parts


def columns_and_rows(found: Result) -> tuple[list[Head], list[Line]]:
    """Both lines of each column's head, and the title and values of each row."""
    heads: list[Head] = []
    rows: list[Line] = [(_setting(row), []) for row in found.rows]
    for column in found.experiment.columns:
        if any(column.key in row.published for row in found.rows):
            heads.append((column.title, "published"))
            for row, (_, values) in zip(found.rows, rows, strict=True):
                values.append(published_text(row.published.get(column.key), column))
        heads.append((column.title, "measured"))
        for row, (_, values) in zip(found.rows, rows, strict=True):
            values.append(measured_text(found.estimate(row.key, column.key), column))
    return heads, rows


def _setting(row: Row) -> str:
    """The title of a row, and what of the theorem it violates."""
    return f"{row.title} (violates: {', '.join(row.violated)})" if row.violated else row.title


def published_text(value: Published | None, column: Column) -> str:
    """A published value; an asterisk where nobody has verified it."""
    if value is None:
        return ""
    return number(value.value, column.digits) + ("" if value.verified else UNVERIFIED)


def measured_text(value: Estimate, column: Column) -> str:
    """A mean over seeds with its interval."""
    seen = value.within(column.least, column.most)
    return f"{number(seen.mean, column.digits)} {span(seen.low, seen.high, column.digits)}".strip()


def footnotes(found: Result) -> list[str]:
    """What has to be said of the values in the table."""
    published = [value for row in found.rows for value in row.published.values()]
    what = "95% interval of the mean, Student's t, cut where a score ends"
    notes = [f"measured: mean over {counted(len(found.seeds), 'seed')} [{what}]"]
    if len(found.seeds) == 1:
        notes = ["measured: one seed, so without intervals"]
    fewer = [row.title for row in found.rows if found.failed_seeds(row.key)]
    if fewer:
        notes.append(f"Of fewer seeds, as cells failed: {'; '.join(fewer)}")
    notes.append(f"time: {_minutes(found)}")
    if any(not value.verified for value in published):
        notes.append(f"{UNVERIFIED} not verified in the paper itself")
    notes += [f"{row.title}: {row.note}" for row in found.rows if row.note]
    return notes + sorted({value.note for value in published if value.note})


def _minutes(found: Result) -> str:
    """What all cells took, whichever run finished them."""
    core = sum(f.core_seconds for f in found.cells) / 60
    return f"{core:.1f} minutes of one core for {counted(len(found.cells), 'cell')}"


def counted(n: int, what: str) -> str:
    """A number of things."""
    return f"{n} {what}{'' if n == 1 else 's'}"


def claims_note(found: Result) -> str:
    """What a reader of the claims should know first."""
    if not found.judged:
        return TOO_SHORT
    if found.changes:
        return f"Claims are judged with changed parameters: {', '.join(found.changes)}."
    return ""


def _claims(found: Result) -> list[RenderableType]:
    note = claims_note(found)
    lines: list[RenderableType] = [Text(note, style="yellow")] if note else []
    for claim, outcome in found.outcomes:
        sign, colour = MARKS[outcome.status]
        head = Text(f"{sign} {outcome.status}: ", style=f"bold {colour}")
        lines.append(head.append(claim.text, style="default not bold"))
        if outcome.brief != note:
            lines.append(Padding(Text(outcome.brief, "dim"), (0, 0, 0, 2)))
    return lines


def render_list(experiments: Sequence[Experiment[Any]], width: int) -> RenderableType:
    """All experiments with their presets."""
    table = Table(box=SIMPLE_HEAD, padding=(0, 1) if width >= WIDE else (0, 0, 0, 1))
    for head in ("name", "paper", "shows", "presets"):
        table.add_column(head, overflow="fold", no_wrap=head == "name")
    for e in experiments:
        presets = "\n".join(f"{name}: {p.time}, {counted(p.seeds, 'seed')}" for name, p in e.presets.items())
        table.add_row(e.name, escape(f"{e.paper.authors}: {e.paper.title}"), e.shows, escape(presets))
    return Group(table, Text("nearid reproduce NAME runs one, nearid reproduce NAME --show tells its parameters."))


def render_parameters(plan: Plan) -> RenderableType:
    """What can be set in an experiment, its rows and its claims."""
    e = plan.experiment
    table = Table(box=SIMPLE_HEAD, title=f"parameters, preset {plan.preset}", title_justify="left")
    for head in ("parameter", "value", "meaning"):
        table.add_column(head, overflow="fold", no_wrap=head == "parameter")
    for name, value, about in described(plan.parameters):
        table.add_row(name, escape(shown(value)), escape(about))
    keys = Table(box=SIMPLE_HEAD, title="rows", title_justify="left")
    for head in ("key", "setting"):
        keys.add_column(head, overflow="fold")
    for row in rows_of(e, plan.parameters, plan.only):
        keys.add_row(escape(row.key), escape(row.title))
    claims = [Text(f"claim: {claim.text}") for claim in e.claims]
    paper = Text(f"{e.paper.authors}: {e.paper.title}. {e.paper.venue}. {e.paper.url}", style="dim")
    return Group(Text(f"{e.name}: {e.shows}", style="bold"), Text(e.about), paper, table, keys, *claims)
