"""Statistical identifiability: are two or more runs the same representation, up to which group and how closely?"""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypedDict, Unpack, overload

import numpy as np

from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.blocks import open_blocks, recorded
from nearid.arrays.metadata import choose_columns
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.extensions import lapack
from nearid.base.options import Bound, Count, Folds, Seed, Share, Size, as_given, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.base.provenance import provenance
from nearid.dependence import blocks_run_on, clustered_rows, serial_rows
from nearid.engines.base import Engine
from nearid.engines.local import one_blas_thread, open_engine
from nearid.folds import PARTIAL_BYTES, STRETCHES, Blocks
from nearid.groups.fits import shares_of
from nearid.groups.ladder import GROUPS, Group, Prepared, ladder
from nearid.measures.diameter import Diameter
from nearid.measures.similarity import cka_from_moments, debiased_cka
from nearid.moments import Floats
from nearid.questions.compare import ica_rung  # noqa: F401, registers its group
from nearid.questions.compare.alerts import alerts
from nearid.questions.compare.chance import LEAST_ORDERS, MOST_PERMUTATIONS, PERMUTATIONS, Chance, chance_level
from nearid.questions.compare.efficiency import Efficiency, efficiency, least_gain_of_rigid
from nearid.questions.compare.errors import (
    Evaluation,
    Fits,
    Gathered,
    Options,
    evaluate,
    fit_held_out,
    fit_in_sample,
    gather,
    root_mean_square,
    target_diameter,
    unexplained_share,
)
from nearid.questions.compare.intervals import influences
from nearid.questions.compare.many import Whole
from nearid.questions.compare.outlying import ROUNDS, judged_without, outlying, without
from nearid.questions.compare.result import Comparison, Comparisons
from nearid.questions.compare.similar import with_intervals
from nearid.questions.compare.unmixing import Benefit, benefit
from nearid.questions.compare.verdict import (
    LEAST_LIMIT,
    STRENGTHS,
    GroupResult,
    Rungs,
    Verdict,
    bootstrap,
    decide,
    strength,
    summaries,
)
from nearid.questions.compare.view import views


