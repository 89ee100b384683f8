"""What a person sees of a result, as plain data: one headline, alerts, tables and figures, for every medium."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.show.figures import Figure

# Text, a number, a value with its interval, or nothing.
Cell = str | int | float | Estimate | None

# Colours of headlines whose question has no groups; Okabe-Ito, legible for the colour-blind.
GOOD, CAREFUL, BAD = "#009E73", "#E69F00", "#D55E00"

# From here on figures are written as 1.234e+06.
HUGE = 1e6


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    title : str
        A second line after a newline; columns with the same first line stay together.
    digits : int
        After the point.
    wide : bool
        Whether a narrow terminal leaves the column out.
    left : bool
        Whether its cells are text that begins on the left.
    """

    title: str
    digits: int = 3
    wide: bool = False
    left: bool = False


@dataclass(frozen=True)
class Row:
    """A row of a table.

    Attributes
    ----------
    cells : sequence of Cell
        The first one names the row.
    strong, faint : bool
        Drawn bold, or pale.
    part : int, optional
        The part of the view that the row leads to.
    link : str
        The address of another page that the row leads to.
    """

    cells: Sequence[Cell]
    strong: bool = False
    faint: bool = False
    part: int | None = None
    link: str = ""


@dataclass(frozen=True)
class Table:
    """A table.

    Attributes
    ----------
    title : str
    columns : sequence of Column
    rows : sequence of Row
    note : str
        A sentence below.
    folded : bool
        Whether the page shows it on request only, and the terminal only with --all.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    note: str = ""
    folded: bool = False


@dataclass(frozen=True)
class View:
    """What a person sees of a result.

    Attributes
    ----------
    question : str
        The title of the page.
    subject : str
        What the answer is about, as the names of two runs.
    headline : str
        The answer in plain words.
    reason : str
        The number that decided.
    colour : str
        Of the headline, as #rrggbb.
    alerts : sequence of Alert
    tables : sequence of Table
    facts : mapping of str to str
        Further figures by name, a line each.
    figures : sequence of Figure
        On the page alone.
    method : str
        How the result was made, in sentences; on the page alone.
    provenance : mapping
    parts : sequence of View
        Sections of the page below this view. The terminal shows this view alone.
    leading : int
        So many of the figures stand above the tables of the page.
    brief : bool
        Whether the terminal leaves out facts and all but the first sentences of the first alerts, and says that --all
        shows them.
    """

    question: str
    subject: str
    headline: str
    reason: str = ""
    colour: str = CAREFUL
    alerts: Sequence[Alert] = ()
    tables: Sequence[Table] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    figures: Sequence[Figure] = ()
    method: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    parts: Sequence[View] = ()
    leading: int = 0
    brief: bool = False

    @property
    def all_figures(self) -> list[Figure]:
        """The figures of this view and of its parts."""
        return [*self.figures, *(figure for part in self.parts for figure in part.all_figures)]


def number(value: float, digits: int = 3) -> str:
    """A figure for people: fixed digits; where those would show nothing or fill lines, more of them or scientific."""
    if not math.isfinite(value):
        return "-"
    if 0 < abs(value) < 10**-digits:
        return f"{value:.2g}" if abs(value) >= 0.01 else f"{value:.1e}"
    return f"{value:.{digits}f}" if abs(value) < HUGE else f"{value:.{digits}e}"


def fixed(value: float, digits: int = 3) -> str:
    """A figure of a headline: fixed digits, never scientific, and no minus sign before zeros."""
    return f"{round(float(value), digits) + 0.0:.{digits}f}"


def span(low: float, high: float, digits: int = 3) -> str:
    """An interval for people."""
    return f"[{number(low, digits)}, {number(high, digits)}]" if math.isfinite(low) else ""


def with_intervals(title: str, cells: Iterable[Cell], joint: str = " ") -> str:
    """A title of some cells, which names their intervals where there are any."""
    known = any(isinstance(cell, Estimate) and cell.has_interval for cell in cells)
    return f"{title}{joint}[95% interval]" if known else title


def counted(n: int, one: str, many: str = "") -> str:
    """A number of things, as "1 row" or "1,000 rows"."""
    return f"{n:,} {one if n == 1 else many or f'{one}s'}"


def cell_lines(cell: Cell, column: Column) -> tuple[str, str]:
    """A cell as text: the value, and the interval that goes with it."""
    if cell is None:
        return "-", ""
    if isinstance(cell, Estimate):
        return number(cell.value, column.digits), span(cell.low, cell.high, column.digits)
    if isinstance(cell, float):
        return number(cell, column.digits), ""
    return f"{cell:,}" if isinstance(cell, int) and not isinstance(cell, bool) else str(cell), ""
