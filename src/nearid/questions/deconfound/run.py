"""Biology or batch: judge an embedding, whitened, unmixed and randomly rotated, in held-out batches."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated, Any

import numpy as np

from nearid.arrays.metadata import column_names
from nearid.arrays.paths import check_source
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.jsonable import plain
from nearid.base.options import Bound, Count, Seed, as_given, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from nearid.questions.deconfound.also import check_also, open_also
from nearid.questions.deconfound.classifiers import check_boosting
from nearid.questions.deconfound.cleaned import (
    check_cleaned,
    check_columns,
    model_folder,
    write_cleaned,
    write_model,
)
from nearid.questions.deconfound.cleaning import check_drop, cost, described, fit_cleaner, split_components
from nearid.questions.deconfound.design import Design, open_design
from nearid.questions.deconfound.directions import Drop
from nearid.questions.deconfound.evaluate import evaluate
from nearid.questions.deconfound.inputs import Nonfinite
from nearid.questions.deconfound.parts import possible_names
from nearid.questions.deconfound.plan import CLASSIFIERS, CONDITIONS, DIRECTIONS, KEPT, Plan, named
from nearid.questions.deconfound.result import Deconfounding


@checked
def deconfound(
    X: Any,
    labels: Any = None,
    batches: Any = None,
    *,
    meta: Any = None,
    control: Any = None,
    conditions: Sequence[str] | str = ("base", "pca", "random", "ica"),
    classifiers: Sequence[str] | str | None = None,
    directions: Sequence[str] | str = ("most", "one"),
    folds: Annotated[int, Bound(2)] = 5,
    perturbations: Sequence[Any] | str | int | None = None,
    top: Sequence[int] | None = None,
    out: str | os.PathLike[str] | None = None,
    drop: int | float | str | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    n_components: Count | None = None,
    fit_rows: Annotated[int, Bound(10)] | None = None,
    rotations: Count = 2,
    blocks: Any = None,
    also: Mapping[str, Any] | None = None,
    position: Any = None,
    min_rows: Annotated[int, Bound(2)] | None = None,
    max_rows: Annotated[int, Bound(50)] = 10_000,
    boosting: Mapping[str, Any] | None = None,
    nonfinite: Nonfinite = "least",
    random_state: Seed = 0,
    key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    columns_from: str | os.PathLike[str] | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> Deconfounding:
    """Biology or batch? Classify perturbations in held-out batches, from the embedding, PCA, PCA + ICA and a rotation.

    Classifiers of each perturbation learn on some batches and are judged on others. Components that follow the batch
    are named technical.

    Parameters
    ----------
    X : array, tensor, DataFrame, AnnData, path or Rows, of shape (n, d)
        One row per cell, image or well. The features of a table are its numeric columns, except the label, batch and
        block and those that look like metadata: names such as ``Metadata_*`` or ``site``, few whole numbers, or
        constant within each batch, label, or combination of the metadata such as compound and dose. An alert lists
        them.
    labels : str or array-like of shape (n,)
        Perturbation of each row: a column of `meta`, of `obs`, or of the table X; in Python also the values themselves.
    batches : str or array-like of shape (n,)
        Batch (plate, donor, site) of each row, given like the labels. Both may be a part of the text of a column, as
        COLUMN:PATTERN with a regular expression: "Plate:Week[0-9]+" is the week in names such as Week4_27481.
    meta : DataFrame, dict of columns or path of a table, optional
        Table with these columns. It is paired with X by position, or by id if both have ids. DataFrames are paired by
        their index. Default: the table X, or `obs` of AnnData.
    control : str or number, optional
        Control label: every other label is classified against it. Default: against all others.
    conditions : names
        "base" (columns of unit variance), "pca" (whitened), "random" (whitened and randomly rotated), "ica" (whitened
        and unmixed). All are fitted without labels and batches. Not by default, and by controls: "centre" (each batch
        by its controls, or by all its rows without a control), "sphere" and "tvn" (typical variation normalisation).
    classifiers : names, optional
        "boost" (LightGBM with the paper's hyperparameters) and "logistic". Default: both; only "logistic" if LightGBM
        is not installed.
    directions : names
        "most": batches in folds, each held out in turn. "one": trained on one batch, judged on all others, for as many
        batches (drawn at random) as there are folds.
    folds : int, default=5
        Folds over batches.
    perturbations : names or int, optional
        Labels to evaluate, how many of the most frequent, or "all". Default: all, but at most the 20 most frequent.
    top : sequence of int, optional
        Numbers k, such as 5, 10, 20: adds the concentration, AUROC from the k most used components minus AUROC from
        the others. Each k takes two more classifiers for every one. Default: none.
    out : path, optional
        File for the cleaned embedding: the rows without their technical (batch) components, all else unchanged. A table
        (.parquet, .csv, .tsv) keeps its ids, metadata and names of columns; AnnData (.h5ad) gets a new entry of obsm;
        other rows are written as .npy, .safetensors or .zarr. The folder NAME.model beside it cleans other rows with
        `nearid apply`.
    drop : {"auto"}, int or float, optional
        Which batch components to drop: combinations of columns in which batches differ most, given the label. "auto",
        the default with `out`: those of which the batch explains at least 5%, also among controls, more than the label
        does, and significantly. A whole number: so many, the largest shares first. A share, such as 0.2: as "auto",
        with this share. Adds a condition of cleaned rows, in which cleaning is fitted on the training rows of each
        split.
    dry_run : bool, default=False
        Report what would be dropped and what it costs, but write nothing.
    overwrite : bool, default=False
        Replace files that exist.
    n_components : int, optional
        Leading principal directions to keep. Default: all that exist, but at most one for each ten rows (ten at least).
    fit_rows : int, optional
        Largest number of rows, drawn at random, for fitting whitening and ICA. Default: all rows, read block by block.
    rotations : int, default=2
        Rotations of the condition "random". Its scores are means over them, and each takes as many classifiers as
        another condition.
    blocks : str or array-like of shape (n,), optional
        Rows that belong together within a batch, such as the image or well of each row. A block is held out as a whole,
        with its batch. Whitening and ICA are fitted on one row of each block, and each block counts once in the tests
        of components.
    also : mapping of str to array, tensor, DataFrame, path or Rows, optional
        Corrected embeddings by name, such as ``{"harmony": Z}``: further conditions with the same rows, judged on the
        same splits. Rows are paired by position, or by id. For AnnData also the name of an entry of `obsm`.
    position : str or array-like, optional
        Position of each row on its plate, given like the labels: a column with names of wells such as B07, or two
        columns, "row,column". Adds what the position explains of each component.
    min_rows : int, optional
        Labels with fewer rows are not evaluated. Default: 10. If fewer than five labels have so many, what the fifth
        most frequent label has, but at least 5; or what the most frequent label has, if that is less.
    max_rows : int, default=10000
        Largest number of rows for the measures that search neighbours.
    boosting : mapping, optional
        Hyperparameters of LightGBM that differ from the paper's; "trees" is the number of trees (default: 100).
    nonfinite : {"least", "rows", "columns", "refuse"}, default="least"
        What to leave out where values are NaN or infinite: the rows, the columns, or what loses the fewest values:
        columns with many of them first, then the rows of the rest. "refuse" makes them an error.
    random_state : int, default=0
        Seed of folds, samples, classifiers and ICA.
    key : str, optional
        Entry to read from a file with several arrays; for AnnData the entry of `obsm`.
    ids : optional
        Name of the column with row ids, by which X and `meta` are paired; in Python also a pair of id arrays.
    features : sequence of str or str, optional
        Columns of the table X to use as features: names or patterns such as "emb_*", as a list or a text with commas.
        Columns that look like metadata are then used too.
    exclude : sequence of str or str, optional
        Columns of the table X to leave out, given like the features. They may still be labels, batches or blocks.
    columns_from : path, optional
        Text file with the names of the feature columns, one per line; instead of `features`.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over all rows run: this process by default, a Dask cluster of this machine's cores, or the
        cluster of the scheduler at an address. Classifiers and neighbours stay in this process. The result is the same.
    progress : bool or callable, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    Deconfounding
        The scores of every perturbation in each condition, tests of the differences between conditions, the share of
        batch and label in every component, and alerts.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> rng = np.random.default_rng(0)
    >>> drug, plate = rng.integers(0, 2, 200), rng.integers(0, 4, 200)
    >>> x = rng.laplace(size=(200, 3)) + np.outer(drug, [2, 0, 0]) + np.outer(plate, [0, 1, 0])
    >>> result = nearid.deconfound(x, drug, plate, control=0, classifiers="logistic", directions="most", folds=2)
    >>> list(result.conditions), result.families
    (['base', 'pca', 'random', 'ica'], [('most', 'logistic')])
    """
    if dry_run or out is not None:
        drop = "auto" if drop is None else drop
    rule = None if drop is None else check_drop(drop)
    if out is not None:
        check_cleaned(X, out, overwrite=overwrite)
    boost = find_spec("lightgbm") is not None
    usual = CLASSIFIERS if boost else ("logistic",)
    features, exclude = as_given(features), as_given(exclude)
    plan = Plan(
        conditions=named(conditions, "condition", [name for name in CONDITIONS if name not in KEPT.values()]),
        classifiers=named(usual if classifiers is None else classifiers, "classifier", CLASSIFIERS),
        directions=named(directions, "direction", DIRECTIONS),
        folds=folds,
        perturbations=perturbations,
        top=top or (),
        drop=rule,
        n_components=n_components,
        fit_rows=fit_rows,
        min_rows=min_rows,
        max_rows=max_rows,
        boosting=boosting or {},
        nonfinite=nonfinite,
        random_state=random_state,
        rotations=rotations,
        control=control,
        features=features,
        exclude=exclude,
        key=key,
        also=tuple(also or ()),
        position=position if isinstance(position, str) else None if position is None else "(given)",
    )
    check_also(also or {})
    if "boost" in plan.classifiers:
        if not boost:
            raise InputError("The classifier 'boost' needs LightGBM. Install it: pip install 'nearid[boost]'")
        check_boosting(plan.boosting)
    # Before a cluster is started.
    for given in (X, meta):
        if isinstance(given, str | os.PathLike):
            check_source(given)
    with reporting(progress) as tracked, open_engine(engine) as opened:
        design = open_design(
            X,
            labels,
            batches,
            blocks,
            meta=meta,
            control=control,
            key=key,
            ids=ids,
            features=features,
            exclude=exclude,
            columns_from=columns_from,
            nonfinite=nonfinite,
            position=position,
            engine=opened,
        )
        if out is not None:
            check_columns(X, design.source, out)
        plan = replace(plan, key=design.key)
        names = possible_names((labels, batches, blocks))
        corrected, notes = open_also(also or {}, X, design, ids, names, opened)
        design = replace(design, alerts=(*design.alerts, *notes))
        if classifiers is None and not boost:
            missing = (
                "LightGBM is not installed, so only logistic regression was used. To add the paper's classifier: "
                "pip install 'nearid[boost]'"
            )
            design = replace(design, alerts=(*design.alerts, Alert("no_lightgbm", missing)))
        result = evaluate(plan, design, X, opened, tracked, corrected)
        if rule is None:
            return result
        return _cleaned(result, X, design, rule, plan, None if dry_run else out, opened, tracked)


def _cleaned(
    result: Deconfounding, X: Any, design: Design, drop: Drop, plan: Plan, out: Any, engine: Engine, progress: Progress
) -> Deconfounding:
    """The result with the cleaning: fitted on all rows, judged on rows that it was not fitted on, and written."""
    names = column_names(design.rows)
    tick = progress("what cleaning costs", 2 * plan.folds)
    judged = cost(design, drop, folds=plan.folds, most=plan.max_rows, seed=plan.random_state, tick=tick)
    cleaner = fit_cleaner(design, np.arange(design.n), drop, seed=plan.random_state)
    parts = split_components(design, cleaner, seed=plan.random_state, engine=engine)
    cleaning = described(cleaner, names, drop, judged, parts)
    alerts = list(result.alerts)
    if not cleaning.dropped:
        alerts.append(
            Alert(
                "nothing_dropped", "No batch component is dropped by this rule, so the cleaned embedding is the input."
            )
        )
    if out is not None:
        folder = model_folder(out)
        write_cleaned(
            X,
            design.source,
            cleaner.affine,
            out,
            key=design.key,
            left_out=design.left_out,
            record={"components": cleaner.readings, "mixing": cleaner.patterns}
            | {"mean": cleaner.mean, "columns": np.array(names, dtype=object)},
            engine=engine,
            tick=progress("cleaned rows", len(cleaner.affine.cut(design.source.shape[0]))),
        )
        write_model(folder, cleaner, design.rows.columns, plain(result.provenance))
        cleaning = replace(cleaning, written=os.fspath(out), model=str(folder))
    return replace(result, cleaning=cleaning, alerts=tuple(alerts))
