"""Comma and tab separated text."""

import csv
import gzip
import io
import os
import zlib
from itertools import islice
from typing import Any

import numpy as np

from nearid.arrays.held import MemoryRows
from nearid.arrays.memory import available_memory, check_memory
from nearid.arrays.table import Column, features, id_position, refuse_key
from nearid.errors import InputError

_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"


def open_csv(path: str, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Load the numeric columns of a .csv or .tsv file, which may be compressed (.gz)."""
    import pyarrow as pa

    refuse_key(name, key)
    table, has_header, notes = read_text(path, name, ids)
    names = table.column_names
    columns = [_column(label, column) for label, column in zip(names, table.columns, strict=True)]
    id_at = id_position(name, names, ids)
    chosen = features(name, columns, id_at, lambda: np.asarray(table.column(0)))
    check_memory(name, table.num_rows * len(chosen.positions) * 8, "Save it as .parquet or .npy.")
    array = np.empty((table.num_rows, len(chosen.positions)))
    for at, position in enumerate(chosen.positions):
        array[:, at] = table.column(position).cast(pa.float64()).to_numpy()
    id_values = None if id_at is None else plain_ids(table.column(id_at))
    rows = MemoryRows(name, array, id_values, notes + chosen.notes)
    rows.is_table = True
    if has_header:
        rows.columns = tuple(names[at] for at in chosen.positions)
    return rows


def read_text(path: str, name: str, ids: str | None) -> tuple[Any, bool, tuple[str, ...]]:
    """All columns of a file of text as a pyarrow table, whether its first line names them, and notes on that."""
    import pyarrow as pa

    delimiter = "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","
    try:
        check_memory(name, 2 * _text_size(path), "Save it as .parquet or .npy, which are read block by block.")
        has_header, notes = _header(path, name, delimiter)
        return _read_table(path, delimiter, has_header, ids), has_header, notes
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        first_line = str(error).partition("\n")[0].strip().rstrip(".")
        if os.path.getsize(path) == 0:
            raise InputError(f"{name} is empty, but a table with at least 2 rows is expected.") from None
        if "utf-8" in first_line.lower() or "utf8" in first_line.lower():
            raise InputError(f"{name} is not UTF-8 text: {first_line}. Save it as UTF-8.") from None
        raise InputError(
            f"{name} could not be read as a table of text with the same number of cells in every line: {first_line}. "
            "Write it again, for example with DataFrame.to_csv(path, index=False)."
        ) from None


def _open_text(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _text_size(path: str) -> int:
    if not path.lower().endswith(".gz"):
        return os.path.getsize(path)
    limit, size = available_memory(), 0
    with gzip.open(path, "rb") as file:
        while piece := file.read(1 << 20):
            size += len(piece)
            if limit is not None and size > limit:
                break
    return size


def _header(path: str, name: str, delimiter: str) -> tuple[bool, tuple[str, ...]]:
    """Whether the first line names the columns."""
    with _open_text(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        lines = list(islice(csv.reader(text, delimiter=delimiter), 2))
    if not lines or not all(map(_is_number, lines[0])):
        return True, ()
    first = lines[0]
    counting = first == [str(at) for at in range(len(first))]
    # pandas names the columns of an unnamed frame 0, 1, 2, ...; two of them could as well be numbers.
    if counting and (len(first) > 2 or any(not cell.strip("+- ").isdigit() for line in lines[1:] for cell in line)):
        return True, (f"The first line of {name} counts 0 to {len(first) - 1}; it is read as column names.",)
    return False, (f"The first line of {name} holds numbers; it is read as data, not as column names.",)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_table(path: str, delimiter: str, has_header: bool, ids: str | None) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    return pyarrow.csv.read_csv(
        path,
        # A line must fit into a block; one with a hundred thousand columns exceeds the default of 1 MB.
        read_options=pyarrow.csv.ReadOptions(autogenerate_column_names=not has_header, block_size=1 << 24),
        parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        # Ids as text first: as numbers, 007 would become 7.
        convert_options=pyarrow.csv.ConvertOptions(column_types={} if ids is None else {ids: pa.string()}),
    )


def _column(name: str, values: Any) -> Column:
    import pyarrow as pa

    kind = values.type
    if pa.types.is_null(kind):
        # A name promises values, so missing ones must be seen; a nameless one comes from a final delimiter.
        return Column(name, numeric=name != "")
    numeric = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    return Column(name, numeric, example=None if numeric else _first_text(values))


def _first_text(column: Any) -> str | None:
    """The first value that is no number, to show why the column is not numeric."""
    import pyarrow as pa
    import pyarrow.compute

    if not pa.types.is_string(column.type):
        return None
    is_text = pyarrow.compute.invert(pyarrow.compute.match_substring_regex(column, _NUMBER))
    found = column.filter(is_text)
    return found[0].as_py() if len(found) else None


def plain_ids(column: Any) -> np.ndarray:
    """Ids of a column of text: integers where all are written as such, without leading zeros."""
    ids = np.asarray(column.to_pylist(), object)
    try:
        integers = [int(value) for value in ids]
    except (TypeError, ValueError):
        return ids
    plain = all(str(number) == value for number, value in zip(integers, ids, strict=True))
    return np.asarray(integers, object) if plain else ids
