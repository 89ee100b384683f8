"""`nearid reproduce`: experiments of papers, with what was published beside what is measured."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.cli.engine import EngineName, EngineOption, SchedulerOption, engine_of
from nearid.cli.interrupt import Interrupted

if TYPE_CHECKING:
    from nearid.experiments.base import Experiment
    from nearid.experiments.result import Result

# Exit code of a run of which cells failed.
FAILED = 3


def reproduce(
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="An experiment, or all; without a name they are listed.")
    ] = None,
    preset: Annotated[str, typer.Option(help="smoke (seconds), cpu, or paper (the published protocol).")] = "cpu",
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds of each row [those of the preset].")] = None,
    rows: Annotated[
        list[str] | None, typer.Option("--row", metavar="KEY", help="Run this row alone; may be repeated [all].")
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

    Writes result.json and report.html to OUT/NAME. Finished cells of the table are kept there: after Ctrl-C the same
    command goes on. Of all, those that lack a data set or a package are left out. Exit code 3 where cells failed.
    """
    from rich.console import Group

    from nearid.cli.show import show as display
    from nearid.experiments.cells import rows_of
    from nearid.experiments.registry import experiment, experiments
    from nearid.experiments.settings import assignments, described, settle
    from nearid.report.experiment_table import render, render_list, render_parameters

    if name is None:
        display(lambda width: render_list(experiments(), width))
        return
    chosen = experiments() if name == "all" else [experiment(name)]
    changes = assignments(settings or [])
    # All are checked before the first begins.
    parameters = [settle(e, preset, changes) for e in chosen]
    tables = [rows_of(e, p, rows or ()) for e, p in zip(chosen, parameters, strict=True)]
    if show:
        parts = [
            render_parameters(e, preset, described(p), table)
            for e, p, table in zip(chosen, parameters, tables, strict=True)
        ]
        display(lambda width: Group(*parts))
        return
    options = {
        "preset": preset,
        "seeds": seeds,
        "rows": rows or (),
        "changes": changes,
        "engine": engine_of(engine, scheduler),
    }
    if name == "all":
        chosen = _possible(chosen, parameters, options)
    found = []
    for e in chosen:
        found.append(_run(e, out / e.name, options))
        if not as_json:
            display(lambda width: render(found[-1], width))
    if as_json:
        told = [result.to_dict() for result in found]
        typer.echo(json.dumps(told if name == "all" else told[0], indent=2, allow_nan=False))
    failed = [f.cell.label for result in found for f in result.failures]
    if failed:
        typer.echo(f"nearid: {len(failed)} cells failed; run the same command again to try only these.", err=True)
        raise typer.Exit(FAILED)


def _possible(chosen: list[Experiment[Any]], parameters: list[Any], options: dict[str, Any]) -> list[Experiment[Any]]:
    """Those that have what they need; what the others lack is said."""
    from nearid.errors import InputError
    from nearid.experiments.run import require

    found = []
    for e, p in zip(chosen, parameters, strict=True):
        try:
            require(e, p, options["rows"], options["engine"])
        except InputError as lacking:
            typer.echo(f"nearid: {e.name} is left out. {lacking}", err=True)
        else:
            found.append(e)
    if not found:
        raise InputError("Every experiment lacks something: nothing was run.")
    return found


def _run(experiment: Experiment[Any], folder: Path, options: dict[str, Any]) -> Result:
    from nearid.experiments.run import left_behind
    from nearid.experiments.run import reproduce as run

    command = shlex.join(["nearid", *sys.argv[1:]])
    try:
        result = run(experiment, folder, command=command, say=lambda text: typer.echo(text, err=True), **options)
    except Interrupted as stop:
        stop.left = left_behind(folder)
        raise
    typer.echo(f"Result and report written to {folder}", err=True)
    return result
