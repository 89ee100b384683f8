"""Structural identifiability: is a representation the true one? Latents against known factors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.blocks import recorded
from nearid.arrays.derived import MappedRows
from nearid.arrays.memory import MemoryRows
from nearid.arrays.metadata import choose_columns
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Bound, Folds, Seed, Size, as_given, checked, listed
from nearid.base.progress import Progress, Reporting, reporting
from nearid.base.provenance import described, origin_of, provenance
from nearid.dependence import serial_rows
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from nearid.groups.ladder import ladder
from nearid.measures.factors import LEVELS, Factors, load_paired, open_both, shortened, unnamed
from nearid.measures.infomec import active_latents
from nearid.measures.registry import MANY_LATENTS, Measure, Measured, measures as declared_measures
from nearid.moments import Floats
from nearid.questions.compare.alerts import few_blocks
from nearid.questions.compare.chance import MOST_PERMUTATIONS
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.run import Settings, compare_pair
from nearid.questions.compare.verdict import Verdict
from nearid.questions.score.resample import GROUPS, resample
from nearid.questions.score.result import MatchedFactor, Points, Score, ScoredMeasure

# Number of rows that the literature uses, and that measures in memory get.
ROWS = 10_000
POINTS = 400
# Permutations of the factors for the chance level, and those of a steady measure of many latents.
PERMUTATIONS, FEW_PERMUTATIONS = 5, 2
# A direction of standardised latents with less variance counts as missing.
COLLAPSED = 1e-4
# Factors have their own units, so a match may have any scale.
LADDER = ("scaled_permutation", "rigid", "linear")
# A group that leaves 1% of the factors' variance (a root-mean-square error of a tenth of their spread) has recovered
# them nearly exactly. Without this tolerance an exact linear map would always win: components that ICA finds in a
# sample, and the factors' units, are never exact.
NEGLIGIBLE = 0.1
# Alerts of a comparison that do not apply if the target is the truth.
NOT_FOR_FACTORS = ("widths_differ", "input")


@dataclass(frozen=True)
class Request:
    """The options of a score that determine its values."""

    measures: tuple[str, ...]
    folds: int | None
    ridge: float | str
    blocks: str | None
    permutations: int | None
    max_rows: int
    drop_nonfinite: bool
    random_state: int
    kinds: dict[str, str] | None
    periods: dict[str, float] | None
    resolve: str | None
    features: list[str] | str | None
    exclude: list[str] | str | None

    def options(self, measure: Measure) -> dict[str, Any]:
        """The options that a measure accepts."""
        given = {"random_state": self.random_state, "folds": self.folds, "ridge": self.ridge}
        return {name: value for name, value in given.items() if value is not None and measure.takes(name)}


@checked
def score(
    latents: object,
    factors: object,
    *,
    measures: Iterable[str] | str | None = None,
    kinds: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    resolve: Literal["ica"] | None = None,
    folds: Folds | None = None,
    ridge: Size | Literal["auto"] = "auto",
    blocks: Any = None,
    permutations: Annotated[int, Bound(1, MOST_PERMUTATIONS)] | None = None,
    max_rows: Annotated[int, Bound(100)] = ROWS,
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
    """Is this the true representation? How well are known factors recovered, and up to which group?

    nearid infers the kind of each factor from its values and prints it. If it is wrong, give `kinds` or `periods`.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
        One row of latents per example.
    factors : array, structured array, DataFrame, dict of columns, path of a table or array, or Factors
        One column per true factor: a table (.csv, .tsv, .parquet), a .npz file or a plain array. Rows are paired by
        position, or by id if both have ids. DataFrames and Series are paired by their index.
    measures : names, optional
        Measures of recovery, as a list or a text with commas; "all" for every measure.
    kinds : mapping of factor to kind, optional
        Kind by the name of the factor: "continuous", "integer", "categorical" or "circular"; "none" for a column that
        is not a factor. Default: inferred from the values.
    periods : mapping of factor to number, optional
        Period of each circular factor by its name, such as 360.
    resolve : {"ica"}, optional
        Also score the independent components of the latents. Whitening and ICA do not use the factors.
    folds : int, optional
        Number of folds for held-out rows. Default: 5, and 3 for "dci", "sap" and "explicitness".
    ridge : float or "auto", default="auto"
        Penalty of the linear map, in "r2" and in the verdict. "auto" chooses it for each fold by cross-validation over
        the other folds. 0 is plain least squares, as in the papers.
    blocks : column, path, labels or "none", optional
        Rows that belong together, such as frames of a film or cells of a well. Whole blocks are held out, resampled and
        permuted. Give a column or entry of the latents or of the factors (it is then not a factor), a file, or one
        label per row of the latents. Default: the blocks that the latents carry. "none" takes all rows as independent.
    permutations : int, optional
        Permutations of the factors' rows for the chance level. Default: 5, and 2 for "dci", "infomec", "sap" and
        "explicitness" of more than 256 latents.
    max_rows : int, default=10000
        Largest number of rows for measures that keep them in memory. If there are more, nearid takes a sample. "mcc",
        "r2" and the verdict always use all rows.
    drop_nonfinite : bool, default=False
        Leave out rows with a NaN or an infinity among the latents.
    random_state : int, default=0
        Seed of folds, samples, permutations, models and ICA.
    key : str, optional
        Entry of the latents to read from a file with several arrays.
    factors_key : str, optional
        Entry of the factors to read from a file with several arrays.
    ids : optional
        Name of the column with row ids. For arrays: a pair of id arrays.
    features : sequence of str or str, optional
        If the latents are a table: columns to use, by name or pattern such as "z_*", as a list or a text with commas.
        Default: all numeric columns.
    exclude : sequence of str or str, optional
        If the latents are a table: columns to leave out, in the same form.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over all rows run ("mcc", "r2", the verdict and ICA): this process by default, a Dask cluster
        of this machine's cores, or the cluster of the scheduler at an address. The result is the same.
    progress : bool or function, default=False
        Draw progress bars on stderr; or a function of the name of a stage and its number of steps.

    Returns
    -------
    Score
        Every measure with its interval and chance level, the values for each factor, and alerts.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> u = rng.uniform(size=(200, 2))
    >>> score = nearid.score(u @ rng.normal(size=(2, 2)), {"x": u[:, 0], "y": u[:, 1]}, measures="mcc,r2")
    >>> score.verdict.group, round(score.measures["r2"].value, 3)
    ('linear', 1.0)
    """
    features, exclude = as_given(features), as_given(exclude)
    request = Request(
        measures=_named(measures),
        folds=folds,
        ridge=ridge,
        blocks=recorded(blocks),
        permutations=permutations,
        max_rows=max_rows,
        drop_nonfinite=drop_nonfinite,
        random_state=random_state,
        kinds=None if kinds is None else dict(kinds),
        periods=None if periods is None else dict(periods),
        resolve=resolve,
        features=features,
        exclude=exclude,
    )
    own, theirs = _both_ids(ids)
    rows, known = open_both(
        open_rows(latents, key=key, ids=own, name=unnamed(latents, "latents")),
        factors,
        blocks,
        kinds=kinds,
        periods=periods,
        key=factors_key,
        ids=theirs,
    )
    (rows,) = choose_columns([rows], features, exclude)
    if known.name == rows.name:
        known = replace(known, name=f"{known.name} (factors)")
    sources = (origin_of(latents), origin_of(factors))
    with reporting(progress) as stage, open_engine(engine) as opened:
        before = _score(rows, known, request, sources, opened, stage)
        if blocks is None:
            before = replace(before, alerts=before.alerts + tuple(_serial_alerts(pair_rows(rows, known.rows), request)))
        if resolve is None:
            return before
        components, alerts = _components(rows, request, opened, stage)
        after = _score(components, known, request, (rows.name, sources[1]), opened, stage)
    return replace(before, resolved=replace(after, alerts=alerts + after.alerts))


def _named(names: Iterable[str] | str | None) -> tuple[str, ...]:
    declared = declared_measures()
    if names is None:
        return tuple(name for name, m in declared.items() if m.by_default)
    wanted = listed(names, "measure", declared)
    return tuple(name for name in declared if name in wanted)


def _both_ids(ids: Any) -> tuple[Any, Any]:
    """Ids of the latents and of the factors."""
    if ids is None or isinstance(ids, str):
        return ids, ids
    if not isinstance(ids, tuple | list) or len(ids) != 2:
        raise InputError("ids must be the name of a column, or a pair: ids of the latents, ids of the factors.")
    return ids[0], ids[1]


def _score(
    rows: Rows, known: Factors, request: Request, sources: tuple[str, str], engine: Engine, progress: Progress
) -> Score:
    """Score one set of latents."""
    r, seed = request, request.random_state
    tick = progress("reading rows", 1)
    pair = pair_rows(rows, known.rows)
    x, taken, alerts = load_paired(pair, known, drop_nonfinite=r.drop_nonfinite, most=r.max_rows, random_state=seed)
    tick()
    alerts += _swapped(rows, x, taken)
    block_alerts = () if taken.block_codes is None else few_blocks(len(np.unique(taken.block_codes)))
    # Alerts about the factors are given once here, not again by every measure.
    taken = replace(taken, alerts=())
    sampled = pair.n > r.max_rows
    if sampled:
        alerts = _sample_alerts(pair.n, x, taken, known, alerts)
    declared = declared_measures()
    measured: dict[str, Measured] = {}
    # The matching is always needed.
    for name in dict.fromkeys(("mcc", *r.measures)):
        m, stage = declared[name], _staged(progress, name)
        if sampled and m.streams:
            whole = {"drop_nonfinite": r.drop_nonfinite, "engine": engine}
            measured[name] = m(rows, known, **r.options(m), **whole, progress=stage)
        else:
            measured[name] = m.of_loaded(x, taken, stage, **r.options(m))
    permutations = {name: _permutations(declared[name], x.shape[1], r.permutations) for name in r.measures}
    scored = {
        name: resample(
            declared[name],
            measured[name],
            pair.n if declared[name].streams else len(x),
            x,
            taken,
            options=r.options(declared[name]),
            permutations=permutations[name],
            seed=seed,
            tick=progress(_replicates(declared[name]), GROUPS + permutations[name]),
        )
        for name in r.measures
    }
    matching = measured["mcc"]
    matched = {name: int(at) if at >= 0 else None for name, at in zip(matching.factors, matching.matched, strict=True)}
    used, true = (rows, known) if sampled else (MemoryRows(rows.name, x), taken)
    structure, verdict, more = _ladder(used, _aligned(true, x, taken, matched), r, engine, progress)
    items = tuple(
        MatchedFactor(f.name, f.kind, f.inferred, len(np.unique(f.values)), matched.get(f.name)) for f in true.items
    )
    active = active_latents(x)
    every = [
        *alerts,
        *(a for m in measured.values() for a in m.alerts),
        *block_alerts,
        *_interval_alerts(scored, taken),
        *more,
        *_latent_alerts(x, active, taken, r.measures),
    ]
    made = provenance(asdict(r), rows_in_memory=len(x))
    made["ridge"] = {
        name: dict(zip(m.factors, m.ridge, strict=True)) for name, m in measured.items() if "ridge" in m.arrays
    }
    made["inputs"] = [
        {**described(rows, rows), "source": sources[0]},
        {
            "name": known.name,
            "source": sources[1],
            "shape": [len(known.items[0].values), len(known.items)],
            "factors": list(known.names),
            "fingerprint": known.rows.fingerprint(),
        },
    ]
    return Score(
        names=(rows.name, known.name),
        n=structure.n if structure is not None else pair.n if sampled else len(x),
        measures=scored,
        factors=items,
        active=active,
        verdict=verdict,
        structure=structure,
        alerts=tuple(dict.fromkeys(_without_repeats(every))),
        resolved=None,
        provenance=made,
        points=_points(x, taken, items, seed),
    )


def _permutations(measure: Measure, width: int, given: int | None) -> int:
    """Permutations for the chance level of a measure of so many latents."""
    if given is not None:
        return given
    return FEW_PERMUTATIONS if measure.steady and width > MANY_LATENTS else PERMUTATIONS


def _replicates(measure: Measure) -> str:
    """The name of the stage in which a measure is computed for other rows and for permuted factors."""
    return f"{measure.name}: interval and chance{' (many fits)' if measure.costly else ''}"


def _swapped(rows: Rows, x: Floats, factors: Factors) -> tuple[Alert, ...]:
    """The alert about latents that look like factors, beside more factors that look like latents."""
    d, m = x.shape[1], len(factors.items)
    if m <= d or any(factor.kind != "continuous" or not factor.inferred for factor in factors.items):
        return ()
    levels = [len(np.unique(column)) for column in x.T]
    few = [j for j, count in enumerate(levels) if count <= min(LEVELS, len(x) / 2) and not np.any(x[:, j] % 1)]
    unnamed_factors = all(name == str(at) for at, name in enumerate(factors.names))
    if len(few) == d:
        why = (
            f"all {d} latents have few different whole numbers"
            if d > 1
            else "the latent has few different whole numbers"
        )
    elif rows.columns is not None and unnamed_factors:
        why = f"the {d} latents have names"
    else:
        return ()
    return (
        Alert(
            "swapped_arguments",
            f"The two arguments may be swapped: {why}, while the {m} factors are continuous numbers"
            f"{' without names' if unnamed_factors else ''}. The latents come first and the factors second: nearid "
            "score LATENTS FACTORS.",
        ),
    )


def _staged(progress: Progress, name: str) -> Progress:
    """Progress whose stages are named after a measure."""
    return lambda stage, steps: progress(f"{name}: {stage}", steps)


def _points(x: Floats, factors: Factors, items: Iterable[MatchedFactor], seed: int) -> dict[str, Points]:
    rows = np.random.default_rng([seed, 7]).permutation(len(x))[:POINTS]
    by_name = {f.name: f for f in factors.items}
    return {
        item.name: Points(
            by_name[item.name].values[rows], x[rows, item.matched], tuple(map(str, by_name[item.name].labels))
        )
        for item in items
        if item.matched is not None and item.name in by_name
    }


def _components(rows: Rows, request: Request, engine: Engine, progress: Progress) -> tuple[Rows, tuple[Alert, ...]]:
    """Independent components of the latents, and alerts about them."""
    from nearid.ica.fit import fit_ica
    from nearid.ica.stream import Affine

    unmixing = fit_ica(
        rows,
        seed=request.random_state,
        drop_nonfinite=request.drop_nonfinite,
        engine=engine,
        tick=progress("unmixing", 100),
    )
    width = len(unmixing.components)
    forward = Affine(unmixing.components, unmixing.mean, np.zeros(width))
    alerts = tuple(Alert(f"ica_{a.code}", a.message) for a in unmixing.diagnostics.alerts)
    return MappedRows(f"ICA of {rows.name}", rows, width, forward), alerts


def _ladder(
    rows: Rows, factors: Factors, request: Request, engine: Engine, progress: Progress
) -> tuple[Comparison | None, Verdict, tuple[Alert, ...]]:
    """The ladder of groups from the latents to the factors, its verdict and its alerts."""
    target = factors.geometry
    if target is None:
        reason = "All factors are categorical: classes have no geometry that a group could keep. See the measures."
        return None, Verdict("undefined", reason, "undefined", None), (Alert("no_geometry", reason),)
    left = [repr(f.name) for f in factors.items if f.kind == "categorical"]
    alerts: tuple[Alert, ...] = ()
    if left:
        text = (
            f"The verdict does not judge {', '.join(left)}: categorical factors have no geometry. See their measures."
        )
        alerts += (Alert("no_geometry", text),)
    settings = Settings(
        groups=tuple(ladder(LADDER)),
        folds=request.folds or 5,
        options={"translation": True, "scale": True, "ridge": request.ridge},
        svcca_k=None,
        in_sample=False,
        drop_nonfinite=request.drop_nonfinite,
        permutations=None,
        random_state=request.random_state,
        negligible=NEGLIGIBLE,
    )
    comparison = compare_pair(pair_rows(rows, target), (rows, target), settings, engine, progress)
    kept = tuple(a for a in comparison.alerts if a.code not in NOT_FOR_FACTORS)
    return comparison, comparison.verdict, alerts + kept


def _aligned(factors: Factors, x: Floats, taken: Factors, matched: Mapping[str, int | None]) -> Factors:
    """Factors with each angle counted from where its matched latent is largest, judged by the rows x, taken.

    The origin of an angle is a convention. It must not decide whether permuted latents match cosine and sine.
    """
    at_hand = {f.name: f for f in taken.items}
    turned = []
    for factor in factors.items:
        latent = matched.get(factor.name)
        if factor.period is not None and latent is not None and factor.name in at_hand:
            design = np.column_stack([at_hand[factor.name].columns, np.ones(len(x))])
            cosine, sine, _ = np.linalg.lstsq(design, x[:, latent] - x[:, latent].mean(), rcond=None)[0]
            origin = np.arctan2(sine, cosine) / (2 * np.pi) * factor.period
            factor = replace(factor, values=factor.values - origin)
        turned.append(factor)
    return replace(factors, items=tuple(turned))


def _without_repeats(alerts: Iterable[Alert]) -> Iterable[Alert]:
    """Alerts with only the first one about repeated rows: measures of all rows and of a sample both count them."""
    first = next((a for a in alerts if a.code == "repeated_rows"), None)
    return (a for a in alerts if a.code != "repeated_rows" or a is first)


def _sample_alerts(n: int, x: Floats, taken: Factors, known: Factors, alerts: tuple[Alert, ...]) -> tuple[Alert, ...]:
    """Alerts of a sample, without those that are given for all rows elsewhere."""
    kept = [a for a in alerts if a.code not in ("dropped_rows", "constant_factor") or a in known.alerts]
    text = (
        f"mcc, r2 and the verdict use all {n:,} rows. The other measures hold their rows in memory and use a sample of "
        f"{len(x):,}: raise max_rows (--max-rows) to use more."
    )
    kept.append(Alert("sampled", text))
    lost = ", ".join(repr(name) for name in known.names if name not in taken.names)
    if lost:
        kept.append(
            Alert("constant_in_sample", f"Only mcc and r2 score {lost}: the sample of rows has one value of it.")
        )
    return tuple(kept)


def _serial_alerts(pair: Pair, request: Request) -> Iterator[Alert]:
    """The alert about similar neighbouring rows, such as frames of a film, or a grid of factors in order."""
    found = None if pair.blocks is not None else serial_rows(pair, seed=request.random_state)
    if found is not None:
        first, second = found.correlation
        yield Alert(
            "serial_rows",
            f"Neighbouring rows are alike: the correlation with the next row reaches {first:.2f} in {found.names[0]} "
            f"and {second:.2f} in {found.names[1]}. All numbers assume independent rows. That is right for a grid of "
            f"factors in order. For a sequence, such as frames of a film, scores are too high and intervals too "
            f"narrow. Name the rows that belong together with --blocks COLUMN (blocks=), or use --blocks none "
            '(blocks="none") if there are none.',
        )


def _interval_alerts(scored: Mapping[str, ScoredMeasure], factors: Factors) -> Iterator[Alert]:
    """Measures whose spread is not known."""
    lacking = [name for name, m in scored.items() if np.isnan(m.overall.low) and not np.isnan(m.value)]
    if factors.blocks is not None and len(np.unique(factors.blocks)) < GROUPS:
        yield Alert(
            "no_interval",
            f"There are no intervals: they need at least {GROUPS} blocks, because a tenth is left out at a time.",
        )
    elif lacking:
        yield Alert(
            "no_interval",
            f"There is no interval for {', '.join(lacking)}: when a tenth of the rows is left out, too few rows remain "
            "or a factor is constant.",
        )


def _latent_alerts(x: Floats, active: np.ndarray, factors: Factors, measures: Sequence[str]) -> Iterator[Alert]:
    """Latents that hardly vary, or vary together."""
    constant = np.ptp(x / 2, axis=0) == 0
    small = np.flatnonzero(~active & ~constant)
    d, m = x.shape[1], len(factors.items)
    if len(small):
        yield Alert(
            "inactive_latents",
            f"{len(small)} of {d} latents ({shortened(small)}) are inactive: their range is less than a "
            f"twentieth of the widest.{' InfoM and InfoC ignore them.' if 'infomec' in measures else ''}",
        )
    varying = x[:, ~constant]
    if varying.shape[1] > 1:
        directions = _directions(varying)
        if directions < min(varying.shape[1], m):
            yield Alert(
                "collapsed_latents",
                f"The latents have collapsed: the {varying.shape[1]} that vary span only {directions} directions (to "
                f"1% of their spread), which cannot hold {m} factors.",
            )


def _directions(varying: Floats) -> int:
    """Directions along which standardised latents vary, of latents that all vary."""
    standard = varying / np.abs(varying).max(axis=0)
    standard -= standard.mean(axis=0)
    standard /= np.linalg.norm(standard, axis=0)
    # The correlations of the latents and the products of the rows have the same nonzero eigenvalues. Use the smaller
    # matrix.
    products = standard.T @ standard if varying.shape[1] <= len(varying) else standard @ standard.T
    return int(np.sum(np.linalg.eigvalsh(products) > COLLAPSED))
