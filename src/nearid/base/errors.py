"""Errors that nearid raises on purpose, each a sentence that helps."""

from collections.abc import Iterable
from difflib import get_close_matches


class NearidError(ValueError):
    """Base of all errors raised on purpose."""


class InputError(NearidError):
    """An input cannot be used as it is."""


class ReadError(InputError):
    """Rows were opened but cannot be read any more: the file was removed, or its disk fails."""


class EngineError(NearidError):
    """The engine that should run the passes is not available, or was lost."""


def brief(error: BaseException) -> str:
    """The first line of what an error says, without its final stop; its type where it says nothing."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")


def type_of(value: object) -> str:
    """The type of a value with its article, as "an int"; "None" for None."""
    name = type(value).__name__
    # Read aloud: an "n-d-array", but a "uint8".
    return "None" if value is None else f"{'an' if name.startswith(('nd', *'aeioAEIO')) else 'a'} {name}"


def near_names(wanted: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Names near to one that does not exist: those that differ by case alone or are the same number, or else alike."""
    names = list(known)
    same = [name for name in names if name.casefold() == wanted.casefold() or _same_number(name, wanted)]
    if same:
        return same[:n]
    folded = {name.casefold(): name for name in reversed(names)}
    return [folded[name] for name in get_close_matches(wanted.casefold(), folded, n=n, cutoff=cutoff)]


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return False


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """A sentence for a name that does not exist, with the nearest that do."""
    names = list(known)
    near = near_names(name, names, n=2, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no {kind} named {name!r}.{meant} There are: {', '.join(names)}."
