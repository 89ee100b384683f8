"""Rows in memory: arrays, tensors on any device, and DataFrames."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nearid.arrays.names import refuse_names
from nearid.arrays.rows import Rows, check_rows, delivered, refuse_masked
from nearid.arrays.tables import (
    Column,
    declared,
    features,
    floats,
    id_position,
    id_values,
    loses_digits,
    refuse_key,
    stored,
)
from nearid.base.errors import InputError, type_of
from nearid.base.limits import check_memory


class MemoryRows(Rows):
    """Rows of a numpy array. The array is not copied."""

    def __init__(
        self, name: str, array: np.ndarray, ids: Any = None, notes: tuple[str, ...] = (), index: Any = None
    ) -> None:
        super().__init__(name, array.shape, array.dtype, ids, notes)
        self.index = index
        # Read-only, so that no in-place operation changes the caller's array.
        self._array = array.view()
        self._array.flags.writeable = False

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._array[start:stop]

    def _take(self, indices: np.ndarray) -> np.ndarray:
        taken: np.ndarray = self._array[indices]
        return taken


class TensorRows(Rows):
    """Rows of a torch tensor. Each slice is moved to the CPU when it is read."""

    def __init__(self, name: str, tensor: Any, ids: Any = None) -> None:
        stored = tensor_dtype(tensor)
        if isinstance(stored, str):
            raise InputError(
                f"{name} is a tensor of dtype {stored}, which nearid cannot read. "
                "Convert it first, for example with x.to(torch.float32)."
            )
        refuse_unreadable(name, tensor)
        super().__init__(name, tuple(tensor.shape), stored, ids)
        self._tensor = tensor.detach()

    def _read(self, start: int, stop: int) -> np.ndarray:
        return as_numpy(self._tensor[start:stop])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        import torch

        return as_numpy(self._tensor[torch.from_numpy(indices).to(self._tensor.device)])


def as_numpy(values: Any) -> np.ndarray:
    """Return values as an array. For a tensor on any device the array is read-only, since it may share memory."""
    if not is_a(values, "torch", "Tensor"):
        return np.asarray(values)
    values = values.float() if str(values.dtype) == "torch.bfloat16" else values
    array: np.ndarray = values.numpy(force=True)
    array.flags.writeable = False
    return array


def tensor_dtype(tensor: Any) -> np.dtype[Any] | str:
    """Return the numpy dtype that corresponds to a tensor's dtype, or the name of the torch dtype if there is none."""
    name = str(tensor.dtype).removeprefix("torch.")
    if name == "bfloat16":
        return np.dtype(np.float32)
    try:
        dtype = np.dtype(name)
    except TypeError:
        return name
    # After onnx has imported ml_dtypes, numpy knows dtype names that torch cannot convert.
    return dtype if dtype.isbuiltin == 1 else name


def refuse_unreadable(name: str, source: Any) -> None:
    """Raise an error for sparse, nested, quantised, meta and traced arrays: they have no plain number per entry."""
    refuse_masked(name, source)
    if is_sparse(source):
        raise InputError(f"{name} is a sparse matrix. Make it dense first with x.toarray().")
    if is_a(source, "torch", "Tensor"):
        if source.is_nested:
            raise InputError(f"{name} is a nested tensor. Pad it first, for example with x.to_padded_tensor(0.0).")
        if str(source.layout) != "torch.strided":
            raise InputError(f"{name} is a sparse tensor ({source.layout}). Make it dense first with x.to_dense().")
        if source.is_quantized:
            raise InputError(f"{name} is a quantised tensor. Convert it first with x.dequantize().")
        if source.is_meta:
            raise InputError(
                f"{name} is a tensor on the meta device, which holds no numbers. Load the tensor on a real device."
            )
        if _is_traced(source):
            raise InputError(
                f"{name} is a tensor inside torch.func (vmap, grad, jvp) or torch.compile, where its numbers are not "
                "available. Call nearid outside of the transformed function."
            )


def _is_traced(tensor: Any) -> bool:
    try:
        tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return True
    return False


def is_sparse(source: object) -> bool:
    """Return whether a matrix is sparse. A view of AnnData also has a method `toarray`, but is a dense ndarray."""
    return hasattr(source, "toarray") and not isinstance(source, np.ndarray)


def is_a(source: object, package: str, class_name: str) -> bool:
    """Return whether `source` is an instance of a class of `package`, without importing the package."""
    return any(
        kind.__name__ == class_name and kind.__module__.partition(".")[0] == package for kind in type(source).__mro__
    )


def open_array(source: Any, name: str, key: str | None, ids: str | None) -> Rows:
    """Return rows of an array or of anything that numpy can convert to an array."""
    refuse_names(name, "an array", key, ids)
    refuse_unreadable(name, source)
    if isinstance(source, dict):
        raise InputError(f"{name} is a dict, but rows of numbers are expected. Pass one of the arrays in it.")
    if not isinstance(source, np.ndarray):
        source = _as_array(source, name)
    return MemoryRows(name, np.asarray(source))