@dataclass(frozen=True)
class Settings:
    """The options of `compare`; `options` has those of the fits, `negligible` is as in `decide`.

    `detect` says whether nearid looks for dependent rows if there are no blocks. `recorded` are options that were used
    before, for the provenance.
    """

    groups: tuple[Group, ...]
    folds: int
    options: Options
    svcca_k: int | None
    in_sample: bool
    drop_nonfinite: bool
    permutations: int | None
    random_state: int
    unrelated: float = 0.05
    detect: bool = False
    negligible: float | None = None
    recorded: Mapping[str, Any] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the provenance."""
        others = ("folds", "svcca_k", "in_sample", "drop_nonfinite", "permutations", "unrelated", "random_state")
        own = {name: getattr(self, name) for name in others}
        return {"groups": [g.name for g in self.groups], **self.options, **own, **self.recorded}


class Keywords(TypedDict, total=False):
    """The keywords of `compare`, for its overloads."""

    groups: Iterable[str] | str | None
    folds: int
    translation: bool
    scale: bool
    ridge: float | Literal["auto"]
    blocks: Any
    svcca_k: int | None
    in_sample: bool
    symmetric: bool
    drop_nonfinite: bool
    permutations: int | None
    unrelated: float
    random_state: int
    names: Sequence[str] | None
    key: str | None
    ids: Any
    features: Iterable[str] | str | None
    exclude: Iterable[str] | str | None
    engine: str | Engine | None
    progress: Reporting


@overload
def compare(x: object, y: object, /, **options: Unpack[Keywords]) -> Comparison: ...
# Without *more: a type checker would match an unpacked list to it, but the list may have two runs.
@overload
def compare(
    x: object, y: object, z: object, u: object = ..., v: object = ..., w: object = ..., /, **options: Unpack[Keywords]
) -> Comparisons: ...
@overload
def compare(*runs: object, **options: Unpack[Keywords]) -> Comparison | Comparisons: ...
@checked
def compare(
    *runs: object,
    groups: Iterable[str] | str | None = None,
    folds: Folds = 5,
    translation: bool = True,
    scale: bool = True,
    ridge: Size | Literal["auto"] = "auto",
    blocks: Any = None,
    svcca_k: Count | None = None,
    in_sample: bool = False,
    symmetric: bool = False,
    drop_nonfinite: bool = False,
    permutations: Annotated[int, Bound(1, MOST_PERMUTATIONS)] | None = None,
    unrelated: Share = 0.05,
    random_state: Seed = 0,
    names: Sequence[str] | None = None,
    key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> Comparison | Comparisons:
    """Are these runs the same representation? Up to which group, and how closely?

    The first run is the source and the second one the target. Errors are measured on held-out rows, in the space of the
    target, and divided by its diameter.

    Parameters
    ----------
    *runs : arrays, tensors, paths or Rows, each of shape (n, d)
        Two or more runs with one row per example. Rows are paired by position, or by id if ids are given. DataFrames
        are paired by their index.
    groups : names, optional
        Groups to fit, as a list or a text with commas. Default: permutation, rigid and linear. "all" also fits
        scaled_permutation and ica. ICA is fitted on each run alone, which costs two fits per fold, and takes no part in
        the verdict.
    folds : int, default=5
        Number of folds. Each map is fitted on all folds but one and judged on that one.
    translation : bool, default=True
        Allow a translation in every group.
    scale : bool, default=True
        Allow one global scale in permutation, rigid and ica.
    ridge : float or "auto", default="auto"
        Penalty of the linear map. By default the other folds choose it for each fold. 0 is plain least squares, as in
        the papers.
    blocks : column, path, labels or "none", optional
        Rows that belong together, such as tokens of a text or cells of a well. Whole blocks are held out, resampled and
        permuted. Give a column or entry of the inputs, a file, or one label per row of the first run. Default: the
        blocks that the inputs carry. If there are none, nearid looks for rows that depend on their neighbours. "none"
        takes all rows as independent.
    svcca_k : int, optional
        Principal components for SVCCA. Default: those with 99% of the variance, or fewer if there are few rows.
    in_sample : bool, default=False
        Also compute values on the training rows, as papers often print them.
    symmetric : bool, default=False
        Also compare from target to source. The verdict is then the one that holds in both directions.
    drop_nonfinite : bool, default=False
        Leave out pairs of rows with a NaN or an infinity.
    permutations : int, optional
        Number of other orders of the rows that the chance level is measured with. Default: 99.
    unrelated : float, default=0.05
        The runs are called almost unrelated if the group of the verdict explains less than this share.
    random_state : int, default=0
        Seed of folds, bootstrap, permutations and ICA.
    names : sequence of str, optional
        Names of the runs.
    key : str, optional
        Entry to read from files with several arrays.
    ids : str or sequence of arrays, optional
        Column (or entry) of files with row ids. Rows are paired by it. For arrays: one array of ids per run.
    features : sequence of str or str, optional
        Columns of tables to use: names or patterns such as "emb_*", as a list or a text with commas. Default: all
        numeric columns.
    exclude : sequence of str or str, optional
        Columns of tables to leave out, such as metadata: "plate,well_*".
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over the rows run: this process by default, a Dask cluster of this machine's cores, or the
        cluster of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.
    progress : bool or function, default=False
        Draw progress bars on stderr; or a function of the name of a stage and its number of steps.

    Returns
    -------
    Comparison
        The comparison of two runs. Three or more runs give Comparisons, with all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> turned = x @ [[0.6, 0.8], [-0.8, 0.6]] + 1
    >>> comparison = nearid.compare(x, turned)
    >>> comparison.verdict.group, round(comparison.groups["rigid"].r2.value, 6)
    ('rigid', 1.0)
    """
    if len(runs) < 2:
        lists = len(runs) == 1 and isinstance(runs[0], list | tuple) and len(runs[0]) > 1
        hint = " Unpack the list of runs: compare(*runs)." if lists else ""
        raise InputError(f"Two runs or more are needed to compare; {len(runs)} given.{hint}")
    options = {"translation": translation, "scale": scale, "ridge": ridge}
    chosen = tuple(ladder(groups))
    features, exclude = as_given(features), as_given(exclude)
    settings = Settings(
        chosen,
        folds,
        options,
        svcca_k,
        in_sample,
        drop_nonfinite,
        permutations,
        random_state,
        unrelated,
        recorded={
            "symmetric": symmetric,
            "key": key,
            "features": features,
            "exclude": exclude,
            "blocks": recorded(blocks),
        },
    )
    sources, detect = open_blocks(blocks, _open(runs, names, key, ids))
    sources = choose_columns(sources, features, exclude)
    settings = replace(settings, detect=detect)
    links = list(itertools.combinations(range(len(runs)), 2))
    results = []
    with reporting(progress) as stages, open_engine(engine) as opened:
        prepare = [g.prepare(random_state, opened, stages) for g in chosen if g.prepare]

        def one_way(i: int, j: int) -> Comparison:
            pair = pair_rows(sources[i], sources[j])
            return compare_pair(pair, (runs[i], runs[j]), settings, opened, stages, prepare)

        for i, j in links:
            there = one_way(i, j)
            results.append(_both_ways(there, one_way(j, i)) if symmetric else there)
    if len(results) == 1:
        return results[0]
    return Comparisons(tuple(s.name for s in sources), tuple(links), tuple(results))


def _open(runs: Sequence[object], names: Sequence[str] | None, key: str | None, ids: Any) -> list[Rows]:
    if names is not None and len(names) != len(runs):
        raise InputError(f"{len(runs)} runs but {len(names)} names.")
    if ids is not None and not isinstance(ids, str | Sequence | np.ndarray):
        raise InputError(f"ids must be the name of a column, or a sequence with one id array per run, not {ids!r}.")
    each = [ids] * len(runs) if ids is None or isinstance(ids, str) else list(ids)
    if len(each) != len(runs):
        raise InputError(f"{len(runs)} runs but {len(each)} id arrays: give one per run, or the name of a column.")
    # An .npy file has no entries. The key applies only to the other files.
    plain = [isinstance(r, str | os.PathLike) and os.fspath(r).endswith(".npy") for r in runs]
    keys = [None if p and not all(plain) else key for p in plain]
    opened = [
        open_rows(r, key=own, ids=i, name=names[k] if names else None)
        for k, (r, own, i) in enumerate(zip(runs, keys, each, strict=True))
    ]
    # Make names unique: two arrays would both be "array", and files of different folders may share a name.
    seen = [o.name for o in opened]
    renamed = []
    for k, rows in enumerate(opened, start=1):
        name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in rows.name)
        rows = copy(rows)
        rows.name = f"{name} {k}" if seen.count(rows.name) > 1 else name
        renamed.append(rows)
    return renamed


def compare_pair(
    pair: Pair,
    given: tuple[object, object],
    settings: Settings,
    engine: Engine,
    progress: Progress,
    prepare: Sequence[Callable[..., Prepared]] = (),
) -> Comparison:
    """Compare two inputs in one direction.

    `given` are the inputs as the caller gave them, for the provenance; `prepare` makes what some groups need besides
    moments.
    """
    s = settings
    # scipy has its own BLAS, whose threads can be limited only after it is loaded.
    lapack()
    wide = 8 * (pair.x.shape[1] + pair.y.shape[1]) ** 2 > PARTIAL_BYTES // 4
    # Folds run in threads, unless they are large. The last digits of products depend on the threads of BLAS.
    with nullcontext() if wide else one_blas_thread:
        return _compare(pair, given, s, engine, progress, prepare)


def _compare(
    pair: Pair,
    given: tuple[object, object],
    s: Settings,
    engine: Engine,
    progress: Progress,
    prepare: Sequence[Callable[..., Prepared]],
    rounds: int = ROUNDS,
) -> Comparison:
    """The comparison; outlying rows that determine it are left out and the others compared again, up to a limit."""
    blocks, dependence = rows_together(pair, s.folds, s.random_state, detect=s.detect)
    # Choosing a penalty is slow, so skip it if no group needs one.
    penalised = any("ridge" in g.options for g in s.groups)
    gathered = gather(
        pair,
        s.folds,
        s.options if penalised else {**s.options, "ridge": 0.0},
        s.random_state,
        together=blocks,
        drop_nonfinite=s.drop_nonfinite,
        prepare=prepare,
        engine=engine,
        progress=progress,
    )
    fits = fit_held_out(gathered, s.groups, s.svcca_k)
    judged = _judge(gathered, fits, s, engine, progress)
    # The last digits of products depend on the threads of BLAS.
    with one_blas_thread:
        inferred = _infer(gathered, fits, judged, s, engine, progress)
    answer = _answer(gathered, fits, judged, inferred, given, s)
    verdict = answer.verdict
    if verdict.group != "none" and any(alert.code == "clustered_rows" for alert in dependence):
        doubt = (
            " This assumes independent rows, but many rows are near copies of others: name the rows that belong "
            "together with --blocks (blocks=)."
        )
        verdict = replace(verdict, reason=verdict.reason + doubt)
    if verdict.group != "none" and blocks is not None and blocks.serial and not blocks.slow:
        doubt = (
            " The rows were held out in pieces of the file. If you name the rows that belong together with --blocks "
            "(blocks=), the verdict may change."
        )
        verdict = replace(verdict, reason=verdict.reason + doubt)
    answer = replace(answer, verdict=verdict, alerts=[*answer.alerts, *dependence])
    far = outlying(pair, judged.evaluation) if rounds else None
    if far is None:
        return answer
    return judged_without(
        answer, far, lambda: _compare(without(pair, far.rows), given, s, engine, progress, prepare, rounds - 1)
    )


def rows_together(pair: Pair, folds: int, seed: int, *, detect: bool) -> tuple[Blocks | None, list[Alert]]:
    """Blocks of rows, given or detected, and alerts about them."""
    alerts: list[Alert] = []
    blocks = None if pair.blocks is None else Blocks(pair.blocks)
    if blocks is not None:
        serial = serial_rows(pair, seed=seed)
        if serial is not None:
            # Rows of a block are similar, and their dependence ends with the block. A longer dependence makes rows
            # "slow".
            few = pair.n < STRETCHES * serial.length
            outlasts = few and (
                min(serial.decay) > int(np.bincount(blocks.codes).max()) or blocks_run_on(pair, blocks.codes)
            )
            blocks = replace(blocks, chained=True, slow=outlasts)
    if blocks is None and detect:
        serial = serial_rows(pair, seed=seed)
        if serial is not None:
            # Every fold needs a block. The remaining dependence is part of the chance level.
            blocks = Blocks.cut(pair.n, serial.length, folds)
            alerts.append(serial.alert(pair.n // blocks.count))
        else:
            clustered = clustered_rows(pair, seed=seed)
            alerts += [clustered.alert] if clustered is not None else []
    return blocks, alerts


@dataclass(frozen=True)
class _Judged:
    """Errors of the rows in use, held out and, on request, in sample."""

    evaluation: Evaluation
    diameter: Diameter
    errors: Floats
    spread: Floats
    in_sample: tuple[Fits, Floats, Floats, Whole | None] | None


def _judge(gathered: Gathered, fits: Fits, s: Settings, engine: Engine, progress: Progress) -> _Judged:
    evaluation = evaluate(gathered, fits, progress, engine)
    kept, in_sample = evaluation.of(gathered), None
    diameter = target_diameter(gathered, evaluation, progress, engine)
    if s.in_sample:
        whole = fit_in_sample(gathered, s.groups, s.svcca_k)
        again = evaluate(gathered, whole, progress, engine)
        in_sample = whole, again.errors[:, kept], again.spread[kept], again.whole
    return _Judged(evaluation, diameter, evaluation.errors[:, kept], evaluation.spread[kept], in_sample)


@dataclass(frozen=True)
class _Inferred:
    """Statistics of the errors."""

    chance: Chance
    own_order: Floats
    unmeasured: str
    groups: dict[str, GroupResult]
    in_sample: dict[str, GroupResult] | None
    verdict: Verdict
    efficiency: Efficiency | None
    benefit: Benefit | None


def _infer(
    gathered: Gathered, fits: Fits, judged: _Judged, s: Settings, engine: Engine, progress: Progress
) -> _Inferred:
    errors, spread, dims, seen = judged.errors, judged.spread, _dims(gathered.pair), judged.evaluation
    sample, whole = seen.sample, seen.whole
    blocks = None if gathered.blocks is None else gathered.blocks.codes[gathered.kept if not sample else sample.rows]
    weights = sample.weights if sample is not None and sample.blocks is not None else None
    draws = bootstrap(errors, spread, s.random_state, blocks, whole, weights)
    unexplained = unexplained_share(errors, spread) if whole is None else whole.unexplained
    base = root_mean_square(spread) if whole is None else whole.base
    chance = chance_level(gathered, s.groups, fits, s.permutations, s.random_state, progress, engine)
    own_order = chance.comparable(1 - unexplained)
    moved = influences(gathered, s.groups, fits, seen.errors, seen.spread, sample)
    penalties = [ridge for own in gathered.without_fold for ridge, _ in shares_of(own["ridge"])]
    groups = summaries(
        s.groups, dims, errors, spread, judged.diameter, moved, estimand(gathered), chance, penalties, whole, weights
    )
    judged_groups = _judged_groups(s, dims)
    unmeasured, remedy = _unmeasured(gathered, chance, s.permutations)
    rungs = Rungs(
        [s.groups[g] for g in judged_groups],
        unexplained[judged_groups],
        (errors.mean(axis=1) if whole is None else whole.errors)[judged_groups] / (base or 1.0),
        chance.r2[:, judged_groups],
        own_order[judged_groups],
        draws[:, judged_groups],
        np.array([_limit(gathered, s.groups[g]) for g in judged_groups]),
        unmeasured,
        remedy,
        gathered.blocks is not None and gathered.blocks.slow,
        s.options["scale"],
    )
    verdict = decide(rungs, unrelated=s.unrelated, negligible=s.negligible)
    if unmeasured:
        # With too few or too similar orders a p-value would be misleading.
        verdict = replace(verdict, p_value=math.nan)
        groups = {name: replace(group, p_value=math.nan) for name, group in groups.items()}
    groups |= {name: replace(groups[name], estimable=False) for name in verdict.not_estimable}
    in_sample = in_errors = gain = helps = None
    if judged.in_sample is not None:
        _, flat, guesses, in_whole = judged.in_sample
        in_sample = summaries(s.groups, dims, flat, guesses, judged.diameter, whole=in_whole, weights=weights)
        in_errors = flat.mean(axis=1) if in_whole is None else in_whole.errors
    names = [g.name for g in s.groups]
    if "ica" in names:
        if whole is None:
            fold = gathered.fold[gathered.kept]
            by_fold = np.stack([errors[:, fold == k].mean(axis=1) for k in range(s.folds)], axis=1)
        else:
            by_fold = whole.by_fold
        guess = float(spread.mean()) if whole is None else whole.spread
        rows = np.array(gathered.parts.counts, dtype=float)
        least = least_gain_of_rigid(names, errors, moved, None if whole is None else whole.errors)
        gain = efficiency(names, by_fold, rows, guess, in_errors, least)
        helps = benefit(gathered, s.groups, fits, by_fold, guess, 1 - unexplained)
    return _Inferred(chance, own_order, unmeasured, groups, in_sample, verdict, gain, helps)


def _judged_groups(s: Settings, dims: tuple[int, int]) -> list[int]:
    """Groups that take part in the verdict: without those beside the ladder, and only one name for each set of maps.

    A rigid motion to one column projects on any direction of the source and scales it. So every linear map is one. The
    linear fit finds the best of them; the fit of a rotation may not.
    """
    same = _one_set(s, dims)
    return [k for k, g in enumerate(s.groups) if g.prepare is None and not (same and g.name == "rigid")]


def _one_set(s: Settings, dims: tuple[int, int]) -> bool:
    names = {g.name for g in s.groups}
    return dims[1] == 1 < dims[0] and bool(s.options["scale"]) and {"rigid", "linear"} <= names


def _unmeasured(gathered: Gathered, chance: Chance, permutations: int | None) -> tuple[str, str]:
    """Why chance cannot be measured, as the beginning of a sentence, and advice; both empty if it can."""
    blocks = gathered.blocks
    if blocks is None:
        return "", ""
    if blocks.slow:
        return blocks.unmeasured
    # With few blocks, few orders differ, whatever the p-value. For them all 99 orders are required.
    if len(chance.r2) >= min(permutations or PERMUTATIONS, LEAST_ORDERS if blocks.serial else PERMUTATIONS):
        return "", ""
    if blocks.serial:
        return f"A series of {gathered.moments.n} rows can be turned by so few lags", "Give more rows."
    return f"{gathered.block_count} blocks of rows have so few orders", "Give five blocks or more."


def estimand(gathered: Gathered) -> str:
    """Description of what the intervals cover."""
    counts = gathered.parts.counts
    trained = f"{sum(counts) - round(sum(counts) / len(counts))} rows"
    if max(counts) - min(counts) > 1:
        trained += " (the mean over folds)"
    new = "rows" if gathered.blocks is None else f"blocks of rows ({gathered.block_count} here)"
    return f"a fit on {trained}, judged on new {new}"


def _limit(gathered: Gathered, group: Group) -> float:
    """Expected share of a group's squared error with many rows; see the rule in `verdict`."""
    p, q = _dims(gathered.pair)
    trained = gathered.moments.n * (1 - 1 / len(gathered.parts.counts))
    freedom = group.degrees_of_freedom(p, q) / q
    if "ridge" in group.options:
        values = np.clip(gathered.eigen_x[0], 0, None) * trained / gathered.moments.n
        # With one penalty, or the mean over several, and over folds.
        shares = [pair for own in gathered.without_fold for pair in shares_of(own["ridge"])]
        shrunk = [share * np.sum(values[values > 0] / (values[values > 0] + ridge)) for ridge, share in shares]
        freedom = min(freedom, float(np.sum(shrunk)) / len(gathered.without_fold) + 1)
    return max(1 - freedom / trained, LEAST_LIMIT)


