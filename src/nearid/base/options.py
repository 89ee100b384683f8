"""Checks of the options of public functions."""

from __future__ import annotations

import inspect
import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from functools import cache, wraps
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from nearid.base.errors import InputError, near_names, unknown


@dataclass(frozen=True)
class Bound:
    """Bounds in an annotation, as ``Annotated[int, Bound(2, 255)]``. `open_low` excludes the lower bound itself."""

    least: float
    most: float = math.inf
    open_low: bool = False

    def holds(self, value: Any) -> bool:
        """Return whether a number is finite and within the bounds."""
        above = value > self.least if self.open_low else value >= self.least
        return bool(above and value <= self.most and math.isfinite(value))

    def __str__(self) -> str:
        if self.most < math.inf:
            return f"between {self.least:g} and {self.most:g}"
        return f"above {self.least:g}" if self.open_low else f"of at least {self.least:g}"


# Types of options that many functions share. The command line, the documentation and `checked` use them.
Seed = Annotated[int, Bound(0)]
Count = Annotated[int, Bound(1)]
Folds = Annotated[int, Bound(2, 255)]
Size = Annotated[float, Bound(0)]
Share = Annotated[float, Bound(0, 1)]

P = ParamSpec("P")
R = TypeVar("R")


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """Return the value if it is finite and above zero (or zero, if allowed); otherwise raise an error."""
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(f"{name} is {value}, but a finite number {'of at least' if zero else 'above'} 0 is expected.")
    return float(value)


def at_least(name: str, value: int, least: int) -> int:
    """Return the value if it is a whole number of at least `least`; otherwise raise an error."""
    if value != int(value) or value < least:
        raise InputError(f"{name} is {value}, but a whole number of at least {least} is expected.")
    return int(value)


def listed(value: str | Iterable[str], what: str, known: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names in a string with commas or a list, without repeats. "all" means all known names.

    Parameters
    ----------
    value : str or iterable of str
    what : str
        What the names stand for in messages, such as "group".
    known : iterable of str, optional
        Names that exist. Any other name raises an error that suggests similar names.
    """
    given = value.split(",") if isinstance(value, str) else list(value)
    names = tuple(name for name in dict.fromkeys(str(name).strip() for name in given) if name)
    choices = None if known is None else list(known)
    if choices is not None and names == ("all",):
        return tuple(choices)
    if not names:
        raise InputError(f"No {what} is given." + (f" There are: {', '.join(choices)}." if choices else ""))
    for name in names:
        if choices is not None and name not in choices:
            raise InputError(unknown(what, name, choices))
    return names


def as_given(names: Iterable[str] | str | None) -> list[str] | str | None:
    """Return names as the user gave them, in a form that can be read more than once."""
    return names if names is None or isinstance(names, str) else list(names)


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with checks: an argument that does not match its annotation raises an InputError."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        check_arguments(function, *args, **kwargs)
        return function(*args, **kwargs)

    return call


@cache
def _annotations(function: Callable[..., Any]) -> tuple[inspect.Signature, dict[str, Any]]:
    return inspect.signature(function), get_type_hints(function, include_extras=True)


def check_arguments(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    """Check arguments as the `checked` function does, without calling the function."""
    function = inspect.unwrap(function)
    signature, hints = _annotations(function)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(_not_taken(function.__name__, error, signature, kwargs)) from None
    for name, value in bound.arguments.items():
        if name in hints and not _fits(value, hints[name]):
            spelt = "random_state (--seed)" if name == "random_state" else name
            raise InputError(f"{spelt} is {reprlib.repr(value)}, but {_described(hints[name])} is expected.")


def _not_taken(name: str, error: TypeError, signature: inspect.Signature, given: Mapping[str, Any]) -> str:
    """Return a message for arguments that a function does not have, with the most similar option."""
    options = [p.name for p in signature.parameters.values() if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    wrong = next((option for option in given if option not in options), None)
    if wrong is None or any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
        return f"{name}(): {error}."
    near = near_names(wrong, options, n=1)
    return f"{name}() has no option {wrong!r}." + (f" Did you mean {near[0]!r}?" if near else "")


# Names of types in messages.
_WORDS = {bool: "True or False", int: "a whole number", float: "a number", str: "a text", NoneType: "None"}


def _fits(value: Any, hint: Any) -> bool:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        bounds = [bound for bound in parts[1:] if isinstance(bound, Bound)]
        return _fits(value, parts[0]) and all(bound.holds(value) for bound in bounds)
    if origin in (Union, UnionType):
        return any(_fits(value, part) for part in parts)
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Sequence, Iterable):
        if not isinstance(value, Iterable) or isinstance(value, str | bytes | Mapping):
            return False
        # An iterator can be read only once, so the function itself must check its items.
        return not isinstance(value, Sized) or all(_fits(each, parts[0]) for each in value)
    if hint in (int, float):
        kind = Integral if hint is int else Real
        return isinstance(value, kind) and not isinstance(value, bool)
    if origin is Callable:
        return callable(value)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    kind = origin or hint
    return hint is Any or not isinstance(kind, type) or isinstance(value, kind)


def _described(hint: Any) -> str:
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return " ".join([_described(parts[0]), *(str(bound) for bound in parts[1:] if isinstance(bound, Bound))])
    if origin in (Union, UnionType):
        return " or ".join(map(_described, parts))
    if origin is Literal:
        return " or ".join(map(repr, parts))
    if origin in (Sequence, Iterable):
        return f"a list (each item {_described(parts[0])})"
    if origin is Callable:
        return "a function"
    return _WORDS.get(hint) or str(getattr(origin or hint, "__name__", hint))
