"""Which of several names is meant: entries of files, columns, layers."""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.rows import is_numeric
from nearid.base.errors import InputError, near_names
from nearid.base.options import listed

_SHOWN = 20


class Entry(NamedTuple):
    """What a file declares about one of its arrays; a dtype numpy does not know is a string."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | str

    @property
    def is_rows(self) -> bool:
        """Whether this could be rows of numbers."""
        return len(self.shape) == 2 and isinstance(self.dtype, np.dtype) and is_numeric(self.dtype)


def choose(name: str, entries: Mapping[str, Entry]) -> str:
    """The only entry that is rows of numbers, or the only entry at all."""
    candidates = [entry for entry, declared in entries.items() if declared.is_rows]
    if len(candidates) == 1:
        return candidates[0]
    if len(entries) == 1:
        return next(iter(entries))
    if candidates:
        raise InputError(
            f"{name} holds {len(candidates)} two-dimensional arrays: {_described(entries, candidates)}. "
            f"Name one of them: key={candidates[0]!r} (on the command line --key {_typed(candidates[0])}), or put it "
            f"after the path, as {_typed(f'{name}:{candidates[0]}')}."
        )
    held = f"It holds {_described(entries, entries)}." if entries else "It holds no arrays."
    raise InputError(f"{name} holds no two-dimensional array of numbers. {held}")


def whole_name(key: str, names: Iterable[str]) -> str:
    """The name that ends in a key, if just one does (state_dict.linear.weight for linear.weight); else the key."""
    names = list(names)
    ends = [name for name in names if name.endswith(f".{key}")]
    return ends[0] if key not in names and len(ends) == 1 else key


def only(names: Sequence[str]) -> str | None:
    """The name, where there is just one."""
    return names[0] if len(names) == 1 else None


def not_found(name: str, option: str, wanted: str, available: Iterable[str]) -> InputError:
    """Error for a name that the source lacks, with the nearest names it has."""
    return InputError(f"{name} has nothing named {wanted!r} (given as {option}). {nearest(wanted, available)}")


def nearest(wanted: str, available: Iterable[str]) -> str:
    """A sentence with the names nearest to one that does not exist, or with all names."""
    names = list(available)
    near = [n for n in names if n.endswith(f".{wanted}")][:3] or near_names(wanted, names)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"Available: {few(map(repr, names))}." if names else "It has no names to choose from."


def few(names: Iterable[str], shown: int = _SHOWN) -> str:
    """Names separated by commas, the first few of many."""
    names = list(names)
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + rest


def refuse_names(name: str, what: str, key: str | None, ids: str | None) -> None:
    """Refuse a key, or ids given by name, for a source that has no names."""
    if key is not None:
        raise InputError(f"{name} is {what} without named parts, but key={key!r} was given. Leave the key out.")
    if ids is not None:
        raise InputError(
            f"{name} is {what} without named parts, so there is no {ids!r} to take ids from. In Python pass the ids "
            "themselves, one per row; for the command line save them beside the rows, as .npz, .parquet or .csv."
        )


def _typed(key: str) -> str:
    """A key as a shell takes it; one with control characters is only shown."""
    return shlex.quote(key) if key.isprintable() else repr(key)


def _described(entries: Mapping[str, Entry], names: Iterable[str]) -> str:
    return few(f"{name!r} {entries[name].shape} {entries[name].dtype}" for name in names)


def matches(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern: * and ? stay within one part, ** stands for any number of parts.

    Points and slashes separate parts, as in encoder.layer.0 of a module and /encoder/MatMul of an ONNX graph.
    """
    return _fits(_parts(pattern), _parts(name))


def _parts(name: str) -> list[str]:
    return re.split("[./]", name.lstrip("/"))


def _fits(pattern: list[str], name: list[str]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return _fits(pattern[1:], name) or (bool(name) and _fits(pattern, name[1:]))
    # A name may itself hold letters of patterns, as [CLS].
    fits = bool(name) and (name[0] == pattern[0] or fnmatchcase(name[0], pattern[0]))
    return fits and _fits(pattern[1:], name[1:])


def is_exact(pattern: str) -> bool:
    """Whether a pattern can only mean one name."""
    return not any(letter in pattern for letter in "*?[")


def patterns_of(layers: Iterable[str] | str | None) -> list[str] | None:
    """Patterns as a list: given one by one, or in a text with commas; None for the default layers."""
    return None if layers is None else list(listed(layers, "layer"))


def chosen(name: str, pattern: str, names: Iterable[str]) -> list[str]:
    """Names that fit a pattern; an error of the thing called `name`, with near names, where there is none."""
    known = list(names)
    fitting = [pattern] if pattern in known else [each for each in known if matches(pattern, each)]
    if not fitting:
        raise not_found(name, "layers", pattern, _like(pattern, known) or known)
    return fitting


def split_part(pattern: str, names: Iterable[str] = ()) -> tuple[str, str | None]:
    """A pattern and the part of the output that is meant, as in lstm:1.0 or output:pooler_output.

    A colon may also be a letter of a name: of several colons the last counts that leaves the pattern of a name.
    """
    known, pieces = list(names), pattern.split(":")
    for end in range(len(pieces), 0, -1):
        layer, part = ":".join(pieces[:end]), ":".join(pieces[end:])
        if any(matches(layer, name) for name in known) and (part or end == len(pieces)):
            return layer, part or None
    layer, colon, part = pattern.partition(":")
    if colon and not (layer and part):
        raise InputError(f"{pattern!r} names no part of an output: write layer:part, such as output:pooler_output.")
    return layer, part or None


def _like(pattern: str, names: list[str]) -> list[str]:
    """Patterns with the same wildcards that do fit a name."""
    if is_exact(pattern):
        return []
    parts = _parts(pattern)
    split = [_parts(name) for name in names]
    made = {
        ".".join(n if is_exact(p) else p for p, n in zip(parts, each, strict=True))
        for each in split
        if len(each) == len(parts)
    }
    return sorted(p for p in made if any(matches(p, name) for name in names))
