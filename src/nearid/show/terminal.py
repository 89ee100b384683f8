"""Views for a terminal: a headline in a frame, tables that fit its width, and alerts."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from itertools import groupby

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table as Grid
from rich.text import Text

from nearid.base.estimate import Estimate
from nearid.base.printable import one_line, printable, shortened
from nearid.show.view import Column, Row, Table, View, cell_lines

# From so many columns of text on, a table shows all it has.
WIDE = 105
# Characters that the name of a row has before it is broken into lines, and in a terminal that is too narrow for that.
NAME, SHORT_NAME = 22, 8
# Characters of a name: one of thousands would fill the terminal, so of a longer one the middle is left out.
ENDLESS = 200
# What somebody may copy is never shortened: --option VALUE and option='value', whatever it has in quotation marks.
_QUOTED = r"""'[^']*'|"[^"]*\""""
_COPIED = rf"""(?<![^\s(])(?:--[\w-]+[ ](?:{_QUOTED}|[^\s'"])+|\w+=(?:{_QUOTED}|\[[^\]]*\]))"""
# Lines of all alerts in a brief view, and of one; where a sentence ends: before a capital letter, not within figures.
ALERT_LINES, ONE_ALERT = 8, 3
# Lines of a whole brief view, as long as its head and tables leave room for alerts, and of what --all shows.
BRIEF_LINES, HINT_LINES = 40, 2
_NEXT_SENTENCE = re.compile(r"(?<=[.)])\s+(?=[A-Z])")
_ENDLESS_NAME = re.compile(rf"{_COPIED}|(?P<name>[^\s,]{{{ENDLESS + 1},}})")


