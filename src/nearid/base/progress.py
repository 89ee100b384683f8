"""Progress on stderr for work of more than a second. Nothing is drawn where stderr is no terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearid.base.errors import InputError
from nearid.base.printable import one_line

# A stage: its name and number of steps -> a function to call after each step, with a note to show beside the name or
# without one.
Progress = Callable[[str, int], Callable[..., object]]
# What every public function takes as `progress`: whether to draw bars, or where to report instead.
Reporting = bool | Progress | None

PATIENCE = 1.0


def silent(stage: str, steps: int) -> Callable[..., object]:
    """Report nothing."""
    return lambda note="": None


@contextmanager
def reporting(on: Reporting = True) -> Iterator[Progress]:
    """Give a Progress that draws bars on stderr once `PATIENCE` seconds have passed and stderr is a terminal.

    A function is given back as it is: a caller that draws bars already hands on its own.
    """
    if callable(on):
        yield on
        return
    if on not in (True, False, None):
        raise InputError(
            f"progress must be True, False or a function of a stage's name and its number of steps, not {on!r}."
        )
    if not on or not sys.stderr.isatty():
        yield silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress as Bars,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    bars = Bars(
        # Stages may be named after layers or files: their names are neither styles nor pictures.
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True, emoji=False, highlight=False),
        transient=True,
    )
    began = time.monotonic()
    started = False

    def stage(name: str, steps: int) -> Callable[..., object]:
        # A stage may end early (a search that needs fewer sweeps); when the next begins, it is over.
        for earlier in bars.tasks:
            bars.update(earlier.id, completed=earlier.total)
        task = bars.add_task(one_line(name), total=steps)

        def tick(note: str = "") -> None:
            nonlocal started
            bars.update(task, advance=1, description=one_line(f"{name}  {note}") if note else None)
            if not started and time.monotonic() - began > PATIENCE:
                bars.start()
                started = True

        return tick

    try:
        yield stage
    finally:
        if started:
            bars.stop()
