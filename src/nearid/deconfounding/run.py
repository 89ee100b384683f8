"""From an embedding with labels and batches to the whole answer."""

from __future__ import annotations

import platform
import time
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid import __version__
from nearid.alerts import Alert
from nearid.deconfounding.attribution import attribution
from nearid.deconfounding.classifiers import PUBLISHED, TREES
from nearid.deconfounding.classifiers import named as named_classifiers
from nearid.deconfounding.conditions import TITLES as CONDITIONS
from nearid.deconfounding.conditions import Fitted, View, fit_conditions
from nearid.deconfounding.conditions import named as named_conditions
from nearid.deconfounding.design import open_design, origin, without
from nearid.deconfounding.heldout import Key, Plan, Scores, evaluate
from nearid.deconfounding.neighbours import mixing, replicates
from nearid.deconfounding.paired import ALL, Mean, Paired, compared
from nearid.deconfounding.result import ConditionResult, Deconfounding, Entry, Plane, Views
from nearid.deconfounding.splits import DIRECTIONS, Problem, chosen, problems
from nearid.engines.base import Engine
from nearid.engines.local import blocks
from nearid.engines.open import open_engine
from nearid.errors import InputError, unknown
from nearid.folds import row_moments
from nearid.progress import Progress, reporting

if TYPE_CHECKING:
    from collections.abc import Iterator

# Numbers of leading components for the concentration; those of the paper are not legible in its text.
TOP = (5, 10, 20)
# Rows that the plots show.
SHOWN = 1500
MAX_ROWS = 10_000
MIN_ROWS = 10


