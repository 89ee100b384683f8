"""Comma and tab separated text."""

import csv
import gzip
import io
import os
import re
import zlib
from collections import Counter
from itertools import islice
from typing import Any

import numpy as np

from nearid.arrays.formats.registry import Format
from nearid.arrays.memory import MemoryRows, arrow_rows
from nearid.arrays.names import only
from nearid.arrays.tables import Column, Columns, arrow_columns, is_number, refuse_key
from nearid.base.errors import InputError
from nearid.base.limits import available_memory, check_memory

_GZIP = b"\x1f\x8b"
# With more columns than this, one thread of pyarrow is faster than several, and guessing column types dominates.
_WIDE = 10_000
_GAPS = (
    "",
    "#N/A",
    "#NA",
    "1.#IND",
    "N/A",
    "NA",
    "NULL",
    "n/a",
    "null",
)  # in addition to what float() accepts, such as nan
_NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_FRACTION = re.compile(r"-?[0-9]+\.[0-9]+([eE][-+]?[0-9]+)?")


def open_csv(path: str, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Return the numeric columns of a .csv or .tsv file, which may be compressed (.gz), as rows in memory."""
    refuse_key(name, key)
    table, has_header, notes = read_text(path, name, ids)
    columns = [_column(label, column) for label, column in zip(table.column_names, table.columns, strict=True)]
    rows = arrow_rows(name, table, columns, ids, plain_ids, notes)
    if not has_header:
        rows.columns, rows.unused = None, ()
    return rows


def csv_columns(path: str, name: str, ids: str | None) -> Columns:
    """Return all columns of a text file."""
    table, _, notes = read_text(path, name, ids)
    return arrow_columns(name, table, ids, plain_ids, notes)


def csv_column(path: str, name: str, wanted: str | None) -> tuple[list[str], Any]:
    """Return the names of all columns of a text file, and the values of one."""
    table, _, _ = read_text(path, name, wanted)
    column = only(table.column_names) if wanted is None else wanted
    # If two columns have the wanted name, neither is used.
    found = table.column_names.count(column) == 1
    return table.column_names, plain_ids(table.column(column)) if found else None


def read_text(path: str, name: str, ids: str | None) -> tuple[Any, bool, tuple[str, ...]]:
    """Return all columns of a text file as a pyarrow table, whether its first line is a header, and notes on that."""
    import pyarrow as pa

    delimiter = "\t" if path.lower().removesuffix(".gz").endswith(".tsv") else ","
    try:
        check_memory(
            name, _memory_needed(path, delimiter), "Save it as .parquet or .npy, which are read block by block."
        )
        lines, has_header, notes = _header(path, name, delimiter)
        return _read_table(path, delimiter, lines, has_header, ids), has_header, notes
    except MemoryError:
        raise InputError(
            f"{name} needs more memory than is available. Save it as .parquet or .npy, which are read block by block."
        ) from None
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        first_line = str(error).partition("\n")[0].strip().rstrip(".")
        if os.path.getsize(path) == 0:
            raise InputError(f"{name} is empty, but a table with at least 2 rows is expected.") from None
        if path.lower().endswith(".gz") and isinstance(error, OSError | EOFError | zlib.error):
            raise InputError(f"{name} is not a whole gzip file: {first_line}. Write or copy it again.") from None
        if "utf-8" in first_line.lower() or "utf8" in first_line.lower():
            advice = f"It is compressed: rename it to {name}.gz." if _starts_with(path, _GZIP) else "Save it as UTF-8."
            raise InputError(f"{name} is not UTF-8 text: {first_line}. {advice}") from None
        raise InputError(
            f"{name} could not be read as a table of text with the same number of cells in every line: {first_line}. "
            "Write it again, for example with DataFrame.to_csv(path, index=False)."
        ) from None


def _open_text(path: str) -> Any:
    return gzip.open(path, "rb") if path.lower().endswith(".gz") else open(path, "rb")


def _memory_needed(path: str, delimiter: str) -> int:
    """Return the approximate number of bytes that reading needs: twice the text, or two numbers per cell if more.

    If pyarrow runs out of memory, the process ends, so this is checked before.
    """
    ends, limit, size, cells = (delimiter.encode(), b"\n"), available_memory(), 0, 0
    packed = path.lower().endswith(".gz")
    with gzip.open(path, "rb") if packed else open(path, "rb") as file:
        while piece := file.read(1 << 20):
            size, cells = size + len(piece), cells + sum(piece.count(end) for end in ends)
            if not packed or (limit is not None and max(2 * size, 16 * cells) > limit):
                break
    # Uncompressed text is as long as its file. Its first part shows how short the cells are.
    whole = 1.0 if packed or not size else os.path.getsize(path) / size
    return int(whole * max(2 * size, 16 * cells))


def _starts_with(path: str, mark: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(mark)) == mark


def _header(path: str, name: str, delimiter: str) -> tuple[list[list[str]], bool, tuple[str, ...]]:
    """Return the cells of the first two lines, whether the first line is a header, and notes on that."""
    with _open_text(path) as file:
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        lines = list(islice(filter(None, csv.reader(text, delimiter=delimiter)), 2))
    first = lines[0] if lines else []
    numbers = [cell for cell in first if _is_number(cell)]
    if len(numbers) == len(first) > 0:
        return lines, *_all_numbers(name, first, lines[1:])
    gaps = [at for at, cell in enumerate(first) if cell in _GAPS]
    if not numbers or (_counts_up(numbers) and gaps in ([], [0])):
        return lines, True, ()
    # A first line of data would be lost if it were read as names. A first line with an empty first cell is the header
    # of a table with an index.
    if len(numbers) + len(gaps) == len(first) and gaps != [0]:
        note = f"The first line of {name} holds numbers and empty cells, so it is read as data, not as column names."
        return lines, False, (note,)
    note = (
        f"The first line of {name} is read as column names, although it holds numbers, such as {numbers[0]!r}. "
        "If it is data, put a line of names before it."
    )
    return lines, True, (note,)


def _all_numbers(name: str, first: list[str], second: list[list[str]]) -> tuple[bool, tuple[str, ...]]:
    counting = first == [str(at) for at in range(len(first))]
    # pandas names the columns of a frame without names 0, 1, 2, ... With two columns, these could also be data.
    if counting and (len(first) > 2 or any(not cell.strip("+- ").isdigit() for line in second for cell in line)):
        return True, (f"The first line of {name} counts 0 to {len(first) - 1}, so it is read as column names.",)
    return False, (f"The first line of {name} holds numbers, so it is read as data, not as column names.",)


def _counts_up(cells: list[str]) -> bool:
    """Return whether the cells are consecutive integers, like column numbers."""
    if not all(cell.isdecimal() for cell in cells):
        return False
    start = int(cells[0])
    return [int(cell) for cell in cells] == list(range(start, start + len(cells))) and (start < 2 or len(cells) > 2)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_table(path: str, delimiter: str, lines: list[list[str]], has_header: bool, ids: str | None) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    width = len(lines[0]) if lines else 0
    # A line must fit into a block. A line with a hundred thousand columns exceeds the default of 1 MB.
    read = pyarrow.csv.ReadOptions(
        autogenerate_column_names=not has_header, block_size=1 << 24, use_threads=width < _WIDE
    )
    # In a single column an empty line is a missing value.
    parse = pyarrow.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True, ignore_empty_lines=width > 1)
    # Ids are read as text, because 007 would become 7 as a number.
    known = {} if ids is None else {ids: pa.string()}

    def table(types: dict[str, Any]) -> Any:
        return pyarrow.csv.read_csv(path, read, parse, pyarrow.csv.ConvertOptions(column_types=types))

    if width >= _WIDE:
        try:
            return table(_fractions(lines, has_header) | known)
        except pa.ArrowInvalid:
            pass  # text in a later line, or a damaged file: the next attempt raises the error of pyarrow
    return _without_last_gaps(table(known)) if width == 1 else table(known)


def _fractions(lines: list[list[str]], has_header: bool) -> dict[str, Any]:
    """Return the columns whose first value has a fraction, so that they hold float64 or text."""
    import pyarrow as pa

    names = lines[0] if has_header else [f"f{at}" for at in range(len(lines[0]))]
    first = zip(names, lines[-1], strict=False) if len(lines) > has_header else ()
    once = Counter(names)
    return {name: pa.float64() for name, cell in first if _FRACTION.fullmatch(cell) and once[name] == 1}


def _without_last_gaps(table: Any) -> Any:
    """Return a table of one column without empty lines at the end of the file."""
    present = np.flatnonzero(np.asarray(table.column(0).is_valid()))
    return table.slice(0, int(present[-1]) + 1) if len(present) else table


def _column(name: str, values: Any) -> Column:
    import pyarrow as pa

    if pa.types.is_null(values.type):
        # An empty column with a name should hold values, so it is kept and its missing values are reported. An empty
        # column without a name comes from a delimiter at the end of each line.
        return Column(name, numeric=name != "")
    numeric = is_number(values.type)
    return Column(name, numeric, example=None if numeric else _first_text(values))


def _first_text(column: Any) -> str | None:
    """Return the first value that is not a number, to show why the column is not numeric."""
    import pyarrow as pa
    import pyarrow.compute

    if not pa.types.is_string(column.type):
        return None
    is_text = pyarrow.compute.invert(pyarrow.compute.match_substring_regex(column, _NUMBER))
    texts = column.filter(is_text)
    return texts[0].as_py() if len(texts) else None


def plain_ids(column: Any) -> np.ndarray:
    """Return the ids of a text column, as integers if all of them are integers without leading zeros."""
    ids = np.asarray(column.to_pylist(), object)
    try:
        integers = [int(value) for value in ids]
    except (TypeError, ValueError):
        return ids
    plain = all(str(number) == value for number, value in zip(integers, ids, strict=True))
    return np.asarray(integers, object) if plain else ids


CSV = Format((".csv", ".tsv", ".csv.gz", ".tsv.gz"), rows=open_csv, columns=csv_columns, column=csv_column)
