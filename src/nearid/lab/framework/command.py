"""`nearid reproduce`: experiments of papers, with what was published beside what is measured."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving

if TYPE_CHECKING:
    from nearid.lab.framework.result import ExperimentResult
    from nearid.lab.framework.run import Plan
    from nearid.show.view import View

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
    engine: Annotated[
        str, typer.Option(help="Where cells run: local, dask (a cluster of this machine), or a scheduler's address.")
    ] = "local",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the results, one in it by experiment.")] = Path(
        "nearid-results"
    ),
    show: Annotated[bool, typer.Option("--show", help="Print the parameters and claims, and run nothing.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Nothing but errors on stderr.")] = False,
) -> None:
    """Run an experiment of a paper: published and measured side by side, every claim marked.

    Writes result.json and report.html to OUT/NAME; with another preset, --seeds, --row or --set to a folder in it that
    is named after these. Finished cells of the table are kept in OUT/NAME/cells: after Ctrl-C the same command goes on.
    Of all, those that lack a data set or a package are left out. Exit code 3 where cells failed.
    """
    from nearid.lab.framework.experiment import experiment, experiments, summary
    from nearid.lab.framework.run import details, plan, resume_hint, run
    from nearid.lab.framework.settings import assignments
    from nearid.lab.framework.view import view_of_all, view_of_plan
    from nearid.show.view import counted

    if name is None:
        if as_json:
            _print([summary(e) for e in experiments()], True)
        else:
            _draw(view_of_all(experiments()))
        return
    several = name == "all"
    chosen = experiments() if several else [experiment(name)]
    given = assignments(settings or [])
    # All are checked before the first begins.
    plans = [plan(e, out / e.name, preset=preset, seeds=seeds, rows=rows or (), parameters=given) for e in chosen]
    if show:
        if as_json:
            _print([details(planned) for planned in plans], several)
        else:
            _draw(*map(view_of_plan, plans))
        return
    if several:
        plans = _possible(plans, engine)
    results: dict[str, ExperimentResult] = {}
    command = shlex.join(["nearid", *sys.argv[1:]])
    with leaving(lambda: resume_hint(out if several else out / name)):
        for result in run(plans, engine=engine, command=command, say=(lambda text: None) if quiet else _say):
            results[result.experiment.name] = result
            if not as_json:
                _draw(result.view)
        if as_json:
            _print([results[planned.experiment.name].to_dict() for planned in plans], several)
    failed = sum(len(result.failures) for result in results.values())
    if failed:
        again = "it alone" if failed == 1 else "these alone"
        _say(f"nearid: {counted(failed, 'cell')} failed; run the same command again to try {again}.")
        raise typer.Exit(FAILED)


def _possible(plans: list[Plan], engine: str) -> list[Plan]:
    """Those that have what they need; what the others lack is printed."""
    from nearid.base.errors import InputError
    from nearid.lab.framework.run import check_machine

    possible = []
    for planned in plans:
        try:
            check_machine(planned, engine)
        except InputError as lacking:
            _say(f"nearid: {planned.experiment.name} is left out. {lacking}")
        else:
            possible.append(planned)
    if not possible:
        raise InputError("Every experiment lacks something: nothing was run.")
    return possible


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _draw(*views: View) -> None:
    from rich.console import Group

    from nearid.show.deliver import show
    from nearid.show.terminal import render

    show(lambda width: Group(*(render(view, width) for view in views)))


def _print(records: list[dict[str, Any]], several: bool) -> None:
    """JSON on stdout: a list, or the only one."""
    typer.echo(json.dumps(records if several else records[0], indent=2, allow_nan=False))
