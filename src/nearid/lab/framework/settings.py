"""Parameters of a run: defaults, replaced by those of a preset, replaced by those of the user.

The parameters of an experiment are a frozen dataclass over `Checked`, each field made by `parameter`, which also gives
its bounds and its values in presets. Fields hold an int, a float, a bool, a str, or a tuple of numbers; the type of the
default is the type of the parameter.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypeVar

from nearid.base.errors import InputError, unknown
from nearid.lab.framework.experiment import Experiment, Preset, Row

P = TypeVar("P")
T = TypeVar("T")

# The preset that only checks that everything runs, and the default preset.
SMOKE, USUAL = "smoke", "cpu"
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
# Schedules of a learning rate.
SCHEDULES = ("cosine", "constant")
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True)
class Bounds:
    """Allowed values of a parameter, or of each number of a tuple.

    Attributes
    ----------
    least : float or callable
        Smallest value: a number, or a function of the other parameters.
    positive : bool
        Whether it must be above 0 and finite.
    multiple : int
        The value must be a multiple of this number; 0 for no condition.
    choices : sequence of str
        Allowed words; empty for any.
    """

    least: float | Callable[[Any], float] = -math.inf
    most: float = math.inf
    positive: bool = False
    multiple: int = 0
    choices: Sequence[str] = ()

    def demand(self, value: Any, parameters: Any) -> str:
        """The condition that the value does not meet; empty if it meets all."""
        if isinstance(value, str):
            return "" if not self.choices or value in self.choices else either(self.choices)
        least = self.least(parameters) if callable(self.least) else self.least
        if self.positive and not 0 < value < math.inf:
            return "positive"
        if self.multiple and (value < self.multiple or value % self.multiple):
            return f"a multiple of {self.multiple}"
        if not value >= least:
            return f"at least {least}"
        return "" if value <= self.most else f"at most {self.most}"


def parameter(
    default: T,
    about: str,
    *,
    least: float | Callable[[Any], float] = -math.inf,
    most: float = math.inf,
    positive: bool = False,
    multiple: int = 0,
    choices: Sequence[str] = (),
    **presets: T,
) -> T:
    """A field of the parameters.

    Parameters
    ----------
    default : object
        The value that every preset uses unless it sets another one.
    about : str
        One line that describes it.
    least, most, positive, multiple, choices
        As in `Bounds`.
    **presets
        Its value in presets, such as smoke=10, if it differs from the default.
    """
    bounds = Bounds(least, most, positive, multiple, choices)
    made: T = field(default=default, metadata={"about": about, "bounds": bounds, "presets": presets})
    return made


class Checked:
    """Base of parameters: values outside of their bounds raise an error."""

    def __post_init__(self) -> None:
        for f in fields(self):  # type: ignore[arg-type]
            given = getattr(self, f.name)
            for value in given if isinstance(given, tuple) else (given,):
                demand = f.metadata["bounds"].demand(value, self)
                if demand:
                    raise InputError(f"The parameter {f.name} must be {demand}, not {value!r}.")


def described(parameters: Any) -> list[tuple[str, Any, str]]:
    """Name, value and meaning of each parameter, with its allowed words."""
    meanings = []
    for f in fields(parameters):
        about, choices = f.metadata["about"], f.metadata["bounds"].choices
        missing = any(word not in about for word in choices)
        meanings.append((f.name, getattr(parameters, f.name), f"{about}: {either(choices)}" if missing else about))
    return meanings


def either(words: Sequence[str]) -> str:
    """Join words with "or"."""
    return f"{', '.join(words[:-1])} or {words[-1]}"


def as_dict(parameters: Any) -> dict[str, Any]:
    """The parameters as JSON data."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(parameters).items()}


def preset_of(experiment: Experiment[Any], name: str) -> Preset:
    """A preset by name."""
    if name not in experiment.presets:
        raise InputError(unknown(f"preset of {experiment.name}", name, experiment.presets))
    return experiment.presets[name]


def parameters_for(experiment: Experiment[P], preset: str, changes: Mapping[str, Any] | None = None) -> P:
    """The parameters of a run.

    Parameters
    ----------
    changes : mapping, optional
        Parameters that the user sets, as values or as typed text.
    """
    preset_of(experiment, preset)
    default = {name: value for name, value, _ in described(experiment.defaults)}
    chosen = {
        f.name: f.metadata["presets"][preset]
        for f in fields(experiment.defaults)  # type: ignore[arg-type]
        if preset in f.metadata["presets"]
    }
    for name, value in (changes or {}).items():
        if name not in default:
            raise InputError(unknown(f"parameter of {experiment.name}", name, default))
        chosen[name] = parsed(name, value, default[name])
    return changed(experiment.defaults, chosen)


def set_by_user(experiment: Experiment[Any], preset: str, parameters: Any) -> dict[str, tuple[Any, Any]]:
    """Parameters that differ from those of a preset: their value and the preset's."""
    usual = parameters_for(experiment, preset)
    both = {f.name: (getattr(parameters, f.name), getattr(usual, f.name)) for f in fields(usual)}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def shown(value: Any) -> str:
    """A value of a parameter in the form in which it is typed."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(shown, value)) if isinstance(value, tuple) else str(value)


def overriding_rows(parameters: P, rows: Callable[[P], Sequence[Row]], name: str) -> list[str]:
    """Keys of the rows that set a parameter to their own value and ignore the user's value.

    Rows may also derive a parameter from its value for the run, such as twice as much, and a parameter may decide which
    rows exist. So another value is tried: rows whose value does not change set it themselves.
    """
    made = rows(parameters)
    own = {row.key: row.changes[name] for row in made if name in row.changes}
    for other in own.values():
        if other == getattr(parameters, name):
            continue
        try:
            tried = rows(changed(parameters, {name: other}))
        except InputError:
            continue
        if [row.key for row in tried] != [row.key for row in made]:
            return []
        return [row.key for row in tried if name in row.changes and row.changes[name] == own.get(row.key)]
    return []


def changed(parameters: P, changes: Mapping[str, Any]) -> P:
    """The parameters with some of them changed."""
    made: P = replace(parameters, **changes)  # type: ignore[type-var]
    return made


def assignments(given: Iterable[str]) -> dict[str, str]:
    """Split typed options of the form key=value."""
    typed = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes key=value, for example --set steps=1000, not {text!r}.")
        typed[name.strip()] = value.strip()
    return typed


def parsed(name: str, value: Any, default: Any) -> Any:
    """Convert a value to the type of the parameter's default."""
    if isinstance(default, tuple):
        if isinstance(value, str):
            # Empty text means no numbers.
            value = [part for part in value.split(",") if part.strip()]
        parts = value if isinstance(value, list | tuple) else [value]
        return tuple(parsed(name, p, default[0]) for p in parts)
    kind = type(default)
    try:
        return _converted(value, kind)
    except (ValueError, OverflowError):
        raise InputError(f"The parameter {name} must be {WORDS[kind]} (default: {default}), not {value!r}.") from None


def _converted(value: Any, kind: type) -> Any:
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    if kind is bool and isinstance(value, str) and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    if kind in (int, float) and not isinstance(value, bool) and isinstance(value, int | float | str):
        number = float(value)
        if kind is float and number == number:
            return number
        # 1e5 is accepted as a whole number; longer numbers keep all digits.
        if kind is int and number.is_integer():
            return int(value) if isinstance(value, str) and value.lstrip("+-").isdigit() else int(number)
    raise ValueError
