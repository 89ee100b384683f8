"""Texts from a file with one text per line, a column of a table, or a list; opened without torch."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.formats.registry import Format, format_of
from nearid.arrays.memory import index_ids, is_a
from nearid.arrays.names import few, nearest, not_found, only
from nearid.arrays.paths import open_contents
from nearid.arrays.reading import damage_told, reached
from nearid.arrays.rows import row_ids
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, type_of
from nearid.base.files import local_path
from nearid.base.limits import check_memory

# The input of a model that takes the tokens of a text.
TOKENS = "input_ids"
LINES, RECORDS = (".txt",), (".jsonl", ".ndjson")
# Default column of texts.
USUAL = "text"
# Separators of tables of text, and those of other programs.
TABLES, DELIMITERS = {".csv": "commas", ".tsv": "tabs"}, {";": "semicolons", "\t": "tabs"}
# Files in a folder that the library `datasets` saved: of one data set, or of several.
SAVED, SPLIT = "state.json", "dataset_dict.json"
# A folder of a model with a tokeniser has at least one of these files.
TOKENISER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "vocab.json",
    "spiece.model",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "tekken.json",
)
# Memory of a string besides its text, in bytes; letters outside Latin take up to four bytes.
_OVERHEAD = 4


class Texts:
    """Texts and the ids of their rows.

    Empty texts are left out; an alert counts them. The others keep their numbers.

    Parameters
    ----------
    values : sequence of str
        None, NaN and texts of only white space count as empty.
    ids : array-like of shape (n,), optional
        One id per value. Default: their numbers.

    Attributes
    ----------
    texts : list of str
    ids : ndarray of shape (n,)
    alerts : tuple of Alert
    """

    def __init__(self, name: str, values: Sequence[Any], ids: Any = None) -> None:
        kept = [at for at, value in enumerate(values) if not _is_empty(value)]
        self.name = name
        self.texts: list[str] = [values[at] for at in kept]
        if ids is None:
            self.ids = np.array(kept, np.int64)
        else:
            # If a text is missing, its id may be missing too.
            given = list(np.asarray(ids) if hasattr(ids, "shape") else ids)
            whole = len(given) == len(values)
            self.ids = row_ids(name, [given[at] for at in kept] if whole else given, len(kept if whole else values))
        self.alerts: tuple[Alert, ...] = ()
        for row, text in zip(kept, self.texts, strict=True):
            _refuse_other(name, row, text)
        if len(kept) < 2:
            empty = f" beside {len(values) - len(kept)} empty ones" if kept and len(values) > len(kept) else ""
            held = f"{len(kept)} text{empty}" if kept else "no text"
            raise InputError(f"{name} has {held}, but at least 2 texts are needed.")
        if len(np.unique(self.ids)) < len(kept):
            raise InputError(
                f"Some ids of {name} occur more than once, so rows cannot be paired by id. Give unique ids."
            )
        if len(values) > len(kept):
            left_out = (
                f"{len(values) - len(kept):,} of {len(values):,} texts of {name} are empty. nearid left them out."
            )
            self.alerts += (Alert("empty_texts", left_out),)
        repeated = len(kept) - len(set(self.texts))
        if repeated:
            sentence = (
                f"{repeated:,} of {len(kept):,} texts of {name} repeat an earlier one. If a text and its copy are on "
                "different sides of a split, held-out errors are too small. Remove the copies."
            )
            self.alerts += (Alert("repeated_texts", sentence),)

    def digest(self) -> str:
        """SHA-256 of all texts in order, independent of the tokeniser."""
        hashed = hashlib.sha256()
        for text in self.texts:
            letters = text.encode()
            hashed.update(len(letters).to_bytes(8, "little") + letters)
        return hashed.hexdigest()


class _Column(NamedTuple):
    """Values of a column and their ids."""

    values: Sequence[Any]
    ids: Any


def open_texts(data: Any, column: str | None = None, ids: Any = None) -> Texts | None:
    """The texts of a file, a folder of the library datasets, a table or a list; None for anything else.

    Parameters
    ----------
    column : str, optional
        Column with the texts. Default: the column "text", or the only column.
    ids : array, path or str, optional
        Names of the texts; a string is the name of a column.
    """
    if isinstance(data, str | os.PathLike):
        path = local_path(data)
        with reached(path):
            found = _from_path(path, column, ids)
        name = path.name
    else:
        found, name = _from_memory(data, column, ids), type(data).__name__
    if found is None:
        if column is not None:
            raise InputError(f"{name} is not a table, so it has no column {column!r}. Leave column (--column) out.")
        return None
    return Texts(name, found.values, given_ids(found.ids))


def _from_path(path: Path, column: str | None, ids: Any) -> _Column | None:
    suffix, known = path.suffix.lower(), format_of(path)
    if path.is_dir():
        return _from_folder(path, column, ids) if known is None else None
    if suffix in (*LINES, *RECORDS):
        if not path.is_file():
            raise InputError(f"{path} is not a regular file.")
        lines = _lines(path)
        if suffix in RECORDS:
            return _from_records(path.name, lines, column, ids)
        if column is not None:
            raise InputError(f"{path.name} has a text on each line and no columns. Leave column (--column) out.")
        return _Column(lines, ids)
    if known is None or known.column is None or not path.is_file():
        return None
    place = os.path.abspath(path)
    names, values = known.column(place, path.name, USUAL if column is None else column)
    if column not in names:
        _refuse_delimiter(path, names)
    if values is None and column is None and len(names) == 1:
        names, values = known.column(place, path.name, names[0])
        values = values if _is_texts(values) else None
    if values is None:
        if column is not None:
            raise not_found(path.name, "column", column, names)
        _refuse_unnamed(path, known, ids)
        return None
    if isinstance(ids, str) and ids in names:
        ids = known.column(place, path.name, ids)[1]
    return _Column(values, ids)


def _refuse_delimiter(path: Path, names: list[str]) -> None:
    """Refuse a table of text with another separator: each line would become one text."""
    kind = path.name.lower().removesuffix(".gz")
    expected = next((word for suffix, word in TABLES.items() if kind.endswith(suffix)), None)
    found = next((word for mark, word in DELIMITERS.items() if len(names) == 1 and mark in names[0]), None)
    if expected is not None and found is not None:
        raise InputError(
            f"The first line of {path.name} is {names[0]!r}: its cells seem to be separated by {found}, but {expected} "
            f"are expected. Save it with {expected}, or name the whole line as the column "
            f"(--column {shlex.quote(names[0])})."
        )


def _refuse_unnamed(path: Path, known: Format, ids: Any) -> None:
    """Refuse a table with text columns if none is chosen: its numbers may be counts or ids."""
    table = None
    # Errors in a table of numbers are reported when it is read as numbers.
    with suppress(InputError):
        table = None if known.columns is None else known.columns(os.path.abspath(path), path.name, None)
    texts = [] if table is None else [name for name, values in table.values.items() if _is_texts(values)]
    if any(name != ids for name in texts):
        raise InputError(
            f"{path.name} has columns of text: {few(map(repr, texts))}. Name the one with the inputs: column "
            f"(--column {shlex.quote(texts[0])}). If its numbers are the inputs, save them alone."
        )


def _lines(path: Path) -> list[str]:
    """The lines of a file of UTF-8."""
    check_memory(path.name, _OVERHEAD * path.stat().st_size, "Split it into several files.")
    raw = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError(f"{path.name} is UTF-16, but UTF-8 is expected: iconv -f UTF-16 -t UTF-8 {path.name} > new")
    lines = raw.split(b"\n")
    if lines and not lines[-1]:
        lines.pop()
    texts = []
    for number, line in enumerate(lines, 1):
        if b"\0" in line:
            raise InputError(
                f"{path.name} has a zero byte in line {number}, so it is not a text file. Give UTF-8 text."
            )
        try:
            texts.append(line.removesuffix(b"\r").decode())
        except UnicodeDecodeError as error:
            raise InputError(
                f"Line {number} of {path.name} is not UTF-8: byte {error.start + 1} is {line[error.start]:#04x}. Save "
                f"the file as UTF-8, for example with iconv -f LATIN1 -t UTF-8 {path.name} > new"
            ) from None
    return texts


def _from_records(name: str, lines: list[str], column: str | None, ids: Any) -> _Column:
    """A column of a file with a JSON object on each line; lines that are JSON strings need no column."""
    records: list[Any] = []
    for number, line in enumerate(lines, 1):
        try:
            records.append(json.loads(line) if line.strip() else None)
        except (ValueError, RecursionError) as error:
            raise InputError(f"Line {number} of {name} is not JSON: {error}. Write one object on each line.") from None
    if all(record is None or isinstance(record, str) for record in records) and column is None:
        return _Column(records, ids)
    for number, record in enumerate(records, 1):
        if record is not None and not isinstance(record, dict):
            raise InputError(f"Line {number} of {name} is {type_of(record)}, but a JSON object is expected.")
    names = list(dict.fromkeys(key for record in records if record for key in record))
    texts = [key for key in names if any(isinstance((record or {}).get(key), str) for record in records)]
    chosen = _chosen(name, column, names, texts)
    if isinstance(ids, str) and ids in names:
        ids = [(record or {}).get(ids) for record in records]
    return _Column([(record or {}).get(chosen) for record in records], ids)


def is_saved(folder: Path) -> bool:
    """Whether a folder is one that the library datasets saved."""
    return (folder / SPLIT).is_file() or (folder / SAVED).is_file()


def _from_folder(path: Path, column: str | None, ids: Any) -> _Column | None:
    """A column of a folder that `Dataset.save_to_disk` wrote; None for other folders."""
    if (path / SPLIT).is_file():
        splits = [held.name for held in sorted(path.iterdir()) if (held / SAVED).is_file()] or ["NAME"]
        raise InputError(
            f"{path} contains several data sets: {few(splits)}. Give one of them, such as {path / splits[0]}."
        )
    if not (path / SAVED).is_file():
        return None
    import pyarrow as pa

    with damage_told(str(path), "folder of the library datasets", "Save it again."):
        state = json.loads((path / SAVED).read_text(encoding="utf-8"))
        files = [str(entry["filename"]) for entry in state["_data_files"]]
        if any(file != os.path.basename(file) or file in ("", os.curdir, os.pardir) for file in files):
            raise InputError(f"{path / SAVED} refers to files outside of the folder, which nearid does not read.")
        check_memory(path.name, 2 * sum((path / file).stat().st_size for file in files), "Save a part of it.")
        table = pa.concat_tables(pa.ipc.open_stream(pa.memory_map(str(path / file))).read_all() for file in files)
    names = table.column_names
    texts = [
        field.name for field in table.schema if pa.types.is_string(field.type) or pa.types.is_large_string(field.type)
    ]
    chosen = _chosen(path.name, column, names, texts)
    if isinstance(ids, str) and ids in names:
        ids = table.column(ids).to_pylist()
    return _Column(table.column(chosen).to_pylist(), ids)


def _from_memory(data: Any, column: str | None, ids: Any) -> _Column | None:
    """A column of a table in memory, or texts themselves."""
    names = _column_names(data)
    if names is not None:
        texts = [column_ for column_ in names if _is_texts(data[column_])] if column is None else []
        if column is None and USUAL not in texts and (not texts or len(names) > 1):
            return None
        chosen = _chosen(type(data).__name__, column, names, texts)
        if ids is None and is_a(data, "pandas", "DataFrame"):
            ids = index_ids(data.index)
        ids = data[ids] if isinstance(ids, str) and ids in names else ids
        return _Column(list(data[chosen]), ids)
    if not _is_texts(data):
        return None
    if ids is None and is_a(data, "pandas", "Series"):
        ids = index_ids(data.index)
    return _Column([str(each) if isinstance(each, np.str_) else each for each in data], ids)


def _column_names(data: Any) -> list[str] | None:
    """Columns of a DataFrame of pandas or polars or of a data set of the library datasets; None for anything else."""
    if is_a(data, "pandas", "DataFrame") or is_a(data, "polars", "DataFrame"):
        return [name for name in data.columns if isinstance(name, str)]
    return list(data.column_names) if is_a(data, "datasets", "Dataset") else None


def _is_texts(values: Any) -> bool:
    """Whether the values are texts, judged by the first one that is not empty."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable) or not hasattr(values, "__len__"):
        return False
    if is_a(values, "torch", "Tensor"):
        return False  # some have no shape
    if len(getattr(values, "shape", (0,))) != 1 or getattr(getattr(values, "dtype", None), "kind", "O") not in "OUT":
        return False
    return isinstance(next((each for each in values if not _is_missing(each)), None), str)


