"""Printing results on stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from rich.console import Console, RenderableType


def show(draw: Callable[[int], RenderableType]) -> None:
    """Print what is drawn for the terminal's width; into a pipe or file 140 columns, or what COLUMNS says."""
    console = Console() if sys.stdout.isatty() else Console(width=int(os.environ.get("COLUMNS", "140")))
    console.print(draw(console.width))
