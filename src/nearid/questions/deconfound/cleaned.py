"""The cleaned embedding on disk, in the format that came in, and the model that cleans other rows.

A table keeps its rows, ids, metadata and names of columns; the features are replaced. An AnnData file gets a new entry
of obsm. The model is a folder with model.json and model.safetensors, which `nearid apply` reads.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.columns import is_annotated, vectors_in
from nearid.arrays.formats.csv import text_columns
from nearid.arrays.formats.registry import format_of
from nearid.arrays.memory import is_a
from nearid.base.addresses import address_of
from nearid.base.errors import InputError
from nearid.base.files import check_target, local_path, refuse_source, replacing, write_text
from nearid.base.limits import check_memory
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.ica.model import ABOUT, CLEANING, NUMBERS, make_folder, packed, read_tensors, sizes, write_bytes
from nearid.ica.stream import Affine, check_output, write_mapped
from nearid.moments import Floats
from nearid.questions.deconfound.cleaning import Cleaner

FORMAT = 1
SHAPES = {"mean": "p", "components": "kp", "mixing": "pk"}
TABLES = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz")
# Entry of obsm that the cleaned rows get.
OBSM = "X_nearid_cleaned"
UNS = "nearid_cleaning"
LARGEST_ABOUT = 64 << 20


def model_folder(out: str | os.PathLike[str]) -> Path:
    """The folder of the model beside the cleaned rows: cleaned.model of cleaned.parquet."""
    target = Path(out)
    suffix = _suffix(target)
    return target.with_name(f"{target.name.removesuffix(suffix)}.model")


def check_cleaned(X: Any, out: str | os.PathLike[str], *, overwrite: bool, model: bool = True) -> None:
    """Refuse a place, or a format, that the cleaned rows of X cannot be written to; asked before long work."""
    target, suffix = Path(out), _suffix(Path(out))
    if isinstance(X, str | os.PathLike):
        refuse_source(target, X)
    if suffix == ".h5ad":
        if not is_annotated(X):
            raise InputError(f"{target.name} is an AnnData file, but the input is none. Name it .parquet or .npy.")
    elif suffix in TABLES and _table_kind(X) is None:
        raise InputError(f"{target.name} is a table, but the input is none. Name it something.npy.")
    elif suffix in TABLES and address_of(X) is not None:
        raise InputError(
            f"{target.name} would hold all columns of the input, but the input is at an address. Name it "
            "something.npy, or download the input first."
        )
    if target.is_dir() and suffix != ".zarr":
        raise InputError(f"{target} is a folder. Give the name of a file, such as {target / f'cleaned{_usual(X)}'}.")
    if suffix not in (*TABLES, ".h5ad") and format_of(target) is None:
        raise InputError(
            f"Cleaned rows of this input are written as {_listed(X)}, but the output is {target.name}. Name it "
            f"{target.stem}{_usual(X)}."
        )
    if suffix in (*TABLES, ".h5ad"):
        check_target(target)
        if target.exists() and not overwrite:
            raise InputError(f"{target} already exists. Give another name, or replace it with --overwrite.")
    else:
        check_output(target, overwrite=overwrite)
    folder = model_folder(target)
    if model and folder.exists() and not (overwrite and (folder / ABOUT).is_file()):
        raise InputError(f"{folder} already exists. Give another name to write, or replace it with --overwrite.")


def _usual(X: Any) -> str:
    """The suffix of the format that came in; .npy where it has none of its own."""
    kind = _table_kind(X)
    if kind is None:
        return ".h5ad" if is_annotated(X) else ".npy"
    return kind if kind in TABLES else ".csv"


def _listed(X: Any) -> str:
    """The formats that the cleaned rows of X can have."""
    tables = TABLES if _table_kind(X) is not None else (".h5ad",) if is_annotated(X) else ()
    return ", ".join((*tables, ".npy", ".safetensors", ".zarr"))


def check_columns(X: Any, source: Rows, out: str | os.PathLike[str]) -> None:
    """Refuse to write a text table of vectors that are in one column; asked before long work."""
    target = Path(out)
    suffix = _suffix(target)
    if suffix in TABLES and source.columns is None and (suffix != ".parquet" or not vectors_in(X)):
        stem = target.name.removesuffix(suffix)
        raise InputError(
            f"The features of {source.name} are vectors in one column, which are not written into a text table. Name "
            f"the output {stem}.parquet or {stem}.npy."
        )


def write_cleaned(
    X: Any,
    source: Rows,
    affine: Affine,
    out: str | os.PathLike[str],
    *,
    key: str | None = None,
    left_out: tuple[str, ...] = (),
    record: dict[str, Any] | None = None,
    engine: Engine = LOCAL,
    tick: Callable[[], object] | None = None,
) -> None:
    """Write the cleaned rows; rows with a NaN or an infinity in a feature become NaN.

    Parameters
    ----------
    X
        What the rows were opened from.
    source : Rows
        All of its rows, with the features in their order.
    key : str, optional
        The column of a .parquet file whose vectors are the rows.
    left_out : tuple of str
        Features that were not cleaned, as they hold values that are not finite: they are left out of a table.
    record : dict, optional
        What an AnnData file keeps in uns.
    engine : Engine
        The engine that computes the cleaned rows.
    """
    target, suffix = Path(out), _suffix(Path(out))
    if suffix not in (*TABLES, ".h5ad"):
        write_mapped(affine, source, target, drop_nonfinite=True, engine=engine, tick=tick)
        return
    mapped = affine.over(source, drop_nonfinite=True, engine=engine, tick=tick)
    if suffix == _table_kind(X) == ".parquet":
        _write_groups(X, source, mapped, target, key, left_out)
        return
    n, d = source.shape
    check_memory(target.name, 2 * n * d * source.dtype.itemsize, "Write it as .npy or .zarr, which takes less.")
    clean = np.concatenate(list(mapped))
    if suffix == ".h5ad":
        _write_annotated(X, clean, target, record or {})
    else:
        _write_table(X, source, clean, target, suffix, left_out)


def _suffix(target: Path) -> str:
    name = target.name.lower()
    fitting = [suffix for suffix in (*TABLES, ".h5ad") if name.endswith(suffix)]
    return target.name[-len(max(fitting, key=len)) :].lower() if fitting else target.suffix


def _table_kind(X: Any) -> str | None:
    """What kind of table X is; None where it is none."""
    if isinstance(X, str | os.PathLike):
        suffix = _suffix(local_path(X))
        return suffix if suffix in TABLES else None
    return next((kind for kind in ("pandas", "polars") if is_a(X, kind, "DataFrame")), None)


def _write_groups(
    X: Any, source: Rows, mapped: Iterator[Floats], target: Path, key: str | None, left_out: tuple[str, ...]
) -> None:
    """Write a .parquet file in the row groups of another one, of which only one is in memory."""
    import pyarrow as pa
    import pyarrow.parquet

    places: dict[str, int | slice]
    if source.columns is None:
        assert key is not None
        places = {key: slice(None)}
    else:
        places = {name: at for at, name in enumerate(source.columns)}
    number = pa.from_numpy_dtype(source.dtype)
    with pyarrow.parquet.ParquetFile(local_path(X)) as old:
        sizes = [old.metadata.row_group(at).num_rows for at in range(old.metadata.num_row_groups)]
        if sum(sizes) != source.shape[0]:
            raise InputError(f"{source.name} changed while it was read. Run again once nothing writes to it.")
        advice = "Write it as .npy, which takes less."
        check_memory(target.name, 3 * max(sizes, default=0) * source.shape[1] * source.dtype.itemsize, advice)
        held = old.schema_arrow
        kind = number
        if source.columns is None:
            fixed = pa.types.is_fixed_size_list(held.field(key).type)
            kind = pa.list_(number, source.shape[1] if fixed else -1)
        fields = [
            pa.field(name, kind) if name in places else held.field(name).with_nullable(True)
            for name in held.names
            if name not in left_out
        ]
        schema = pa.schema(fields, metadata=None if left_out else held.metadata)
        with replacing(target) as file, pyarrow.parquet.ParquetWriter(file, schema) as writer:
            for at, clean in enumerate(_recut(mapped, sizes)):
                table = old.read_row_group(at)
                columns = [
                    _arrow(clean[:, places[name]], kind) if name in places else table.column(name)
                    for name in schema.names
                ]
                writer.write_table(pa.table(columns, schema=schema), row_group_size=max(len(clean), 1))


def _arrow(values: np.ndarray, kind: Any) -> Any:
    """A column of numbers, or of vectors of one length."""
    import pyarrow as pa

    flat = pa.array(np.ascontiguousarray(values).reshape(-1))
    if values.ndim == 1:
        return flat
    if pa.types.is_fixed_size_list(kind):
        return pa.FixedSizeListArray.from_arrays(flat, type=kind)
    return pa.ListArray.from_arrays(np.arange(0, values.size + 1, values.shape[1], dtype=np.int32), flat)


def _recut(blocks: Iterator[Floats], sizes: Iterable[int]) -> Iterator[Floats]:
    """Yield the rows of blocks in pieces of these sizes."""
    left = next(blocks)
    for size in sizes:
        parts = [left[:size]]
        while (missing := size - sum(map(len, parts))) > 0:
            left = next(blocks)
            parts.append(left[:missing])
        left = left[len(parts[-1]) :]
        yield parts[0] if len(parts) == 1 else np.concatenate(parts)
    # The last block counts as done when the next one is wanted.
    next(blocks, None)


def _write_table(X: Any, source: Rows, clean: np.ndarray, target: Path, suffix: str, left_out: tuple[str, ...]) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    assert source.columns is not None
    places = {name: at for at, name in enumerate(source.columns)}
    table = _whole_table(X)
    if table.num_rows != len(clean):
        raise InputError(f"{source.name} changed while it was read. Run again once nothing writes to it.")
    columns = {
        name: pa.array(np.ascontiguousarray(clean[:, places[name]])) if name in places else table.column(name)
        for name in table.column_names
        if name not in left_out
    }
    cleaned = pa.table(columns, metadata=_kept_metadata(table, left_out))
    with replacing(target) as file:
        if suffix == ".parquet":
            pyarrow.parquet.write_table(cleaned, file)
        else:
            options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in suffix else ",")
            packing: AbstractContextManager[Any] = (
                gzip.GzipFile(fileobj=file, mode="wb", mtime=0) if suffix.endswith(".gz") else nullcontext(file)
            )
            with packing as text:
                pyarrow.csv.write_csv(cleaned, text, options)


def _kept_metadata(table: Any, left_out: tuple[str, ...]) -> Any:
    """What pandas wrote of its index; not where columns are gone, which it describes too."""
    return None if left_out else table.schema.metadata


def _whole_table(X: Any) -> Any:
    """All columns of a table as pyarrow has them; those of text files as text, just as they are written."""
    import pyarrow as pa
    import pyarrow.parquet

    kind = _table_kind(X)
    if kind == ".parquet":
        return pyarrow.parquet.read_table(local_path(X))
    if kind == "pandas":
        return pa.Table.from_pandas(X.rename(columns=str))
    if kind == "polars":
        return X.to_arrow()
    return text_columns(os.path.abspath(local_path(X)))


def _write_annotated(X: Any, clean: np.ndarray, target: Path, record: dict[str, Any]) -> None:
    import h5py
    from anndata.io import write_elem

    # h5py and the file that is renamed in the end both take a lock, so that the work needs a place of its own.
    with replacing(target) as written, tempfile.TemporaryDirectory(dir=target.parent) as folder:
        work = Path(folder, "cleaned.h5ad")
        if isinstance(X, str | os.PathLike):
            shutil.copyfile(local_path(X), work)
        else:
            X.write_h5ad(work)
        with h5py.File(work, "r+") as file:
            for group, name, value in (("obsm", OBSM, clean), ("uns", UNS, record)):
                parent = file.require_group(group)
                if name in parent:
                    del parent[name]
                write_elem(parent, name, value)
        with open(work, "rb") as done:
            shutil.copyfileobj(done, written)


def write_model(folder: Path, cleaner: Cleaner, columns: tuple[str, ...] | None, provenance: dict[str, Any]) -> None:
    """Write the model of a cleaning: the numbers, then the description, which carries their digest."""
    make_folder(folder)
    # A file needs one component at least, also where none is dropped.
    components, mixing = cleaner.components.copy(), np.zeros_like(cleaner.components.T)
    components[cleaner.dropped], mixing[:, cleaner.dropped] = cleaner.readings, cleaner.patterns
    tensors = {"mean": cleaner.mean, "components": components, "mixing": mixing}
    data = packed(tensors)
    about = {
        "format": FORMAT,
        "kind": CLEANING,
        "dropped": cleaner.dropped.tolist(),
        "columns": None if columns is None else list(columns),
        "key": provenance["options"]["key"],
        "tensors": {name: list(tensor.shape) for name, tensor in tensors.items()},
        "sha256": hashlib.sha256(data).hexdigest(),
        "provenance": provenance,
    }
    text = json.dumps(about, indent=1, allow_nan=False) + "\n"
    write_bytes(folder / NUMBERS, data)
    write_text(folder / ABOUT, text)


def is_cleaning(folder: Path) -> bool:
    """Whether a folder holds the model of a cleaning."""
    path = folder / ABOUT
    if not path.is_file() or path.stat().st_size > LARGEST_ABOUT:
        return False
    try:
        about = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(about, dict) and about.get("kind") == CLEANING


def read_cleaning(folder: Path) -> tuple[Affine, tuple[str, ...] | None, str | None]:
    """The map of a model, the names of the columns that it is of, and the entry of AnnData that it was fitted on."""
    about = json.loads((folder / ABOUT).read_bytes())
    shapes, dropped, columns = about.get("tensors"), about.get("dropped"), about.get("columns")
    # Models of earlier versions have no key.
    key = about.get("key")
    known = sizes(shapes, SHAPES) if isinstance(shapes, dict) else None
    named = columns is None or (isinstance(columns, list) and all(isinstance(name, str) for name in columns))
    named &= key is None or isinstance(key, str)
    if about.get("format") != FORMAT or known is None or not isinstance(dropped, list) or not named:
        raise InputError(f"{folder / ABOUT} does not describe a cleaning that this nearid can read. Clean again.")
    path = folder / NUMBERS
    if not path.is_file():
        raise InputError(f"{folder} holds {ABOUT} but no {NUMBERS}. Copy the whole folder.")
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != about.get("sha256"):
        raise InputError(
            f"{path} is not the file that {ABOUT} describes: it is damaged, or of another run. Clean again."
        )
    tensors = read_tensors(data, str(path), SHAPES)
    p, k = known["p"], known["k"]
    if not all(type(at) is int and 0 <= at < k for at in dropped) or (columns is not None and len(columns) != p):
        raise InputError(f"{folder / ABOUT} names components or columns that {NUMBERS} does not have. Clean again.")
    mean = tensors["mean"]
    away = tensors["mixing"][:, dropped] @ tensors["components"][dropped]
    return Affine(np.eye(p) - away, mean, mean), None if columns is None else tuple(columns), key
