"""The stages of deconfounding after the maps are fitted: measure every condition, table and test what was found."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.progress import Progress
from nearid.measures.neighbourhoods import Mixing, Replicates, mixing, replicates
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import attribution
from nearid.questions.deconfound.conditions import TITLES as CONDITIONS
from nearid.questions.deconfound.conditions import Fitted, View
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.heldout import IDLE, Key, Plan, Scores, evaluate
from nearid.questions.deconfound.paired import ALL, Mean, Paired, compared
from nearid.questions.deconfound.result import ConditionResult, Entry, Plane, Views
from nearid.questions.deconfound.splits import DIRECTIONS, Problem
from nearid.questions.deconfound.watch import Watch

# Rows that the plots show.
SHOWN = 1500


def measured(
    plan: Plan, fitted: Fitted, max_rows: int, watch: Watch, report: Progress
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
            follows = attribution(view, design.labels.codes, design.batches.codes, control=design.control)
        with watch.stage("neighbours"):
            x = view.take(some)
            results[name] = ConditionResult(condition, follows, *_near(design, some, x))
            if name == "ica" and plan.drop is not None:
                which = follows.kept(plan.drop)
                near = _near(design, some, x[:, which])
                results["kept"] = ConditionResult(condition.some("kept", which), follows.take(which), *near)
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


def _near(design: Design, some: np.ndarray, x: Floats) -> tuple[Mixing, Replicates]:
    labels, batches = design.labels.codes[some], design.batches.codes[some]
    return mixing(x, labels, batches), replicates(x, labels, batches, design.control)


def tabled(plan: Plan, scores: dict[str, dict[Key, list[Scores]]]) -> tuple[list[Entry], list[Paired]]:
    """Means of every score, and the tests between conditions."""
    entries: list[Entry] = []
    tests: list[Paired] = []
    by_name = {p.name: p for p in plan.problems}
    there = {(k.direction, k.classifier) for found in scores.values() for k in found}
    for direction, classifier in ((d, c) for c in plan.classifiers for d in DIRECTIONS if (d, c) in there):
        family = (direction, classifier)
        mine = {
            condition: {k.perturbation: v for k, v in found.items() if (k.direction, k.classifier) == family}
            for condition, found in scores.items()
        }
        names = dict.fromkeys(s for found in mine.values() for v in found.values() for split in v for s in split)
        for score in (name for name in names if name != IDLE):
            by_condition = {
                condition: {p: [split.get(score, float("nan")) for split in v] for p, v in found.items()}
                for condition, found in mine.items()
                if found
            }
            for condition, by_perturbation in by_condition.items():
                means = {p: Mean.of(v) for p, v in by_perturbation.items()}
                for perturbation, mean in {ALL: Mean.over(list(means.values())), **means}.items():
                    entries.append(Entry(direction, classifier, score, condition, perturbation, mean))
            corrections = {name: _correction(p, direction) for name, p in by_name.items() if p.splits[direction]}
            tests += compared(direction, classifier, score, by_condition, corrections)
    return entries, tests


def _correction(problem: Problem, direction: str) -> float:
    """Test over training rows, for folds whose training rows overlap."""
    if direction == "one":
        return 0.0
    return float(np.mean([len(s.test) / len(s.train) for s in problem.splits[direction]]))


def cautions(
    scores: dict[str, dict[Key, list[Scores]]], missing: bool, results: dict[str, ConditionResult]
) -> Iterator[Alert]:
    """What a reader of the scores should know; `missing` where LightGBM was wanted and is not there."""
    if missing:
        yield Alert(
            "no_lightgbm",
            "LightGBM is not installed, so logistic regression alone was used. The paper's classifier comes with: "
            "pip install 'nearid[boost]'",
        )
    for direction, title in DIRECTIONS.items():
        fits = [s for found in scores.values() for k, v in found.items() if k.direction == direction for s in v]
        idle = int(sum(s[IDLE] for s in fits))
        if idle:
            yield Alert(
                "no_splits",
                f"{idle} of {len(fits)} classifiers ({title}) used no component, and have an AUROC of 0.5: of trees, "
                "min_data_in_leaf asks for twice as many rows. Lower it with boosting (--boosting min_data_in_leaf=5), "
                "or look at logistic regression.",
            )
    if any(np.isnan(r.components.batch).all() for r in results.values()):
        yield Alert("confounded", "Batch and label cannot be told apart: no component is named technical.")
