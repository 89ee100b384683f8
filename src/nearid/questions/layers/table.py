"""Layers against layers as tables for a terminal."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearid.questions.compare.tables import number, warned
from nearid.questions.layers.result import MEASURES, best_of

if TYPE_CHECKING:
    from nearid.questions.layers.result import LayerComparison

# Columns of text that a value takes.
CELL = 7


def as_text(found: LayerComparison, width: int = 120) -> str:
    """Render without colours."""
    buffer = StringIO()
    Console(file=buffer, width=width, no_color=True).print(render(found, width))
    return buffer.getvalue().rstrip()


def render(found: LayerComparison, width: int) -> RenderableType:
    """A table for each measure; where a matrix is too wide, the nearest layer for each."""
    room = width - max(map(len, found.layers[0])) - 6
    fits = len(found.layers[1]) * CELL <= room
    tables = [_matrix(found, name) if fits else _nearest(found, name) for name in found.values]
    return Group(*tables, *warned(a.message for a in found.alerts))


def title(measure: str) -> str:
    """A measure for people."""
    return MEASURES.get(measure, measure)


def _headed(found: LayerComparison, measure: str, said: str, table: Table) -> RenderableType:
    # Not the title of the table, which would be folded to its width.
    head = f"{title(measure)}: {found.names[0]} (rows) -> {found.names[1]} ({said}), n = {found.n:,}"
    return Group(Text(head, style="italic"), table)


def _matrix(found: LayerComparison, measure: str) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    table.add_column("layer", no_wrap=True)
    for at in range(len(found.layers[1])):
        table.add_column(str(at), justify="right", no_wrap=True)
    for layer, row in zip(found.layers[0], found.values[measure], strict=True):
        best = best_of(measure, row)
        cells = [Text(number(v), style="bold" if at == best else "") for at, v in enumerate(row)]
        table.add_row(Text(layer), *cells)
    columns = ", ".join(f"{at} {layer}" for at, layer in enumerate(found.layers[1]))
    return Group(_headed(found, measure, "columns", table), Text(f"Columns: {columns}", style="dim"))


def _nearest(found: LayerComparison, measure: str) -> RenderableType:
    table = Table(box=SIMPLE_HEAD, padding=(0, 0, 0, 1))
    for head in ("layer", "nearest", "value"):
        table.add_column(head, justify="right" if head == "value" else "left", overflow="fold")
    nearest = found.nearest(measure)
    for layer in found.layers[0]:
        other, value = nearest.get(layer, ("-", float("nan")))
        table.add_row(Text(layer), Text(other), number(value))
    return _headed(found, measure, "nearest layer", table)
