"""Train classifiers on some batches and judge them on others, for every condition; means and tests."""

import hashlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.metadata import column_names
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.progress import Progress
from nearid.base.provenance import provenance
from nearid.engines.base import Engine
from nearid.engines.local import blocks, cores, ordered_map
from nearid.folds import row_moments
from nearid.measures.auroc import auroc
from nearid.measures.conservation import conservation
from nearid.measures.neighbourhoods import mixing
from nearid.measures.replicates import Against, ReplicateSearch
from nearid.moments import Floats, Moments
from nearid.questions.deconfound.also import Corrected, fit_also
from nearid.questions.deconfound.attribution import attribution, observe
from nearid.questions.deconfound.classifiers import (
    PUBLISHED,
    TREES,
    Learned,
    auroc_within,
    aurocs_without,
    hoyer,
    learn,
)
from nearid.questions.deconfound.cleaning import fit_cleaner
from nearid.questions.deconfound.conditions import (
    PIECE,
    ComponentRows,
    Components,
    Condition,
    Fitted,
    fit_conditions,
    most_components,
    scaled,
)
from nearid.questions.deconfound.corrections import fit_corrections
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.features import features
from nearid.questions.deconfound.paired import ALL, MeanScore, Paired, compared, deviation, mean_known, recognised
from nearid.questions.deconfound.partition import Partition, partition
from nearid.questions.deconfound.plan import COMPONENTS, CONDITIONS, CORRECTIONS, DIRECTIONS, KEPT, Plan
from nearid.questions.deconfound.position import PositionShares, position_alert, position_shares
from nearid.questions.deconfound.result import ConditionResult, Deconfounding, Drawings, Plane, Sizes
from nearid.questions.deconfound.splits import Contrast, Split, chosen, contrasts
from nearid.questions.deconfound.standing import loss_alerts, neighbour_tests

# Classifiers run in parallel while their training rows together take at most this memory.
SIDE_BY_SIDE_BYTES = 128 << 20
# 1 for a classifier that uses no component, otherwise 0. It is not a score; an alert counts it.
UNUSED = "unused"
# With fewer degrees of freedom of label x batch, almost no effect of a label is significant.
FEW_FREE = 3
# Rows that the plots show.
SHOWN = 1500
# An alert says so if the share of batch or label differs by more than this between scales of the columns.
SCALED = 0.1
# Rows for the figures of scib-metrics, whose distances are held in memory.
HELD = 2000


class Scores(NamedTuple):
    """Scores of a split by name, and the same without each batch of the design (NaN if nothing remains)."""

    scores: dict[str, float]
    without: dict[str, Floats]

    def left(self, score: str) -> Floats:
        """A score without each batch; NaN if the split does not have this score."""
        return self.without.get(score, np.full_like(self.without["auroc"], np.nan))


class Key(NamedTuple):
    """Identifies a list of scores."""

    direction: str
    classifier: str
    perturbation: str


