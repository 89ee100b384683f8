"""Parameters of a run: the defaults, a preset over them, and what the user sets over both.

The parameters of an experiment are a frozen dataclass, each field made by `parameter`. Fields hold an int, a float, a
bool, a str, or a tuple of numbers; the type of the default is the type of the parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from typing import Any, TypeVar

from nearid.base.errors import InputError, unknown
from nearid.lab.framework.experiment import Experiment, Preset, Row

P = TypeVar("P")
T = TypeVar("T")

# The preset that only tries whether everything runs, and the one that is taken where none is named.
SMOKE, USUAL = "smoke", "cpu"
WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a word"}
TRUTH = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parameter(default: T, about: str) -> T:
    """A field of the parameters, with a line that says what it is."""
    made: T = field(default=default, metadata={"about": about})
    return made


def described(parameters: Any) -> list[tuple[str, Any, str]]:
    """Name, value and meaning of each parameter."""
    return [(f.name, getattr(parameters, f.name), f.metadata["about"]) for f in fields(parameters)]


def as_dict(parameters: Any) -> dict[str, Any]:
    """The parameters as JSON can say them."""
    return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(parameters).items()}


def preset_of(experiment: Experiment[Any], name: str) -> Preset:
    """A preset by name."""
    if name not in experiment.presets:
        raise InputError(unknown(f"preset of {experiment.name}", name, experiment.presets))
    return experiment.presets[name]


def settle(experiment: Experiment[P], preset: str, changes: Mapping[str, Any] | None = None) -> P:
    """The parameters of a run.

    Parameters
    ----------
    changes : mapping, optional
        What the user sets: values, or the text that was typed for them.
    """
    default = {name: value for name, value, _ in described(experiment.defaults)}
    chosen = dict(preset_of(experiment, preset).changes)
    for name, value in (changes or {}).items():
        if name not in default:
            raise InputError(unknown(f"parameter of {experiment.name}", name, default))
        chosen[name] = parsed(name, value, default[name])
    return changed(experiment.defaults, chosen)


def set_by_user(experiment: Experiment[Any], preset: str, parameters: Any) -> dict[str, tuple[Any, Any]]:
    """Parameters that differ from those of a preset: their value and the preset's."""
    usual = settle(experiment, preset)
    both = {f.name: (getattr(parameters, f.name), getattr(usual, f.name)) for f in fields(usual)}
    return {name: values for name, values in both.items() if values[0] != values[1]}


def shown(value: Any) -> str:
    """A value of a parameter as it is typed."""
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(shown, value)) if isinstance(value, tuple) else str(value)


def overruled(parameters: P, rows: Callable[[P], Sequence[Row]], name: str) -> list[str]:
    """Keys of the rows that set a parameter to a value of their own, whatever it is set to.

    Rows may also set a parameter to something that follows from its value for the run, such as twice as much, and a
    parameter may decide which rows there are. So another value is tried, and what does not follow it is overruled.
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


def check(
    parameters: Any,
    *,
    least: Mapping[str, float] | None = None,
    positive: Iterable[str] = (),
    multiples: Mapping[str, int] | None = None,
    choices: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Refuse parameters that cannot be, in a sentence.

    Parameters
    ----------
    parameters : dataclass
    least : mapping, optional
        Parameters that must be at least so much.
    positive : iterable of str
        Those that must be positive and finite.
    multiples : mapping, optional
        Those that must be so much, or twice, three times ...
    choices : mapping, optional
        Those that must be one of some words.
    """
    for name, bound in (least or {}).items():
        if not getattr(parameters, name) >= bound:
            raise InputError(f"The parameter {name} must be at least {bound}, not {getattr(parameters, name)}.")
    for name in positive:
        if not 0 < getattr(parameters, name) < math.inf:
            raise InputError(f"The parameter {name} must be positive, not {getattr(parameters, name)}.")
    for name, unit in (multiples or {}).items():
        given = getattr(parameters, name)
        if given < unit or given % unit:
            raise InputError(f"The parameter {name} must be a multiple of {unit}, not {given}.")
    for name, known in (choices or {}).items():
        given = getattr(parameters, name)
        if given not in known:
            either = f"{', '.join(known[:-1])} or {known[-1]}"
            raise InputError(f"The parameter {name} must be {either}, not {given!r}.")


def assignments(given: Iterable[str]) -> dict[str, str]:
    """Split what was typed as key=value."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise InputError(f"--set takes key=value, for example --set steps=1000, not {text!r}.")
        found[name.strip()] = value.strip()
    return found


def parsed(name: str, value: Any, default: Any) -> Any:
    """A value as the type of the parameter's default."""
    if isinstance(default, tuple):
        if isinstance(value, str):
            # Empty text stands for none.
            value = [part for part in value.split(",") if part.strip()]
        parts = value if isinstance(value, list | tuple) else [value]
        return tuple(parsed(name, p, default[0]) for p in parts)
    kind = type(default)
    try:
        return _converted(value, kind)
    except (ValueError, OverflowError):
        raise InputError(
            f"The parameter {name} is {WORDS[kind]} ({default} by default), which {value!r} is not."
        ) from None


def _converted(value: Any, kind: type) -> Any:
    if isinstance(value, kind) and isinstance(value, bool) == (kind is bool):
        return value
    if kind is bool and isinstance(value, str) and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    if kind in (int, float) and not isinstance(value, bool) and isinstance(value, int | float | str):
        number = float(value)
        if kind is float and number == number:
            return number
        # 1e5 is a whole number, too; longer ones keep all their digits.
        if kind is int and number.is_integer():
            return int(value) if isinstance(value, str) and value.lstrip("+-").isdigit() else int(number)
    raise ValueError