def text(view: View, width: int = 120, everything: bool = False) -> str:
    """A view without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(view, width, everything))
    return buffer.getvalue().rstrip()


def render(view: View, width: int, everything: bool = False) -> RenderableType:
    """The headline, tables, facts and alerts of a view, for so many columns of text; folded tables with everything."""
    # A title that does not fit the frame would be cut, so it becomes the first line.
    subject = _line(view.subject)
    fits = len(subject) <= width - 6
    head = Text("" if fits else f"{subject}\n", style="dim")
    head.append(_line(view.headline), style=f"bold {view.colour} not dim")
    if view.reason:
        head.append(f"\n{_lines(view.reason)}", style="default not bold not dim")
    # Not as markup, in which brackets are styles, and names between colons pictures.
    title = Text(subject) if subject and fits else None
    shown: list[RenderableType] = [Panel(head, title=title, border_style=view.colour)]
    for table in view.tables:
        if everything or not table.folded:
            shown += _tables(_printable_table(table), width)
    if view.brief and not everything:
        console = Console(width=width)
        used = len(console.render_lines(Group(*shown), console.options.update(height=None)))
        return Group(*shown, *_brief(view, width, BRIEF_LINES - used - HINT_LINES))
    shown += [Text(_line(f"{name}: {sentence}")) for name, sentence in view.facts.items()]
    return Group(*shown, *(Text(_line(f"! {alert.message}"), style="yellow") for alert in view.alerts))


def _brief(view: View, width: int, room: int) -> list[Text]:
    """The first sentences of the first alerts, in as many lines as there is room for, and what --all shows."""
    shown: list[Text] = []
    lines = 0
    for alert in view.alerts:
        first = _line(f"! {_NEXT_SENTENCE.split(alert.message)[0]}")
        if len(first) > ONE_ALERT * (width - 10):
            # Lists of names can be long.
            first = f"{first[: ONE_ALERT * (width - 10)].rpartition(' ')[0]} ..."
        sentence = Text(first, style="yellow")
        lines += len(sentence.wrap(Console(width=width), width))
        if lines > min(ALERT_LINES, room):
            break
        shown.append(sentence)
    tables, others = sum(table.folded for table in view.tables), len(view.alerts) - len(shown)
    more = [f"{tables} more {'table' if tables == 1 else 'tables'}"] * bool(tables)
    more += [f"{others} more {'alert' if others == 1 else 'alerts'}"] * bool(others)
    more += ["what to do about the alerts"] * bool(shown) + ["details"] * bool(view.facts)
    hint = f"{', '.join(more)}: --all. Plots: --report FILE.html (save_report)." if more else ""
    return [*shown, Text(hint, style="dim")] if hint else shown


def _lines(text: str) -> str:
    """Text that a terminal only shows, without the middle of endless names."""
    found = printable(text)
    return _ENDLESS_NAME.sub(lambda part: shortened(part[0], ENDLESS) if part["name"] else part[0], found)


def _line(text: str) -> str:
    return _lines(one_line(text))


def _printable_table(table: Table) -> Table:
    columns = [replace(column, title=_lines(column.title)) for column in table.columns]
    rows = [replace(r, cells=[_lines(c) if isinstance(c, str) else c for c in r.cells]) for r in table.rows]
    return replace(table, title=_line(table.title), note=_lines(table.note), columns=columns, rows=rows)


def _tables(table: Table, width: int) -> list[RenderableType]:
    """A table; columns for which there is no room beside the others follow in further ones below."""
    # The padding of a column, and the rule between two.
    gap = 3 if width >= WIDE else 2
    columns = [k for k, c in enumerate(table.columns) if width >= WIDE or not c.wide or _has_intervals(table, k)]
    # Where they fit, an interval stands beside its value.
    beside = _width(table, columns, gap, " ") <= width
    joint = " " if beside else "\n"
    # Not as the grid's own title, which is broken at the width of the grid.
    drawn: list[RenderableType] = [Text(table.title, style="table.title")] if table.title else []
    for part in _parts(table, columns[1:], gap, joint, width):
        grid = Grid(
            box=SIMPLE_HEAD,
            padding=(0, 1) if width >= WIDE else (0, 0, 0, 1),
        )
        for j in (columns[0], *part):
            column, first = table.columns[j], j == columns[0]
            left = first or column.left
            grid.add_column(
                Text(column.title),
                justify="left" if left else "right",
                overflow="fold",
                # A cell that is too long even for a line beside short names is broken between its words.
                no_wrap=not left and _needed(table, j, joint) + SHORT_NAME + 2 * gap + 1 <= width,
            )
        for row in table.rows:
            cells = [_text(row, j, table.columns[j], joint) for j in (columns[0], *part)]
            grid.add_row(*map(Text, cells), style="bold" if row.strong else "dim" if row.faint else "")
        drawn.append(grid)
    notes = [table.note] if table.note else []
    left_out = [" ".join(c.title.split()) for k, c in enumerate(table.columns) if k not in columns]
    if left_out:
        # A note may explain them, and readers should know that there is more.
        notes.append(f"Left out: {', '.join(left_out)}. {WIDE} columns of text show them, --json (to_dict()) has all.")
    return [*drawn, *(Text(note, style="dim") for note in notes)]


def _has_intervals(table: Table, k: int) -> bool:
    return any(isinstance(cell, Estimate) and cell.has_interval for cell in (row.cells[k] for row in table.rows))


def _text(row: Row, k: int, column: Column, joint: str) -> str:
    value, interval = cell_lines(row.cells[k], column)
    return f"{value}{joint}{interval}" if interval else value


def _needed(table: Table, k: int, joint: str) -> int:
    """Characters that a column cannot do without."""
    column = table.columns[k]
    cells = [_text(row, k, column, joint) for row in table.rows]
    if column.left:
        # Text is broken between words.
        return max((len(word) for cell in [column.title, *cells] for word in cell.split()), default=0)
    return max(len(line) for cell in [column.title, *cells] for line in cell.split("\n"))


def _name_width(table: Table, k: int, most: int) -> int:
    longest = max(
        (len(line) for row in table.rows for line in _text(row, k, table.columns[k], "\n").split("\n")), default=0
    )
    return max(len(table.columns[k].title), min(longest, most))


def _width(table: Table, columns: list[int], gap: int, joint: str) -> int:
    names = _name_width(table, columns[0], NAME)
    return names + gap + 1 + sum(_needed(table, k, joint) + gap for k in columns[1:])


def _parts(table: Table, columns: list[int], gap: int, joint: str, width: int) -> list[list[int]]:
    """Columns that fit beside one another; those with the same first line of a title stay together if they fit."""
    room = width - _name_width(table, 0, NAME) - gap - 1
    parts: list[list[int]] = []

    def taken(part: list[int]) -> int:
        return sum(_needed(table, k, joint) + gap for k in part)

    for _, group in groupby(columns, key=lambda k: table.columns[k].title.split("\n")[0]):
        together = list(group)
        for piece in [together] if taken(together) <= room else [[k] for k in together]:
            if parts and taken([*parts[-1], *piece]) <= room:
                parts[-1] += piece
            else:
                parts.append(piece)
    return parts or [[]]
