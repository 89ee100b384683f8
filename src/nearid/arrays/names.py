"""Choosing by name: entries of files, columns and layers."""

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
    """Shape and dtype that a file declares for one of its arrays. A dtype that numpy does not know is a string."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any] | str

    @property
    def is_rows(self) -> bool:
        """Whether the array could be rows of numbers."""
        return len(self.shape) == 2 and isinstance(self.dtype, np.dtype) and is_numeric(self.dtype)


def choose(name: str, entries: Mapping[str, Entry]) -> str:
    """Return the name of the only entry that is rows of numbers, or of the only entry."""
    candidates = [entry for entry, declared in entries.items() if declared.is_rows]
    if len(candidates) == 1:
        return candidates[0]
    if len(entries) == 1:
        return next(iter(entries))
    if candidates:
        raise InputError(
            f"{name} holds {len(candidates)} two-dimensional arrays: {_described(entries, candidates)}. "
            f"Choose one of them: key={candidates[0]!r} (on the command line --key {_typed(candidates[0])}), or write "
            f"it after the path: {_typed(f'{name}:{candidates[0]}')}."
        )
    held = f"It holds {_described(entries, entries)}." if entries else "It holds no arrays."
    raise InputError(f"{name} holds no two-dimensional array of numbers. {held}")


def whole_name(key: str, names: Iterable[str]) -> str:
    """Return the only name that ends in a key (state_dict.linear.weight for linear.weight), otherwise the key."""
    names = list(names)
    ends = [name for name in names if name.endswith(f".{key}")]
    return ends[0] if key not in names and len(ends) == 1 else key


def only(names: Sequence[str]) -> str | None:
    """Return the name if there is exactly one, otherwise None."""
    return names[0] if len(names) == 1 else None


def not_found(name: str, option: str, wanted: str, available: Iterable[str]) -> InputError:
    """Return the error for a name that does not exist in a source, with the most similar names."""
    return InputError(f"{name} has nothing named {wanted!r} (given as {option}). {nearest(wanted, available)}")


def nearest(wanted: str, available: Iterable[str]) -> str:
    """Return a sentence with the names most similar to a name that does not exist, or with all names."""
    names = list(available)
    near = [n for n in names if n.endswith(f".{wanted}")][:3] or near_names(wanted, names)
    if near:
        return f"Did you mean {' or '.join(map(repr, near))}?"
    return f"Available: {few(map(repr, names))}." if names else "It has no names to choose from."


def few(names: Iterable[str], shown: int = _SHOWN) -> str:
    """Return names separated by commas; of many names only the first `shown`."""
    names = list(names)
    rest = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + rest


def refuse_names(name: str, what: str, key: str | None, ids: str | None) -> None:
    """Raise an error for a key, or ids given by name, if the source has no named parts."""
    if key is not None:
        raise InputError(f"{name} is {what} without named parts, but key={key!r} was given. Leave the key out.")
    if ids is not None:
        raise InputError(
            f"{name} is {what} without named parts, so it has no ids named {ids!r}. In Python, pass the ids "
            "themselves, one per row. For the command line, save rows and ids in one .npz, .parquet or .csv file."
        )


def _typed(key: str) -> str:
    """Return a key quoted for the shell; with control characters, its repr."""
    return shlex.quote(key) if key.isprintable() else repr(key)


def _described(entries: Mapping[str, Entry], names: Iterable[str]) -> str:
    return few(f"{name!r} {entries[name].shape} {entries[name].dtype}" for name in names)


def matches(pattern: str, name: str) -> bool:
    """Return whether a name matches a pattern: * and ? match within one part, ** matches any number of parts.

    Dots and slashes separate parts, as in encoder.layer.0 of a module and /encoder/MatMul of an ONNX graph.
    """
    return _fits(_parts(pattern), _parts(name))


def _parts(name: str) -> list[str]:
    return re.split("[./]", name.lstrip("/"))


def _fits(pattern: list[str], name: list[str]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return _fits(pattern[1:], name) or (bool(name) and _fits(pattern, name[1:]))
    # A name may itself contain characters with a meaning in patterns, such as [CLS].
    fits = bool(name) and (name[0] == pattern[0] or fnmatchcase(name[0], pattern[0]))
    return fits and _fits(pattern[1:], name[1:])


def is_exact(pattern: str) -> bool:
    """Return whether a pattern has no wildcards."""
    return not any(letter in pattern for letter in "*?[")


def patterns_of(layers: Iterable[str] | str | None) -> list[str] | None:
    """Return patterns, given as a list or as one string with commas, as a list; None means the default layers."""
    return None if layers is None else list(listed(layers, "layer"))


def chosen(name: str, pattern: str, names: Iterable[str]) -> list[str]:
    """Return the names that match a pattern. If none does, the error names `name` and similar patterns."""
    known = list(names)
    fitting = [pattern] if pattern in known else [each for each in known if matches(pattern, each)]
    if not fitting:
        raise not_found(name, "layers", pattern, _like(pattern, known) or known)
    return fitting


def split_part(pattern: str, names: Iterable[str] = ()) -> tuple[str, str | None]:
    """Split "lstm:1.0" or "output:pooler_output" into a pattern and a part of the output (None without one).

    A name may itself contain colons. The pattern is split at the last colon before which it still matches a name.
    """
    known, pieces = list(names), pattern.split(":")
    for end in range(len(pieces), 0, -1):
        layer, part = ":".join(pieces[:end]), ":".join(pieces[end:])
        if any(matches(layer, name) for name in known) and (part or end == len(pieces)):
            return layer, part or None
    layer, colon, part = pattern.partition(":")
    if colon and not (layer and part):
        raise InputError(f"{pattern!r} is not of the form LAYER:PART. Write both, for example output:pooler_output.")
    return layer, part or None


def _like(pattern: str, names: list[str]) -> list[str]:
    """Return patterns with the same wildcards that match at least one name."""
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