@dataclass
class Timer:
    """Wall time and CPU time of each stage; other work on the machine does not change the CPU time."""

    seconds: dict[str, float] = field(default_factory=dict)
    core_seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Add the time of a `with` block to a stage."""
        clock, core = time.perf_counter(), time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - clock
        self.core_seconds[name] = self.core_seconds.get(name, 0.0) + time.process_time() - core


def evaluate(
    plan: Plan,
    design: Design,
    given: object,
    engine: Engine,
    progress: Progress,
    also: Mapping[str, Corrected] | None = None,
) -> Deconfounding:
    """Return the result of a plan on a design; `given` is the embedding as the caller gave it."""
    timer = Timer()
    with timer.stage("moments"):
        tick = progress("moments", len(blocks(*design.rows.shape)))
        moments, _ = row_moments(design.rows, engine=engine, tick=tick)
    codes, rare = chosen(design, plan.perturbations, plan.min_rows, plan.random_state)
    against, unsplit = contrasts(design, codes, plan.directions, plan.folds, plan.random_state)
    fitted = fit_conditions(design, moments, plan, engine, progress, timer.stage)
    fitted, corrected = _with_corrections(fitted, plan, design, also or {}, engine, timer)
    plan = replace(plan, top=_top(plan.top, fitted), boosting={"trees": TREES, **PUBLISHED, **plan.boosting})
    results, scores, drawings, near = _measure(plan, design, against, fitted, moments, engine, timer, progress)
    with timer.stage("components"):
        if "base" in results:
            variance = results["base"].partition
        else:
            variance = _of_columns(design, moments, plan.random_state, engine)
    means, tests, found = summarise(plan, against, scores)
    alerts = [*design.alerts, *corrected, *rare, *unsplit, *_alerts(scores, results)]
    alerts += _scales(variance, moments, design)
    alerts += _few_rows(plan, design, fitted)
    ica = None
    if fitted.diagnostics is not None:
        d = fitted.diagnostics
        alerts += [Alert(f"ica_{alert.code}", alert.message) for alert in d.alerts]
        ica = {"converged": d.converged, "passes": d.passes, "rows_per_parameter": d.rows_per_parameter}
        ica |= {"gaussian_components": int(d.gaussian.sum()), "trusted_components": d.trusted}
    result = Deconfounding(
        name=design.rows.name,
        n=design.n,
        width=design.rows.shape[1],
        batches=design.batches.names,
        labels=design.labels.names,
        control=None if design.control is None else design.labels.names[design.control],
        perturbations={c.name: Sizes(c.positives, c.negatives) for c in against},
        columns=design.rows.columns,
        conditions=results,
        variance=variance.whole,
        scores=tuple(means),
        tests=tuple(tests),
        recognised=tuple(found),
        neighbours=tuple(near),
        alerts=tuple(dict.fromkeys(alerts)),
        views=drawings,
        provenance=provenance(
            asdict(plan),
            [(given, design.rows), *(also or {}).values()],
            fitted_rows=fitted.rows,
            blocks=None if design.blocks is None else len(np.unique(design.blocks)),
            seconds={stage: round(spent, 3) for stage, spent in timer.seconds.items()},
            core_seconds={stage: round(spent, 3) for stage, spent in timer.core_seconds.items()},
            ica=ica,
        ),
    )
    return replace(result, alerts=(*loss_alerts(result), *result.alerts))


def _with_corrections(
    fitted: Fitted, plan: Plan, design: Design, also: Mapping[str, Corrected], engine: Engine, timer: Timer
) -> tuple[Fitted, list[Alert]]:
    """The conditions with the corrections by controls and the given ones, in this order."""
    others: dict[str, Components] = {}
    conditions: dict[str, Condition] = {}
    alerts: list[Alert] = []
    names = [name for name in plan.conditions if name in CORRECTIONS]
    with timer.stage("corrections"):
        if names:
            made, alerts = fit_corrections(names, design, plan.max_rows, plan.random_state, engine)
            for name, rows in made.items():
                fit = rows.fit
                others[name] = rows
                conditions[name] = Condition(name, fit.means, None, fit.live, fit.scales, own=False)
        for name, given in fit_also(also, engine, design.rows).items():
            others[name], conditions[name] = given, given.condition
    return fitted.with_others(others, conditions), alerts


def _top(top: Sequence[int], fitted: Fitted) -> tuple[int, ...]:
    narrowest = min(c.width for c in fitted.conditions.values())
    top = [int(k) for k in top if k]
    if not all(1 <= k <= narrowest // 2 for k in top):
        raise InputError(
            f"top is {top}, but each must be from 1 to half of the {narrowest} components of the narrowest condition."
        )
    return tuple(top)


def _measure(
    plan: Plan,
    design: Design,
    against: Sequence[Contrast],
    fitted: Fitted,
    moments: Moments,
    engine: Engine,
    timer: Timer,
    progress: Progress,
) -> tuple[dict[str, ConditionResult], dict[str, list[dict[Key, list[Scores]]]], Drawings, list[Paired]]:
    """Components, neighbours and classifiers of each condition, one after the other; scores of each rotation."""
    rng = np.random.default_rng([plan.random_state, 4])
    some = np.sort(rng.permutation(design.n)[: plan.max_rows])
    drawn = np.sort(rng.permutation(design.n)[:SHOWN])
    labels, batches = design.labels.codes[some], design.batches.codes[some]
    searched: tuple[Against, ...] = ("all",) if design.control is None else ("all", "controls")
    search = {name: ReplicateSearch(labels, batches, design.control, name, plan.random_state) for name in searched}

    few = np.sort(np.random.default_rng([plan.random_state, 8]).permutation(len(some))[:HELD])

    def near(components: Components) -> dict[str, Any]:
        x = components.take(some)
        found = {name: each.measure(x) for name, each in search.items()}
        return {
            "mixing": mixing(x, labels, batches),
            "replicates": found["all"],
            "activity": found.get("controls"),
            "conservation": conservation(x[few], labels[few], batches[few]),
        }

    results: dict[str, ConditionResult] = {}
    scores: dict[str, list[dict[Key, list[Scores]]]] = {}
    planes: list[Plane] = []
    neighbours: dict[str, dict[str, Any]] = {}
    cleaners = _Cleaners(plan, design)
    for name, condition in fitted.conditions.items():
        turns = fitted.components(name, design.rows)
        components = turns[0]
        dropping = (False, True) if name == plan.cleaned else (False,)
        with timer.stage("components"):
            codes = design.labels.codes, design.batches.codes
            seen = observe(components, *codes, blocks=design.blocks, engine=engine)
            follows = attribution(
                components, *codes, control=design.control, blocks=design.blocks, seen=seen, engine=engine
            )
            parts = partition(seen.units, condition.scales**2, seed=plan.random_state)
            del seen
            spot = _position(components, design, engine)
            names = column_names(design.rows) if name == "ica" else ()
            of = features(condition, moments, np.flatnonzero(follows.technical) if names else np.array([], int), names)
        with timer.stage("neighbours"):
            # Distances and angles are those of a condition that differs by a rotation alone.
            same = next((other for other in neighbours if condition.turns(fitted.conditions[other])), None)
            neighbours[name] = near(components) if same is None else neighbours[same]
            doubts = tuple(fitted.diagnostics.doubts) if name == "ica" and fitted.diagnostics else ()
            results[name] = ConditionResult(
                condition, follows, partition=parts, doubts=doubts, features=of, position=spot, **neighbours[name]
            )
            if name == plan.cleaned:
                clean = cleaners.clean(components, np.arange(design.n))
                seen = observe(clean, *codes, blocks=design.blocks, engine=engine)
                left = attribution(
                    clean, *codes, control=design.control, blocks=design.blocks, seen=seen, engine=engine
                )
                where = _position(clean, design, engine)
                results[KEPT[name]] = ConditionResult(
                    clean.condition,
                    left,
                    partition=partition(seen.units, seed=plan.random_state),
                    position=where,
                    **near(clean),
                )
        if condition.width > 1 and name in ("pca", "ica"):
            pair = np.array([0, 1]) if name == "pca" else follows.ranked[::-1][:2]
            kind = "leading" if name == "pca" else "most biological"
            points = components.some(pair).take(drawn)
            planes.append(
                Plane(
                    f"{condition.title}: the two {kind} components",
                    (f"{COMPONENTS[name]} {pair[0]}", f"{COMPONENTS[name]} {pair[1]}"),
                    points,
                )
            )
        for without_technical in dropping:
            row = KEPT[name] if without_technical else name
            tasks = tasks_of(against, without_technical)
            tick = progress(f"{CONDITIONS[row]}: classifiers", len(tasks) * len(turns))
            with timer.stage(f"classifiers, {row}"):
                how = cleaners if without_technical else None
                scores[row] = [score_tasks(plan, design, turn, tasks, how, tick) for turn in turns]
    drawings = Drawings(
        tuple(planes),
        tuple(design.labels.names[c] for c in design.labels.codes[drawn]),
        tuple(design.batches.names[c] for c in design.batches.codes[drawn]),
    )
    return results, scores, drawings, neighbour_tests(results, labels, batches)


def _position(components: Components, design: Design, engine: Engine) -> PositionShares | None:
    return None if design.position is None else position_shares(components, design, design.position, engine)


class _Cleaners:
    """Conditions of cleaned rows. Labels and classifiers that train on the same rows share the cleaning."""

    def __init__(self, plan: Plan, design: Design) -> None:
        self._plan, self._design = plan, design
        self._away: dict[bytes, tuple[Floats, Floats]] = {}

    def clean(self, components: Components, places: np.ndarray) -> ComponentRows:
        """Components of cleaned rows; the cleaning is fitted on rows at `places`."""
        assert isinstance(components, ComponentRows)
        assert self._plan.drop is not None
        key = hashlib.sha256(places.tobytes()).digest()
        if key not in self._away:
            fitted = fit_cleaner(self._design, places, self._plan.drop, seed=self._plan.random_state)
            self._away[key] = fitted.patterns, fitted.readings
        patterns, readings = self._away[key]
        plain = components.condition
        matrix = plain.lift(np.eye(plain.width))
        matrix = matrix - (matrix @ patterns) @ readings
        k = plain.width
        return replace(components, condition=Condition(KEPT[plain.name], plain.mean, matrix, np.arange(k), np.ones(k)))


def _of_columns(design: Design, moments: Moments, seed: int, engine: Engine) -> Partition:
    """The variance of the columns of the embedding, each in its own scale, split between batch and label."""
    condition = scaled(design.rows.name, moments)
    codes = design.labels.codes, design.batches.codes
    seen = observe(ComponentRows(design.rows, condition), *codes, blocks=design.blocks, engine=engine)
    return partition(seen.units, condition.scales**2, seed=seed)


Task = tuple[str, Contrast, Split]


def tasks_of(against: Sequence[Contrast], dropping: bool) -> list[Task]:
    """All splits of a condition, with their directions.

    Training on one batch drops no components, because it does not show batch effects.
    """
    return [
        (direction, contrast, split)
        for contrast in against
        for direction, splits in contrast.splits.items()
        if not (dropping and direction == "one")
        for split in splits
    ]


def score_tasks(
    plan: Plan,
    design: Design,
    components: Components,
    tasks: list[Task],
    cleaners: _Cleaners | None,
    tick: Callable[[], object],
) -> dict[Key, list[Scores]]:
    """Scores of all splits under one condition; with `cleaners`, of rows cleaned as their training rows say."""
    most = max((len(split.rows) for _, _, split in tasks), default=1)
    workers = max(1, min(cores(), SIDE_BY_SIDE_BYTES // (4 * most * components.width)))
    threads = cores() // workers

    # Cleaned rows differ between splits.
    components = components.held() if cleaners is None else components

    def run(task: Task) -> list[Scores]:
        fitted = components.trained(task[2].train)
        if cleaners is not None:
            fitted = cleaners.clean(fitted, task[2].train)
        return [_scores(plan, design, fitted, task, classifier, threads) for classifier in plan.classifiers]

    scores: dict[Key, list[Scores]] = {}
    # Warning filters are per process, not per thread, so they are set around all fits.
    with warnings.catch_warnings():
        # If classes are separable, the last digits of the coefficients do not matter.
        warnings.filterwarnings("ignore", message="lbfgs failed to converge")
        every = ordered_map(run, tasks, workers=workers, tick=tick)
        for (direction, contrast, _), each in zip(tasks, every, strict=True):
            for classifier, found in zip(plan.classifiers, each, strict=True):
                scores.setdefault(Key(direction, classifier, contrast.name), []).append(found)
    return scores


def _scores(plan: Plan, design: Design, components: Components, task: Task, classifier: str, threads: int) -> Scores:
    direction, contrast, split = task
    labels, train, test = design.labels.codes, split.train, split.test
    positive, truth = labels[train] == contrast.code, labels[test] == contrast.code
    batches, count = design.batches.codes[test], len(design.batches.names)

    def fit(which: np.ndarray) -> tuple[Learned, np.ndarray]:
        part = components if len(which) == components.width else components.some(which)
        return learn(classifier, part, train, positive, plan, threads), which

    whole, _ = first = fit(np.arange(components.width))
    if classifier == "boost" and not whole.shares.any():
        # Trees without a split had too few rows. That is not a result, and not a tie between conditions.
        none = ("auroc", "auroc_within", "sparsity")
        return Scores(dict.fromkeys(none, np.nan) | {UNUSED: 1.0}, {name: np.full(count, np.nan) for name in none})
    models = [first]
    counts = plan.top if direction == "most" and whole.shares.any() else ()
    order = np.argsort(-whole.shares, kind="stable")
    for k in counts:
        models += [fit(np.sort(order[:k])), fit(np.sort(order[k:]))]
    predictions = _predictions(components, test, models)
    areas = [auroc(truth, predicted) for predicted in predictions]
    left = [aurocs_without(truth, predicted, batches, count) for predicted in predictions]
    sparsity = hoyer(whole.shares)
    scores = {
        "auroc": areas[0],
        "auroc_within": auroc_within(truth, predictions[0], batches),
        "sparsity": sparsity,
        UNUSED: float(not whole.shares.any()),
    }
    without = {"auroc": left[0][0], "auroc_within": left[0][1], "sparsity": np.full(count, sparsity)}
    for i, k in enumerate(counts):
        scores[f"concentration@{k}"] = areas[2 * i + 1] - areas[2 * i + 2]
        without[f"concentration@{k}"] = left[2 * i + 1][0] - left[2 * i + 2][0]
    if split.alone:
        # Without its only training batch a split does not exist.
        for values in without.values():
            values[split.part] = np.nan
    return Scores(scores, without)


def _predictions(
    components: Components, places: np.ndarray, models: Sequence[tuple[Learned, np.ndarray]]
) -> list[Floats]:
    """Scores of rows by every model; rows are mapped once."""
    predictions: list[Floats] = [np.empty(len(places)) for _ in models]
    for a in range(0, len(places), PIECE):
        x = components.take(places[a : a + PIECE])
        for out, (model, which) in zip(predictions, models, strict=True):
            part = x if len(which) == components.width else np.ascontiguousarray(x[:, which])
            out[a : a + PIECE] = model.predict(part)
    return predictions


def summarise(
    plan: Plan, against: Sequence[Contrast], scores: dict[str, list[dict[Key, list[Scores]]]]
) -> tuple[list[MeanScore], list[Paired], list[Paired]]:
    """Means of every score, and tests between conditions and against a guess; scores of rotations are averaged."""
    means: list[MeanScore] = []
    tests: list[Paired] = []
    found: list[Paired] = []
    there = {(k.direction, k.classifier) for turns in scores.values() for k in turns[0]}
    for direction, classifier in ((d, c) for c in plan.classifiers for d in DIRECTIONS if (d, c) in there):
        # Condition -> perturbation -> scores by rotation and split.
        family = {
            condition: {
                key.perturbation: [turn[key] for turn in turns]
                for key in turns[0]
                if key[:2] == (direction, classifier)
            }
            for condition, turns in scores.items()
        }
        family = {condition: by_name for condition, by_name in family.items() if by_name}
        corrections = {c.name: _correction(c, direction) for c in against if c.splits[direction]}
        each_split = [s for by_name in family.values() for turns in by_name.values() for turn in turns for s in turn]
        for score in dict.fromkeys(name for split in each_split for name in split.scores if name != UNUSED):
            values: dict[str, dict[str, list[float]]] = {}
            without: dict[str, dict[str, Floats]] = {}
            for condition, by_name in family.items():
                key = (direction, classifier, score, condition)
                table = {
                    name: np.array([[s.scores.get(score, np.nan) for s in turn] for turn in turns])
                    for name, turns in by_name.items()
                }
                values[condition] = {name: mean_known(each).tolist() for name, each in table.items()}
                without[condition] = {
                    name: mean_known(np.array([[s.left(score) for s in turn] for turn in turns]))
                    for name, turns in by_name.items()
                }
                by_turn = {name: mean_known(each.T) for name, each in table.items()}
                some = [
                    replace(MeanScore.of((*key, name), v), spread=deviation(by_turn[name]))
                    for name, v in values[condition].items()
                ]
                defined, every = (sum(m.splits[i] for m in some) for i in (0, 1))
                whole = MeanScore.of((*key, ALL), [m.mean for m in some], (defined, every))
                means += [replace(whole, spread=deviation(mean_known(np.array(list(by_turn.values()))))), *some]
            tests += compared(direction, classifier, score, values, without, corrections)
            if score == "auroc_within":
                found += recognised(direction, classifier, values, without, corrections)
    return means, tests, found


def _correction(contrast: Contrast, direction: str) -> float | None:
    """Ratio of test to training rows, for folds whose training rows overlap; None for training on single batches."""
    if direction == "one":
        return None
    return float(np.mean([len(s.test) / len(s.train) for s in contrast.splits[direction]]))


def _alerts(scores: dict[str, list[dict[Key, list[Scores]]]], results: dict[str, ConditionResult]) -> Iterator[Alert]:
    first = next(iter(results.values()))
    placed = None if first.position is None else position_alert(first.title, first.position)
    if placed is not None:
        yield placed
    every = [turn for turns in scores.values() for turn in turns]
    unused = []
    for direction, title in DIRECTIONS.items():
        fits = [
            s.scores for turn in every for k, v in turn.items() if (k.direction, k.classifier) == (direction, "boost")
            for s in v
        ]  # fmt: skip
        count = int(sum(s[UNUSED] for s in fits))
        unused += [f"{count:,} of {len(fits):,} ({title})"] * bool(count)
    if unused:
        yield Alert(
            "no_splits",
            f"LightGBM could not split so few rows, so that classifiers have no scores: {' and '.join(unused)}. Trees "
            "need twice as many rows as min_data_in_leaf. Lower it with boosting (--boosting min_data_in_leaf=5), or "
            "look at logistic regression.",
        )
    if any(np.isnan(r.components.batch).all() for r in results.values()):
        yield Alert("confounded", "Batch and label cannot be separated, so no component is named technical.")
    free = min(r.components.label_free for r in results.values())
    if free < FEW_FREE:
        yield Alert(
            "few_shared_labels",
            f"{'Few components can' if free else 'No component can'} be named biological: too few labels occur in "
            f"several batches ({free} degrees of freedom of label x batch, 3 or more are needed).",
        )


def _few_rows(plan: Plan, design: Design, fitted: Fitted) -> Iterator[Alert]:
    """An alert where there are more directions than whitening keeps."""
    most, d = most_components(fitted.rows), design.rows.shape[1]
    widths = {fitted.conditions[name].width for name in ("pca", "random", "ica") if name in fitted.conditions}
    if plan.n_components is None and d > most and widths == {most}:
        yield Alert(
            "components",
            f"PCA, PCA + Rand and PCA + ICA keep the {most} leading of {d} principal directions, because the maps are "
            f"fitted on {fitted.rows:,} rows. Whitening makes every direction as large as the first, also those that "
            "are noise. For another number: n_components (--n-components).",
        )


def _scales(variance: Partition, moments: Moments, design: Design) -> Iterator[Alert]:
    """An alert where a few columns with a large variance decide how much of it is batch and label."""
    whole = np.array([float(share) for share in variance.whole[:2]])
    if np.isnan(whole).any():
        return
    alike = np.nanmean(variance.values[:2], axis=1)
    if np.abs(alike - whole).max() > SCALED:
        sizes = np.diagonal(moments.scatter)
        name, share = column_names(design.rows)[int(np.argmax(sizes))], float(sizes.max() / sizes.sum())
        batch, label = 100 * np.clip(alike, 0, 1)
        yield Alert(
            "scales",
            f"The shares of the variance depend on the scales of the columns: if all have the same variance, the batch "
            f"explains {batch:.0f}% and the label {label:.0f}%. The shares given are of the embedding as it is, in "
            f"which {name!r} holds the largest part ({share:.0%}).",
        )
