"""Columns and rows of an embedding that can be used: without metadata, and without values that are not finite."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.metadata import column_names, without_suspects
from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.files import local_path
from nearid.base.limits import readable
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.questions.deconfound.constant import Groups, constant_columns
from nearid.show.view import counted

# What to do with values that are not finite.
Nonfinite = Literal["least", "rows", "columns", "refuse"]
# A list of names of columns is not larger.
LARGEST_LIST = 16 << 20


def names_from(path: str | os.PathLike[str]) -> list[str]:
    """Names of columns from a text file with one name in each line; empty lines are skipped."""
    file = local_path(path)
    if not file.is_file():
        raise InputError(f"{file} is not a file. columns_from (--columns-from) is a text file with one name per line.")
    if file.stat().st_size > LARGEST_LIST:
        raise InputError(
            f"{file.name} has more than {readable(LARGEST_LIST)}. Give a text file with one name per line."
        )
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{file.name} is no text in UTF-8. Give a text file with one column name per line.") from None
    names = [line.strip() for line in lines if line.strip()]
    if not names:
        raise InputError(f"{file.name} names no column. Give a text file with one column name per line.")
    return names


def without_metadata(
    rows: Rows, batches: np.ndarray, blocks: np.ndarray | None = None, groups: Groups | None = None
) -> tuple[np.ndarray | None, list[Alert]]:
    """Places of the columns of a table that do not look like metadata (None: all), and an alert that lists the others.

    Parameters
    ----------
    batches, blocks : ndarray of int, shape (n,)
    groups : mapping of str to ndarray of int, shape (n,)
        Codes of the label, "label", and of other columns that describe the rows, by their quoted names.
    """
    if not rows.is_table:
        return None, []
    constant = constant_columns(rows, batches, blocks, groups)
    if constant and len(constant) == len(column_names(rows)):
        name, reason = next(iter(constant.items()))
        raise InputError(
            f"All columns of {rows.name} describe the rows instead of measuring them: {name!r} is {reason}, and so are "
            "the others. Give measurements of each row. To use the columns all the same: features='*' (--features '*')."
        )
    return without_suspects(rows, constant)


class Usable(NamedTuple):
    """Places of the columns and rows without a value that is not finite, and what was left out in words."""

    columns: np.ndarray
    rows: np.ndarray
    alerts: tuple[Alert, ...]


def usable(rows: Rows, how: Nonfinite, engine: Engine = LOCAL) -> Usable:
    """Columns and rows to use, such that every value is finite.

    Parameters
    ----------
    how : {"least", "rows", "columns", "refuse"}
        "rows" leaves out the rows, "columns" the columns that hold a NaN or an infinity. "least" leaves out columns
        first, those with the most such values before the others, as long as the rows that this saves hold more values.
    engine : Engine
        The engine that runs the pass.
    """
    n, d = rows.shape
    at_row, at_column = _places(rows, engine)
    everything = Usable(np.arange(d), np.arange(n), ())
    if not len(at_row):
        return everything
    bad, inverse, counts = np.unique(at_column, return_inverse=True, return_counts=True)
    names = column_names(rows)
    named = few(f"{names[bad[k]]!r} ({counted(int(counts[k]), 'value')})" for k in np.argsort(-counts, kind="stable"))
    touched = len(np.unique(at_row))
    where = f"{len(bad)} of {d} columns ({named}) and {touched:,} of {n:,} rows"
    what = f"{rows.name} has values that are not finite, in {where}"
    if how == "refuse":
        raise InputError(f"{what}. Fix them, or leave them out with nonfinite='least' (--nonfinite least).")
    dropped = _to_drop(at_row, inverse, counts, n, d, how)
    lost_rows = np.unique(at_row[~dropped[inverse]])
    columns, kept = np.setdiff1d(everything.columns, bad[dropped]), np.setdiff1d(everything.rows, lost_rows)
    if not len(columns) or len(kept) < 2:
        left = f"{len(columns)} columns and {len(kept)} rows are left"
        other = "columns" if how == "rows" else "rows"
        helps = d > len(bad) if other == "columns" else n - touched >= 2
        advice = f"Try nonfinite={other!r} (--nonfinite {other}), or fill them in." if helps else "Fill them in."
        raise InputError(f"{what}: without them {left}. {advice}")
    parts = [f"{dropped.sum()} of {d} columns"] * bool(dropped.any())
    parts += [f"{len(lost_rows):,} of {n:,} rows"] * bool(len(lost_rows))
    alert = Alert(
        "nonfinite",
        f"nearid leaves out {' and '.join(parts)} of {rows.name}, because of values that are not finite. Such values "
        f"are in {where}; {len(columns)} columns of {len(kept):,} rows are used. Choose otherwise with "
        "nonfinite='rows' or 'columns' (--nonfinite rows, --nonfinite columns).",
    )
    return Usable(columns, kept, (alert,))


def _places(rows: Rows, engine: Engine) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of all values that are not finite."""
    found = list(engine.map(_places_in, blocks(*rows.shape), rows))
    return np.concatenate([rows for rows, _ in found]), np.concatenate([columns for _, columns in found])


def _places_in(block: tuple[int, int], rows: Rows) -> tuple[np.ndarray, np.ndarray]:
    x = rows.read(*block)
    # A sum is finite where all of its terms are, up to an overflow; the exact look is for the others.
    if np.isfinite(x.sum(dtype=np.float64)):
        return np.empty(0, np.intp), np.empty(0, np.intp)
    at, column = np.nonzero(~np.isfinite(x))
    return at + block[0], column


def _to_drop(
    at_row: np.ndarray, inverse: np.ndarray, counts: Sequence[int] | np.ndarray, n: int, d: int, how: Nonfinite
) -> np.ndarray:
    """Which of the columns with such values are left out; the rows of the others are."""
    m = len(counts)
    if how != "least":
        return np.full(m, how == "columns")
    # Columns from the one with the fewest such values on: what is lost if all up to one keep their place.
    order = np.argsort(counts, kind="stable")
    rank = np.empty(m, np.intp)
    rank[order] = np.arange(m)
    first = np.full(n, m)
    np.minimum.at(first, at_row, rank[inverse])
    # Rows that are lost where the k columns with the fewest are kept: those that one of these touches.
    lost = np.concatenate([[0], np.cumsum(np.bincount(first[first < m], minlength=m))])
    values = (n - lost) * (d - (m - np.arange(m + 1)))
    # Of equal choices the one that keeps the rows.
    best = int(np.argmax(values))
    return np.asarray(rank >= best)
