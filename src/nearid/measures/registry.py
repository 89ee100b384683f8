"""A measure declares itself once: a decorator makes a public function of its maths, and tables, help and pages read it.

@measure("Median gap", invariances=("shift",), each="Median gap")
def median_gap(x, factors, *, bins: int = 20):
    ...
    return Measured(value, matrix, factors.names, per_factor)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from nearid.base.alerts import Alert
from nearid.base.estimate import Number
from nearid.base.options import checked
from nearid.base.progress import Progress, Reporting, reporting, silent
from nearid.engines.base import Engine
from nearid.measures.factors import Factors
from nearid.measures.targets import Inputs
from nearid.moments import Floats

INFINITY = float("inf")
# With more latents, measures of many fits save work: see `dci`, and the permutations of `score`.
MANY_LATENTS = 256
# Changes of single latents.
EACH_LATENT = ("permutation", "sign", "scale", "shift")
# Modules with measures, in the order of tables and help.
HOMES = ("mcc", "r2", "infomec", "dci", "mig", "sap", "modularity")


@dataclass(frozen=True, repr=False, eq=False)
class Measured(Number):
    """Result of every measure: a number with details. Arithmetic and comparisons use its value.

    Parts and arrays are also attributes: ``m.parts["completeness"]`` is ``m.completeness``.

    Attributes
    ----------
    value : float
    matrix : ndarray of shape (d, m)
        A number for each latent and factor. Empty if the measure has none.
    factors : tuple of str
        Names of the m factors. Constant factors are left out.
    per_factor : ndarray of shape (m,)
        A number for each factor. Empty if the measure has none.
    parts : mapping of str to float
        Further numbers. NaN if a number is not defined.
    arrays : mapping of str to ndarray
    alerts : tuple of Alert
    kept : object
        What the measure uses again for other rows or factors, see `Earlier`. None for what a public function returns.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).normal(size=(200, 2))
    >>> m = nearid.mcc(2 * u[:, ::-1], u)
    >>> round(m, 3), m.per_factor.round(3).tolist(), m.matched.tolist()
    (1.0, [1.0, 1.0], [1, 0])
    """

    value: float
    matrix: Floats = field(default_factory=lambda: np.empty((0, 0)))
    factors: tuple[str, ...] = ()
    per_factor: Floats = field(default_factory=lambda: np.empty(0))
    parts: Mapping[str, float] = field(default_factory=dict)
    arrays: Mapping[str, Any] = field(default_factory=dict)
    alerts: tuple[Alert, ...] = ()
    kept: Any = None

    def __getattr__(self, name: str) -> Any:
        # Not by self.parts, which does not exist yet while an object is unpickled.
        for parts in (self.__dict__.get("parts", {}), self.__dict__.get("arrays", {})):
            if name in parts:
                return parts[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.parts, *self.arrays]

    def __repr__(self) -> str:
        parts = "".join(f", {name}={value:.4g}" for name, value in self.parts.items())
        return f"Measured({self.value:.4g}{parts})"


class Earlier(NamedTuple):
    """A result for all rows that a measure of some of them, or of permuted factors, may start from.

    Attributes
    ----------
    kept : object
        What the measure stored in `Measured.kept`.
    rows : ndarray of int
        Which of the earlier rows the latents are now.
    permuted : bool
        Whether the factors are permuted, for a chance level. Otherwise rows are left out, for the spread of the value.
        Then only differences between such values matter.
    """

    kept: Any
    rows: np.ndarray
    permuted: bool


class Part(NamedTuple):
    """Range of a part of a result, and its title in tables; empty where it is left to JSON."""

    low: float = 0.0
    high: float = 1.0
    title: str = ""


@dataclass(frozen=True)
class Measure:
    """A measure's declaration.

    Attributes
    ----------
    name : str
    title : str
        For people.
    function : callable
        The public function of latents and factors.
    maths : callable
        The same of rows that are loaded, see `measure`.
    options : mapping
        Options of the function that make this measure of it.
    low, high : float
        Range of the value; negative infinity where a held-out fit can be arbitrarily bad.
    invariances : tuple of str
        Changes of the latents that do not change the value: "permutation", "sign", "scale" and "shift" of single
        latents, and "linear", any invertible map. A permutation or shift of the factors changes no measure.
    parts : mapping of str to Part
        Parts of the result.
    each : str
        Title of the number for each factor. Empty if there is none.
    each_low : float
        Smallest value of that number. The largest is that of the measure.
    heat_map, heat_map_of : str
        Title of the drawn matrix; empty where pages do not draw it. Of several heat maps of the same thing
        (`heat_map_of`) the first is drawn.
    held_out : bool
        Whether the value is computed on rows that were not used in a fit. Otherwise it uses all rows, as defined.
    streams : bool
        Whether rows are read in blocks, so that any number is possible. Otherwise they are kept in memory.
    costly : bool
        Whether one value needs many fits.
    steady : bool
        Whether values of permuted factors hardly differ if there are many latents, so that two of them give the chance
        level.
    symmetric : bool
        Whether latents and factors may be exchanged, if they are equally many and all are numbers.
    by_default : bool
        Whether `score` computes it by default.
    """

    name: str
    title: str
    function: Callable[..., Measured]
    maths: Callable[..., Measured]
    options: Mapping[str, Any] = field(default_factory=dict)
    low: float = 0.0
    high: float = 1.0
    invariances: tuple[str, ...] = ()
    parts: Mapping[str, Part] = field(default_factory=dict)
    each: str = ""
    each_low: float = 0.0
    heat_map: str = ""
    heat_map_of: str = ""
    held_out: bool = True
    streams: bool = False
    costly: bool = False
    steady: bool = False
    symmetric: bool = False
    by_default: bool = True

    def __call__(self, latents: object, factors: object, **options: Any) -> Measured:
        """The measure of latents and factors in any form."""
        return self.function(latents, factors, **self.options, **options)

    def of_loaded(
        self, x: Floats, factors: Factors, progress: Progress = silent, earlier: Earlier | None = None, **options: Any
    ) -> Measured:
        """The measure of rows that are paired and finite: nothing is opened or looked at again."""
        given = {"progress": progress, "earlier": earlier}
        own = {**self.options, **options, **{name: given[name] for name in _internal(self.maths)}}
        if _streams(self.maths):
            return self.maths(Inputs(x, factors, progress=progress), **own)
        return self.maths(x, factors, **own)

    def takes(self, option: str) -> bool:
        """Whether the function has a parameter of this name."""
        return option in inspect.signature(self.function).parameters

    def default(self, option: str) -> Any:
        """The default of a parameter; None where there is no such parameter."""
        return inspect.signature(self.function).parameters[option].default if self.takes(option) else None


# Every measure by its name, in the order of declaration; those of nearid are there once `measures` was called.
MEASURES: dict[str, Measure] = {}


def measures() -> dict[str, Measure]:
    """Every declared measure by its name, in the order of tables and help."""
    homes = [f"nearid.measures.{home}" for home in HOMES]
    for home in homes:
        import_module(home)
    places = {home: place for place, home in enumerate(homes)}
    return dict(sorted(MEASURES.items(), key=lambda item: places.get(item[1].maths.__module__, len(homes))))


def measure(title: str, **declaration: Any) -> Callable[[Callable[..., Measured]], Callable[..., Measured]]:
    """Return a decorator that declares a measure of recovery. `del MEASURES[name]` removes it again.

    The decorated function only contains the mathematics, in one of two forms:

    - ``f(x, factors, *, ...)`` of latents x, an array of shape (n, d) without NaN, and `Factors` of the same rows;
    - ``f(inputs, *, ...)`` of `Inputs`, whose moments are streamed.

    Both give a `Measured`. A function with the parameter `earlier` gets an `Earlier` where `score` computes it again
    for other rows or for permuted factors. It may then use again what it stored in `Measured.kept`.

    What is returned is the public function of latents and factors in any form, with the parameters `drop_nonfinite` and
    `progress` (and `engine`, where rows are streamed). A function with `folds` also gets `blocks`, and passes
    `factors.block_codes` on to `nearid.folds.assign`. These parameters are described in its docstring with those of the
    function's own parameters that its docstring leaves out.

    Parameters
    ----------
    title : str
    **declaration
        Attributes of `Measure`.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.measures.registry import MEASURES, Measured, measure
    >>> @measure("Largest correlation", held_out=False)
    ... def largest(x, factors):
    ...     values = np.column_stack([factor.values for factor in factors.items])
    ...     return Measured(np.abs(np.corrcoef(x.T, values.T))[: x.shape[1], x.shape[1] :].max())
    >>> u = np.random.default_rng(0).normal(size=(100, 2))
    >>> round(largest(-3 * u, u), 3)
    1.0
    >>> del MEASURES["largest"]
    """

    def declare(maths: Callable[..., Measured]) -> Callable[..., Measured]:
        function = _public(maths)
        _register(Measure(maths.__name__, title, function, maths, **declaration))
        return function

    return declare


def variant(of: str, name: str, title: str, **changes: Any) -> None:
    """Declare a measure that is another one with other options."""
    _register(replace(MEASURES[of], name=name, title=title, **changes))


def _register(new: Measure) -> None:
    old = MEASURES.get(new.name, new)
    # The same file may be run again, as a cell of a notebook is.
    if old.maths.__module__ != new.maths.__module__:
        raise ValueError(f"There is a measure named {new.name!r} in {old.maths.__module__}. Choose another name.")
    MEASURES[new.name] = new


# Descriptions that the docstrings of measures share.
_COMMON = {
    "latents": """array, tensor, path or Rows, of shape (n, d)
    Learned latents, one row per example.""",
    "factors": """array, DataFrame, dict of columns, path or Factors, of m factors
    True factors of the same rows, in any form that `open_factors` takes.""",
    "bins": """int, default={}
    Number of bins of equal width, for each latent and for each factor without classes of its own.""",
    "folds": """int, default={}
    Number of folds; 1 gives the in-sample value.""",
    "random_state": """int, default={}
    Seed of the folds and of the fits.""",
    "blocks": """column, path, labels or "none", optional
    Rows that belong together, such as the frames of a film. Blocks are held out as a whole. Give a column or entry of
    the latents or of the factors, a file, or one label per row of the latents. Default: the blocks that the latents
    have.""",
    "drop_nonfinite": """bool, default={}
    Whether to leave out rows with a NaN or an infinity among the latents. By default they are an error.""",
    "engine": """{{"local", "dask"}}, address or Engine, optional
    Where the pass over the rows runs. If there are fewer rows than latents, they are read into memory here.""",
    "progress": """bool or callable, default={}
    Whether to draw progress bars on stderr; or a function that takes the name of a stage and its number of steps.""",
}


def _streams(maths: Callable[..., Measured]) -> bool:
    return next(iter(inspect.signature(maths).parameters)) == "inputs"


def _internal(maths: Callable[..., Measured]) -> list[str]:
    """Parameters that nearid gives to the maths itself."""
    return [name for name in ("progress", "earlier") if name in inspect.signature(maths).parameters]


def _public(maths: Callable[..., Measured]) -> Callable[..., Measured]:
    """The function of latents and factors in any form."""
    streams, reports = _streams(maths), "progress" in _internal(maths)
    named = inspect.signature(maths, eval_str=True).parameters

    def call(
        latents: object,
        factors: object,
        *,
        drop_nonfinite: bool = False,
        engine: str | Engine | None = None,
        progress: Reporting = False,
        blocks: Any = None,
        **options: Any,
    ) -> Measured:
        with reporting(progress) as stage:
            inputs = Inputs(latents, factors, drop_nonfinite, engine, stage, blocks)
            if streams:
                return replace(maths(inputs, **options), kept=None)
            x, known, alerts = inputs.load()
            measured = maths(x, known, **options, **({"progress": stage} if reports else {}))
        return replace(measured, alerts=alerts + measured.alerts, kept=None)

    common = inspect.signature(call, eval_str=True).parameters
    own = [p for name, p in named.items() if name not in ("x", "factors", "inputs", "progress", "earlier")]
    # Rows belong together where some of them are held out.
    wanted = {"blocks": "folds" in named, "drop_nonfinite": True, "engine": streams, "progress": True}
    tail = [common[name] for name, is_wanted in wanted.items() if is_wanted]
    parameters = [common["latents"], common["factors"], *own, *tail]
    call.__signature__ = inspect.Signature(parameters, return_annotation=Measured)  # type: ignore[attr-defined]
    call.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": Measured}
    call.__doc__ = _documented(maths.__doc__ or "", parameters)
    call.__name__, call.__qualname__, call.__module__ = maths.__name__, maths.__qualname__, maths.__module__
    return checked(call)


def _documented(doc: str, parameters: list[inspect.Parameter]) -> str:
    """A docstring with a description of every parameter, its own or the common one with its default."""
    head, _, returned = inspect.cleandoc(doc).partition("Returns\n-------\n")
    head, _, own = head.partition("Parameters\n----------\n")
    texts = dict(entry.split(" : ", 1) for entry in re.split(r"\n(?=\w)", own.strip()) if entry)
    entries = "\n".join(
        f"{p.name} : {texts.get(p.name) or _COMMON.get(p.name, '').format(p.default)}" for p in parameters
    )
    return f"{head.rstrip()}\n\nParameters\n----------\n{entries}\n\nReturns\n-------\n{returned or 'Measured'}"