def _as_array(source: Any, name: str) -> np.ndarray:
    shape, dtype = getattr(source, "shape", None), getattr(source, "dtype", None)
    if isinstance(shape, tuple) and isinstance(dtype, np.dtype):
        check_rows(name, shape, dtype)
        # Arrays of HDF5, zarr and Dask declare their size before they are loaded.
        advice = "Open its file by path instead, to read it block by block."
        check_memory(name, shape[0] * shape[1] * dtype.itemsize, advice)
    try:
        array = np.asarray(source)
    except Exception as error:  # The conversion runs code of the source's own class, which may raise anything.
        raise InputError(
            f"{name}, {type_of(source)}, cannot be converted to an array of rows: {error}. "
            "Give rows of equal length, or a numpy array."
        ) from None
    if array.ndim == 0:
        raise InputError(
            f"{name} is {type_of(source)}, but rows of numbers are expected: "
            "an array, a tensor, a DataFrame, or the path of a file."
        )
    return array


class FrameRows(Rows):
    """Numeric columns of a DataFrame. The DataFrame is not copied."""

    def __init__(self, name: str, frame: Any, ids: str | None = None) -> None:
        columns = [Column(str(label), dtype.kind in "fiub") for label, dtype in frame.dtypes.items()]
        names = [column.name for column in columns]
        indexed = names_index(frame, ids)
        id_at = None if indexed else id_position(name, names, ids)
        chosen = features(name, columns, id_at, lambda: np.asarray(frame.iloc[:, 0]))
        # For a sparse column, this is the type of its values.
        dtypes = [getattr(frame.dtypes.iloc[at], "subtype", frame.dtypes.iloc[at]) for at in chosen.positions]
        id_values = frame.index if indexed else None if id_at is None else frame.iloc[:, id_at]
        super().__init__(
            name,
            (len(frame), len(chosen.positions)),
            np.result_type(*map(delivered, dtypes)),
            index_ids(frame.index) if ids is None else np.asarray(id_values),
            chosen.notes,
        )
        self.index = labels(frame.index) if ids is None else None
        self.columns, self.unused, self.is_table = tuple(names[at] for at in chosen.positions), chosen.unused, True
        self.origin = self._frame = frame
        self._positions = chosen.positions

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self._to_numpy(self._frame.iloc[start:stop, self._positions])

    def _take(self, indices: np.ndarray) -> np.ndarray:
        return self._to_numpy(self._frame.iloc[indices, self._positions])

    def _to_numpy(self, frame: Any) -> np.ndarray:
        array: np.ndarray = frame.to_numpy(dtype=self.dtype, na_value=np.nan)
        return array


def open_frame(frame: Any, name: str, key: str | None, ids: str | None) -> FrameRows:
    """Return rows with the numeric columns of a pandas DataFrame."""
    refuse_key(name, key)
    return FrameRows(name, frame, ids)


def open_polars(frame: Any, name: str, key: str | None, ids: str | None) -> MemoryRows:
    """Return rows with the numeric columns of a polars DataFrame."""
    refuse_key(name, key)
    table = frame.to_arrow()
    rows = arrow_rows(name, table, declared(table.schema), ids)
    rows.origin = frame
    return rows


def arrow_rows(
    name: str,
    table: Any,
    columns: Sequence[Column],
    ids: str | None,
    read_ids: Callable[[Any], np.ndarray] | None = None,
    notes: tuple[str, ...] = (),
) -> MemoryRows:
    """Return rows with the numeric columns of a pyarrow table; `read_ids`, if given, reads the column of ids."""
    names = table.column_names
    id_at = id_position(name, names, ids)
    chosen = features(name, columns, id_at, lambda: np.asarray(table.column(0)))
    dtype = np.result_type(*map(stored, {table.schema.field(at).type for at in chosen.positions}))
    check_memory(name, table.num_rows * len(chosen.positions) * dtype.itemsize, "Save it as .parquet or .npy.")
    array = np.empty((table.num_rows, len(chosen.positions)), dtype)
    for at, position in enumerate(chosen.positions):
        array[:, at] = floats(table.column(position), dtype)
        if loses_digits(table.column(position)):
            notes += (
                f"The column {names[position]!r} of {name} holds integers beyond 2^53, which lose digits as features. "
                f"If they are the ids of the rows, pair by them: ids={names[position]!r} (--ids {names[position]}).",
            )
    row_ids = None if id_at is None else (read_ids or id_values)(table.column(id_at))
    rows = MemoryRows(name, array, row_ids, notes + chosen.notes)
    rows.columns, rows.unused, rows.is_table = tuple(names[at] for at in chosen.positions), chosen.unused, True
    return rows


def names_index(frame: Any, ids: str | None) -> bool:
    """Return whether `ids` is the name of the index of a DataFrame. A column of that name is preferred."""
    return ids is not None and ids == frame.index.name and ids not in map(str, frame.columns)


def labels(index: Any) -> Any:
    """Return a pandas index in which labels match only if their values are equal."""
    # In an IntervalIndex pandas would match a number with its interval, and in a CategoricalIndex a category by code.
    special = type(index).__name__ in ("CategoricalIndex", "IntervalIndex")
    return index.astype(object) if special else index


def is_count(index: Any) -> bool:
    """Return whether an index is 0, 1, 2, ..., like the index of a new DataFrame."""
    return index.nlevels == 1 and index.dtype.kind in "iu" and np.array_equal(index, np.arange(len(index)))


def index_ids(index: Any) -> np.ndarray | None:
    """Return the labels of an index as ids; None unless they are distinct strings, or integers other than 0, 1, ..."""
    plain = labels(index)
    usable = plain.inferred_type in ("string", "integer") and plain.nlevels == 1 and plain.is_unique
    return np.asarray(plain) if usable and "" not in plain and not is_count(index) else None
