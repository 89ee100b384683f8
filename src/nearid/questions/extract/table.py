"""Extracted layers as a table for a terminal."""

from __future__ import annotations

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from nearid.arrays.formats.layers import Extraction
from nearid.base.limits import readable


def render(found: Extraction) -> RenderableType:
    """A line for each layer: its columns, its file and its size."""
    told = found.provenance
    head = f"{told['model']['name']}: {told['rows']:,} rows, pool {told['options']['pool']}"
    table = Table(box=SIMPLE_HEAD)
    for column in ("layer", "columns", "file", "size"):
        table.add_column(column, justify="right" if column in ("columns", "size") else "left", overflow="fold")
    width = {"float16": 2, "float32": 4, "float64": 8}
    for layer, facts in told["layers"].items():
        n, d = facts["shape"]
        table.add_row(Text(layer), str(d), Text(facts.get("file", "")), readable(n * d * width[facts["dtype"]]))
    # Not the title of the table, which would be folded to its width.
    return Group(Text(head, style="italic"), table)
