"""What made a result: the version, the options and the inputs, in one form for every question."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from nearid import __version__
from nearid.base.jsonable import plain


class Input(Protocol):
    """What provenance records about an input. Rows of `nearid.open_rows` have all of it."""

    name: str

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> Any: ...
    def fingerprint(self) -> str: ...


def provenance(options: Mapping[str, Any], inputs: Iterable[tuple[object, Input]] = (), **more: Any) -> dict[str, Any]:
    """The provenance of a result, ready for JSON.

    Parameters
    ----------
    options : mapping
        Arguments of the public function by their names in its signature, `random_state` among them.
    inputs : iterable of (object, rows)
        What the caller gave, such as a path, and the rows that it was opened as.
    **more
        Figures that only this question has.
    """
    return {
        "nearid": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "options": plain(dict(options)),
        "inputs": [described(given, rows) for given, rows in inputs],
        **plain(more),
    }


def described(given: object, rows: Input) -> dict[str, Any]:
    """Name, origin, size, type and fingerprint of an input."""
    return {
        "name": rows.name,
        "source": origin_of(given),
        "shape": list(rows.shape),
        "dtype": str(rows.dtype),
        "fingerprint": rows.fingerprint(),
    }


def origin_of(given: object) -> str:
    """Where an input came from: the path of a file, the kind of anything else."""
    return os.path.abspath(given) if isinstance(given, str | os.PathLike) else type(given).__name__
