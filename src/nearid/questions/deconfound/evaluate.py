"""Classifiers that learn on some batches and are judged on others, under every condition; means and tests of them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.progress import Progress
from nearid.engines.local import cores, ordered_map
from nearid.measures.auroc import auroc
from nearid.measures.neighbourhoods import Mixing, Replicates, mixing, replicates
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import attribution
from nearid.questions.deconfound.classifiers import Learned, auroc_within, hoyer, learn
from nearid.questions.deconfound.conditions import PIECE, Fitted, View
from nearid.questions.deconfound.conditions import TITLES as CONDITIONS
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.paired import ALL, Mean, Paired, compared
from nearid.questions.deconfound.result import ConditionResult, Entry, Plane, Views
from nearid.questions.deconfound.splits import DIRECTIONS, Problem, Split

# Classifiers run side by side as long as their training rows take no more than this together.
SIDE_BY_SIDE_BYTES = 128 << 20


# 1 for a classifier that uses no component, else 0: no score, but what an alert counts.
IDLE = "idle"
Scores = dict[str, float]
# Rows that the plots show.
SHOWN = 1500


class Key(NamedTuple):
    """What a list of scores is of."""

    direction: str
    classifier: str
    perturbation: str


@dataclass(frozen=True)
class Plan:
    """What is evaluated of every condition.

    Attributes
    ----------
    design : Design
    problems : sequence of Problem
    classifiers : sequence of str
    top : sequence of int
        Numbers of components for the concentration; only in the direction "most".
    boosting : mapping
        Hyperparameters that differ from the paper's.
    drop : float or None
        Batch share from which a component is dropped, for the condition that drops some.
    seed : int
    """

    design: Design
    problems: Sequence[Problem]
    classifiers: Sequence[str]
    top: Sequence[int]
    boosting: Mapping[str, Any]
    drop: float | None
    seed: int

    def tasks(self, dropping: bool) -> list[tuple[Key, Problem, Split]]:
        """Every fit of a condition; one batch alone does not show what follows the batch, and nothing is dropped."""
        return [
            (Key(direction, classifier, problem.name), problem, split)
            for classifier in self.classifiers
            for problem in self.problems
            for direction, splits in problem.splits.items()
            if not (dropping and direction == "one")
            for split in splits
        ]


def evaluate(plan: Plan, view: View, *, dropping: bool, tick: Callable[[], object]) -> dict[Key, list[Scores]]:
    """Scores of all splits under one condition."""
    tasks = plan.tasks(dropping)
    most = max((len(split.rows) for _, _, split in tasks), default=1)
    workers = max(1, min(cores(), SIDE_BY_SIDE_BYTES // (4 * most * view.width)))
    threads = cores() // workers

    def run(task: tuple[Key, Problem, Split]) -> Scores:
        key, problem, split = task
        return _scores(plan, view, key, problem, split, dropping, threads)

    found: dict[Key, list[Scores]] = {}
    # Filters of warnings belong to the process, not to a thread: they are set around all fits.
    with warnings.catch_warnings():
        # Where classes are separable, the last digits of the coefficients do not matter.
        warnings.filterwarnings("ignore", message="lbfgs failed to converge")
        for (key, _, _), scores in zip(tasks, ordered_map(run, tasks, workers=workers, tick=tick), strict=True):
            found.setdefault(key, []).append(scores)
    return found


def _scores(plan: Plan, view: View, key: Key, problem: Problem, split: Split, dropping: bool, threads: int) -> Scores:
    labels, train, test = plan.design.labels.codes, split.train, split.test
    positive, truth = labels[train] == problem.code, labels[test] == problem.code

    def fit(which: np.ndarray | None) -> Learned:
        return learn(
            key.classifier,
            view,
            train,
            positive,
            which=which,
            options=plan.boosting,
            seed=plan.seed,
            threads=threads,
        )

    kept = _kept(plan, view, train, positive) if dropping else None
    whole = fit(kept)
    models = [(whole, kept)]
    width = view.width if kept is None else len(kept)
    counts = [k for k in plan.top if 2 * k <= width] if key.direction == "most" and whole.shares.any() else []
    order = np.argsort(-whole.shares, kind="stable")
    for k in counts:
        for part in (order[:k], order[k:]):
            which = np.sort(part if kept is None else kept[part])
            models.append((fit(which), which))
    predictions = _predictions(view, test, models)
    areas = [auroc(truth, made) for made in predictions]
    scores = {
        "auroc": areas[0],
        "auroc_within": auroc_within(truth, predictions[0], plan.design.batches.codes[test]),
        "sparsity": hoyer(whole.shares),
        IDLE: float(not whole.shares.any()),
    }
    scores |= {f"concentration@{k}": areas[2 * i + 1] - areas[2 * i + 2] for i, k in enumerate(counts)}
    return scores


def _predictions(view: View, places: np.ndarray, models: Sequence[tuple[Learned, np.ndarray | None]]) -> list[Floats]:
    """Scores of rows by every model; rows are mapped once."""
    made: list[Floats] = [np.empty(len(places)) for _ in models]
    for a in range(0, len(places), PIECE):
        x = view.take(places[a : a + PIECE])
        for out, (model, which) in zip(made, models, strict=True):
            out[a : a + PIECE] = model.predict(x if which is None else np.ascontiguousarray(x[:, which]))
    return made


def _kept(plan: Plan, view: View, train: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """Components that are not dropped, judged on the training rows alone."""
    assert plan.drop is not None
    control = None if plan.design.control is None else 0
    found = attribution(view, positive.astype(np.intp), plan.design.batches.codes[train], train, control)
    return found.kept(plan.drop)


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


@dataclass
class Watch:
    """Seconds of each stage; those of all cores do not depend on what else a machine does."""

    seconds: dict[str, float] = field(default_factory=dict)
    core_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add what the block takes to a stage."""
        clock, core = time.perf_counter(), time.process_time()
        yield
        for kept, now, began in (
            (self.seconds, time.perf_counter(), clock),
            (self.core_seconds, time.process_time(), core),
        ):
            kept[name] = kept.get(name, 0.0) + now - began