def _answer(
    gathered: Gathered, fits: Fits, judged: _Judged, inferred: _Inferred, given: tuple[object, object], s: Settings
) -> Comparison:
    pair, moments, seen = gathered.pair, gathered.moments, judged.evaluation
    whole = judged.in_sample[0] if judged.in_sample else None
    similar = fits.similarities(debiased_cka(moments, seen.fourth))
    blocks = None if gathered.blocks is None else gathered.blocks.codes
    similar = with_intervals(similar, gathered, fits, s.random_state)
    return Comparison(
        names=(pair.x.name, pair.y.name),
        n=moments.n,
        dims=_dims(pair),
        verdict=inferred.verdict,
        groups=inferred.groups,
        similarity=similar,
        chance_similarity=inferred.chance.similarity,
        diameter=judged.diameter,
        efficiency=inferred.efficiency,
        benefit=inferred.benefit,
        in_sample=inferred.in_sample,
        in_sample_similarity=None if whole is None else whole.similarities(cka_from_moments(moments)),
        reverse=None,
        one_way=None,
        bulk=None,
        outlying_rows=(),
        alerts=[*alerts(gathered, seen, judged.diameter), *_one_column(s, pair)],
        provenance=provenance(
            s.to_dict(),
            zip(given, (pair.x, pair.y), strict=True),
            chance_rows=inferred.chance.rows,
            blocks=None if blocks is None else gathered.block_count,
        ),
        by_chance=inferred.chance.r2,
        own_order=inferred.own_order,
        unmeasured=inferred.unmeasured,
        views=views(gathered, s.groups, fits, judged.errors, judged.diameter.lower, s.random_state),
    )


