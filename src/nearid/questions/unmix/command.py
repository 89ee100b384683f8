"""`nearid unmix`: independent components of a file, the model that gives them, and whether to trust it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from nearid.base.interrupt import leaving
from nearid.show.columns import ExcludeOption, FeaturesOption
from nearid.show.engine import EngineName, EngineOption, SchedulerOption, engine_of

if TYPE_CHECKING:
    from nearid.ica.estimators import ICA


def unmix(
    source: Annotated[str, typer.Argument(metavar="X", help="File with one row per example.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the components and the model.")],
    components: Annotated[
        int | None, typer.Option(min=1, help="Leading principal directions to unmix; all that exist by default.")
    ] = None,
    whiten: Annotated[
        bool, typer.Option("--whiten/--no-whiten", help="Whiten first; otherwise only rotate the centred rows.")
    ] = True,
    contrast: Annotated[Literal["logcosh", "exp", "cube"], typer.Option(help="What is non-Gaussian.")] = "logcosh",
    tol: Annotated[float, typer.Option(help="Relative projected gradient to stop at.")] = 1e-4,
    max_passes: Annotated[int, typer.Option(min=1, help="Passes over the rows at most.")] = 500,
    stability: Annotated[
        int,
        typer.Option(min=0, help="Fits from other starts to halves of the rows, to see which components are stable."),
    ] = 0,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first rotation.")] = 0,
    engine: EngineOption = EngineName.local,
    scheduler: SchedulerOption = None,
    form: Annotated[Literal["npy", "zarr"], typer.Option("--format", help="Format of the components.")] = "npy",
    key: Annotated[str | None, typer.Option(help="Entry to read from a file that holds several arrays.")] = None,
    ids: Annotated[str | None, typer.Option(help="Column (or entry) with row ids; kept beside the components.")] = None,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    drop_nonfinite: Annotated[
        bool,
        typer.Option("--drop-nonfinite", help="Leave rows with NaN or Inf out of the fit; their components are NaN."),
    ] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Begin anew instead of going on.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model that is in the folder.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
) -> None:
    """Find the independent components of the rows of a file (whitening and ICA), in bounded memory.

    Writes components.npy (or .zarr), model.safetensors and model.json to the folder. After Ctrl-C the same command goes
    on where it was. `nearid apply` maps other rows with the model.
    """
    from nearid.arrays import open_rows
    from nearid.arrays.metadata import metadata_alerts
    from nearid.base.errors import InputError
    from nearid.base.progress import reporting
    from nearid.ica.estimators import ICA
    from nearid.questions.compare.html import check_report
    from nearid.questions.unmix.run import left_behind, refuse_input, unmix_into

    rows = open_rows(source, key=key, ids=ids, features=features, exclude=exclude)
    refuse_input(out, source)
    if report is not None:
        if report.resolve() == out.resolve():
            raise InputError(f"{out} is the folder for the components (--out); give the report another name.")
        # A page may go into the folder that is made for the rest.
        check_report(out.parent / report.name if _in_new(out, report) else report)
    for note in (*rows.notes, *(alert.message for alert in metadata_alerts(rows))):
        typer.echo(note, err=True)
    ica = ICA(
        components,
        whiten=whiten,
        contrast=contrast,
        tol=tol,
        max_passes=max_passes,
        stability=stability,
        random_state=seed,
        engine=engine_of(engine, scheduler),
    )
    with leaving(lambda: left_behind(out)), reporting() as progress:
        found = unmix_into(
            out,
            rows,
            ica,
            form=form,
            drop_nonfinite=drop_nonfinite,
            restart=restart,
            overwrite=overwrite,
            progress=progress,
            say=lambda text: typer.echo(text, err=True),
        )
    with leaving(f"the components and the model are in {out}"):
        _deliver(found, out, as_json, report)


def _deliver(found: ICA, out: Path, as_json: bool, report: Path | None) -> None:
    if report is not None:
        found.save_report(report)
    if as_json:
        told = {"options": found.get_params(), "seed": found.seed_, "input": found.input_}
        told["diagnostics"] = found.diagnostics_.to_dict()
        typer.echo(json.dumps(told, indent=2, allow_nan=False))
    else:
        from nearid.questions.unmix.table import render
        from nearid.show.deliver import show

        show(lambda width: render(found, width))
    typer.echo(f"Components and model written to {out}", err=True)
    if report is not None:
        typer.echo(f"Report written to {report}", err=True)


def _in_new(folder: Path, report: Path) -> bool:
    return not folder.exists() and report.resolve().parent == folder.resolve()
