"""`nearid deconfound`: what an embedding tells of perturbations in batches that were held out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nearid.show.columns import ExcludeOption, FeaturesOption
from nearid.show.engine import EngineName, EngineOption, SchedulerOption, engine_of


def deconfound(
    source: Annotated[str, typer.Argument(metavar="X", help="File with one row per cell, image or well.")],
    label: Annotated[str, typer.Option(help="Column with the perturbation of each row.")],
    batch: Annotated[str, typer.Option(help="Column with the batch of each row: plate, donor, site.")],
    meta: Annotated[
        str | None, typer.Option(help="Table with these columns; of a table or .h5ad, X itself by default.")
    ] = None,
    control: Annotated[
        str | None,
        typer.Option(
            metavar="VALUE",
            help="Control label: every other label is classified against it [each against all others].",
        ),
    ] = None,
    conditions: Annotated[str, typer.Option(help="Of base, pca, random, ica.")] = "base,pca,random,ica",
    classifiers: Annotated[
        str | None, typer.Option(help="Of boost, logistic [both; logistic where LightGBM is not installed].")
    ] = None,
    directions: Annotated[
        str, typer.Option(help="most: train on most batches; one: train on one batch, judge on all others.")
    ] = "most,one",
    folds: Annotated[int, typer.Option(help="Folds over batches.")] = 5,
    perturbations: Annotated[
        str | None, typer.Option(help="Labels to evaluate, separated by commas; or how many of the most frequent.")
    ] = None,
    top: Annotated[
        str | None, typer.Option(metavar="K,K,...", help="Components of the concentration [5,10,20]; 0 for none.")
    ] = None,
    drop: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Also ICA without components of which the batch explains this share, judged on training rows.",
        ),
    ] = None,
    n_components: Annotated[int | None, typer.Option(min=1, help="Leading principal directions to keep [all].")] = None,
    fit_rows: Annotated[
        int | None, typer.Option(help="Rows at most, at random, on which whitening and ICA are fitted [all].")
    ] = None,
    blocks: Annotated[
        str | None, typer.Option(help="Column with the image or well: maps are fitted on one row of each.")
    ] = None,
    min_rows: Annotated[int, typer.Option(help="Labels with fewer rows are not evaluated.")] = 10,
    max_rows: Annotated[int, typer.Option(help="Rows at most for what needs neighbours.")] = 10_000,
    boosting: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Hyperparameter of LightGBM that differs from the paper; repeatable."),
    ] = None,
    key: Annotated[
        str | None, typer.Option(help="Entry of X to read, of a file with several arrays; of .h5ad that of obsm.")
    ] = None,
    ids: Annotated[
        str | None, typer.Option(help="Column (or entry) with row ids; X and META are paired by it.")
    ] = None,
    features: FeaturesOption = None,
    exclude: ExcludeOption = None,
    drop_nonfinite: Annotated[bool, typer.Option("--drop-nonfinite", help="Leave out rows with NaN or Inf.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of folds, samples, models and ICA.")] = 0,
    engine: EngineOption = EngineName.local,
    scheduler: SchedulerOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")] = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report to this file.")] = None,
) -> None:
    """Biology or batch? Embedding, PCA, PCA + ICA and PCA + random rotation, judged on batches that were held out.

    Classifiers of each perturbation learn on some batches and are judged on others. Components that follow the batch
    are named.
    """
    from nearid.questions.deconfound.run import deconfound as run
    from nearid.show.page import check_report

    if report is not None:
        check_report(report)
    result = run(
        source,
        label,
        batch,
        meta=meta,
        control=control,
        conditions=conditions,
        classifiers=classifiers,
        directions=directions,
        folds=folds,
        perturbations=int(perturbations) if perturbations is not None and perturbations.isdigit() else perturbations,
        top=_numbers(top),
        drop=drop,
        n_components=n_components,
        fit_rows=fit_rows,
        blocks=blocks,
        min_rows=min_rows,
        max_rows=max_rows,
        boosting=_settings(boosting or []),
        drop_nonfinite=drop_nonfinite,
        random_state=seed,
        key=key,
        ids=ids,
        features=features,
        exclude=exclude,
        engine=engine_of(engine, scheduler),
        progress=True,
    )
    from nearid.show.deliver import deliver
    from nearid.show.terminal import render

    deliver(result, lambda shown, width: render(shown.view, width), as_json, report)


def _numbers(text: str | None) -> list[int] | None:
    from nearid.base.errors import InputError

    if text is None:
        return None
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdigit() for part in parts):
        raise InputError(f"--top takes whole numbers separated by commas, as 5,10,20, not {text!r}.")
    return [int(part) for part in parts if int(part)]


def _settings(given: list[str]) -> dict[str, float | int | bool]:
    from nearid.base.errors import InputError

    words = {"true": True, "false": False}
    found: dict[str, float | int | bool] = {}
    for text in given:
        name, _, value = text.partition("=")
        try:
            number = float(value)
        except ValueError:
            if value.lower() not in words or not name:
                raise InputError(
                    f"--boosting takes a name and a number, as min_data_in_leaf=5, not {text!r}."
                ) from None
            found[name] = words[value.lower()]
            continue
        found[name] = int(number) if number.is_integer() and "." not in value else number
    return found
