"""`nearid reproduce`: run experiments of papers and compare published with measured values."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nearid.base.interrupt import leaving
from nearid.base.streams import say
from nearid.show.command import JSON, QUIET
from nearid.show.help import COMPUTED, OUTPUT, WHERE, guided

if TYPE_CHECKING:
    from nearid.lab.framework.result import ExperimentResult
    from nearid.lab.framework.run import Plan
    from nearid.show.view import View

# Exit code of a run with failed cells.
FAILED = 3


@guided(
    "reproduce",
    "nearid reproduce",
    "nearid reproduce contrastive-box --preset smoke",
    "nearid reproduce contrastive-box --seeds 2 --show",
)
def reproduce(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help='An experiment, or "all". Without a name, nearid lists the experiments.'),
    ] = None,
    preset: Annotated[
        str,
        typer.Option(
            help="smoke (seconds), quick (some experiments have it), cpu, or paper (the published protocol).",
            rich_help_panel=COMPUTED,
        ),
    ] = "cpu",
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="Number of seeds for each row. Default: that of the preset.",
            rich_help_panel=COMPUTED,
        ),
    ] = None,
    rows: Annotated[
        list[str] | None,
        typer.Option(
            "--row",
            metavar="KEY",
            help="Run this row only. May be repeated. Default: all rows.",
            rich_help_panel=COMPUTED,
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Set a parameter. May be repeated. --show lists the parameters.",
            rich_help_panel=COMPUTED,
        ),
    ] = None,
    reuse: Annotated[
        Path | None,
        typer.Option(
            help="Take finished cells from the result.json of an earlier run instead of running them again.",
            rich_help_panel=COMPUTED,
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="Where cells run: local, dask (a cluster of this machine), or the address of a Dask scheduler.",
            rich_help_panel=WHERE,
        ),
    ] = "local",
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Folder for the results. Each experiment gets a folder in it.",
            rich_help_panel=OUTPUT,
        ),
    ] = Path("nearid-results"),
    show: Annotated[
        bool,
        typer.Option(
            "--show", help="Print the parameters and claims of the experiment. Run nothing.", rich_help_panel=COMPUTED
        ),
    ] = False,
    as_json: Annotated[bool, JSON] = False,
    quiet: Annotated[bool, QUIET] = False,
) -> None:
    """Run an experiment of a paper, and show the published beside the measured numbers, claim by claim.

    nearid writes result.json and report.html to OUT/NAME. With another preset, --seeds, --row or --set it writes them
    to a folder in OUT/NAME that is named after these options. Finished cells of the table are kept in OUT/NAME/cells.
    After Ctrl-C, the same command continues. --reuse takes cells from a stored result, for example if this folder is
    lost. "all" skips experiments that lack a data set or a package, ends with a scoreboard, and writes it with links to
    the reports to OUT/index.html, or OUT/index-OPTIONS.html with other options. The exit code is 3 if cells failed.
    """
    from nearid.base.errors import InputError
    from nearid.lab.framework.experiment import experiment, experiments, summary
    from nearid.lab.framework.run import details, lacking, plan, resume_hint, run
    from nearid.lab.framework.settings import USUAL, assignments
    from nearid.lab.framework.view import view_of_all, view_of_plan
    from nearid.show.view import counted

    if name is None:
        if show or rows or settings or seeds is not None or reuse is not None or preset != USUAL:
            raise InputError("Name an experiment, or all: nearid reproduce NAME. Without options, nearid lists them.")
        lacks = {e.name: lacking(e) for e in experiments()}
        if as_json:
            _print([summary(e) | {"lacking": lacks[e.name]} for e in experiments()], True)
        else:
            _draw(view_of_all(experiments(), lacks))
        return
    several = name == "all"
    chosen = experiments() if several else [experiment(name)]
    given = assignments(settings or [])
    # All are checked before the first begins.
    if several and reuse is not None:
        raise InputError("--reuse takes cells from the result of one experiment: name it instead of all.")
    plans = [
        plan(e, out / e.name, preset=preset, seeds=seeds, rows=rows or (), parameters=given, reuse=reuse)
        for e in chosen
    ]
    if show:
        if as_json:
            _print([details(planned) for planned in plans], several)
        else:
            _draw(*map(view_of_plan, plans))
        return
    if several:
        index = _index(plans, out)
        plans = _possible(plans, engine)
    results: dict[str, ExperimentResult] = {}
    command = shlex.join(["nearid", *sys.argv[1:]])
    with leaving(lambda: resume_hint(out if several else out / name)):
        for result in run(plans, engine=engine, command=command, say=(lambda text: None) if quiet else say):
            results[result.experiment.name] = result
            if not as_json:
                _draw(result.view)
        # Printed before the page is written: what was computed is not lost if this fails.
        if as_json:
            _print([results[planned.experiment.name].to_dict() for planned in plans], several)
        if several:
            _summarise(plans, results, index, printed=not as_json, quiet=quiet)
    failed = sum(len(result.failures) for result in results.values())
    if failed:
        again = "it" if failed == 1 else "these cells"
        say(f"nearid: {counted(failed, 'cell')} failed. Run the same command again to retry only {again}.")
        raise typer.Exit(FAILED)


def _index(plans: list[Plan], out: Path) -> Path:
    """The page of all results, named after the options; refused before the run if it cannot or must not be written."""
    from nearid.base.errors import InputError
    from nearid.base.files import check_target
    from nearid.lab.framework.run import file_name
    from nearid.lab.framework.scoreboard import TITLE

    # What is an option for one experiment may be the default of another.
    options = dict.fromkeys(part for planned in plans for part in planned.variant.split(",") if part)
    index = out / f"{'-'.join(filter(None, ('index', file_name(','.join(options)))))}.html"
    if out.exists():
        check_target(index)
    if index.exists():
        text = index.read_text(encoding="utf-8", errors="replace")
        if f"<title>{TITLE}</title>" not in text or '<p class="note">nearid ' not in text:
            raise InputError(
                f"{index} is not a scoreboard that nearid wrote, and would be replaced. Move it, or give another "
                "folder with --out."
            )
    return index


def _summarise(
    plans: list[Plan], results: dict[str, ExperimentResult], index: Path, *, printed: bool, quiet: bool
) -> None:
    """Print the scoreboard of all results, and write a page with it that leads to the reports."""
    from urllib.parse import quote

    from nearid.lab.framework.result import REPORT
    from nearid.lab.framework.scoreboard import view_of_results
    from nearid.show.page import write

    reports = {p.experiment.name: quote((p.place / REPORT).relative_to(index.parent).as_posix()) for p in plans}
    board = view_of_results([results[p.experiment.name] for p in plans], reports)
    if printed:
        _draw(board)
    write(board, index)
    if not quiet:
        say(f"Scoreboard with links to all reports written to {index}")


def _possible(plans: list[Plan], engine: str) -> list[Plan]:
    """Return the plans that can run on this machine; print what the others lack."""
    from nearid.base.errors import InputError
    from nearid.lab.framework.run import check_machine

    possible = []
    for planned in plans:
        try:
            check_machine(planned, engine)
        except InputError as lacking:
            say(f"nearid: {planned.experiment.name} is skipped. {lacking}")
        else:
            possible.append(planned)
    if not possible:
        raise InputError("Every experiment lacks a data set or a package, so nothing was run.")
    return possible


def _draw(*views: View) -> None:
    from rich.console import Group

    from nearid.show.deliver import show
    from nearid.show.terminal import render

    show(lambda width: Group(*(render(view, width) for view in views)))


def _print(records: list[dict[str, Any]], several: bool) -> None:
    """JSON on stdout: a list, or the only one."""
    from nearid.show.deliver import show_json

    show_json(records if several else records[0])
