"""Classifiers learned on some batches and judged on others, for every perturbation, split and classifier."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from nearid.engines.local import cores, ordered_map
from nearid.measures.sparsity import hoyer
from nearid.moments import Floats
from nearid.questions.deconfound.attribution import attribution
from nearid.questions.deconfound.classifiers import Learned, auroc, auroc_within, learn
from nearid.questions.deconfound.conditions import PIECE, View
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.splits import Problem, Split

# Classifiers run side by side as long as their training rows take no more than this together.
SIDE_BY_SIDE_BYTES = 128 << 20


# 1 for a classifier that uses no component, else 0: no score, but what an alert counts.
IDLE = "idle"


class Key(NamedTuple):
    """What a list of scores is of."""

    direction: str
    classifier: str
    perturbation: str


Scores = dict[str, float]


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
