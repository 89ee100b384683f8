"""Progress bars on stderr for work of more than a second. Nothing is drawn if stderr is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from nearid.base.errors import InputError
from nearid.base.printable import one_line

# Begins a stage: (name, number of steps) -> a function to call after each step, optionally with a note to show.
Progress = Callable[[str, int], Callable[..., object]]
# The `progress` argument of every public function: whether to draw bars, or a function that receives the stages.
Reporting = bool | Progress | None

PATIENCE = 1.0


def silent(stage: str, steps: int) -> Callable[..., object]:
    """Report nothing."""
    return lambda note="": None


@contextmanager
def reporting(on: Reporting = True) -> Iterator[Progress]:
    """Give a Progress that draws bars on stderr after `PATIENCE` seconds, if stderr is a terminal.

    If `on` is a function, it is returned unchanged, so that a caller with its own bars can pass them on.
    """
    if callable(on):
        yield on
        return
    if on not in (True, False, None):
        raise InputError(
            f"progress must be True, False or a function of the name and the number of steps of a stage, not {on!r}."
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
        # Names of layers or files in stages must not be interpreted as markup or emoji.
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
        # A stage may end early, for example if a search needs fewer sweeps. It is over when the next stage begins.
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
