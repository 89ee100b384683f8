"""Parquet tables, read by row groups."""

import threading
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.registry import Format
from nearid.arrays.names import few, not_found, only
from nearid.arrays.reading import damage_told
from nearid.arrays.rows import Rows
from nearid.arrays.storage import opened
from nearid.arrays.tables import (
    Columns,
    arrow_columns,
    declared,
    features,
    floats,
    id_position,
    id_values,
    index_names,
    is_number,
    stored,
)
from nearid.base.addresses import address_of
from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.base.limits import check_memory


class ParquetRows(Rows):
    """Numeric columns, or one column of lists, of a parquet file. One row group is in memory at a time."""

    def __init__(self, path: str, name: str, key: str | None, ids: str | None) -> None:
        file = _opened(path)
        self._path = path
        self._metadata = file.metadata
        schema, names = file.schema_arrow, file.schema_arrow.names
        if self._metadata.num_rows == 0:
            raise InputError(f"{name} has 0 rows, but at least 2 rows are needed: give one row per sample.")
        if len(set(names)) < len(names):
            raise InputError(f"{name} has several columns of the same name. Give every column its own name.")
        id_at = id_position(name, names, ids)
        row_ids = None if id_at is None else id_values(self._column(names[id_at]))
        self._list = _list_column(name, schema, key, id_at)
        if self._list is not None:
            self._columns = [self._list]
            notes: tuple[str, ...] = ()
            width = self._list_length(schema.field(self._list).type)
            dtype = stored(schema.field(self._list).type.value_type)
        else:
            chosen = features(
                name,
                declared(schema),
                id_at,
                lambda: np.asarray(self._column(names[0])),
            )
            self._columns, notes = [names[at] for at in chosen.positions], chosen.notes
            width = len(self._columns)
            dtype = np.result_type(*(stored(schema.field(at).type) for at in chosen.positions))
        label = name if self._list is None else f"{name}:{self._list}"
        super().__init__(label, (self._metadata.num_rows, width), dtype, row_ids, notes)
        if self._list is None:
            self.columns, self.is_table = tuple(self._columns), True
        used = set(self._columns)
        self.unused = tuple(column for column in names if column not in used)
        sizes = [self._metadata.row_group(at).num_rows for at in range(self._metadata.num_row_groups)]
        self._edges = np.concatenate([[0], np.cumsum(sizes)])
        if self._edges[-1] != self.shape[0] or min(sizes) < 0:
            raise InputError(
                f"{name} declares {self.shape[0]} rows, but its row groups hold {sum(sizes)} rows. Write it again."
            )
        advice = "Write the table with smaller row groups: DataFrame.to_parquet(path, row_group_size=10_000)."
        check_memory(f"A row group of {name}", 2 * max(sizes) * width * self.dtype.itemsize, advice)
        self._cached: tuple[int, np.ndarray] | None = None
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_cached": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def _read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        group = int(np.searchsorted(self._edges, start, side="right")) - 1
        at = start
        while at < stop:
            first, last = int(self._edges[group]), int(self._edges[group + 1])
            end = min(stop, last)
            if end > at:
                out[at - start : end - start] = self._group(group)[at - first : end - first]
            at, group = max(at, end), group + 1
        return out

    def _group(self, group: int) -> np.ndarray:
        # Neighbouring blocks come from the same group, so a thread that waited here finds the group decoded.
        with self._lock:
            if self._cached is None or self._cached[0] != group:
                self._cached = None
                self._cached = group, self._decode(group)
            return self._cached[1]

    def _decode(self, group: int) -> np.ndarray:
        with damage_told(self.name, "parquet file"):
            table = self._table(group, self._columns)
        if table.num_rows != self._edges[group + 1] - self._edges[group]:
            raise InputError(f"Row group {group} of {self.name} holds fewer rows than it declares. Write it again.")
        if self._list is not None:
            return self._decode_lists(group, table.column(self._list))
        block = np.empty((table.num_rows, self.shape[1]), self.dtype)
        for at, name in enumerate(self._columns):
            block[:, at] = floats(table.column(name), self.dtype)
        return block

    def _decode_lists(self, group: int, column: Any) -> np.ndarray:
        import pyarrow.compute

        width = self.shape[1]
        lengths = np.asarray(pyarrow.compute.fill_null(pyarrow.compute.list_value_length(column), -1))
        if (lengths != width).any():
            row = int(np.argmax(lengths != width))
            held = "nothing" if lengths[row] < 0 else f"{lengths[row]} numbers"
            raise InputError(
                f"Row {int(self._edges[group]) + row} of {self.name} holds {held}, but the first row holds "
                f"{width} numbers. Give all rows the same length, or drop the rows with another length."
            )
        return floats(pyarrow.compute.list_flatten(column), self.dtype).reshape(-1, width)

    def _list_length(self, kind: Any) -> int:
        import pyarrow as pa

        if pa.types.is_fixed_size_list(kind):
            return int(kind.list_size)
        groups = range(self._metadata.num_row_groups)
        group = next(at for at in groups if self._metadata.row_group(at).num_rows)
        first = self._table(group, [self._list]).column(0)[0].as_py()
        return 0 if first is None else len(first)

    def _table(self, group: int, columns: list[Any]) -> Any:
        file = _opened(self._path, metadata=self._metadata, page_checksum_verification=True)
        # In pyarrow, a column "a" also selects a nested "a.b", so the columns are selected again.
        return file.read_row_group(group, columns=columns).select(columns)

    def _column(self, column: str) -> Any:
        import pyarrow as pa

        groups = range(self._metadata.num_row_groups)
        return pa.concat_tables(self._table(group, [column]) for group in groups).column(0)


