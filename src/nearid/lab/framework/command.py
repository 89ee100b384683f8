"""`nearid reproduce`: experiments of papers, with what was published beside what is measured."""

from __future__ import annotations

import json
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving
from nearid.show.engine import EngineName, EngineOption, SchedulerOption, engine_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nearid.lab.framework.result import Result
    from nearid.lab.framework.run import Plan

# Exit code of a run of which cells failed.
FAILED = 3


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An experiment, or all; without a name they are listed.")
    ] = None,
    preset: Annotated[str, typer.Option(help="smoke (seconds), cpu, or paper (the published protocol).")] = "cpu",
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each row (those of the preset).")] = None,
    rows: Annotated[
        list[str] | None, typer.Option("--row", metavar="KEY", help="Run this row alone; may be repeated (all).")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Set a parameter; may be repeated.")
    ] = None,
    engine: EngineOption = EngineName.local,
    scheduler: SchedulerOption = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results, one in it by experiment.")] = Path(
        "nearid-results"
    ),
    show: Annotated[bool, typer.Option("--show", help="Tell the parameters and claims, and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
) -> None:
    """Run an experiment of a paper: published and measured side by side, every claim marked.

    Writes result.json and report.html to OUT/NAME; with another preset, --seeds, --row or --set to a folder in it that
    is named after these. Finished cells of the table are kept in OUT/NAME/cells: after Ctrl-C the same command goes on.
    Of all, those that lack a data set or a package are left out. Exit code 3 where cells failed.
    """
    from nearid.lab.framework.experiment import experiment, experiments
    from nearid.lab.framework.run import plan
    from nearid.lab.framework.settings import assignments
    from nearid.lab.framework.table import counted, render
    from nearid.show.deliver import show as display

    if name is None:
        _list(as_json)
        return
    chosen = experiments() if name == "all" else [experiment(name)]
    changes = assignments(settings or [])
    # All are checked before the first begins.
    plans = [plan(e, out / e.name, preset=preset, seeds=seeds, rows=rows or (), changes=changes) for e in chosen]
    if show:
        _show(plans, as_json, name == "all")
        return
    machine = engine_of(engine, scheduler)
    if name == "all":
        plans = _possible(plans, machine)
    from nearid.lab.framework.run import left_behind

    found: dict[str, Result] = {}
    with leaving(lambda: left_behind(out if name == "all" else out / name)):
        for result in _run(plans, machine):
            found[result.experiment.name] = result
            if not as_json:
                display(partial(render, result))
        if as_json:
            _print([found[asked.experiment.name].to_dict() for asked in plans], name == "all")
    failed = sum(len(result.failures) for result in found.values())
    if failed:
        again = "it alone" if failed == 1 else "these alone"
        typer.echo(f"nearid: {counted(failed, 'cell')} failed; run the same command again to try {again}.", err=True)
        raise typer.Exit(FAILED)


def _possible(plans: list[Plan], engine: str) -> list[Plan]:
    """Those that have what they need; what the others lack is said."""
    from nearid.base.errors import InputError
    from nearid.lab.framework.run import check_machine

    found = []
    for asked in plans:
        try:
            check_machine(asked, engine)
        except InputError as lacking:
            typer.echo(f"nearid: {asked.experiment.name} is left out. {lacking}", err=True)
        else:
            found.append(asked)
    if not found:
        raise InputError("Every experiment lacks something: nothing was run.")
    return found


def _run(plans: list[Plan], engine: str) -> Iterator[Result]:
    """Results as they come."""
    from nearid.lab.framework.run import run

    command = shlex.join(["nearid", *sys.argv[1:]])
    yield from run(plans, engine=engine, command=command, say=lambda text: typer.echo(text, err=True))


def _list(as_json: bool) -> None:
    from nearid.lab.framework.experiment import experiments, summary
    from nearid.lab.framework.table import render_list
    from nearid.show.deliver import show as display

    if as_json:
        _print([summary(e) for e in experiments()], True)
    else:
        display(partial(render_list, experiments()))


def _show(plans: list[Plan], as_json: bool, several: bool) -> None:
    from rich.console import Group

    from nearid.lab.framework.run import details
    from nearid.lab.framework.table import render_parameters
    from nearid.show.deliver import show as display

    if as_json:
        _print([details(p) for p in plans], several)
    else:
        parts = [render_parameters(p) for p in plans]
        display(lambda width: Group(*parts))


def _print(told: list[dict[str, Any]], several: bool) -> None:
    """JSON on stdout: a list, or the only one."""
    typer.echo(json.dumps(told if several else told[0], indent=2, allow_nan=False))
