"""Blocks of rows that belong together. The user gives them as a column, a file, labels, or "none"."""

import os
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.derived import SelectedColumns
from nearid.arrays.labels import row_blocks
from nearid.arrays.memory import is_a, is_count, labels
from nearid.arrays.names import few, nearest
from nearid.arrays.pair import as_levels_of, pair_rows
from nearid.arrays.paths import format_at, is_there, known_format, name_of, place_of, split_key, whole
from nearid.arrays.reading import near_files, reached
from nearid.arrays.rows import Rows
from nearid.arrays.tables import Columns, notes_without
from nearid.base.errors import InputError

# The value of `blocks` that means: the rows have no blocks.
NONE = "none"


def with_blocks(rows: Rows, blocks: Any) -> Rows:
    """Return rows with the given blocks (see `open_rows`). If `blocks` is None, the rows keep their own."""
    return attach(blocks, [rows])[0]


def open_blocks(blocks: Any, rows: Sequence[Rows]) -> tuple[list[Rows], bool]:
    """Return the runs with their blocks, and whether nearid may search for blocks in runs that have none.

    Parameters
    ----------
    blocks : str, os.PathLike, array-like or None
        None uses the blocks that are stored in the runs, "none" ignores them. Otherwise give a column or entry of one
        or more runs, a file, or labels (one per row of the first run). A column is preferred to a file of the same
        name.
    rows : sequence of Rows
        The runs. A column of blocks is not a feature of the returned runs. With three or more runs, a run without
        blocks gets the blocks of the first run that has them, after its rows are paired with the rows of that run.
    """
    return _shared(attach(blocks, rows)), blocks is None


def recorded(blocks: Any) -> str | None:
    """Return how the provenance describes the given blocks."""
    if blocks is None or isinstance(blocks, str | os.PathLike):
        return None if blocks is None else os.fspath(blocks)
    return "labels"


def attach(blocks: Any, rows: Sequence[Rows]) -> list[Rows]:
    """Return copies of the runs with the given blocks (see `open_blocks`); other runs do not get these blocks yet."""
    if blocks is None:
        return list(rows)
    bare = [_labelled(each, None) for each in rows]
    if isinstance(blocks, str):
        if blocks == NONE:
            return bare
        if not blocks:
            raise InputError(f"blocks is an empty string. Give a column or a file, or {NONE!r} for no blocks.")
        held = [beside(each, blocks) for each in rows]
        if any(values is not None for _, values in held):
            return [
                each if values is None else _without(_labelled(each, values), blocks)
                for each, (_, values) in zip(bare, held, strict=True)
            ]
        if not is_there(split_key(blocks)[0]):
            features = {name for each in rows for name in each.columns or ()}
            # Features come last, because there may be thousands of them.
            names = sorted(dict.fromkeys(name for known, _ in held for name in known), key=features.__contains__)
            among = " or ".join(each.name for each in rows)
            file = _near_file(blocks)
            raise InputError(
                f"{among} has no column {blocks!r} to use as blocks, and there is no file of this name.{file} "
                + (f"Columns: {few(map(repr, names))}. {_like(blocks, names)}" if names else _advice())
            )
    in_file = isinstance(blocks, str | os.PathLike)
    return [_labelled(bare[0], _in_file(blocks) if in_file else blocks, in_file=in_file), *bare[1:]]


def _near_file(blocks: str) -> str:
    """Return a question that names files with nearly the name of FILE or FILE:COLUMN; empty for none."""
    for text in dict.fromkeys((blocks, blocks.rpartition(":")[0])):
        place = place_of(text) if text else None
        if isinstance(place, Path) and place.parent.is_dir():
            with suppress(OSError):
                if hint := near_files(place):
                    return hint
    return ""


def _like(wanted: str, names: list[str]) -> str:
    hint = nearest(wanted, names)
    return hint if hint.startswith("Did") else f"Name one of them, or give blocks={NONE!r} (--blocks {NONE})."


def _advice() -> str:
    return (
        "This source has no named columns. In Python, pass the labels themselves, one per row. On the command line, "
        f"give a .npy or .csv file with the labels. If the rows are independent, give blocks={NONE!r} "
        f"(--blocks {NONE})."
    )


def _labelled(rows: Rows, values: Any, *, in_file: bool = False) -> Rows:
    """Return a copy of the rows with these blocks. A Series is aligned with the rows by its index."""
    if is_a(values, "pandas", "DataFrame") and values.shape[1] == 1:
        values = values.iloc[:, 0]
    labelled = copy(rows)
    if is_a(values, "pandas", "Series"):
        values, notes = _in_order(rows, values)
        labelled.notes += notes
    labelled.blocks = None if values is None else row_blocks(rows.name, values, rows.shape[0], in_file=in_file)
    return labelled


