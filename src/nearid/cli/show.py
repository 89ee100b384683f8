"""Printing results on stdout."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rich.console import Console

from nearid.report.tables import render

if TYPE_CHECKING:
    from nearid.identifiability.result import Comparison, Comparisons


def show(found: Comparison | Comparisons | list[Comparison]) -> None:
    """Print a table; wide enough for every column where stdout is not a terminal."""
    console = Console() if sys.stdout.isatty() else Console(width=140)
    console.print(render(found))
