"""Layers against layers: a matrix of any measure between the layers of two models."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.blocks import attach, recorded
from nearid.arrays.derived import JoinedRows
from nearid.arrays.formats.layers import LayerRows
from nearid.arrays.memory import is_count
from nearid.arrays.metadata import metadata_alerts
from nearid.arrays.names import chosen, patterns_of
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, type_of
from nearid.base.limits import check_memory
from nearid.base.options import Bound, Count, Folds, Seed, Size, checked, listed
from nearid.base.progress import Reporting, reporting
from nearid.base.provenance import described, provenance
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from nearid.folds import Blocks, few_rows_per_fold
from nearid.moments import Floats
from nearid.questions.compare.alerts import few_blocks, few_rows
from nearid.questions.compare.chance import MOST_PERMUTATIONS
from nearid.questions.compare.run import rows_together
from nearid.questions.layers.best import best_pairs
from nearid.questions.layers.result import LayerComparison, is_error, measures as known_measures
from nearid.questions.layers.tiles import Fitting, Layers, fill_errors, fill_from_moments

Measure = str | Callable[[np.ndarray, np.ndarray], float]
# The name of the blocks that are the labels of an extraction.
LABELS = "labels"


@checked
def compare_layers(
    x: object,
    y: object = None,
    /,
    *,
    measures: Iterable[Measure] | Measure = "cka",
    layers: Iterable[str] | str | None = None,
    folds: Folds = 5,
    ridge: Size | Literal["auto"] = "auto",
    svcca_k: Count | None = None,
    random_state: Seed = 0,
    blocks: Any = None,
    permutations: Annotated[int, Bound(0, MOST_PERMUTATIONS)] | None = None,
    names: Sequence[str] | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> LayerComparison:
    """Return how similar every layer of one model is to every layer of another.

    Parameters
    ----------
    x : Extraction, folder that `extract` wrote, or dict of layer -> rows
        The source. All layers of one model hold the same rows in the same order. If one layer is a DataFrame, its
        index holds for the others too.
    y : the same, optional
        The target. Default: the layers of the source are compared with each other. Rows are paired by index if both
        sides have DataFrames, by id if both have ids, and by position otherwise.
    measures : names or callables, default="cka"
        "cka": linear CKA, debiased. "cca", "svcca": mean canonical correlation on held-out rows. "mcc": mean
        correlation of matched columns on held-out rows. "r2": share of the target layer's variance that a linear map
        of the source layer explains on held-out rows; "r2_rigid", "r2_permutation" and so on for the other groups of
        `compare`. "epsilon", "epsilon_rigid" and so on: mean held-out error of these maps over the target layer's
        diameter; they are slower. A callable takes the paired rows of two layers as arrays and returns a number.
    layers : names or patterns, optional
        Layers of both models to compare. Default: all.
    folds : int, default=5
        Number of folds for held-out rows.
    ridge : float or "auto", default="auto"
        Ridge penalty of linear maps. "auto" chooses it for each fold by cross-validation over the other folds. 0 is
        plain least squares, as in the papers.
    svcca_k : int, optional
        Number of principal components for SVCCA. Default: those with 99% of the variance.
    random_state : int, default=0
        Seed of the folds and of the chance level.
    blocks : str, path or array of shape (n,), optional
        Rows that belong together, such as the tokens of a text. Folds hold out whole blocks. A column of a layer's
        table, a file with one label for each row, or the labels themselves in the order of the source's rows.
        "labels" uses the labels that were extracted with the source. "none" treats all rows as independent. Default:
        the blocks that `extract` wrote for tokens and words; without any, nearid looks for dependent rows.
    permutations : int, optional
        Number of shuffles for the chance level of the best pair. 0 leaves the chance level out. Default: 99, or 19
        for fitted measures of more than 256 pairs of layers.
    names : two of str, optional
        Names of the two models in the output.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over the rows run: this process by default, a Dask cluster of this machine's cores, or the
        cluster of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.
    progress : bool or function, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.

    Returns
    -------
    LayerComparison
        A matrix for each measure (source layers by target layers), the best pair with its interval, and p-values.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> comparison = nearid.compare_layers({"a": x, "b": x ** 3}, {"c": x + 1}, measures="cka,r2")
    >>> comparison["r2"].round(3).tolist()[0]
    [1.0]
    """
    wanted = named_measures(measures)
    sides = [_opened(x), _opened(x if y is None else y)]
    blocks = own_blocks(blocks, sides[0])
    itself = y is None or y is x or _folder(x) == _folder(y) is not None
    called = list(names) if names is not None else [_name(x, "x"), _name(x, "x") if y is None else _name(y, "y")]
    if names is None and called[0] == called[1] and not itself:
        called = [f"{name} {k}" for k, name in enumerate(called, start=1)]
    if len(called) != 2:
        raise InputError(f"{len(called)} names were given for 2 models.")
    patterns = None if layers == "all" else patterns_of(layers)
    (left, facts_x), (right, facts_y) = (_open(side, name, patterns) for side, name in zip(sides, called, strict=True))
    declared = [m for m in wanted.values() if isinstance(m, str) and not is_error(m)]
    errors = [m for m in wanted.values() if isinstance(m, str) and is_error(m)]
    values = {name: np.full((len(left), len(right)), np.nan) for name in wanted}
    dead: set[str] = set()
    left, right = _blocked(blocks, left, right)
    joined = [JoinedRows(name, list(side.values())) for name, side in zip(called, (left, right), strict=True)]
    pair = pair_rows(*joined)
    together: Blocks | None = None
    dependence: list[Alert] = []
    if declared or errors:
        together, dependence = rows_together(pair, folds, random_state, detect=blocks is None)
        dependence += few_blocks(together.count) if together is not None else ()
    copies: list[Alert] = []
    with reporting(progress) as stages, open_engine(engine) as opened:
        how = Fitting(folds, ridge, svcca_k, random_state, together, opened)
        if declared:
            copies += fill_from_moments(left, right, called, declared, how, values, dead, stages)
        if errors:
            tick = stages("pairs of layers", len(left) * len(right))
            copies += fill_errors(errors, left, right, how, values, tick)
        for name, measure in wanted.items():
            if not isinstance(measure, str):
                _own_measure(measure, left, right, values[name], stages(name, len(left) * len(right)))
        best, reached = best_pairs(pair, left, right, wanted, values, how, permutations, stages, itself=itself)
    alerts = [Alert("pairing", note) for note in pair.notes]
    alerts += dict.fromkeys(a for side in (left, right) for rows in side.values() for a in metadata_alerts(rows))
    if errors or set(declared) - {"cka"}:
        alerts += few_rows(pair.n, max(rows.shape[1] for side in (left, right) for rows in side.values()))
    if "mcc" in declared:
        alerts += few_rows_per_fold("mcc", pair.n, folds)
    # Tiles and pairs of layers count the copies each.
    alerts += copies[:1]
    alerts += dependence
    if together is not None and together.slow:
        why, remedy = together.unmeasured
        text = f"{why} that chance cannot be measured. The best pair has no p-value. {remedy}"
        alerts.append(Alert("slow_rows", text))
    dead |= {layer for m in errors for layer in _all_nan(left, values[m]) | _all_nan(right, values[m].T)}
    if dead:
        alerts.append(
            Alert(
                "constant_layer",
                f"Every column of {', '.join(sorted(dead))} is constant, so no measure has a value there.",
            )
        )
    options = {
        "measures": list(wanted),
        "layers": "all" if layers == "all" else patterns,
        "folds": folds,
        "ridge": ridge,
        "svcca_k": svcca_k,
        "random_state": random_state,
        "blocks": recorded(blocks),
        "permutations": permutations,
    }
    chance = {
        name: {"repetitions": len(own.reached), "rows": own.rows, "components": own.components}
        for name, own in reached.items()
    }
    count = None if together is None else together.count
    inputs = [
        {**described(side, rows), **_brief(facts)}
        for side, rows, facts in zip(sides, joined, (facts_x, facts_y), strict=True)
    ]
    return LayerComparison(
        names=(called[0], called[1]),
        layers=(tuple(left), tuple(right)),
        widths=tuple(tuple(rows.shape[1] for rows in side.values()) for side in (left, right)),  # type: ignore[arg-type]
        n=pair.n,
        values=values,
        best=best,
        p_values={name: own.p_values for name, own in reached.items()},
        alerts=alerts,
        provenance={**provenance(options, chance=chance, blocks=count), "inputs": inputs},
    )


def named_measures(given: Iterable[Measure] | Measure) -> dict[str, Measure]:
    """Measures by name; unknown and duplicate names raise an error."""
    items = [given] if isinstance(given, str) or callable(given) else list(given)
    known = known_measures()
    named: Iterable[Iterable[Measure]] = (
        [m] if callable(m) else listed(m, "measure between layers", known) for m in items or [""]
    )
    wanted: dict[str, Measure] = {}
    for measure in chain.from_iterable(named):
        name = measure if isinstance(measure, str) else getattr(measure, "__name__", type(measure).__name__)
        if wanted.get(name, measure) != measure:
            raise InputError(f"Two measures have the name {name}. Give each function its own name.")
        wanted[name] = measure
    return wanted


def _folder(side: object) -> Path | None:
    """The folder of the layers; None if they are in memory."""
    if isinstance(side, LayerRows):
        return side.folder.resolve() if side.folder else None
    return Path(side).resolve() if isinstance(side, str | os.PathLike) else None


def _name(side: object, default: str) -> str:
    if isinstance(side, str | os.PathLike):
        return os.path.basename(os.path.abspath(side))
    return side.folder.name if isinstance(side, LayerRows) and side.folder else default


def own_blocks(blocks: Any, side: object) -> Any:
    """The given blocks; for "labels" those that were extracted with the layers, if any."""
    known = side.labels if isinstance(side, LayerRows) and isinstance(blocks, str) and blocks == LABELS else None
    return blocks if known is None else known


def _opened(side: object) -> object:
    return LayerRows.open(side) if isinstance(side, str | os.PathLike) else side


def _open(side: object, name: str, patterns: list[str] | None) -> tuple[Layers, dict[str, Any]]:
    if not isinstance(side, Mapping) or not side:
        raise InputError(
            f"{name} is {type_of(side)}; an extraction, its folder, or a dict of layer -> rows is expected."
        )
    keys = list(side)
    if patterns is not None:
        wanted = {key for pattern in patterns for key in chosen(name, pattern, map(str, keys))}
        keys = [key for key in keys if str(key) in wanted]
    twice = next((str(key) for key in keys if [str(other) for other in keys].count(str(key)) > 1), None)
    if twice is not None:
        raise InputError(f"{name} has several layers named {twice!r}. Give every layer its own name.")
    facts = side.provenance if isinstance(side, LayerRows) else {}
    rows = {str(k): v if isinstance(v := side[k], Rows) else open_rows(v, name=f"{name}:{k}") for k in keys}
    return _indexed(rows), facts


def _indexed(layers: Layers) -> Layers:
    """Layers of one model with the index that some of them have, so that all are paired in the same way."""
    known = next((rows for rows in layers.values() if rows.index is not None), None)
    if known is None:
        return layers
    indexed = {}
    for layer, rows in layers.items():
        if rows.index is None and rows.ids is None:
            rows = copy(rows)
            rows.index, rows.ids = known.index, known.ids
            if not is_count(known.index):
                rows.notes += (f"{rows.name} has no index. Its rows are assumed to be in the order of {known.name}.",)
        indexed[layer] = rows
    return indexed


def _blocked(blocks: Any, left: Layers, right: Layers) -> tuple[Layers, Layers]:
    """Layers of both models with the blocks of their rows."""
    attached = attach(blocks, [*left.values(), *right.values()])
    return (
        dict(zip(left, attached[: len(left)], strict=True)),
        dict(zip(right, attached[len(left) :], strict=True)),
    )


def _brief(facts: dict[str, Any]) -> dict[str, Any]:
    return {k: facts[k] for k in ("model", "data", "options", "versions") if k in facts}


def _own_measure(
    measure: Callable[[np.ndarray, np.ndarray], float],
    left: Layers,
    right: Layers,
    into: Floats,
    tick: Callable[..., object],
) -> None:
    for i, a in enumerate(left.values()):
        for j, b in enumerate(right.values()):
            pair = pair_rows(a, b)
            size = 8 * pair.n * (a.shape[1] + b.shape[1])
            check_memory(f"A measure of your own between {a.name} and {b.name}", size, "Give fewer rows.")
            value = measure(*pair.take(np.arange(pair.n)))
            try:
                into[i, j] = float(value)
            except (TypeError, ValueError):
                raise InputError(
                    f"Your measure returned {value!r} for {a.name} and {b.name}, but a number is expected."
                ) from None
            tick()


def _all_nan(layers: Layers, matrix: Floats) -> set[str]:
    return {layer for layer, row in zip(layers, matrix, strict=True) if np.isnan(row).all()}
