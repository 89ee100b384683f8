"""Printing results on stdout."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer
from rich.console import Console, RenderableType

from nearid.base.interrupt import leaving
from nearid.base.printable import one_line
from nearid.base.streams import say

# Columns into a pipe or file, and the fewest and the most that a table is drawn in.
WIDTH, NARROWEST, WIDEST = 140, 40, 10_000


def show(draw: Callable[[int], RenderableType]) -> None:
    """Print what is drawn for the terminal's width; into a pipe or file 140 columns, or what COLUMNS says."""
    columns = os.environ.get("COLUMNS", "")
    width = int(columns) if columns.isdecimal() and 0 < int(columns) <= WIDEST else WIDTH
    console = Console() if sys.stdout.isatty() else Console(width=width)
    # Narrower ones would lose columns; lines that are too long are only broken.
    console.width = max(console.width, NARROWEST)
    console.print(draw(console.width))


def show_json(record: Any) -> None:
    """Print a record as JSON, in which control characters of names are escaped."""
    # json itself leaves the character DEL.
    typer.echo(json.dumps(record, indent=2, allow_nan=False).replace("\x7f", "\\u007f"))


def show_path(path: str | os.PathLike[str]) -> None:
    """Print a path: for a program exactly, for a terminal without what it would obey."""
    text = os.fspath(path)
    typer.echo(one_line(text) if sys.stdout.isatty() else text)


def answer(
    result: Any,
    as_json: bool,
    report: Path | None,
    written: str = "",
    quiet: bool = False,
    interactive: bool = False,
    everything: bool = False,
) -> None:
    """Write the report where one is wanted, then print a result as JSON or as tables.

    Parameters
    ----------
    result : Result
    as_json : bool
    report : Path or None
    written : str
        What the question itself has written, in words: "Layers written to out".
    quiet : bool
        Whether stderr stays empty.
    interactive : bool
        Whether the figures of the report can be zoomed.
    everything : bool
        Whether folded tables are printed too.
    """
    from nearid.show.terminal import render

    if report is not None:
        result.save_report(report, interactive=interactive)
    # A program that reads JSON may not look at alerts, so a run that went on from an earlier one is reported on stderr.
    resumed = [alert.message for alert in result.alerts if alert.code == "resumed"]
    notes = [*([written] if written else []), *([f"Report written to {report}"] if report is not None else [])]
    with leaving("; ".join([*notes[:1], *(n[0].lower() + n[1:] for n in notes[1:])]) or "nothing was written"):
        if as_json:
            show_json(result.to_dict())
        else:
            show(lambda width: render(result.view, width, everything))
        if not quiet:
            for note in [*resumed, *notes]:
                say(note)
