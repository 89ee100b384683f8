"""Provenance of a result: version, options and inputs, in the same form for every question."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from nearid import __version__
from nearid.base.addresses import address_of, public
from nearid.base.jsonable import plain


class Input(Protocol):
    """Attributes of an input that the provenance records. Rows of `nearid.open_rows` have all of them."""

    name: str

    @property
    def shape(self) -> tuple[int, int]: ...
    @property
    def dtype(self) -> Any: ...
    def fingerprint(self) -> str: ...


def provenance(options: Mapping[str, Any], inputs: Iterable[tuple[object, Input]] = (), **more: Any) -> dict[str, Any]:
    """Return the provenance of a result as data for JSON.

    Parameters
    ----------
    options : mapping
        Arguments of the public function by name, including `random_state`.
    inputs : iterable of (object, rows)
        Each input as the caller gave it, such as a path, with its opened rows.
    **more
        Further entries for this question.
    """
    return {
        "nearid": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "options": _public(plain(dict(options))),
        "inputs": [described(given, rows) for given, rows in inputs],
        **plain(more),
    }


def described(given: object, rows: Input) -> dict[str, Any]:
    """Return name, origin, size, type and fingerprint of an input."""
    return {
        "name": rows.name,
        "source": origin_of(given),
        "shape": list(rows.shape),
        "dtype": str(rows.dtype),
        "fingerprint": rows.fingerprint(),
    }


def origin_of(given: object) -> str:
    """Return the origin of an input: the path of a file, an address, or the type of an object."""
    if not isinstance(given, str | os.PathLike):
        return type(given).__name__
    address = address_of(given)
    return os.path.abspath(given) if address is None else public(address)


def _public(value: Any) -> Any:
    """Return options in which addresses have no passwords and signatures."""
    if isinstance(value, dict):
        return {key: _public(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_public(each) for each in value]
    return public(value) if isinstance(value, str) else value
