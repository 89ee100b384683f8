"""`nearid score`: latents against known factors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nearid.show.columns import ExcludeOption, FeaturesOption
from nearid.show.engine import EngineName, EngineOption, SchedulerOption, engine_of


def score(
    latents: Annotated[str, typer.Argument(metavar="Z", help="File with one row of latents per example.")],
    factors: Annotated[str, typer.Argument(metavar="FACTORS", help="Table with one column per true factor.")],
    measures: Annotated[
        str | None,
        typer.Option(
            help="Measures, separated by commas: mcc, mcc_spearman, r2, infomec, dci, mig, sap, modularity, "
            "explicitness (these by default), mcc_piecewise, dci_forest, dci_l1; or all."
        ),
    ] = None,
    resolve: Annotated[Literal["ica"] | None, typer.Option(help="Also score the independent components.")] = None,
    ids: Annotated[str | None, typer.Option(help="Column (or entry) with row ids; rows are paired by it.")] = None,
    categorical: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Factor whose values are classes; repeatable.")
    ] = None,
    integer: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Factor of ordered levels; repeatable.")
    ] = None,
    continuous: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Factor that is measured; repeatable.")
    ] = None,
    circular: Annotated[
        list[str] | None, typer.Option(metavar="NAME=PERIOD", help="Angle and its period, as pan=360; repeatable.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option(help="Folds of what is held out [5; 3 for dci, sap, explicitness].")
    ] = None,
    permutations: Annotated[int, typer.Option(help="Permutations for the chance level.")] = 5,
    max_rows: Annotated[
        int, typer.Option(help="Rows for measures that hold them in memory; of more, a sample.")
    ] = 10_000,
    key: Annotated[str | None, typer.Option(help="Entry of Z to read, of a file that holds several arrays.")] = None,
    factors_key: Annotated[str | None, typer.Option(help="Entry of FACTORS to read.")] = None,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    drop_nonfinite: Annotated[
        bool, typer.Option("--drop-nonfinite", help="Leave out rows of Z with NaN or Inf.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of folds, samples, permutations, models and ICA.")] = 0,
    engine: EngineOption = EngineName.local,
    scheduler: SchedulerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
) -> None:
    """Is this the true representation? How well are known factors recovered, and up to which group?

    FACTORS: .csv .tsv .parquet or .npz with a column per factor, or a plain array (.npy and all that Z may be).
    nearid infers the kind of each factor from its values and prints it; an option gives it where that is wrong.
    """
    from nearid.questions.compare.html import check_report
    from nearid.questions.score.run import score as run

    if report is not None:
        check_report(report)
    given = {"categorical": categorical, "integer": integer, "continuous": continuous}
    found = run(
        latents,
        factors,
        measures=measures,
        kinds=_kinds(given),
        periods=_periods(circular or []),
        resolve=resolve,
        folds=folds,
        permutations=permutations,
        max_rows=max_rows,
        drop_nonfinite=drop_nonfinite,
        random_state=seed,
        key=key,
        factors_key=factors_key,
        ids=ids,
        features=features,
        exclude=exclude,
        engine=engine_of(engine, scheduler),
        progress=True,
    )
    from nearid.questions.score.table import render
    from nearid.show.deliver import deliver

    deliver(found, render, as_json, report)


def _kinds(given: dict[str, list[str] | None]) -> dict[str, str]:
    from nearid.base.errors import InputError

    kinds: dict[str, str] = {}
    for kind, names in given.items():
        for name in names or []:
            if kinds.setdefault(name, kind) != kind:
                raise InputError(f"The factor {name!r} is given as {kinds[name]} and as {kind}. Leave out one.")
    return kinds


def _periods(given: list[str]) -> dict[str, float]:
    from nearid.base.errors import InputError

    periods = {}
    for text in given:
        name, _, period = text.rpartition("=")
        try:
            periods[name] = float(period)
        except ValueError:
            name = ""
        if not name:
            raise InputError(f"--circular takes a name and a period, as pan=360, not {text!r}.")
    return periods
