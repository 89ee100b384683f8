"""Dotted names, such as those of layers, chosen by glob patterns."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from nearid.arrays.choose import not_found
from nearid.base.errors import InputError


def matches(pattern: str, name: str) -> bool:
    """Whether a dotted name fits a pattern: * and ? stay within one part, ** stands for any number of parts."""
    return _fits(pattern.split("."), name.split("."))


def _fits(pattern: list[str], name: list[str]) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "**":
        return _fits(pattern[1:], name) or (bool(name) and _fits(pattern, name[1:]))
    return bool(name) and fnmatchcase(name[0], pattern[0]) and _fits(pattern[1:], name[1:])


def is_exact(pattern: str) -> bool:
    """Whether a pattern can only mean one name."""
    return not any(letter in pattern for letter in "*?[")


def patterns_of(layers: Iterable[str] | str | None) -> list[str] | None:
    """Patterns as a list: given one by one, or in a text with commas; None for the default layers."""
    if layers is None:
        return None
    found = [p.strip() for p in (layers.split(",") if isinstance(layers, str) else layers)]
    if not found or not all(found):
        raise InputError("No layer is named; give names or patterns such as 'layer*.*', or leave layers out.")
    return found


def chosen(name: str, pattern: str, names: Iterable[str]) -> list[str]:
    """Names that fit a pattern; an error of the thing called `name`, with near names, where there is none."""
    known = list(names)
    found = [known_name for known_name in known if matches(pattern, known_name)]
    if not found:
        raise not_found(name, "layers", pattern, _like(pattern, known) or known)
    return found


def _like(pattern: str, names: list[str]) -> list[str]:
    """Patterns with the same wildcards that do fit a name."""
    if is_exact(pattern):
        return []
    parts = pattern.split(".")
    split = [name.split(".") for name in names]
    made = {
        ".".join(n if is_exact(p) else p for p, n in zip(parts, each, strict=True))
        for each in split
        if len(each) == len(parts)
    }
    return sorted(p for p in made if any(matches(p, name) for name in names))
