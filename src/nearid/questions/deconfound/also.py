"""Corrected embeddings that the user made with another package, judged beside the conditions of nearid."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.columns import is_annotated, open_annotated
from nearid.arrays.derived import SelectedColumns, SelectedRows
from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL, blocks
from nearid.folds import row_moments
from nearid.moments import ROUNDING
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.inputs import without_metadata
from nearid.questions.deconfound.paired import ALL, GUESS
from nearid.questions.deconfound.plan import CONDITIONS

# Rows that show whether an embedding has the columns of another, and the least mean correlation of these columns.
COMPARED, SAME = 2000, 0.5


class Corrected(NamedTuple):
    """A corrected embedding as it was given, and its rows in the order of the design."""

    given: Any
    rows: Rows


def check_also(also: Mapping[Any, Any]) -> None:
    """Refuse names that cannot be those of a condition."""
    for name in also:
        if not isinstance(name, str) or not name.strip():
            raise InputError(
                f"also (--also) takes a name for each corrected embedding, as harmony=Z.npy, not {name!r}."
            )
        if name in CONDITIONS or name in (ALL, GUESS):
            raise InputError(
                f"also (--also) gives the name {name!r}, which nearid uses itself. Choose another one, such as "
                f"'my_{name}'."
            )


def open_also(
    also: Mapping[str, Any], X: Any, design: Design, ids: Any, named: Iterable[str], engine: Engine = LOCAL
) -> tuple[dict[str, Corrected], list[Alert]]:
    """Open corrected embeddings and pair their rows with those of the design.

    Parameters
    ----------
    also : mapping of str to array, tensor, table, path or Rows; of AnnData X also the name of an entry of obsm
    X, ids
        As of `nearid.deconfound`.
    named : iterable of str
        Columns of labels, batches and the like, which are no features of a table.
    """
    opened, alerts = {}, []
    for name, given in also.items():
        rows = _open(name, given, X, ids)
        rows, notes = _in_order(name, rows, design)
        if rows.is_table and rows.columns is not None:
            rows, more = _features(name, rows, design, set(named))
            alerts += more
        _refuse_nonfinite(name, rows, engine)
        alerts += [Alert("input", note) for note in notes]
        opened[name] = Corrected(given, rows)
    if opened:
        names = ", ".join(opened)
        alerts.append(
            Alert(
                "transductive",
                f"{names}: a correction that was computed from all rows has seen the batches that are held out here, "
                "so its AUROC may be higher than it would be in new batches. nearid did not make "
                f"{'this embedding' if len(opened) == 1 else 'these embeddings'}.",
            )
        )
    return opened, alerts


def fit_also(corrected: Mapping[str, Corrected], engine: Engine, own: Rows) -> dict[str, ComponentRows]:
    """Each corrected embedding, centred and scaled, so that it can be compared with Base.

    In the columns of the embedding itself (`own`), each column gets unit variance, as in Base. Other columns are all
    divided by one number, so that angles and distances stay as they were given.
    """
    made = {}
    for name, (_, rows) in corrected.items():
        moments, _ = row_moments(rows, engine=engine)
        sizes = np.sqrt(np.diag(moments.scatter) / moments.n)
        live = np.flatnonzero(sizes > ROUNDING * np.abs(moments.mean))
        if not len(live):
            raise InputError(f"also {name!r} is constant: all rows of {rows.name} are equal, so it cannot be judged.")
        scales = sizes[live]
        if not _same_columns(own, rows):
            scales = np.full(len(live), np.sqrt(np.mean(scales**2)))
        condition = Condition(name, moments.mean, None, live, scales, own=False)
        made[name] = ComponentRows(rows, condition)
    return made


def _same_columns(own: Rows, rows: Rows) -> bool:
    """Whether there are as many columns, and each is correlated with the one at its place, on the average."""
    if own.shape != rows.shape:
        return False
    some = np.sort(np.random.default_rng(0).permutation(own.shape[0])[:COMPARED])
    x, y = (each.take(some).astype(np.float64) for each in (own, rows))
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    sizes = np.sqrt(np.sum(x**2, axis=0) * np.sum(y**2, axis=0))
    known = sizes > 0
    return bool(known.any() and np.mean(np.sum(x * y, axis=0)[known] / sizes[known]) > SAME)


def _open(name: str, given: Any, X: Any, ids: Any) -> Rows:
    if isinstance(given, str) and is_annotated(X) and not Path(given).exists():
        return open_annotated(X, given)[0]
    if is_annotated(given):
        return open_annotated(given)[0]
    if isinstance(given, str | os.PathLike) and not Path(given).exists():
        raise InputError(f"also {name!r} names {os.fspath(given)!r}, but there is no such file.")
    title = name if not isinstance(given, str | os.PathLike) else None
    rows = open_rows(given, name=title)
    theirs = ids[0] if isinstance(ids, tuple | list) and len(ids) == 2 else ids
    if isinstance(theirs, str) and rows.is_table:
        return open_rows(given, ids=theirs, name=title)
    return rows


def _in_order(name: str, rows: Rows, design: Design) -> tuple[Rows, tuple[str, ...]]:
    """The rows of the design, from a corrected embedding with the same samples."""
    if rows.ids is None and rows.index is None and rows.shape[0] == design.n < design.source.shape[0]:
        raise InputError(
            f"also {name!r} has {rows.shape[0]} rows, as many as are used, but {design.source.name} has "
            f"{design.source.shape[0]}. Give one row for each of these, or ids in both."
        )
    pair = pair_rows(design.source, rows)
    own = np.arange(design.source.shape[0]) if pair.x_index is None else pair.x_index
    theirs = np.arange(rows.shape[0]) if pair.y_index is None else pair.y_index
    at = np.full(design.source.shape[0], -1)
    at[own] = theirs
    wanted = np.arange(design.source.shape[0]) if design.places is None else design.places
    missing = int(np.sum(at[wanted] < 0))
    if missing:
        raise InputError(
            f"also {name!r} lacks {missing:,} of the {len(wanted):,} rows that are judged. Correct all rows of "
            f"{design.source.name}, or judge only those that were corrected."
        )
    notes = tuple(note for note in pair.notes[len(design.source.notes) + len(rows.notes) :] if "left out" not in note)
    at = at[wanted]
    return (rows if np.array_equal(at, np.arange(rows.shape[0])) else SelectedRows(rows, at)), notes


def _features(name: str, rows: Rows, design: Design, named: set[str]) -> tuple[Rows, list[Alert]]:
    """The columns of a table that are no labels, batches or other metadata."""
    assert rows.columns is not None
    places = [at for at, column in enumerate(rows.columns) if column not in named]
    if not places:
        raise InputError(f"also {name!r} has no columns except labels and batches ({few(map(repr, rows.columns))}).")
    if len(places) < len(rows.columns):
        rows = SelectedColumns(rows, np.array(places))
    kept, alerts = without_metadata(rows, design.batches.codes, groups={"label": design.labels.codes})
    return (rows if kept is None else SelectedColumns(rows, kept)), alerts


def _nonfinite_rows(block: tuple[int, int], rows: Rows) -> int:
    return int(np.sum(~np.isfinite(rows.read(*block)).all(axis=1)))


def _refuse_nonfinite(name: str, rows: Rows, engine: Engine) -> None:
    bad = sum(engine.map(_nonfinite_rows, blocks(*rows.shape), rows))
    if bad:
        raise InputError(
            f"also {name!r} has a NaN or an infinity in {bad:,} of {rows.shape[0]:,} rows. Every row must be finite: "
            "correct it again, or leave these rows out of both tables."
        )
