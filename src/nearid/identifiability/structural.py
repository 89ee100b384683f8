"""Structural identifiability: is a representation the true one? Latents against known factors."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from nearid import __version__
from nearid.alerts import Alert
from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.choose import not_found
from nearid.arrays.held import MemoryRows
from nearid.arrays.mapped import MappedRows
from nearid.engines.base import Engine
from nearid.engines.open import open_engine
from nearid.errors import InputError
from nearid.groups.fits import fit_permutation
from nearid.groups.ladder import LADDER
from nearid.identifiability.resampling import GROUPS, Estimate, estimates
from nearid.identifiability.result import Comparison
from nearid.identifiability.score import FactorInfo, Measured, Points, Score
from nearid.identifiability.statistical import Settings, compare_pair, origin_of
from nearid.identifiability.verdict import Verdict
from nearid.measures.declarations import DECLARATIONS, load
from nearid.measures.factors import Factor, Factors, load_pair, open_factors, open_latents
from nearid.measures.infomec import active_latents
from nearid.measures.mcc import MCC
from nearid.measures.recovery import Recovery
from nearid.moments import Floats
from nearid.progress import Progress, reporting

DEFAULT = ("mcc", "mcc_spearman", "r2", "infomec", "dci", "mig", "sap", "modularity", "explicitness")
# What the literature takes, and what measures that hold their rows in memory are given.
ROWS = 10_000
POINTS = 400
# Factors come in units of their own: a match may have any scale.
MATCH = replace(
    LADDER["permutation"], fit=partial(fit_permutation, each=True), degrees_of_freedom=lambda p, q: 2 * min(p, q) + q
)
# A group that leaves 1% of the factors' variance (a root-mean-square error of a tenth of their spread) has recovered
# them nearly exactly. Without that allowance a linear map would always win where it is exact: the components that ICA
# finds in a sample, and the factors' units, never are.
NEGLIGIBLE = 0.1
# Alerts of a comparison that mean nothing where the target is the truth.
ELSEWHERE = ("widths_differ", "input", "heavy_tails", "diameter_bracket", "repeated_rows")


@dataclass(frozen=True)
class Request:
    """The options of a score, validated."""

    measures: tuple[str, ...]
    folds: int | None
    permutations: int
    max_rows: int
    drop_nonfinite: bool
    seed: int

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the provenance."""
        return {
            "measures": list(self.measures),
            "folds": self.folds,
            "permutations": self.permutations,
            "max_rows": self.max_rows,
            "drop_nonfinite": self.drop_nonfinite,
            "seed": self.seed,
        }


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
    random_state: int = 0,
    key: str | None = None,
    factors_key: str | None = None,
    ids: Any = None,
    engine: str | Engine | None = None,
    progress: bool = False,
) -> Score:
    """Score latents against known factors.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : array, structured array, DataFrame, dict of columns, path of a table or array, or Factors
        One column per true factor. Rows are paired by position, or by id where both have ids.
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
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes of "mcc", "r2", the verdict's moments and ICA run.
    progress : bool, default=False
        Draw progress bars on stderr.

    Returns
    -------
    Score
    """
    request = Request(_named(measures), folds, permutations, max_rows, drop_nonfinite, random_state)
    _check(request, resolve)
    own, theirs = (ids, ids) if ids is None or isinstance(ids, str) else ids
    if isinstance(own, str) and isinstance(latents, str | os.PathLike) and os.fspath(latents).endswith(".npy"):
        # An .npy file has no columns; the ids are the factors' alone, and rows are paired by position, which is said.
        own = None
    rows = open_latents(latents) if key is None and own is None else open_rows(latents, key=key, ids=own)
    known = (
        factors
        if isinstance(factors, Factors)
        else open_factors(factors, kinds=kinds, periods=periods, key=factors_key, ids=theirs)
    )
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
    if request.folds is not None and request.folds < 2:
        raise InputError(f"folds must be between 2 and 255, not {request.folds}.")
    if request.permutations < 1:
        raise InputError(f"permutations must be at least 1, not {request.permutations}.")
    if request.max_rows < 100:
        raise InputError(f"max_rows must be at least 100, not {request.max_rows}.")
    if request.seed < 0:
        raise InputError(f"The seed must be a whole number >= 0, not {request.seed}.")


