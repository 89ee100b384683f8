"""Positions on a plate: names of wells, or a column of rows and one of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from nearid.base.errors import InputError

# Names of wells: B07, AF12, or r02c07.
WELL = re.compile(r"\s*(?:([A-Za-z]{1,2})[-_ ]?0*(\d{1,2})|[rR]0*(\d{1,2})[-_ ]?[cC]0*(\d{1,2}).*)\s*")


class _Classes(Protocol):
    """A column of classes: codes (-1 if missing), and their names."""

    @property
    def codes(self) -> np.ndarray:
        """Of each row."""

    @property
    def names(self) -> tuple[str, ...]:
        """Of the codes."""


def split_position(position: Any) -> dict[str, Any]:
    """The columns of the position by name: one of well names, or two, of rows and of columns."""
    if position is None:
        return {}
    parts: Sequence[Any]
    if isinstance(position, str):
        parts = [part.strip() for part in position.split(",") if part.strip()]
    elif isinstance(position, list | tuple) and len(position) <= 2 and all(isinstance(p, str) for p in position):
        parts = list(position)
    else:
        values = np.asarray(position)
        parts = [position] if values.ndim == 1 else list(values.T) if values.ndim == 2 else []
    if len(parts) not in (1, 2):
        raise InputError(
            "position (--position) takes one column with the names of wells, such as well, or two columns, such as "
            "row,column."
        )
    return (
        {"position": parts[0]} if len(parts) == 1 else {"rows of position": parts[0], "columns of position": parts[1]}
    )


def well_places(columns: Mapping[str, _Classes]) -> np.ndarray | None:
    """Codes of row and column of each row, of shape (n, 2), -1 if missing; from one or two columns of classes."""
    if not columns:
        return None
    if len(columns) == 2:
        return np.column_stack([column.codes for column in columns.values()])
    (column,) = columns.values()
    parsed = np.full((len(column.names) + 1, 2), -1)
    for code, name in enumerate(column.names):
        match = WELL.fullmatch(name)
        if match is None:
            raise InputError(
                f"position (--position) has the value {name!r}, which is not the name of a well, such as B07. For two "
                "columns with the row and the column of the plate: position=('row', 'column') (--position row,column)."
            )
        letters, number, row, column_number = match.groups()
        if letters:
            # A to Z, then AA, AB and so on.
            row = sum(26**k * (ord(letter) - 64) for k, letter in enumerate(reversed(letters.upper())))
        parsed[code] = int(row), int(number or column_number)
    return np.asarray(parsed[column.codes])
