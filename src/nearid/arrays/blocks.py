"""Blocks of rows that belong together, as a user names them: a column, a file, labels, or "none"."""

import os
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.derived import SelectedColumns
from nearid.arrays.formats.registry import format_of
from nearid.arrays.labels import row_blocks
from nearid.arrays.memory import is_a, is_count, labels
from nearid.arrays.names import few, nearest
from nearid.arrays.pair import as_levels_of, pair_rows
from nearid.arrays.paths import known_format, split_key
from nearid.arrays.reading import reached
from nearid.arrays.rows import Rows
from nearid.arrays.tables import Columns, notes_without
from nearid.base.errors import InputError
from nearid.base.files import local_path

# The word that stands for rows without blocks.
NONE = "none"


def with_blocks(rows: Rows, blocks: Any) -> Rows:
    """Rows with the blocks that are given for them, as of `open_rows`; None leaves those that they have."""
    return attach(blocks, [rows])[0]


def open_blocks(blocks: Any, rows: Sequence[Rows]) -> tuple[list[Rows], bool]:
    """Runs with their blocks; and whether blocks may be looked for in rows that have none.

    Parameters
    ----------
    blocks : str, os.PathLike, array-like or None
        None for the blocks that the runs carry; "none" to ignore them; a column or entry of one or more of the runs; a
        file; or labels, one for each row of the first run. A column comes before a file of the same name.
    rows : sequence of Rows
        The runs. A column of blocks is no feature in what is returned. Of three or more, runs without blocks get those
        of the first that has some, by pairing their rows.
    """
    return _shared(attach(blocks, rows)), blocks is None


def recorded(blocks: Any) -> str | None:
    """What the provenance says of blocks as they were given."""
    if blocks is None or isinstance(blocks, str | os.PathLike):
        return None if blocks is None else os.fspath(blocks)
    return "labels"


def attach(blocks: Any, rows: Sequence[Rows]) -> list[Rows]:
    """Rows with the blocks that are given, as of `open_blocks`, and without any that they had; not shared."""
    if blocks is None:
        return list(rows)
    bare = [_labelled(each, None) for each in rows]
    if isinstance(blocks, str):
        if blocks == NONE:
            return bare
        if not blocks:
            raise InputError(f"The name of the blocks is empty. Give a column or a file, or {NONE!r} for no blocks.")
        held = [beside(each, blocks) for each in rows]
        if any(values is not None for _, values in held):
            return [
                each if values is None else _without(_labelled(each, values), blocks)
                for each, (_, values) in zip(bare, held, strict=True)
            ]
        if not os.path.exists(split_key(blocks)[0]):
            features = {name for each in rows for name in each.columns or ()}
            # Features last: there may be thousands of them.
            names = sorted(dict.fromkeys(name for known, _ in held for name in known), key=features.__contains__)
            among = " or ".join(each.name for each in rows)
            raise InputError(
                f"{among} has no column {blocks!r} to take blocks from, and there is no file of this name. "
                + (f"Columns: {few(map(repr, names))}. {_like(blocks, names)}" if names else _advice())
            )
    in_file = isinstance(blocks, str | os.PathLike)
    return [_labelled(bare[0], _in_file(blocks) if in_file else blocks, in_file=in_file), *bare[1:]]


def _like(wanted: str, names: list[str]) -> str:
    hint = nearest(wanted, names)
    return hint if hint.startswith("Did") else f"Name one of them, or give blocks={NONE!r} (--blocks {NONE})."


def _advice() -> str:
    return (
        "The rows have no columns beside them. In Python pass the labels themselves, one per row; for the command line "
        f"give a file with them, as .npy or .csv. If the rows are independent, give blocks={NONE!r} (--blocks {NONE})."
    )


def _labelled(rows: Rows, values: Any, *, in_file: bool = False) -> Rows:
    """A copy of rows with these blocks; a Series is brought to the order of the rows by its index."""
    if is_a(values, "pandas", "DataFrame") and values.shape[1] == 1:
        values = values.iloc[:, 0]
    labelled = copy(rows)
    if is_a(values, "pandas", "Series"):
        values, notes = _in_order(rows, values)
        labelled.notes += notes
    labelled.blocks = None if values is None else row_blocks(rows.name, values, rows.shape[0], in_file=in_file)
    return labelled


