"""Printing results on stdout."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from rich.console import Console

from nearid.report.tables import render

if TYPE_CHECKING:
    from nearid.identifiability.result import Comparison, Comparisons


def show(found: Comparison | Comparisons | list[Comparison]) -> None:
    """Print a table that fits the terminal; into a pipe or file 140 columns, or what COLUMNS says."""
    console = Console() if sys.stdout.isatty() else Console(width=int(os.environ.get("COLUMNS", "140")))
    console.print(render(found, console.width))