def deconfound(
    X: Any,
    labels: Any = None,
    batches: Any = None,
    *,
    meta: Any = None,
    control: str | None = None,
    conditions: Sequence[str] | str = ("base", "pca", "random", "ica"),
    classifiers: Sequence[str] | str | None = None,
    directions: Sequence[str] | str = ("most", "one"),
    folds: int = 5,
    perturbations: Sequence[str] | str | int | None = None,
    top: Sequence[int] | None = None,
    drop: float | None = None,
    components: int | None = None,
    fit_rows: int | None = None,
    groups: Any = None,
    min_rows: int = MIN_ROWS,
    max_rows: int = MAX_ROWS,
    boosting: Mapping[str, Any] | None = None,
    drop_nonfinite: bool = False,
    random_state: int = 0,
    key: str | None = None,
    ids: Any = None,
    engine: str | Engine | None = None,
    progress: bool = False,
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
        Paired with X by position, or by id where both have ids.
    control : str, optional
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
    engine : {"local", "dask"}, address or Engine, optional
        Where passes of moments and ICA run.
    progress : bool, default=False

    Returns
    -------
    Deconfounding
    """
    watch = _Watch({})
    ways = _directions(directions)
    names, (learners, missing) = named_conditions(conditions), named_classifiers(classifiers)
    _check(folds, min_rows, max_rows, fit_rows, random_state, drop, names)
    design = open_design(X, labels, batches, meta=meta, groups=groups, control=control, key=key, ids=ids)
    with reporting(progress) as report, open_engine(engine) as opened:
        with watch.stage("moments"):
            tick = report("moments", len(blocks(*design.rows.shape)))
            moments, kept = row_moments(design.rows, drop_nonfinite=drop_nonfinite, engine=opened, tick=tick)
        if kept is not None:
            design = without(design, kept)
        codes, rare = chosen(design, perturbations, min_rows)
        asked, untold = problems(design, codes, ways, folds, random_state)
        with watch.stage("conditions"):
            fitted = fit_conditions(
                design,
                moments,
                names,
                most=fit_rows,
                components=components,
                seed=random_state,
                engine=opened,
                progress=report,
            )
        plan = Plan(design, asked, learners, _top(top, fitted), dict(boosting or {}), drop, random_state)
        results, scores, views = _conditions(plan, fitted, max_rows, watch, report)
    entries, tests = _tabled(plan, scores)
    cautions = () if fitted.diagnostics is None else fitted.diagnostics.cautions
    alerts = [*design.alerts, *rare, *untold, *_alerts(scores, missing, results)]
    alerts += [Alert(f"ica_{c.kind}", c.text) for c in cautions]
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
            "ica": None if fitted.diagnostics is None else _diagnosed(fitted),
            "input": {
                "name": design.rows.name,
                "source": origin(X),
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


def _check(
    folds: int,
    min_rows: int,
    max_rows: int,
    fit_rows: int | None,
    seed: int,
    drop: float | None,
    names: Sequence[str],
) -> None:
    least = {"folds": (folds, 2), "min_rows": (min_rows, 2), "max_rows": (max_rows, 50), "random_state": (seed, 0)}
    if fit_rows is not None:
        least["fit_rows"] = (fit_rows, 10)
    for name, (value, bound) in least.items():
        if not isinstance(value, int | np.integer) or value < bound:
            raise InputError(f"{name} must be a whole number from {bound} on, not {value!r}.")
    if drop is not None and not 0 <= drop < 1:
        raise InputError(f"drop is a share of variance from 0 to below 1, not {drop!r}.")
    if drop is not None and "ica" not in names:
        raise InputError("drop leaves out independent components, but the condition 'ica' was not asked for.")


def _top(top: Sequence[int] | None, fitted: Fitted) -> tuple[int, ...]:
    narrowest = min(c.width for c in fitted.conditions.values())
    if top is None:
        return tuple(k for k in TOP if 2 * k <= narrowest) or ((1,) if narrowest > 1 else ())
    for k in top:
        if not 1 <= k <= narrowest // 2:
            raise InputError(
                f"top is {list(top)}, but each must be from 1 to half of the {narrowest} components of the narrowest "
                "condition."
            )
    return tuple(top)


@dataclass
class _Watch:
    """Seconds of each stage."""

    seconds: dict[str, float]

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


def _conditions(
    plan: Plan, fitted: Fitted, max_rows: int, watch: _Watch, report: Progress
) -> tuple[dict[str, ConditionResult], dict[str, dict[Key, list[Scores]]], Views]:
    """Everything that is measured of each condition, one after the other."""
    design = plan.design
    rng = np.random.default_rng([plan.seed, 4])
    some = np.sort(rng.permutation(design.n)[:max_rows])
    shown = np.sort(rng.permutation(design.n)[:SHOWN])
    results: dict[str, ConditionResult] = {}
    scores: dict[str, dict[Key, list[Scores]]] = {}
    planes: list[Plane] = []
    for name, condition in fitted.conditions.items():
        view = View(design.rows, condition)
        with watch.stage("components"):
            follows = attribution(view, design.labels.codes, design.batches.codes)
        with watch.stage("neighbours"):
            x, labels, batches = view.take(some), design.labels.codes[some], design.batches.codes[some]
            near = mixing(x, labels, batches), replicates(x, labels, batches, design.control)
        results[name] = ConditionResult(condition, follows, *near)
        if condition.width > 1 and name in ("pca", "ica"):
            pair = np.array([0, 1]) if name == "pca" else follows.ranked[::-1][:2]
            said = "leading" if name == "pca" else "most biological"
            points = view.take(shown, pair)
            planes.append(Plane(f"{condition.title}: the two {said} components", (str(pair[0]), str(pair[1])), points))
        dropping = (False, True) if name == "ica" and plan.drop is not None else (False,)
        for without_technical in dropping:
            row = "kept" if without_technical else name
            tick = report(f"{CONDITIONS[row]}: classifiers", len(plan.tasks(without_technical)))
            with watch.stage(f"classifiers, {row}"):
                scores[row] = evaluate(plan, view, dropping=without_technical, tick=tick)
    views = Views(
        tuple(planes),
        tuple(design.labels.names[c] for c in design.labels.codes[shown]),
        tuple(design.batches.names[c] for c in design.batches.codes[shown]),
    )
    return results, scores, views


def _tabled(plan: Plan, scores: dict[str, dict[Key, list[Scores]]]) -> tuple[list[Entry], list[Paired]]:
    """Means of every score, and the tests between conditions."""
    entries: list[Entry] = []
    tests: list[Paired] = []
    by_name = {p.name: p for p in plan.problems}
    for direction, classifier in dict.fromkeys((k.direction, k.classifier) for found in scores.values() for k in found):
        values: dict[str, dict[str, dict[str, list[float]]]] = {}
        for condition, found in scores.items():
            for key, splits in found.items():
                if (key.direction, key.classifier) != (direction, classifier):
                    continue
                for score in dict.fromkeys(s for split in splits for s in split):
                    each = [split.get(score, float("nan")) for split in splits]
                    values.setdefault(score, {}).setdefault(condition, {})[key.perturbation] = each
        for score, by_condition in values.items():
            for condition, by_perturbation in by_condition.items():
                means = {p: Mean.of(v) for p, v in by_perturbation.items()}
                overall = Mean.of([m.mean for m in means.values()])
                for perturbation, mean in {ALL: overall, **means}.items():
                    entries.append(Entry(direction, classifier, score, condition, perturbation, mean))
            corrections = {name: _correction(p, direction) for name, p in by_name.items()}
            tests += compared(direction, classifier, score, by_condition, corrections)
    return entries, tests


def _correction(problem: Problem, direction: str) -> float:
    """Test over training rows, for folds whose training rows overlap."""
    if direction == "one":
        return 0.0
    return float(np.mean([len(s.test) / len(s.train) for s in problem.splits[direction]]))


def _alerts(
    scores: dict[str, dict[Key, list[Scores]]], missing: bool, results: dict[str, ConditionResult]
) -> Iterator[Alert]:
    if missing:
        yield Alert(
            "no_lightgbm",
            "LightGBM is not installed, so logistic regression alone was used. The paper's classifier comes with: "
            "pip install 'nearid[boost]'",
        )
    for direction, title in DIRECTIONS.items():
        fits = [s for found in scores.values() for k, v in found.items() if k.direction == direction for s in v]
        idle = sum(np.isnan(s["sparsity"]) for s in fits)
        if idle:
            yield Alert(
                "no_splits",
                f"{idle} of {len(fits)} classifiers ({title}) used no component, and have an AUROC of 0.5: of trees, "
                "min_data_in_leaf asks for twice as many rows. Lower it with boosting (--boosting min_data_in_leaf=5), "
                "or look at logistic regression.",
            )
        undefined = sum(np.isnan(s["auroc"]) for s in fits)
        if undefined:
            yield Alert(
                "undefined_auroc",
                f"{undefined} of {len(fits)} held-out sets ({title}) lack a class, and count for nothing.",
            )
    if any(np.isnan(r.components.batch).all() for r in results.values()):
        yield Alert("confounded", "Batch and label cannot be told apart: no component is named technical.")


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