def _in_order(rows: Rows, series: Any) -> tuple[Any, tuple[str, ...]]:
    """A Series of blocks in the order of the rows, and what is to be said of it."""
    index, counts = labels(series.index), is_count(series.index)
    by_place = (f"The Series of blocks of {rows.name} is taken by position: its labels are not those of the rows.",)
    if rows.index is None:
        return series, () if counts or len(series) != rows.shape[0] else by_place
    if index.equals(rows.index):
        return series, ()
    # What a new Series counts is no label, beside rows with names of another kind.
    if counts and rows.index.inferred_type != "integer":
        return series, by_place
    if not index.is_unique:
        raise InputError(
            f"The Series of blocks of {rows.name} has an index with repeated labels that is not the index of the "
            "rows. Give the labels in the order of the rows, as with blocks.to_numpy()."
        )
    places = as_levels_of(index, rows.index).get_indexer(rows.index)
    if (places < 0).any():
        without = np.flatnonzero(places < 0)
        raise InputError(
            f"The Series of blocks has no label for {len(without)} of the {rows.shape[0]} rows of {rows.name}, such as "
            f"{rows.index[without[0]]!r}. Give one for every row, or labels in the order of the rows, as with "
            "blocks.to_numpy()."
        )
    return series.iloc[places], ()


def _without(rows: Rows, column: str) -> Rows:
    """Rows, already a copy, without the feature that turned out to hold blocks, and without a note that ignores it."""
    rows.notes = notes_without(rows.notes, column)
    if rows.columns is None or column not in rows.columns:
        return rows
    kept = [at for at, name in enumerate(rows.columns) if name != column]
    if not kept:
        raise InputError(f"{rows.name} has no feature beside its column of blocks, {column!r}.")
    left = SelectedColumns(rows, np.array(kept))
    left.unused += (column,)
    return left


def beside(rows: Rows, wanted: str) -> tuple[list[str], Any]:
    """Names of what may hold blocks in the source of rows, and the values of the wanted one; None if it is missing."""
    if rows.origin is None:
        return [], None
    if isinstance(rows.origin, Columns):
        return list(rows.origin.values), rows.origin.values.get(wanted)
    if not isinstance(rows.origin, str):
        return _in_table(rows.name, rows.origin, wanted)
    known = format_of(Path(rows.origin))
    if known is None:  # the file is gone
        return [], None
    with reached(rows.origin):
        return known.beside(rows.origin, os.path.basename(rows.origin), wanted)


def _in_table(name: str, frame: Any, wanted: str) -> tuple[list[str], Any]:
    """Columns and named levels of the index of a DataFrame of pandas or polars."""
    names = list(map(str, frame.columns))
    if names.count(wanted) > 1:
        raise InputError(f"{name} has {names.count(wanted)} columns named {wanted!r}, so blocks cannot be taken there.")
    if is_a(frame, "polars", "DataFrame"):
        return names, frame[wanted].to_list() if wanted in names else None
    # Values alone: they are in the order of the rows.
    if wanted in names:
        return names, frame.iloc[:, names.index(wanted)].array
    levels = [level for level in frame.index.names if isinstance(level, str)]
    return names + levels, frame.index.get_level_values(wanted).array if wanted in levels else None


def _in_file(source: str | os.PathLike[str]) -> Any:
    """The only column of a file, or the one that is named after its path."""
    path, column = split_key(local_path(source))
    with reached(path):
        names, values = known_format(path).beside(os.path.abspath(path), path.name, column)
    if values is None:
        held = f"It holds {few(map(repr, names))}." if any(names) else "It holds none."
        one = f"a column {column!r}" if column else "one column with the block of each row"
        raise InputError(f"{path.name} was given as blocks, but {one} is expected in it. {held} Write FILE:COLUMN.")
    return values


def _shared(rows: list[Rows]) -> list[Rows]:
    """Runs with the blocks of the first that has some; a pair of runs needs those of one side only."""
    known = next((each for each in rows if each.blocks is not None), None)
    if known is None or len(rows) < 3:
        return rows
    return [each if each.blocks is not None else _labelled(each, _carried(known, each)) for each in rows]


def _carried(known: Rows, rows: Rows) -> np.ndarray:
    pair = pair_rows(known, rows)
    if pair.n < rows.shape[0]:
        raise InputError(
            f"{rows.shape[0] - pair.n} of the {rows.shape[0]} rows of {rows.name} are not in {known.name}, from which "
            "the blocks are taken. Give the blocks as a column of each run, or ignore them with blocks='none' "
            "(--blocks none)."
        )
    assert known.blocks is not None
    labels = known.blocks if pair.x_index is None else known.blocks[pair.x_index]
    if pair.y_index is None:
        return labels
    placed = np.empty_like(labels)
    placed[pair.y_index] = labels
    return placed