def open_parquet(path: str, name: str, key: str | None, ids: str | None) -> ParquetRows:
    """Return rows of a .parquet file, which is read by row groups."""
    with damage_told(name, "parquet file"):
        return ParquetRows(path, name, key, ids)


def _opened(path: str, **options: Any) -> Any:
    """Return the parquet file at a path or an address."""
    import pyarrow.parquet

    if address_of(path) is None:
        return pyarrow.parquet.ParquetFile(path, **options)
    # pyarrow knows the ranges that it needs, and reads neighbouring columns in one request.
    return pyarrow.parquet.ParquetFile(opened(path, ahead=0), pre_buffer=True, **options)


def parquet_columns(path: str, name: str, ids: str | None) -> Columns | None:
    """Return all columns of a .parquet file; None if some are nested."""
    import pyarrow

    with damage_told(name, "parquet file"):
        nested = any(pyarrow.types.is_nested(field.type) for field in _opened(path).schema_arrow)
    return None if nested else plain_columns(path, name, ids)


def plain_columns(path: str, name: str, ids: str | None) -> Columns:
    """Return the columns of a .parquet file that are not nested."""
    import pyarrow

    with damage_told(name, "parquet file"):
        file = _opened(path, page_checksum_verification=True)
        plain = [field.name for field in file.schema_arrow if not pyarrow.types.is_nested(field.type)]
        check_memory(
            name, 2 * file.metadata.num_rows * len(plain) * 8, "Write only the columns that you need to a smaller file."
        )
        # In pyarrow, a column "a" also selects a nested "a.b", so the columns are selected again.
        return arrow_columns(name, file.read(columns=plain).select(plain), ids)


def vector_columns(path: str, name: str) -> list[str]:
    """Return the names of the columns of a .parquet file that hold lists of numbers."""
    with damage_told(name, "parquet file"):
        return [field.name for field in _opened(path).schema_arrow if _is_list(field.type)]


def parquet_column(path: str, name: str, wanted: str | None) -> tuple[list[str], Any]:
    """Return the names of the plain columns of a .parquet file, and the values of one."""
    import pyarrow

    with damage_told(name, "parquet file"):
        file = _opened(path, page_checksum_verification=True)
        names = [field.name for field in file.schema_arrow if not pyarrow.types.is_nested(field.type)]
        column = only(names) if wanted is None else wanted
        if names.count(column) != 1:
            return names, None
        return names, id_values(file.read(columns=[column]).select([column]).column(0))


def _list_column(name: str, schema: Any, key: str | None, id_at: int | None) -> str | None:
    """Return the list column that holds the rows: `key`, or the only one if no other column is numeric."""
    lists = [field.name for field in schema if _is_list(field.type)]
    if key is not None:
        if key not in schema.names:
            raise not_found(name, "key", key, schema.names)
        if key not in lists:
            held = (
                f"Its list columns: {few(map(repr, lists))}." if lists else "It has no list column: leave the key out."
            )
            raise InputError(f"{name} has no column {key!r} with lists of numbers. {held}")
        return key
    index = index_names(schema)
    plain = [
        field.name
        for at, field in enumerate(schema)
        if is_number(field.type) and at != id_at and field.name not in index
    ]
    if len(lists) == 1 and not plain:
        return str(lists[0])
    if lists:
        beside = f" and {len(plain)} numeric columns" if plain else ""
        raise InputError(
            f"{name} has {len(lists)} columns with lists of numbers ({few(map(repr, lists))}){beside}. "
            f"Choose one: key={lists[0]!r} (on the command line --key {lists[0]})."
        )
    return None


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    types = pa.types
    nested = types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind)
    return bool(nested and is_number(kind.value_type))


def write_parquet(
    target: Path,
    shape: tuple[int, int],
    dtype: np.dtype[Any],
    blocks: Iterable[np.ndarray],
    change: AbstractContextManager[None] | None = None,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write blocks of rows, one row group per block. Columns are named after their position, counted from 0.

    The blocks come in order to one writer, because the readers here take one file, not a folder of files.
    """
    import pyarrow as pa
    import pyarrow.parquet

    native = dtype.newbyteorder("=")
    fields = [pa.field(str(at), pa.from_numpy_dtype(native)) for at in range(shape[1])]
    schema = pa.schema(fields, metadata=dict(about or {}))
    # A dictionary saves nothing where hardly any two numbers are equal.
    options = {"use_dictionary": False, "write_page_checksum": True}
    with replacing(target, change) as file, pyarrow.parquet.ParquetWriter(file, schema, **options) as writer:
        for block in blocks:
            writer.write_table(pa.table(list(np.ascontiguousarray(block.T, dtype=native)), schema=schema))


PARQUET = Format(
    (".parquet",),
    rows=open_parquet,
    columns=parquet_columns,
    column=parquet_column,
    write=write_parquet,
    remote=True,
)