def _score(
    rows: Rows, known: Factors, request: Request, origins: dict[str, str], engine: Engine, report: Progress
) -> Score:
    """Score one set of latents."""
    r = request
    pair = pair_rows(rows, known.rows)
    x, taken, alerts = load_pair(rows, known, drop_nonfinite=r.drop_nonfinite, most=r.max_rows, random_state=r.seed)
    sampled = pair.n > r.max_rows
    if sampled:
        alerts += (
            Alert(
                "sampled",
                f"Of {pair.n:,} rows {len(x):,} are given to the measures that hold them in memory; mcc, r2 and the "
                "verdict use all.",
            ),
        )
    found: dict[str, Recovery] = {}
    # The matching is wanted in any case.
    for name in dict.fromkeys(("mcc", *r.measures)):
        whole = sampled and DECLARATIONS[name].streams
        source = (rows, known) if whole else (x, taken)
        found[name] = _measure(name, r, engine if whole else None)(*source, progress=_staged(report, name))
    measured = {name: _resampled(name, found[name], pair.n, x, taken, r, report) for name in r.measures}
    part = (rows, known) if sampled else (MemoryRows(rows.name, x), taken)
    structure, verdict, more = _structure(*part, r, origins, engine, report)
    match = found["mcc"]
    assert isinstance(match, MCC)
    matched = {name: int(at) if at >= 0 else None for name, at in zip(match.factors, match.matched, strict=True)}
    items = tuple(
        FactorInfo(f.name, f.kind, f.inferred, len(np.unique(f.values)), matched.get(f.name)) for f in taken.items
    )
    active = active_latents(x)
    told = [*alerts, *(a for name in r.measures for a in found[name].alerts), *more, *_latent_alerts(x, active, taken)]
    return Score(
        names=(rows.name, known.name),
        n=pair.n if sampled else len(x),
        measures=measured,
        factors=items,
        active=active,
        verdict=verdict,
        structure=structure,
        alerts=tuple(dict.fromkeys(told)),
        resolved=None,
        provenance={
            "nearid": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "options": r.to_dict(),
            "rows_in_memory": len(x),
            "inputs": [
                {
                    "name": source.name,
                    "source": origins[source.name],
                    "shape": list(source.shape),
                    "dtype": str(source.dtype),
                    "fingerprint": source.fingerprint(),
                }
                for source in (rows, known.rows)
            ],
        },
        points=_points(x, taken, items, r.seed),
    )


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
    each: list[Estimate] = [e for e in others[k:] if not np.isnan(e.value)]
    return Measured(
        name,
        declared.title,
        declared.held_out,
        overall,
        dict(zip(declared.parts, others[:k], strict=True)),
        dict(zip(found.factors, each, strict=True)) if each else {},
        found.matrix,
        found.factors,
    )


def _structure(
    rows: Rows, factors: Factors, request: Request, origins: dict[str, str], engine: Engine, report: Progress
) -> tuple[Comparison | None, Verdict, tuple[Alert, ...]]:
    """The ladder of groups from the latents to the factors, and what it says."""
    target = factors.geometry
    if target is None:
        reason = "All factors are categorical: classes have no geometry that a group could keep. See the measures."
        return None, Verdict("none", reason, "not at all", None), (Alert("no_geometry", reason),)
    left = [repr(f.name) for f in factors.items if f.kind == "categorical"]
    alerts: tuple[Alert, ...] = ()
    if left:
        text = f"Categorical factors have no geometry: {', '.join(left)} take no part in the verdict."
        alerts += (Alert("no_geometry", text),)
    settings = Settings(
        groups=(MATCH, LADDER["rigid"], LADDER["linear"]),
        folds=request.folds or 5,
        options={"translation": True, "scale": True, "ridge": 0.0},
        svcca_k=None,
        in_sample=False,
        drop_nonfinite=request.drop_nonfinite,
        permutations=None,
        seed=request.seed,
        negligible=NEGLIGIBLE,
    )
    found = compare_pair(pair_rows(rows, target), settings, origins, None, engine, report)
    told = tuple(a for a in found.alerts if a.code not in ELSEWHERE)
    return found, found.verdict, alerts + told


def _latent_alerts(x: Floats, active: np.ndarray, factors: Factors) -> Iterable[Alert]:
    still = np.ptp(x / 2, axis=0) == 0
    small = np.flatnonzero(~active & ~still)
    d, m = x.shape[1], len(factors.items)
    if len(small):
        shown = ", ".join(map(str, small[:5])) + (" ..." if len(small) > 5 else "")
        yield Alert(
            "inactive_latents",
            f"{len(small)} of {d} latents ({shown}) vary by less than a twentieth of the widest: they are inactive, "
            "and do not count in InfoM and InfoC.",
        )
    live = x[:, ~still]
    if live.shape[1] > 1:
        rho = np.corrcoef(live / np.abs(live).max(axis=0), rowvar=False)
        # (sum of eigenvalues)^2 / sum of their squares
        effective = live.shape[1] ** 2 / float(np.sum(rho**2))
        if effective < 0.55 * min(d, m):
            yield Alert(
                "collapsed_latents",
                f"The {live.shape[1]} latents that vary are so correlated that they count as {effective:.1f}: they are "
                f"near to a collapse, and cannot tell {m} factors apart one by one.",
            )


def _points(x: Floats, factors: Factors, items: Iterable[FactorInfo], seed: int) -> dict[str, Points]:
    rows = np.random.default_rng([seed, 7]).permutation(len(x))[:POINTS]
    by_name: dict[str, Factor] = {f.name: f for f in factors.items}
    return {
        item.name: Points(
            by_name[item.name].values[rows], x[rows, item.matched], tuple(map(str, by_name[item.name].labels))
        )
        for item in items
        if item.matched is not None
    }


def _components(rows: Rows, request: Request, engine: Engine, report: Progress) -> tuple[Rows, tuple[Alert, ...]]:
    """Independent components of the latents, and what is to be said of them."""
    from nearid.unmix.ica import fit_ica
    from nearid.unmix.stream import Affine

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
