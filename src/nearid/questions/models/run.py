"""Two models and inputs: layers of both extracted and compared, the ladder for two pairs, and the heads."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Annotated, Any, Literal

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.blocks import recorded
from nearid.base.alerts import Alert
from nearid.base.cache import Cache
from nearid.base.errors import InputError, type_of, unknown
from nearid.base.options import Bound, Count, Folds, Seed, Size, checked
from nearid.base.progress import Progress, Reporting, reporting
from nearid.base.provenance import provenance
from nearid.engines.base import Engine
from nearid.engines.local import open_engine
from nearid.questions.compare.chance import MOST_PERMUTATIONS
from nearid.questions.compare.result import Comparison
from nearid.questions.compare.run import compare
from nearid.questions.extract.result import Extraction
from nearid.questions.extract.run import extract
from nearid.questions.heads.result import HeadComparison
from nearid.questions.heads.run import compare_heads
from nearid.questions.layers.run import Measure, compare_layers, named_measures, own_blocks
from nearid.questions.models.extractions import Kept, extracted, refuse_early
from nearid.questions.models.result import ModelComparison
from nearid.show.alerts import joined

# Longer lists are not repeated in the provenance.
SHORT = 100
# Options of `extract` that are not for a comparison: the cache decides where layers are written.
OWN = ("out", "format", "restart", "overwrite", "progress")


@checked
def compare_models(
    a: Any,
    b: Any,
    data: Any,
    /,
    *,
    measures: Iterable[Measure] | Measure = "cka",
    folds: Folds = 5,
    ridge: Size | Literal["auto"] = "auto",
    svcca_k: Count | None = None,
    random_state: Seed = 0,
    blocks: Any = None,
    permutations: Annotated[int, Bound(0, MOST_PERMUTATIONS)] | None = None,
    symmetric: bool = False,
    heads: bool = True,
    options_a: Mapping[str, Any] | None = None,
    options_b: Mapping[str, Any] | None = None,
    cache: bool = True,
    names: Sequence[str] | str | None = None,
    engine: str | Engine | None = None,
    progress: Reporting = False,
    **options: Any,
) -> ModelComparison:
    """Return which layers of two models correspond, how closely, and up to which group.

    Both models run over the same inputs. Every layer of one is compared with every layer of the other. The ladder of
    `compare` follows for the two most similar layers and for the last layers. nearid keeps extracted layers in the
    user's cache, so the next comparison of a model on the same inputs does not run the model again.

    Parameters
    ----------
    a : torch.nn.Module or str
        The source: anything that `extract` takes as a model.
    b : the same
        The target.
    data : anything `extract` takes as data
        The inputs of both models: texts, pictures, arrays or a file, but not a generator, which can be read only once.
        On the command line, A and B are models if data is given, and folders that extract wrote otherwise.
    measures : names or callables, default="cka"
        Measures between layers, as in `compare_layers`. The first one decides which layers are most similar.
    folds : int, default=5
        Number of folds for held-out rows.
    ridge : float or "auto", default="auto"
        Ridge penalty of linear maps, as in `compare`.
    svcca_k : int, optional
        Number of principal components for SVCCA. Default: those with 99% of the variance.
    random_state : int, default=0
        Seed of the folds and of the chance levels.
    blocks : str, path or array of shape (n,), optional
        Rows that belong together, as in `compare`. Default: the blocks that were extracted with the rows.
    permutations : int, optional
        Number of shuffles for the chance levels. 0 leaves out the chance level of the best pair. Default: 99.
    symmetric : bool, default=False
        Fit the ladder in both directions. The verdict is then the one that holds in both directions.
    heads : bool, default=True
        Also compare the heads, as in `compare_heads`. A language model of transformers has a head, and so has a module
        whose last block is a linear layer.
    options_a : mapping, optional
        Options of `extract` for the first model only, such as prefix.
    options_b : mapping, optional
        Options of `extract` for the second model only.
    cache : bool, default=True
        Keep extracted layers in the cache and reuse them: in NEARID_CACHE, or in the user's cache folder. Above
        NEARID_CACHE_GB (10 by default), nearid removes the layers that were unused for longest.
    names : two of str, optional
        Names of the models in the output, also as one text with a comma. Default: the names of their files.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over the extracted rows run, as in `compare`. The models run in this process.
    progress : bool or function, default=False
        Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.
    **options
        Options of `extract` for both models, such as layers, pool, batch_size, mean and std.

    Returns
    -------
    ModelComparison
        The comparison of all layers, the two ladders, and the comparison of the heads.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> inputs = np.random.default_rng(0).normal(size=(200, 3))
    >>> comparison = nearid.compare_models(model, nn.Sequential(model[0]), inputs, cache=False)
    >>> comparison.pair.source, comparison.pair.target
    ('0', '0')
    """
    if b is None:
        raise InputError("Two models are needed; one was given.")
    if isinstance(data, Iterator):
        raise InputError(
            f"The data is {type_of(data)}, which can be read only once, but two models must read it. Give an array, a "
            f"file, or a loader that can be read again, such as a DataLoader."
        )
    wanted = named_measures(measures)
    names = names.split(",") if isinstance(names, str) else names
    if names is not None and len(names) != 2:
        raise InputError(f"{len(names)} names were given for 2 models.")
    own = [_checked({**options, **(each or {})}) for each in (options_a, options_b)]
    for model, each in zip((a, b), own, strict=True):
        refuse_early(model, data, each)
    kept = Cache.of_user("extractions") if cache else None
    fitting: dict[str, Any] = {"folds": folds, "ridge": ridge, "random_state": random_state}
    fitting |= {"svcca_k": svcca_k}
    with (
        reporting(progress) as stages,
        open_engine(engine) as opened,
        extracted((a, b), data, own, kept, stages, heads=heads) as sides,
    ):
        x, y = (side.layers for side in sides)
        fitting["blocks"] = own_blocks(blocks, x)
        called = _names(names, sides)
        layers = compare_layers(
            x,
            y,
            measures=wanted.values(),
            permutations=permutations,
            names=called,
            engine=opened,
            progress=stages,
            **fitting,
        )

        def ladder(source: str, target: str) -> Comparison:
            at = zip((x, y), called, (source, target), strict=True)
            first, second = (_named(side[layer], f"{name}:{layer}") for side, name, layer in at)
            # The chance level of a ladder cannot be left out.
            repeats = None if permutations is None else max(permutations, 1)
            compared: Comparison = compare(
                first, second, permutations=repeats, symmetric=symmetric, engine=opened, progress=stages, **fitting
            )
            return compared

        matrix = next(iter(layers.values.values()))
        pair = layers.best.get(next(iter(layers.values)))
        ends = layers.layers[0][-1], layers.layers[1][-1]
        # A constant layer has no value and no ladder.
        last = ladder(*ends) if np.isfinite(matrix[-1, -1]) else None
        best = None
        if pair is not None:
            best = last if (pair.source, pair.target) == ends else ladder(pair.source, pair.target)
        between, refused = _heads(called, sides, ridge, random_state, stages)
    settings: dict[str, Any] = {"measures": list(wanted), **fitting, "blocks": recorded(blocks)}
    settings |= {"permutations": permutations, "symmetric": symmetric, "heads": heads, "cache": cache}
    for name, each in (("options_a", own[0]), ("options_b", own[1])):
        settings[name] = {option: _told(value) for option, value in each.items()}
    inputs = layers.provenance["inputs"]
    compared = [each for each in (layers, best, last, between) if each is not None]
    where = [{"key": side.key, "was_there": side.there} for side in sides]
    return ModelComparison(
        names=called,
        data=x.provenance["data"]["name"],
        layers=layers,
        best=best,
        last=last,
        heads=between,
        alerts=[*_alerts(called, sides), *refused, *joined([(c.names, c.alerts) for c in compared])],
        provenance={
            **provenance(settings, cache=None if kept is None else {"folder": str(kept.place), "entries": where}),
            "inputs": inputs,
        },
    )


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    """Options of `extract` that differ from its defaults; unknown options and output folders are refused."""
    known = {p.name: p.default for p in inspect.signature(extract).parameters.values() if p.kind is p.KEYWORD_ONLY}
    for name in options:
        if name in OWN:
            raise InputError(
                f"{name} is not an option here, because layers go to the cache. To write them, use extract."
            )
        if name not in known:
            raise InputError(unknown("option of extract", name, [each for each in known if each not in OWN]))
    if isinstance(options.get("layers"), int):
        # With --options-a layers=2, the number is the name of a layer.
        options = {**options, "layers": str(options["layers"])}
    return {n: value for n, value in options.items() if type(value) is not type(known[n]) or value != known[n]}


def _told(value: Any) -> Any:
    """An option for the provenance; values that are not plain data are named by their type."""
    short = isinstance(value, list | tuple) and len(value) <= SHORT
    return value if short or isinstance(value, str | int | float) else type(value).__name__


def _named(rows: Rows, name: str) -> Rows:
    rows = copy(rows)
    rows.name = name
    return rows


def _names(given: Sequence[str] | None, sides: Sequence[Kept]) -> tuple[str, str]:
    if given is not None:
        return given[0], given[1]
    first, second = (_name(side.layers) for side in sides)
    return (first, second) if first != second else (f"{first} 1", f"{second} 2")


def _name(layers: Extraction) -> str:
    return str(layers.provenance["model"]["name"])


def _heads(
    names: tuple[str, str], sides: Sequence[Kept], ridge: float | Literal["auto"], seed: int, progress: Progress
) -> tuple[HeadComparison | None, list[Alert]]:
    """Compare the heads if both models have one; otherwise return an alert with the reason."""
    first, second = sides
    if first.head is None or second.head is None:
        return None, []
    own = [first.head.bias, second.head.bias]
    try:
        compared = compare_heads(
            first.head.weight,
            second.head.weight,
            first.features,
            second.features,
            biases=["none" if bias is None else bias for bias in own],
            ridge=ridge,
            names=names,
            random_state=seed,
            progress=progress,
        )
    except InputError as error:
        return None, [Alert("heads_not_compared", f"nearid could not compare the heads: {error}")]
    return compared, []


def _alerts(names: tuple[str, str], sides: Sequence[Kept]) -> list[Alert]:
    """Alerts of the extractions; an alert of only one model begins with its name."""
    first, second = (side.layers.alerts for side in sides)
    both = [alert for alert in first if alert in second]
    each = zip(names, (first, second), strict=True)
    own = [Alert(a.code, f"{name}: {a.message}") for name, alerts in each for a in alerts if a not in both]
    return [*both, *own]