def _chosen(name: str, column: str | None, names: Sequence[str], texts: Sequence[str]) -> str:
    """The column of texts: the one that was named, the usual one, or the only one."""
    if column is not None:
        if column not in names:
            raise not_found(name, "column", column, names)
        return column
    chosen = USUAL if USUAL in texts else only(texts)
    if chosen is None:
        held = f"Its columns of texts: {few(map(repr, texts))}." if texts else nearest("", names)
        raise InputError(f"{name} has several columns. Name the column with the texts: column (--column). {held}")
    return chosen


def given_ids(ids: Any) -> Any:
    """Ids as values; a text is the path of a file with them."""
    if not isinstance(ids, str | os.PathLike):
        return ids
    if not os.path.exists(local_path(ids)):
        raise InputError(f"There is no file and no column {ids}, which was given as ids.")
    values = open_contents(ids).saved
    if isinstance(values, Mapping):
        raise InputError(f"{ids} contains several arrays, but ids must be one array. Save it as .npy.")
    return values


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def _is_empty(value: Any) -> bool:
    return _is_missing(value) or (isinstance(value, str) and not value.strip())


def _refuse_other(name: str, row: int, text: Any) -> None:
    """Refuse values that are not text, and letters that cannot be encoded."""
    if not isinstance(text, str):
        raise InputError(f"Entry {row} of {name} is {type_of(text)}, but a text is expected.")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"Text {row} of {name} contains an invalid character (a lone surrogate). Correct it, or leave the text out."
        ) from None


def refuse_no_tokeniser(model: Any) -> None:
    """Refuse the folder of a model without a tokeniser (transformers would make an empty one)."""
    if not isinstance(model, str | os.PathLike):
        return
    folder = local_path(model)
    if folder.is_dir() and not any((folder / name).is_file() for name in TOKENISER):
        raise InputError(
            f"{folder} has no tokeniser ({TOKENISER[0]}), so texts cannot be converted to tokens. Copy it from the "
            f"source of the model, or give the folder of a tokeniser: tokenizer (--tokenizer)."
        )
