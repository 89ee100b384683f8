"""Structural identifiability: is a representation the true one? Latents against known factors."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from nearid import __version__
from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.choose import not_found
from nearid.arrays.held import MemoryRows
from nearid.arrays.mapped import MappedRows
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Seed, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.engines.base import Engine
from nearid.engines.open import open_engine
from nearid.measures.declarations import DECLARATIONS, load
from nearid.measures.factors import Factor, Factors, load_pair, open_factors, unnamed
from nearid.measures.infomec import active_latents
from nearid.measures.mcc import MCC
from nearid.measures.recovery import Recovery
from nearid.moments import Floats
from nearid.questions.compare.chance import MOST_PERMUTATIONS
from nearid.questions.compare.run import origin_of
from nearid.questions.score.alerts import latent_alerts, sample_alerts, without_interval
from nearid.questions.score.factor_ladder import aligned, factor_ladder
from nearid.questions.score.resampling import GROUPS, estimates
from nearid.questions.score.result import FactorInfo, Measured, Points, Score

DEFAULT = ("mcc", "mcc_spearman", "r2", "infomec", "dci", "mig", "sap", "modularity", "explicitness")
# What the literature takes, and what measures that hold their rows in memory are given.
ROWS = 10_000
POINTS = 400


@dataclass(frozen=True)
class Request:
    """The options of a score, validated."""

    measures: tuple[str, ...]
    folds: int | None
    permutations: int
    max_rows: int
    drop_nonfinite: bool
    seed: int


@checked
def score(
    latents: object,
    factors: object,
    *,
    measures: Iterable[str] | str | None = None,
    kinds: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    resolve: Literal["ica"] | None = None,
    folds: int | None = None,
    permutations: int = 5,
    max_rows: int = ROWS,
    drop_nonfinite: bool = False,
    random_state: Seed = 0,
    key: str | None = None,
    factors_key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> Score:
    """Score latents against known factors.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : array, structured array, DataFrame, dict of columns, path of a table or array, or Factors
        One column per true factor. Rows are paired by position, or by id where both have ids; DataFrames and Series by
        their index.
    measures : names, optional
        Of `nearid.measures.declarations.DECLARATIONS`: "mcc", "mcc_spearman", "r2", "infomec", "dci", "mig", "sap",
        "modularity" and "explicitness" by default; also "mcc_piecewise", "dci_forest" and "dci_l1"; or "all".
    kinds : mapping of factor to kind, optional
        "continuous", "integer", "categorical" or "circular"; inferred from the values by default.
    periods : mapping of factor to number, optional
        Period of each circular factor, such as 360.
    resolve : {"ica"}, optional
        Also score the independent components of the latents (whitening and ICA, which see no factors).
    folds : int, optional
        Folds of what is held out; by default 5, and 3 for "dci", "sap" and "explicitness".
    permutations : int, default=5
        Permutations of the factors' rows for the chance level.
    max_rows : int, default=10000
        Rows given to measures that hold them in memory: of more a sample is taken. "mcc", "r2" and the verdict always
        use all rows.
    drop_nonfinite : bool, default=False
        Leave out rows with a NaN or an infinity among the latents.
    random_state : int, default=0
        Seed of folds, samples, permutations, models and ICA.
    key, factors_key : str, optional
        Entry to read, of a file with several, for the latents and for the factors.
    ids : optional
        Name of the column with row ids; for arrays a pair of id arrays.
    features, exclude : sequence of str or str, optional
        Columns of the latents to use, where these are a table, and columns to leave out: names or patterns, as
        "z_*", one by one or in a text with commas.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes of "mcc", "r2", the verdict's moments and ICA run.
    progress : bool or function, default=False
        Draw progress bars on stderr; or a function of the name of a stage and its number of steps.

    Returns
    -------
    Score
    """
    request = Request(_named(measures), folds, permutations, max_rows, drop_nonfinite, random_state)
    _check(request, resolve)
    own, theirs = _both_ids(ids)
    called = unnamed(latents, "latents")
    rows = open_rows(latents, key=key, ids=own, name=called, features=features, exclude=exclude)
    known = open_factors(factors, kinds=kinds, periods=periods, key=factors_key, ids=theirs)
    if known.name == rows.name:
        known = replace(known, name=f"{known.name} (factors)")
    origins = {rows.name: origin_of(latents), known.name: origin_of(factors)}
    with reporting(progress) as report, open_engine(engine) as opened:
        before = _score(rows, known, request, origins, opened, report)
        if resolve is None:
            return before
        components, cautions = _components(rows, request, opened, report)
        after = _score(components, known, request, {**origins, components.name: rows.name}, opened, report)
    return replace(before, resolved=replace(after, alerts=cautions + after.alerts))


def _named(measures: Iterable[str] | str | None) -> tuple[str, ...]:
    if measures is None:
        return DEFAULT
    wanted = [m.strip() for m in (measures.split(",") if isinstance(measures, str) else measures)]
    if wanted == ["all"]:
        return tuple(DECLARATIONS)
    for name in wanted:
        if name not in DECLARATIONS:
            raise not_found("nearid", "measures", name, DECLARATIONS)
    if not wanted:
        raise InputError(f"No measure was named; there are {', '.join(DECLARATIONS)}, or all.")
    return tuple(name for name in DECLARATIONS if name in wanted)


def _check(request: Request, resolve: str | None) -> None:
    if resolve not in (None, "ica"):
        raise InputError(f"resolve is {resolve!r}, but 'ica' is expected, or nothing.")
    least = {"folds": 2, "permutations": 1, "max_rows": 100}
    for name, bound in least.items():
        value = getattr(request, name)
        if name == "folds" and value is None:
            continue
        if value < bound:
            raise InputError(f"{name} must be a whole number from {bound} on, not {value!r}.")
    if request.permutations > MOST_PERMUTATIONS:
        raise InputError(f"permutations must be at most {MOST_PERMUTATIONS}, not {request.permutations}.")


def _both_ids(ids: Any) -> tuple[Any, Any]:
    """Ids of the latents and of the factors."""
    if ids is None or isinstance(ids, str):
        return ids, ids
    if not isinstance(ids, tuple | list) or len(ids) != 2:
        raise InputError("ids must be the name of a column, or a pair: ids of the latents, ids of the factors.")
    return ids[0], ids[1]


def _score(
    rows: Rows, known: Factors, request: Request, origins: dict[str, str], engine: Engine, report: Progress
) -> Score:
    """Score one set of latents."""
    r = request
    pair = pair_rows(rows, known.rows)
    x, taken, alerts = load_pair(rows, known, drop_nonfinite=r.drop_nonfinite, most=r.max_rows, random_state=r.seed)
    # Said once here, not again by every measure.
    taken = replace(taken, alerts=())
    sampled = pair.n > r.max_rows
    if sampled:
        alerts = sample_alerts(pair.n, x, taken, known, alerts)
    found: dict[str, Recovery] = {}
    # The matching is wanted in any case.
    for name in dict.fromkeys(("mcc", *r.measures)):
        whole = sampled and DECLARATIONS[name].streams
        source = (rows, known) if whole else (x, taken)
        found[name] = _measure(name, r, engine if whole else None)(*source, progress=_staged(report, name))
    measured = {name: _resampled(name, found[name], pair.n, x, taken, r, report) for name in r.measures}
    part = (rows, known) if sampled else (MemoryRows(rows.name, x), taken)
    match = found["mcc"]
    assert isinstance(match, MCC)
    matched = {name: int(at) if at >= 0 else None for name, at in zip(match.factors, match.matched, strict=True)}
    structure, verdict, more = factor_ladder(
        part[0],
        aligned(part[1], x, taken, matched),
        folds=r.folds or 5,
        drop_nonfinite=r.drop_nonfinite,
        seed=r.seed,
        origins=origins,
        engine=engine,
        report=report,
    )
    items = tuple(
        FactorInfo(f.name, f.kind, f.inferred, len(np.unique(f.values)), matched.get(f.name)) for f in part[1].items
    )
    active = active_latents(x)
    told = [
        *alerts,
        *(a for recovery in found.values() for a in recovery.alerts),
        *without_interval(measured),
        *more,
        *latent_alerts(x, active, taken),
    ]
    return Score(
        names=(rows.name, known.name),
        n=structure.n if structure is not None else pair.n if sampled else len(x),
        measures=measured,
        factors=items,
        active=active,
        verdict=verdict,
        structure=structure,
        alerts=tuple(dict.fromkeys(_once(told))),
        resolved=None,
        provenance={
            "nearid": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "options": asdict(r),
            "rows_in_memory": len(x),
            "inputs": [
                {
                    "name": rows.name,
                    "source": origins[rows.name],
                    "shape": list(rows.shape),
                    "dtype": str(rows.dtype),
                    "fingerprint": rows.fingerprint(),
                },
                {
                    "name": known.name,
                    "source": origins[known.name],
                    "shape": [len(known.items[0].values), len(known.items)],
                    "factors": list(known.names),
                    "fingerprint": known.rows.fingerprint(),
                },
            ],
        },
        points=_points(x, taken, items, r.seed),
    )


def _once(told: Iterable[Alert]) -> Iterable[Alert]:
    """Alerts with the first one alone about repeated rows: measures of all rows and of a sample count them each."""
    first = next((a for a in told if a.code == "repeated_rows"), None)
    return (a for a in told if a.code != "repeated_rows" or a is first)


def _measure(name: str, request: Request, engine: Engine | None = None) -> Callable[..., Recovery]:
    """A declared measure with those of the options that it takes."""
    declared = DECLARATIONS[name]
    options: dict[str, Any] = {"drop_nonfinite": request.drop_nonfinite}
    if declared.held_out:
        options["random_state"] = request.seed
        if request.folds is not None:
            options["folds"] = request.folds
    if engine is not None:
        options["engine"] = engine
    return partial(load(name), **options)


def _staged(report: Progress, name: str) -> Progress:
    """Progress whose stages are told to be those of a measure."""
    return lambda stage, steps: report(f"{name}: {stage}", steps)


def _resampled(
    name: str, found: Recovery, n: int, x: Floats, factors: Factors, request: Request, report: Progress
) -> Measured:
    declared = DECLARATIONS[name]
    rows = n if declared.streams else len(x)
    overall, *others = estimates(
        _measure(name, request),
        declared,
        found,
        rows,
        x,
        factors,
        permutations=request.permutations,
        seed=request.seed,
        tick=report(f"{name}: interval and chance", GROUPS + request.permutations),
    )
    k = len(declared.parts)
    each = {name: e for name, e in zip(found.factors, others[k:], strict=True) if not np.isnan(e.value)}
    parts = dict(zip(declared.parts, others[:k], strict=True))
    return Measured(name, declared, overall, parts, each, found.matrix, found.factors)


def _points(x: Floats, factors: Factors, items: Iterable[FactorInfo], seed: int) -> dict[str, Points]:
    rows = np.random.default_rng([seed, 7]).permutation(len(x))[:POINTS]
    by_name: dict[str, Factor] = {f.name: f for f in factors.items}
    return {
        item.name: Points(
            by_name[item.name].values[rows], x[rows, item.matched], tuple(map(str, by_name[item.name].labels))
        )
        for item in items
        if item.matched is not None and item.name in by_name
    }


def _components(rows: Rows, request: Request, engine: Engine, report: Progress) -> tuple[Rows, tuple[Alert, ...]]:
    """Independent components of the latents, and what is to be said of them."""
    from nearid.ica.fit import fit_ica
    from nearid.ica.stream import Affine

    found = fit_ica(
        rows,
        seed=request.seed,
        drop_nonfinite=request.drop_nonfinite,
        engine=engine,
        tick=report("unmixing", 100),
    )
    width = len(found.components)
    forward = Affine(found.components, found.mean, np.zeros(width))
    cautions = tuple(Alert(f"ica_{c.kind}", c.text) for c in found.diagnostics.cautions)
    return MappedRows(f"ICA of {rows.name}", rows, width, forward), cautions
