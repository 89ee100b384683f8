"""Errors that nearid raises on purpose. Each message explains the problem and what to do."""

from collections.abc import Iterable
from difflib import get_close_matches


class NearidError(ValueError):
    """Base class of all errors that nearid raises on purpose."""


class InputError(NearidError):
    """An input or option cannot be used."""


class ReadError(InputError):
    """Rows were opened but can no longer be read: the file was removed, or its disk failed."""


class EngineError(NearidError):
    """The engine that runs the computations is not available, or the connection to it was lost."""


def brief(error: BaseException) -> str:
    """Return the first line of an error message without its final period; the type of the error if it is empty."""
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:200].rstrip(".")


def type_of(value: object) -> str:
    """Return the type of a value with its article, such as "an int"; "None" for None."""
    name = type(value).__name__
    # The article follows the pronunciation: "an ndarray", but "a uint8".
    return "None" if value is None else f"{'an' if name.startswith(('nd', *'aeioAEIO')) else 'a'} {name}"


def near_names(wanted: str, known: Iterable[str], n: int = 3, cutoff: float = 0.6) -> list[str]:
    """Return names similar to one that does not exist: equal except for case, the same number, or else similar."""
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
    """Return a message for a name that does not exist, with the most similar names that do."""
    names = list(known)
    near = near_names(name, names, n=2, cutoff=0.5)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"There is no {kind} named {name!r}.{meant} There are: {', '.join(names)}."
