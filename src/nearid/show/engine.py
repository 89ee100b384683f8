"""The options that say where the work is done."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


class EngineName(StrEnum):
    """Engines by name."""

    local = "local"
    dask = "dask"


EngineOption = Annotated[EngineName, typer.Option(help="Where the work is done: on this machine, or by Dask.")]
SchedulerOption = Annotated[
    str | None,
    typer.Option(metavar="ADDR", help="Address of a Dask scheduler; one for this machine is started without it."),
]


def engine_of(name: EngineName, scheduler: str | None) -> str:
    """The engine that the options ask for, as `open_engine` takes it."""
    from nearid.base.errors import InputError

    if scheduler is None:
        return name.value
    if name is not EngineName.dask:
        raise InputError(f"--scheduler {scheduler} needs --engine dask; passes run in this process otherwise.")
    if ":" not in scheduler:
        raise InputError(f"--scheduler must be an address such as tcp://127.0.0.1:8786, not {scheduler!r}.")
    return scheduler