def _in_order(rows: Rows, series: Any) -> tuple[Any, tuple[str, ...]]:
    """Return the values of a Series of blocks in the order of the rows, and notes for the user."""
    index, counts = labels(series.index), is_count(series.index)
    by_place = (
        f"The Series of blocks is matched to the rows of {rows.name} by position, because its index does not contain "
        "the labels of these rows.",
    )
    if rows.index is None:
        return series, () if counts or len(series) != rows.shape[0] else by_place
    if index.equals(rows.index):
        return series, ()
    # If the rows have labels of another type, a default index 0, 1, 2, ... holds no labels.
    if counts and rows.index.inferred_type != "integer":
        return series, by_place
    if not index.is_unique:
        raise InputError(
            f"The Series of blocks of {rows.name} has an index with repeated labels, and this index differs from the "
            "index of the rows. Give the labels in the order of the rows, for example with blocks.to_numpy()."
        )
    places = as_levels_of(index, rows.index).get_indexer(rows.index)
    if (places < 0).any():
        without = np.flatnonzero(places < 0)
        raise InputError(
            f"The Series of blocks has no label for {len(without)} of the {rows.shape[0]} rows of {rows.name}, such as "
            f"{rows.index[without[0]]!r}. Give one label for every row, or labels in the order of the rows, as with "
            "blocks.to_numpy()."
        )
    return series.iloc[places], ()


def _without(rows: Rows, column: str) -> Rows:
    """Return the rows without the column of blocks among the features and without the note that it is ignored."""
    rows.notes = notes_without(rows.notes, column)
    if rows.columns is None or column not in rows.columns:
        return rows
    kept = [at for at, name in enumerate(rows.columns) if name != column]
    if not kept:
        raise InputError(
            f"{rows.name} has no features: its only numeric column is {column!r}, which is used as blocks."
        )
    left = SelectedColumns(rows, np.array(kept))
    left.unused += (column,)
    return left


def beside(rows: Rows, wanted: str) -> tuple[list[str], Any]:
    """Return the names of columns or entries that may hold blocks, and the values of `wanted` (None if missing)."""
    if rows.origin is None:
        return [], None
    if isinstance(rows.origin, Columns):
        return list(rows.origin.values), rows.origin.values.get(wanted)
    if not isinstance(rows.origin, str):
        return _in_table(rows.name, rows.origin, wanted)
    known = format_at(rows.origin)
    if known is None:  # the file no longer exists
        return [], None
    with reached(rows.origin):
        return known.beside(rows.origin, name_of(place_of(rows.origin)), wanted)


def _in_table(name: str, frame: Any, wanted: str) -> tuple[list[str], Any]:
    """Return the names of columns and index levels of a pandas or polars DataFrame, and the values of `wanted`."""
    names = list(map(str, frame.columns))
    if names.count(wanted) > 1:
        raise InputError(
            f"{name} has {names.count(wanted)} columns named {wanted!r}, so nearid cannot choose the column of blocks. "
            "Rename one of them."
        )
    if is_a(frame, "polars", "DataFrame"):
        return names, frame[wanted].to_list() if wanted in names else None
    # Values without an index, because they are already in the order of the rows.
    if wanted in names:
        return names, frame.iloc[:, names.index(wanted)].array
    levels = [level for level in frame.index.names if isinstance(level, str)]
    return names + levels, frame.index.get_level_values(wanted).array if wanted in levels else None


def _in_file(source: str | os.PathLike[str]) -> Any:
    """Return the column of a file that is named after the path (FILE:COLUMN), or the only column."""
    place, column = split_key(place_of(source))
    with reached(place):
        names, values = known_format(place).beside(whole(place), name_of(place), column)
    if values is None:
        held = f"Its columns: {few(map(repr, names))}." if any(names) else "It has no named columns."
        expected = f"has no column {column!r}" if column else "does not hold exactly one column with one block per row"
        raise InputError(f"{name_of(place)} was given as blocks, but it {expected}. {held} Write FILE:COLUMN.")
    return values


def _shared(rows: list[Rows]) -> list[Rows]:
    """Copy the blocks of the first run that has them to the others. In a pair, blocks of one side are enough."""
    known = next((each for each in rows if each.blocks is not None), None)
    if known is None or len(rows) < 3:
        return rows
    return [each if each.blocks is not None else _labelled(each, _carried(known, each)) for each in rows]


def _carried(known: Rows, rows: Rows) -> np.ndarray:
    pair = pair_rows(known, rows)
    if pair.n < rows.shape[0]:
        raise InputError(
            f"The blocks come from {known.name}, but {rows.shape[0] - pair.n} of the {rows.shape[0]} rows of "
            f"{rows.name} are not in it. Give the blocks as a column of each run, or ignore them with blocks='none' "
            "(--blocks none)."
        )
    assert known.blocks is not None
    labels = known.blocks if pair.x_index is None else known.blocks[pair.x_index]
    if pair.y_index is None:
        return labels
    placed = np.empty_like(labels)
    placed[pair.y_index] = labels
    return placed
