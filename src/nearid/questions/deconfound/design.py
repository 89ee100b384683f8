"""Input of an evaluation: rows of an embedding with the label, batch and block of each, paired by id."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearid.arrays import Columns, Rows, open_columns, open_rows, pair_rows
from nearid.arrays.columns import columns_beside, is_annotated, named_columns, open_annotated, vectors_in
from nearid.arrays.dates import date_texts
from nearid.arrays.derived import SelectedColumns, SelectedRows
from nearid.arrays.memory import MemoryRows, index_ids, is_a, is_count, labels
from nearid.arrays.metadata import ABOUT, choose_columns, column_names, literal, row_names
from nearid.arrays.names import few, not_found
from nearid.arrays.tables import as_text, notes_without, one_column, refuse_mixed
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.measures.factors import missing_as_text, unnamed
from nearid.questions.deconfound.constant import describing
from nearid.questions.deconfound.inputs import Nonfinite, names_from, usable, without_metadata
from nearid.questions.deconfound.parts import possible_names, text_column
from nearid.questions.deconfound.wells import split_position, well_places

# With fewer blocks, maps and tests that count each block once are unreliable.
FEW_BLOCKS = 20
# Number of rows to check whether a column is a copy of a label or batch.
LOOKED_AT = 4096


@dataclass(frozen=True)
class Categories:
    """A column of classes: the code of each row (-1 if missing), and the names of the codes in order."""

    codes: np.ndarray
    names: tuple[str, ...]

    @classmethod
    def of(cls, values: np.ndarray, name: str = "The column") -> Categories:
        """Codes of numbers, text or dates; each different value is converted to text once."""
        dates = date_texts(values)
        values = values if dates is None else dates
        if values.dtype.kind == "O":
            # True equals 1 in Python, but it is a different label.
            seen: dict[tuple[bool, Any], int] = {}
            keys = ((isinstance(v, bool | np.bool_), v) for v in values)
            first = np.fromiter((seen.setdefault(key, len(seen)) for key in keys), np.intp, len(values))
            texts = [as_text(value) for _, value in seen]
            refuse_mixed(name, {value: text for (_, value), text in zip(seen, texts, strict=True)})
        else:
            different, first = np.unique(values, return_inverse=True)
            texts = [as_text(value) for value in different.tolist()]
        names = sorted({text for text in texts if text is not None})
        places = {name: at for at, name in enumerate(names)}
        return cls(np.array([-1 if t is None else places[t] for t in texts], np.intp)[first], tuple(names))

    def take(self, kept: np.ndarray) -> Categories:
        """The classes of some rows, none of which is missing; names without rows are removed."""
        left, codes = np.unique(self.codes[kept], return_inverse=True)
        return Categories(codes, tuple(self.names[code] for code in left))

    def counts(self) -> np.ndarray:
        """Rows of each code."""
        return np.bincount(self.codes, minlength=len(self.names))


@dataclass(frozen=True)
class Design:
    """Rows with their labels, batches and blocks.

    Attributes
    ----------
    source : Rows
        All rows that were given, with the columns in use; also those without a label or with a NaN.
    rows : Rows
        Rows in use.
    blocks : ndarray of int, shape (n,), or None
        Rows of one image or well of a batch share a number. Maps are then fitted on one row of each block, and tests of
        components count each block once.
    control : int or None
        Code of the label that the others are compared with.
    left_out : tuple of str
        Columns that hold values that are not finite, and are not used for this.
    places : ndarray of int, shape (n,), or None
        Places of the rows in use among the rows of `source`.
    position : ndarray of int, shape (n, 2), or None
        Row and column on the plate of each row, -1 if missing.
    key : str or None
        Entry of the input that holds the rows; of a .parquet file the column of vectors.
    """

    source: Rows
    rows: Rows
    labels: Categories
    batches: Categories
    blocks: np.ndarray | None
    control: int | None
    alerts: tuple[Alert, ...]
    left_out: tuple[str, ...] = ()
    places: np.ndarray | None = None
    position: np.ndarray | None = None
    key: str | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return self.rows.shape[0]


def open_design(
    X: Any,
    labels: Any,
    batches: Any,
    blocks: Any = None,
    *,
    meta: Any = None,
    control: Any = None,
    key: str | None = None,
    ids: Any = None,
    features: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
    columns_from: str | os.PathLike[str] | None = None,
    nonfinite: Nonfinite = "least",
    position: Any = None,
    engine: Engine = LOCAL,
) -> Design:
    """Open an embedding and find the label, batch and block of each row; see `nearid.deconfound`."""
    if columns_from is not None:
        if features is not None:
            raise InputError("Give features (--features) or columns_from (--columns-from), not both.")
        features = [literal(name) for name in names_from(columns_from)]
    named = {"labels": labels, "batches": batches, "blocks": blocks}
    for what in ("labels", "batches"):
        if named[what] is None:
            raise InputError(f"{what} are needed: one value for each row, or the name of a column of the metadata.")
    spots = split_position(position)
    wanted = possible_names(
        v if isinstance(v, str) else getattr(v, "name", None) for v in (*named.values(), *spots.values())
    )
    if key is None and features is None:
        key = _only_vectors(X)
    rows, table = _open(X, meta, key, ids, wanted, features, exclude)
    places, at, notes = _paired(rows, table if meta is not None else None)
    ordered: dict[str, Any] = {}
    _refuse_orders({what: given for what, given in named.items() if is_a(given, "pandas", "Series")}, rows)
    for what, given in named.items():
        if given is not None:
            ordered[what], more = _in_order(what, given, rows)
            notes += more
    found = {what: _column(what, given, rows, table, places, at) for what, given in ordered.items()}
    columns = {what: column for what, (column, _) in found.items()}
    spot = well_places({what: _column(what, given, rows, table, places, at)[0] for what, given in spots.items()})
    known = np.all([column.codes >= 0 for column in columns.values()], axis=0)
    own_notes = rows.notes
    for name in possible_names(named.values()):
        own_notes = notes_without(own_notes, name)
    alerts = [Alert("input", note) for note in (*own_notes, *notes)]
    alerts += [alert for _, unmatched in found.values() for alert in unmatched]
    if not known.all():
        lost = f"{int(np.sum(~known))} of {len(known)} rows have no label, batch or block and are left out."
        alerts.append(Alert("missing_metadata", lost))
    if known.sum() < 2:
        raise InputError(f"{int(known.sum())} rows of {rows.name} have a label and a batch, but 2 are needed.")
    kept = (np.arange(rows.shape[0]) if places is None else places)[known]
    coded = {what: column.take(known) for what, column in columns.items()}
    spot = None if spot is None else spot[known]
    for what, column in coded.items():
        alerts += missing_as_text(f"The column of {what}", column.names, column.counts())
    about = {} if features is not None else _groups(rows, table, wanted, at, known)
    rows, measured = _measured(rows, kept, coded, about, chosen=features is not None)
    alerts += measured
    finite = usable(_of(rows, kept), nonfinite, engine)
    left_out: tuple[str, ...] = ()
    if len(finite.columns) < rows.shape[1]:
        left_out = tuple(column_names(rows)[at] for at in np.setdiff1d(np.arange(rows.shape[1]), finite.columns))
        rows = SelectedColumns(rows, finite.columns)
    if len(finite.rows) < len(kept):
        _refuse_lost_control(coded["labels"], finite.rows, control)
        kept, coded = kept[finite.rows], {what: column.take(finite.rows) for what, column in coded.items()}
        spot = None if spot is None else spot[finite.rows]
    design = _checked(rows, _of(rows, kept), coded, control, [*alerts, *finite.alerts])
    return replace(design, left_out=left_out, places=kept, position=spot, key=key)


def _of(rows: Rows, kept: np.ndarray) -> Rows:
    """Some of the rows; the rows themselves where these are all."""
    return rows if np.array_equal(kept, np.arange(rows.shape[0])) else SelectedRows(rows, kept)


def _groups(
    rows: Rows, table: Columns | None, wanted: Sequence[Any], at: np.ndarray | None, known: np.ndarray
) -> dict[str, np.ndarray]:
    """Codes of the columns that describe the rows in use, other than labels and batches, by their quoted names."""
    codes = {}
    for name, values in describing(rows, table, wanted).items():
        values = (values if at is None else values[at])[known]
        codes[repr(name)] = (
            text_codes(values) if values.dtype.kind in "OSUT" else np.unique(values, return_inverse=True)[1]
        )
    return codes


def text_codes(values: np.ndarray) -> np.ndarray:
    """Codes of the texts of values, in their order; an array of text would give every row the size of the longest."""
    seen: dict[str, int] = {}
    first = np.fromiter((seen.setdefault(str(value), len(seen)) for value in values), np.intp, len(values))
    places = {text: at for at, text in enumerate(sorted(seen))}
    return np.array([places[text] for text in seen], np.intp)[first]


def _measured(
    rows: Rows, kept: np.ndarray, coded: dict[str, Categories], about: dict[str, np.ndarray], *, chosen: bool
) -> tuple[Rows, list[Alert]]:
    """The rows without columns that repeat labels, batches or blocks; without metadata, unless features are chosen."""
    if rows.columns is None:
        return rows, []
    alerts = []
    same = _copies(_of(rows, kept), list(coded.values()))
    if same:
        copies = f"Some columns of {rows.name} are copies of the labels, batches or blocks. nearid leaves them out: "
        alerts.append(Alert("input", f"{copies}{few(map(repr, same))}."))
        rows = _features(rows, same)
    if chosen:
        return rows, alerts
    # Statistics of a label, or of a compound and dose, such as a p-value, would give the label away.
    groups = {"label": coded["labels"].codes, **about}
    blocks = coded["blocks"].codes if "blocks" in coded else None
    places, more = without_metadata(_of(rows, kept), coded["batches"].codes, blocks, groups)
    return (rows if places is None else SelectedColumns(rows, places)), [*alerts, *more]


def _refuse_lost_control(labels: Categories, kept: np.ndarray, control: Any) -> None:
    wanted = None if control is None else as_text(control)
    if wanted in labels.names and not np.any(labels.codes[kept] == labels.names.index(str(wanted))):
        raise InputError(
            f"Every row of the control {wanted!r} has a NaN or an infinity. Without these rows there is nothing to "
            "classify the others against. Leave out columns instead: nonfinite='columns' (--nonfinite columns)."
        )


def _checked(source: Rows, rows: Rows, coded: dict[str, Categories], control: Any, alerts: list[Alert]) -> Design:
    labels, batches = coded["labels"], coded["batches"]
    if len(batches.names) < 2:
        raise InputError(
            f"All rows are of the batch {batches.names[0]!r}: nothing can be held out. Name a column of several "
            "batches (plates, donors, sites, weeks)."
        )
    if len(labels.names) < 2:
        raise InputError(f"All rows have the label {labels.names[0]!r}: there is nothing to classify.")
    code = None
    if control is not None:
        wanted = as_text(control)
        if wanted not in labels.names:
            raise not_found("The column of labels", "control", str(wanted), labels.names)
        code = labels.names.index(wanted)
    cells = np.zeros((len(batches.names), len(labels.names)), dtype=bool)
    cells[batches.codes, labels.codes] = True
    single = [name for name, count in zip(batches.names, cells.sum(axis=1), strict=True) if count == 1]
    if len(single) == len(batches.names):
        raise InputError(
            "Every batch has one label only, so differences between labels cannot be separated from differences "
            "between batches. Name a batch column within which labels (or controls) vary."
        )
    if single:
        sentence = f"{len(single)} of {len(batches.names)} batches have one label only ({few(map(repr, single))})"
        alerts.append(Alert("single_label_batch", f"{sentence}. Within them, biology and batch cannot be separated."))
    blocks = None
    if "blocks" in coded:
        # Names of wells repeat on every plate.
        named = batches.codes * len(coded["blocks"].names) + coded["blocks"].codes
        different, blocks = np.unique(named, return_inverse=True)
        if len(different) < FEW_BLOCKS:
            sentence = f"There are {len(different)} blocks for {len(blocks)} rows. Maps and tests count each block once"
            alerts.append(Alert("few_blocks", f"{sentence} and need {FEW_BLOCKS} or more to be trusted."))
    return Design(source, rows, labels, batches, blocks, code, tuple(alerts))


def open_again(X: Any, key: str | None, columns: tuple[str, ...] | None, usual: str | None = None) -> Rows:
    """Open rows like those of a design; of a table, only the columns that were its features.

    `usual` is the key of the design, which need not be given again for AnnData and .parquet files with vectors.
    """
    # A table of the same vectors needs no key either.
    if key is None and (is_annotated(X) or usual in vectors_in(X)):
        key = usual
    rows = open_annotated(X, key)[0] if is_annotated(X) else open_rows(X, key=key)
    if columns is None or rows.columns is None:
        return rows
    places = {name: at for at, name in enumerate(rows.columns)}
    lost = [name for name in columns if name not in places]
    if lost:
        raise InputError(
            f"{rows.name} lacks {len(lost)} of the {len(columns)} columns that were evaluated: {few(map(repr, lost))}."
        )
    return SelectedColumns(rows, np.array([places[name] for name in columns]))


def _only_vectors(X: Any) -> str | None:
    """The column of a .parquet file that holds the rows, if one column has vectors: numbers beside it are metadata."""
    vectors = vectors_in(X)
    return vectors[0] if len(vectors) == 1 else None


def _open(
    X: Any,
    meta: Any,
    key: str | None,
    ids: Any,
    wanted: list[str],
    features: Iterable[str] | str | None,
    exclude: Iterable[str] | str | None,
) -> tuple[Rows, Columns | None]:
    """The rows, and the table with the named columns."""
    own, theirs = ids if isinstance(ids, tuple | list) and len(ids) == 2 else (ids, ids)
    table: Columns | None
    if is_annotated(X):
        if ids is not None and meta is None:
            raise InputError(
                "Rows of AnnData have the names of obs; ids (--ids) names a column of the metadata, but no meta "
                "(--meta) was given."
            )
        rows, table = open_annotated(X, key)
    else:
        rows = open_rows(X, key=key, ids=own, name=unnamed(X, "embedding"))
        table = None
        if meta is None and wanted and rows.columns is not None:
            table = named_columns(X)
        elif meta is None and wanted and key in vectors_in(X):
            table = columns_beside(X)
            others = [repr(name) for name in rows.unused if name not in (*wanted, own)]
            if others:
                rows.notes += (f"Features are the vectors in the column {key!r}. Not used: {few(others)}.",)
    rows = choose_columns([rows], features, exclude)[0]
    rows = rows if rows.columns is None else _features(rows, wanted)
    if meta is not None:
        table = open_columns(meta, ids=theirs, name=unnamed(meta, "metadata"))
    return rows, table


def _features(rows: Rows, wanted: list[str]) -> Rows:
    """Feature columns of a table: not metadata, and not the label or batch."""
    assert rows.columns is not None
    places = [at for at, name in enumerate(rows.columns) if name not in wanted and not name.startswith(ABOUT)]
    if not places:
        raise InputError(f"{rows.name} has no numeric columns except its metadata ({few(map(repr, rows.columns))}).")
    return rows if len(places) == len(rows.columns) else SelectedColumns(rows, np.array(places))


def _copies(rows: Rows, coded: list[Categories]) -> list[str]:
    """Names of columns that are copies of a numeric column of classes (judged by the first rows)."""
    assert rows.columns is not None
    block = rows.read(0, min(rows.shape[0], LOOKED_AT))
    copies: list[str] = []
    for column in coded:
        try:
            numbers = np.array([float(name) for name in column.names])
        except ValueError:
            continue
        equal = np.all(block == numbers[column.codes[: len(block)], None], axis=0)
        copies += [rows.columns[at] for at in np.flatnonzero(equal)]
    return copies


def _paired(rows: Rows, table: Columns | None) -> tuple[np.ndarray | None, np.ndarray | None, tuple[str, ...]]:
    """Indices of the rows in use and of their lines in the table (None: all in order), and notes."""
    if table is None:
        return None, None, ()
    if rows.ids is not None and table.ids is None and (rows.index is None or table.index is None):
        raise InputError(
            f"{rows.name} has row ids, but {table.name} has none: nothing says that both are in the same order. Name "
            "its column of ids with ids (--ids), or give labels and batches as arrays."
        )
    n = len(next(iter(table.values.values())))
    pair = pair_rows(rows, MemoryRows(table.name, np.zeros((n, 1)), table.ids, index=table.index))
    notes = pair.notes[len(rows.notes) :] + table.notes
    names = row_names(table) if rows.ids is None and table.ids is None else None
    if names is not None:
        notes += (
            f"{rows.name} has no ids, but {table.name} names its rows by {names!r}: the rows are paired by position. "
            f"If their order may differ, keep the same column beside the embedding and pair by it: ids={names!r} "
            f"(--ids {shlex.quote(names)}).",
        )
    return pair.x_index, pair.y_index, notes


def _refuse_orders(series: dict[str, Any], rows: Rows) -> None:
    """Refuse Series with different indexes if the rows have no index to pair them by."""
    first = next(iter(series), None)
    if first is None or rows.ids is not None or rows.index is not None:
        return
    for what, given in series.items():
        if not given.index.equals(series[first].index):
            raise InputError(
                f"{first} and {what} are Series with different indexes, but {rows.name} has no index to pair them by. "
                "Give a DataFrame with an index, or arrays in the order of its rows."
            )


def _in_order(what: str, given: Any, rows: Rows) -> tuple[Any, tuple[str, ...]]:
    """Values in the order of the rows (None if missing), and notes; a Series is paired by its index."""
    if not is_a(given, "pandas", "Series"):
        return given, ()
    if rows.ids is None and rows.index is None:
        note = f"{what} have an index, but {rows.name} has none: the rows are paired by position."
        return given, () if is_count(given.index) else (note,)
    index = labels(given.index)
    pair = pair_rows(rows, MemoryRows(what, np.zeros((len(index), 1)), index_ids(index), index=index))
    notes = pair.notes[len(rows.notes) :]
    mine, theirs = (slice(None) if places is None else places for places in (pair.x_index, pair.y_index))
    values = np.full(rows.shape[0], None, dtype=object)
    values[mine] = given.to_numpy(dtype=object)[theirs]
    return values, notes


def _column(
    what: str, given: Any, rows: Rows, table: Columns | None, places: np.ndarray | None, at: np.ndarray | None
) -> tuple[Categories, list[Alert]]:
    """A column for the rows in use, and alerts."""
    alerts: list[Alert] = []
    if isinstance(given, str):
        if table is None:
            raise InputError(
                f"{what}={given!r} names a column, but there is no table beside {rows.name}: give meta (--meta), or "
                "the values themselves."
            )
        (values, alerts), index = text_column(what, given, table), at
    else:
        values, index = one_column(given), places
        if values.shape != (rows.shape[0],):
            raise InputError(
                f"{what} have shape {values.shape}, but one value for each of the {rows.shape[0]} rows of {rows.name} "
                "is expected."
            )
    named = f"The column {given!r} of {what}" if isinstance(given, str) else f"The sequence of {what}"
    return Categories.of(values if index is None else values[index], named), alerts
