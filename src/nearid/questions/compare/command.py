"""`nearid compare`: the ladder for two or more runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearid.show.columns import ExcludeOption, FeaturesOption
from nearid.show.engine import EngineName, EngineOption, SchedulerOption, engine_of

# Options that only the ladder, or only a comparison of layers, knows.
OF_RUNS = (
    "groups", "ids", "key", "features", "exclude", "in_sample", "symmetric", "drop_nonfinite", "translation", "scale",
    "ridge", "engine", "scheduler",
)  # fmt: skip
OF_LAYERS = ("measures",)


def compare(
    context: typer.Context,
    runs: Annotated[list[str], typer.Argument(metavar="A B [C ...]", help="Files with one row per example.")],
    groups: Annotated[
        str | None,
        typer.Option(
            help="Groups to fit, separated by commas: permutation,rigid,linear (these by default),ica; or all."
        ),
    ] = None,
    folds: Annotated[int, typer.Option(help="Folds for held-out errors.")] = 5,
    ids: Annotated[str | None, typer.Option(help="Column (or entry) with row ids; rows are paired by it.")] = None,
    key: Annotated[str | None, typer.Option(help="Entry to read from files that hold several arrays.")] = None,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    in_sample: Annotated[bool, typer.Option("--in-sample", help="Also give in-sample figures.")] = False,
    symmetric: Annotated[bool, typer.Option("--symmetric", help="Compare in both directions.")] = False,
    drop_nonfinite: Annotated[
        bool, typer.Option("--drop-nonfinite", help="Leave out pairs of rows with NaN or Inf.")
    ] = False,
    translation: Annotated[bool, typer.Option("--translation/--no-translation", help="Allow a translation.")] = True,
    scale: Annotated[
        bool, typer.Option("--scale/--no-scale", help="Allow one global scale in permutation, rigid and ica.")
    ] = True,
    ridge: Annotated[float, typer.Option(help="Ridge penalty of the linear map.")] = 0.0,
    svcca_k: Annotated[int | None, typer.Option(help="Principal components for SVCCA [99% of variance].")] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERNS",
            help="Compare layers of two extractions (nearid extract), all or those that match, each with each.",
        ),
    ] = None,
    measures: Annotated[
        str,
        typer.Option(
            help="Between layers, separated by commas: cka, cca, svcca, r2, r2_rigid, r2_permutation, mcc, epsilon, "
            "epsilon_rigid, epsilon_permutation."
        ),
    ] = "cka",
    seed: Annotated[int, typer.Option(help="Seed of folds, bootstrap, permutations and ICA.")] = 0,
    engine: EngineOption = EngineName.local,
    scheduler: SchedulerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
) -> None:
    """Are these runs the same representation? Up to which group, and how nearly?

    Files: .npy .npz .safetensors .parquet .csv .tsv .h5 .zarr .pt, and folders of nearid extract. The first run is the
    source, the second the target: errors are measured in the target's space, over its diameter, on held-out rows.
    """
    from nearid.base.errors import InputError
    from nearid.questions.compare.html import check_report
    from nearid.questions.compare.run import compare as run

    _refuse(context, OF_LAYERS if layers is None else OF_RUNS, "without" if layers is None else "with")
    if layers is not None:
        _compare_layers(runs, layers, measures, folds, svcca_k, seed, as_json, report)
        return
    if len(runs) < 2:
        raise InputError(f"Two runs or more are needed to compare; only {runs[0]} was given.")
    if report is not None:
        check_report(report)
    found = run(
        *runs,
        groups=groups,
        folds=folds,
        ids=ids,
        key=key,
        features=features,
        exclude=exclude,
        in_sample=in_sample,
        symmetric=symmetric,
        drop_nonfinite=drop_nonfinite,
        translation=translation,
        scale=scale,
        ridge=ridge,
        svcca_k=svcca_k,
        random_state=seed,
        engine=engine_of(engine, scheduler),
        progress=True,
    )
    from nearid.questions.compare.tables import render
    from nearid.show.deliver import deliver

    deliver(found, render, as_json, report)


def _refuse(context: typer.Context, options: tuple[str, ...], when: str) -> None:
    """Refuse options that were given and would have no effect."""
    from nearid.base.errors import InputError

    for name in options:
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            raise InputError(f"--{name.replace('_', '-')} has no effect {when} --layers: leave it out.")


def _compare_layers(
    runs: list[str],
    layers: str,
    measures: str,
    folds: int,
    svcca_k: int | None,
    seed: int,
    as_json: bool,
    report: Path | None,
) -> None:
    from nearid.base.errors import InputError
    from nearid.questions.compare.html import check_report
    from nearid.questions.layers.run import compare_layers
    from nearid.questions.layers.table import render
    from nearid.show.deliver import deliver

    if len(runs) > 2:
        raise InputError(f"Layers are compared between two extractions, or within one; {len(runs)} were given.")
    if report is not None:
        check_report(report)
    found = compare_layers(
        *runs, measures=measures, layers=layers, folds=folds, svcca_k=svcca_k, random_state=seed, progress=True
    )
    deliver(found, render, as_json, report)