def _one_column(s: Settings, pair: Pair) -> Iterator[Alert]:
    """The alert that two groups are the same set of maps."""
    if _one_set(s, _dims(pair)):
        yield Alert(
            "one_column",
            f"{pair.y.name} has one column. A rigid motion with a scale is then the same as a linear map, so the "
            "verdict uses the linear map alone, which fits better.",
        )


def _dims(pair: Pair) -> tuple[int, int]:
    return pair.x.shape[1], pair.y.shape[1]


def _both_ways(there: Comparison, back: Comparison) -> Comparison:
    """Join two directions; the worse verdict holds both ways: the larger group, or the weaker of two equal groups."""
    order, words = [*GROUPS, "none"], [word for _, word in STRENGTHS]

    def standing(c: Comparison) -> tuple[int, int]:
        known = c.verdict.strength in words
        return order.index(c.verdict.group), words.index(c.verdict.strength) if known else len(words)

    # An alert that names both runs has the same words in the other direction.
    both = {(a.code, *sorted(re.findall(r"\w+", a.message))): a for a in reversed([*there.alerts, *back.alerts])}
    # Both directions are known, so the alert about different widths is not needed.
    alerts = [a for a in reversed(both.values()) if a.code != "widths_differ"]
    joined = replace(there, reverse=back, one_way=there.verdict, alerts=alerts)
    worse = max((there, back), key=standing)
    reached = {there.verdict.group, back.verdict.group}
    above = [g for g in GROUPS.values() if reached <= {g.name, *g.contains} and g.name in there.groups]
    if "none" not in reached and above and above[0].name not in reached:
        # Neither group contains the other: the smallest group that contains both holds both ways.
        r2 = min(c.judged.groups[above[0].name].r2.value for c in (there, back))
        ways = " and ".join(
            f"up to a {GROUPS[c.verdict.group].title} from {c.names[0]} to {c.names[1]}" for c in (there, back)
        )
        reason = f"The runs are the same {ways}. A {above[0].title} is the smallest group that contains both."
        return replace(joined, verdict=Verdict(above[0].name, reason, strength(r2), worse.verdict.yardstick))
    between = (
        there.verdict.between or back.verdict.between if standing(there) == standing(back) else worse.verdict.between
    )
    if "none" not in reached and len(reached) == 2:
        # One group contains the other, and the direction decides which one holds.
        between = tuple(name for name in GROUPS if name in reached)
    if worse is there or standing(back) == standing(there):
        return replace(joined, verdict=replace(there.verdict, between=between))
    reason = f"From {back.names[0]} to {back.names[1]}: {back.verdict.reason}"
    return replace(joined, verdict=replace(back.verdict, reason=reason, between=between))
