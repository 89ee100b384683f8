"""Statistical identifiability: are two (or many) runs the same representation, up to which group and how nearly?"""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearid import __version__
from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.metadata import choose_columns, input_alerts
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Seed, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.engines.base import Engine
from nearid.engines.local import blocks, open_engine
from nearid.folds import assign, refuse_constant
from nearid.groups.ladder import GROUPS, Group, Prepared, ladder
from nearid.measures.diameter import SWEEPS, search
from nearid.measures.similarity import cka_from_moments, debiased_cka
from nearid.questions.compare import ica_rung  # noqa: F401, registers its group
from nearid.questions.compare.alerts import alerts
from nearid.questions.compare.bootstrap import Replicates, bootstrap
from nearid.questions.compare.chance import MOST_PERMUTATIONS, chance_level
from nearid.questions.compare.efficiency import efficiency
from nearid.questions.compare.evaluate import (
    Options,
    Similarities,
    evaluate,
    fit_held_out,
    fit_in_sample,
    gather,
    unexplained_share,
)
from nearid.questions.compare.result import Comparison, Comparisons
from nearid.questions.compare.summary import summaries
from nearid.questions.compare.verdict import decide
from nearid.questions.compare.views import views


@dataclass(frozen=True)
class Settings:
    """The options of a comparison, validated."""

    groups: tuple[Group, ...]
    folds: int
    options: Options
    svcca_k: int | None
    in_sample: bool
    drop_nonfinite: bool
    permutations: int | None
    seed: int
    negligible: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the provenance."""
        return {
            "groups": [g.name for g in self.groups],
            "folds": self.folds,
            **self.options,
            "svcca_k": self.svcca_k,
            "in_sample": self.in_sample,
            "drop_nonfinite": self.drop_nonfinite,
            "permutations": self.permutations,
            "seed": self.seed,
        }


@checked
def compare(
    x: object,
    y: object,
    /,
    *more: object,
    groups: Iterable[str] | str | None = None,
    folds: int = 5,
    translation: bool = True,
    scale: bool = True,
    ridge: float = 0.0,
    svcca_k: int | None = None,
    in_sample: bool = False,
    symmetric: bool = False,
    drop_nonfinite: bool = False,
    permutations: int | None = None,
    random_state: Seed = 0,
    names: Sequence[str] | None = None,
    key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> Any:
    """Compare representations of the same rows.

    Parameters
    ----------
    x, y, *more : arrays, tensors, paths or Rows, each of shape (n, d)
        Two or more runs: x is the source and y the target. Rows are paired by position, or by id where ids are given;
        DataFrames by their index.
    groups : names, optional
        Rungs of the ladder, "permutation", "rigid", "linear": these three by default. Beside it "ica": ICA fitted on
        each side alone, then signed matching; it costs two fits per fold. "all" for all four.
    folds : int, default=5
        Every error is measured on rows that its map was not fitted on, in this many folds.
    translation, scale : bool, default=True
        Allow a translation in every group, and one global scale in permutation, rigid and ica.
    ridge : float, default=0.0
        Penalty of the linear map.
    svcca_k : int, optional
        Principal components for SVCCA; those with 99% of the variance by default.
    in_sample : bool, default=False
        Also give in-sample figures, as papers often print them.
    symmetric : bool, default=False
        Also compare in the other direction; the verdict is then the larger group of the two.
    drop_nonfinite : bool, default=False
        Leave out pairs of rows with a NaN or an infinity.
    permutations : int, optional
        Repetitions of the chance level: 3 by default, 20 where rows are few.
    random_state : int, default=0
        Seed of folds, bootstrap, permutations and ICA.
    names : sequence of str, optional
        What to call the runs.
    key, ids : optional
        Entry of a file with several, and its id column; for arrays `ids` is a sequence with one id array per run.
    features, exclude : sequence of str or str, optional
        Columns of tables to use, all numeric ones by default, and columns to leave out: names or patterns, as "emb_*",
        one by one or in a text with commas.
    engine : {"local", "dask"}, address or Engine, optional
        Where the moments are gathered and ICA is fitted: this process by default, a Dask cluster of this machine's
        cores, or the cluster of the scheduler at an address such as "tcp://127.0.0.1:8786". The other passes run in
        this process. The result is the same.
    progress : bool or function, default=False
        Draw progress bars on stderr; or a function of the name of a stage and its number of steps.

    Returns
    -------
    Comparison
        Of two runs; Comparisons (all pairs) of more.
    """
    settings = _settings(
        groups, folds, translation, scale, ridge, svcca_k, in_sample, drop_nonfinite, permutations, random_state
    )
    runs = [x, y, *more]
    sources = choose_columns(_open(runs, names, key, ids), features, exclude)
    origins = {rows.name: origin_of(run) for rows, run in zip(sources, runs, strict=True)}
    links = list(itertools.combinations(range(len(sources)), 2))
    results = []
    with reporting(progress) as report, open_engine(engine) as opened:
        prepare = {g.name: g.prepare(settings.seed, opened, report) for g in settings.groups if g.prepare}
        for i, j in links:
            a, b = sources[i], sources[j]
            found = compare_pair(pair_rows(a, b), settings, origins, prepare, opened, report)
            if symmetric:
                found = _both_ways(found, compare_pair(pair_rows(b, a), settings, origins, prepare, opened, report))
            results.append(found)
    if len(results) == 1:
        return results[0]
    return Comparisons(tuple(s.name for s in sources), tuple(links), tuple(results))


def _settings(
    groups: Iterable[str] | str | None,
    folds: int,
    translation: bool,
    scale: bool,
    ridge: float,
    svcca_k: int | None,
    in_sample: bool,
    drop_nonfinite: bool,
    permutations: int | None,
    seed: int,
) -> Settings:
    if folds < 2:
        raise InputError(f"folds must be between 2 and 255, not {folds}; in-sample figures come with in_sample=True.")
    if ridge < 0 or not np.isfinite(ridge):
        raise InputError(f"ridge must be a finite number >= 0, not {ridge}.")
    if svcca_k is not None and svcca_k < 1:
        raise InputError(f"svcca_k must be at least 1, not {svcca_k}.")
    if permutations is not None and not 1 <= permutations <= MOST_PERMUTATIONS:
        raise InputError(f"permutations must be between 1 and {MOST_PERMUTATIONS}, not {permutations}.")
    options: Options = {"translation": translation, "scale": scale, "ridge": ridge}
    return Settings(tuple(ladder(groups)), folds, options, svcca_k, in_sample, drop_nonfinite, permutations, seed)


def _open(runs: Sequence[object], names: Sequence[str] | None, key: str | None, ids: Any) -> list[Rows]:
    if names is not None and len(names) != len(runs):
        raise InputError(f"{len(runs)} runs but {len(names)} names.")
    if ids is not None and not isinstance(ids, str | Sequence | np.ndarray):
        raise InputError(f"ids must be the name of a column, or a sequence with one id array per run, not {ids!r}.")
    each = [ids] * len(runs) if ids is None or isinstance(ids, str) else list(ids)
    if len(each) != len(runs):
        raise InputError(f"{len(runs)} runs but {len(each)} id arrays: give one per run, or the name of a column.")
    # An .npy file has no entries to choose from; beside files that have some, the key is theirs.
    plain = [isinstance(r, str | os.PathLike) and os.fspath(r).endswith(".npy") for r in runs]
    keys = [None if p and not all(plain) else key for p in plain]
    opened = [
        open_rows(r, key=own, ids=i, name=names[k] if names else None)
        for k, (r, own, i) in enumerate(zip(runs, keys, each, strict=True))
    ]
    # Two arrays would both be called "array", two files of different folders alike; the caller's own are left alone.
    seen = [o.name for o in opened]
    renamed = []
    for k, rows in enumerate(opened, start=1):
        name = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in rows.name)
        rows = copy(rows)
        rows.name = f"{name} {k}" if seen.count(rows.name) > 1 else name
        renamed.append(rows)
    return renamed


def origin_of(run: object) -> str:
    """Where a run came from: the path of a file, the kind of anything else."""
    return os.path.abspath(run) if isinstance(run, str | os.PathLike) else type(run).__name__


def compare_pair(
    pair: Pair,
    settings: Settings,
    origins: dict[str, str],
    prepare: Mapping[str, Callable[..., Prepared]],
    engine: Engine,
    report: Progress,
) -> Comparison:
    """Compare two inputs in one direction; `prepare` is what the groups that need more than moments are given by."""
    s, names, dims = settings, (pair.x.name, pair.y.name), (pair.x.shape[1], pair.y.shape[1])
    fold = assign(pair.n, s.folds, s.seed)
    parts, moments = gather(pair, fold, s.folds, drop_nonfinite=s.drop_nonfinite, engine=engine, progress=report)
    if min(p.n for p in parts.parts) < 2:
        raise InputError(f"Only {moments.n} rows are left without NaN or Inf, too few for {s.folds} folds.")
    refuse_constant(names, moments)

    options, without_fold = s.options, [s.options] * s.folds
    prepared = [one(pair, fold, parts) for one in prepare.values()]
    for each in prepared:
        options = {**options, **each.whole}
        without_fold = [{**before, **more} for before, more in zip(without_fold, each.folds, strict=True)]
    fits = fit_held_out(parts, s.groups, without_fold, s.svcca_k)
    found = evaluate(pair, fold, parts, moments, fits, progress=report)
    kept = slice(None) if parts.kept is None else parts.kept
    work = len(blocks(pair.n, 8 * pair.y.shape[1]))
    diameter = search(
        pair.read_y,
        pair.take_y,
        found.radii,
        found.origin,
        tick=report("diameter", SWEEPS * work),
    )
    errors, spread = found.errors[:, kept], found.spread[kept]
    replicates = bootstrap(errors, spread, s.seed)
    unexplained = unexplained_share(errors, spread)
    permutations = s.permutations or (20 if moments.n * max(dims) < 100_000 else 3)
    chance = chance_level(pair, parts.kept, s.groups, options, s.folds, s.svcca_k, permutations, s.seed, report)
    groups = summaries(s.groups, dims, errors, unexplained, diameter, replicates, chance)
    names_of = [g.name for g in s.groups]
    # What stands beside the ladder comes after its groups, and takes no part in the verdict.
    m = sum(g.prepare is None for g in s.groups)
    on_ladder = Replicates(replicates.error[:, :m], replicates.unexplained[:, :m])
    verdict = decide(s.groups[:m], unexplained[:m], chance.r2.max(axis=0)[:m], on_ladder, s.negligible)

    in_sample = in_similar = in_errors = None
    if s.in_sample:
        whole = fit_in_sample(moments, s.groups, options, s.svcca_k)
        again = evaluate(pair, fold, parts, moments, whole, progress=report)
        flat, base = again.errors[:, kept], again.spread[kept]
        in_sample, in_errors = (
            summaries(s.groups, dims, flat, unexplained_share(flat, base), diameter),
            flat.mean(axis=1),
        )
        in_similar = Similarities(whole.cca, whole.svcca, cka_from_moments(moments))

    cautions = input_alerts(pair)
    if parts.kept is not None:
        dropped = f"{pair.n - moments.n} of {pair.n} pairs of rows held NaN or Inf and were dropped."
        cautions.append(Alert("input", dropped))
    cautions += alerts(moments, names, (found.source_radii[kept], found.radii[kept]), parts.traits, diameter)
    cautions += [alert for each in prepared for alert in each.alerts]
    if found.same:
        cautions.insert(0, Alert("same_input", f"{names[0]} and {names[1]} hold the same numbers in every row."))
    prints = {name: rows.fingerprint() for name, rows in zip(names, (pair.x, pair.y), strict=True)}
    return Comparison(
        names=names,
        n=moments.n,
        dims=dims,
        groups=groups,
        similarity=Similarities(fits.cca, fits.svcca, debiased_cka(moments, found.fourth)),
        chance_similarity=chance.similarity,
        diameter=diameter,
        verdict=verdict,
        efficiency=efficiency(names_of, errors.mean(axis=1), replicates.error, float(spread.mean()), in_errors)
        if "ica" in names_of
        else None,
        alerts=cautions,
        in_sample=in_sample,
        in_sample_similarity=in_similar,
        reverse=None,
        provenance={
            "nearid": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "options": s.to_dict(),
            "chance_rows": chance.rows,
            "inputs": [
                {
                    "name": n,
                    "source": origins[n],
                    "shape": list(r.shape),
                    "dtype": str(r.dtype),
                    "fingerprint": prints[n],
                }
                for n, r in zip(names, (pair.x, pair.y), strict=True)
            ],
        },
        views=views(pair, parts.kept, moments, s.groups, options, errors, diameter.lower, s.seed),
    )


def _both_ways(there: Comparison, back: Comparison) -> Comparison:
    """Join two directions; what holds both ways is the worse verdict: the larger group, or less explained."""
    order = [*GROUPS, "none"]

    def standing(c: Comparison) -> tuple[int, float]:
        return order.index(c.verdict.group), -c.groups[c.verdict.group].r2 if c.verdict.group in c.groups else 0.0

    # Both directions are known now, so that the widths are no reason for doubt.
    said = [a for a in there.alerts if a.code != "widths_differ"]
    said += [a for a in back.alerts if a.code != "widths_differ" and a not in said]
    joined = replace(there, reverse=back, one_way=there.verdict, alerts=said)
    if standing(back) <= standing(there):
        return joined
    reason = f"From {back.names[0]} to {back.names[1]}: {back.verdict.reason}"
    return replace(joined, verdict=replace(back.verdict, reason=reason))
