"""From an embedding with labels and batches to the whole answer."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from nearid import __version__
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, unknown
from nearid.base.options import Seed, checked
from nearid.base.progress import Reporting, reporting
from nearid.engines.base import Engine
from nearid.engines.local import blocks, open_engine
from nearid.folds import row_moments
from nearid.questions.compare.run import origin_of
from nearid.questions.deconfound.classifiers import PUBLISHED, TREES, check_boosting
from nearid.questions.deconfound.classifiers import named as named_classifiers
from nearid.questions.deconfound.conditions import Fitted, fit_conditions
from nearid.questions.deconfound.conditions import named as named_conditions
from nearid.questions.deconfound.design import open_design, without
from nearid.questions.deconfound.evaluate import Plan, Watch, cautions, measured, tabled
from nearid.questions.deconfound.result import Deconfounding
from nearid.questions.deconfound.splits import DIRECTIONS, chosen, problems

# Numbers of leading components for the concentration; those of the paper are not legible in its text.
TOP = (5, 10, 20)
MAX_ROWS = 10_000
MIN_ROWS = 10


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
    folds: int = 5,
    perturbations: Sequence[Any] | str | int | None = None,
    top: Sequence[int] | None = None,
    drop: float | None = None,
    components: int | None = None,
    fit_rows: int | None = None,
    groups: Any = None,
    min_rows: int = MIN_ROWS,
    max_rows: int = MAX_ROWS,
    boosting: Mapping[str, Any] | None = None,
    drop_nonfinite: bool = False,
    random_state: Seed = 0,
    key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> Deconfounding:
    """Compare an embedding, whitened, unmixed and turned at random: what is told of perturbations in unseen batches?

    Parameters
    ----------
    X : array, tensor, DataFrame, AnnData, path or Rows, of shape (n, d)
        One row per cell, image or well. Of a table, numeric columns are features unless they are named as label, batch
        or group or begin with "Metadata_".
    labels, batches : str or array-like of shape (n,)
        Perturbation and batch (plate, donor, site) of each row: columns of `meta`, of `obs`, or of the table X; or the
        values themselves.
    meta : DataFrame, dict of columns or path of a table, optional
        Paired with X by position, or by id where both have ids; DataFrames by their index.
    control : str or number, optional
        The label that each other one is told from; without it each is told from all others.
    conditions : names
        "base" (columns of unit variance), "pca" (whitened), "random" (whitened and turned at random), "ica" (whitened
        and unmixed). All are fitted without labels and batches.
    classifiers : names, optional
        "boost" (LightGBM with the paper's hyperparameters) and "logistic". Both by default; without LightGBM, the
        second alone.
    directions : names
        "most": batches in folds, each held out in turn; "one": trained on one batch, judged on all others, for as many
        batches (drawn at random) as there are folds.
    folds : int, default=5
    perturbations : names or int, optional
        Labels to evaluate, or how many of the most frequent; all by default.
    top : sequence of int, optional
        Numbers k of the concentration: AUROC from the k most used components less AUROC from the others. 5, 10 and 20
        by default, as far as components suffice; empty for none.
    drop : float, optional
        Adds a condition: independent components without those of which the batch explains at least this share, and
        more than the label does, judged on the training rows of each split.
    components : int, optional
        Leading principal directions to keep; all that exist by default.
    fit_rows : int, optional
        Rows at most, drawn at random, on which whitening and ICA are fitted; all by default, read block by block.
    groups : str or array-like of shape (n,), optional
        Image or well of each row: maps are fitted on one row of each.
    min_rows : int, default=10
        Labels with fewer rows are not evaluated.
    max_rows : int, default=10000
        Rows at most for what needs neighbours.
    boosting : mapping, optional
        Hyperparameters of LightGBM that differ from the paper's; "trees" is their number, 100 by default.
    drop_nonfinite : bool, default=False
        Leave out rows with a NaN or an infinity; otherwise they are an error.
    random_state : int, default=0
    key : str, optional
        Entry to read, of a file with several arrays; of AnnData the entry of `obsm`.
    ids : optional
        Name of the column with row ids; for arrays a pair of id arrays (of X, of meta).
    features, exclude : sequence of str or str, optional
        Columns of the table X to use as features, and columns to leave out: names or patterns, as "emb_*", one by one
        or in a text with commas. Columns that are left out may still be labels, batches or groups.
    engine : {"local", "dask"}, address or Engine, optional
        Where passes of moments and ICA run.
    progress : bool, default=False

    Returns
    -------
    Deconfounding
    """
    watch = Watch()
    ways = _directions(directions)
    names, (learners, missing) = named_conditions(conditions), named_classifiers(classifiers)
    counts = {
        "folds": (folds, 2),
        "min_rows": (min_rows, 2),
        "max_rows": (max_rows, 50),
        "random_state": (random_state, 0),
    }
    _check_counts(counts | {"fit_rows": (fit_rows, 10), "components": (components, 1)})
    _check_drop(drop, names, ways)
    if "boost" in learners:
        check_boosting(boosting or {})
    design = open_design(
        X,
        labels,
        batches,
        meta=meta,
        groups=groups,
        control=control,
        key=key,
        ids=ids,
        features=features,
        exclude=exclude,
    )
    with reporting(progress) as report, open_engine(engine) as opened:
        with watch.stage("moments"):
            tick = report("moments", len(blocks(*design.rows.shape)))
            moments, kept = row_moments(design.rows, drop_nonfinite=drop_nonfinite, engine=opened, tick=tick)
        if kept is not None:
            design = without(design, kept)
        codes, rare = chosen(design, perturbations, min_rows)
        asked, untold = problems(design, codes, ways, folds, random_state)
        fitted = fit_conditions(
            design,
            moments,
            names,
            most=fit_rows,
            components=components,
            seed=random_state,
            engine=opened,
            progress=report,
            timed=watch.stage,
        )
        plan = Plan(design, asked, learners, _top(top, fitted), dict(boosting or {}), drop, random_state)
        results, scores, views = measured(plan, fitted, max_rows, watch, report)
    entries, tests = tabled(plan, scores)
    doubts = () if fitted.diagnostics is None else fitted.diagnostics.cautions
    alerts = [*design.alerts, *rare, *untold, *cautions(scores, missing, results)]
    alerts += [Alert(f"ica_{c.kind}", c.text) for c in doubts]
    options = {
        "conditions": names,
        "classifiers": learners,
        "directions": ways,
        "folds": folds,
        "top": plan.top,
        "drop": drop,
        "components": components,
        "fit_rows": fit_rows,
        "min_rows": min_rows,
        "max_rows": max_rows,
        "boosting": {"trees": TREES, **PUBLISHED, **plan.boosting},
        "random_state": random_state,
    }
    return Deconfounding(
        name=design.rows.name,
        n=design.n,
        width=design.rows.shape[1],
        batches=design.batches.names,
        labels=design.labels.names,
        control=None if design.control is None else design.labels.names[design.control],
        perturbations={p.name: (p.positives, p.negatives) for p in asked},
        columns=design.rows.columns,
        conditions=results,
        scores=tuple(entries),
        tests=tuple(tests),
        alerts=tuple(dict.fromkeys(alerts)),
        views=views,
        provenance={
            "nearid": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "options": {k: list(v) if isinstance(v, tuple) else v for k, v in options.items()},
            "fitted_rows": fitted.rows,
            "seconds": {k: round(v, 3) for k, v in watch.seconds.items()},
            "core_seconds": {k: round(v, 3) for k, v in watch.core_seconds.items()},
            "ica": None if fitted.diagnostics is None else _diagnosed(fitted),
            "input": {
                "name": design.rows.name,
                "source": origin_of(X),
                "shape": list(design.rows.shape),
                "dtype": str(design.rows.dtype),
                "fingerprint": design.rows.fingerprint(),
            },
        },
    )


def _directions(directions: Sequence[str] | str) -> tuple[str, ...]:
    wanted = [d.strip() for d in (directions.split(",") if isinstance(directions, str) else directions)]
    for name in wanted:
        if name not in DIRECTIONS:
            raise InputError(unknown("direction", name, DIRECTIONS))
    if not wanted:
        raise InputError("No direction was named; there are most and one.")
    return tuple(d for d in DIRECTIONS if d in wanted)


def _check_counts(least: Mapping[str, tuple[Any, int]]) -> None:
    """Whole numbers with their least values; None (in `components` and `fit_rows`) is all."""
    for name, (value, bound) in least.items():
        if value is None and name in ("components", "fit_rows"):
            continue
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < bound:
            raise InputError(f"{name} must be a whole number from {bound} on, not {value!r}.")


def _check_drop(drop: Any, names: Sequence[str], ways: Sequence[str]) -> None:
    if drop is None:
        return
    if isinstance(drop, bool) or not isinstance(drop, int | float | np.number) or not 0 <= drop < 1:
        raise InputError(f"drop is a share of variance from 0 to below 1, not {drop!r}.")
    if "ica" not in names:
        raise InputError("drop leaves out independent components, but the condition 'ica' was not asked for.")
    if "most" not in ways:
        raise InputError(
            "drop leaves out what follows the batch in several training batches, but the direction 'most' was not "
            "asked for: one batch alone does not show it."
        )


def _top(top: Sequence[int] | None, fitted: Fitted) -> tuple[int, ...]:
    narrowest = min(c.width for c in fitted.conditions.values())
    if top is None:
        return tuple(k for k in TOP if 2 * k <= narrowest) or ((1,) if narrowest > 1 else ())
    if not isinstance(top, Sequence | np.ndarray) or isinstance(top, str):
        raise InputError(f"top takes a list of whole numbers, as (5, 10, 20), not {top!r}.")
    for k in top:
        if not isinstance(k, int | np.integer) or not 1 <= k <= narrowest // 2:
            raise InputError(
                f"top is {list(top)}, but each must be from 1 to half of the {narrowest} components of the narrowest "
                "condition."
            )
    return tuple(int(k) for k in top)


def _diagnosed(fitted: Fitted) -> dict[str, Any]:
    d = fitted.diagnostics
    assert d is not None
    return {
        "converged": d.converged,
        "passes": d.passes,
        "rows_per_parameter": d.rows_per_parameter,
        "gaussian_components": int(d.gaussian.sum()),
        "cautions": [asdict(c) for c in d.cautions],
    }
