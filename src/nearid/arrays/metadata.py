"""Columns of a table that are features, chosen by patterns; and those that look like metadata instead."""

import os
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from nearid.arrays.blocks import beside
from nearid.arrays.derived import SelectedColumns
from nearid.arrays.names import few, nearest
from nearid.arrays.pair import Pair
from nearid.arrays.rows import Rows
from nearid.arrays.tables import Columns
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import listed

IDENTIFIERS = frozenset(("id", "ids", "idx", "index", "uid", "uuid", "barcode"))
# Words that name what a row is or where it comes from, not what was measured in it.
ORIGINS = (
    "row rows col cols column columns position pos site well plate batch fold split label labels class target cluster "
    "seed group run concentration dose molecule geometry epoch "
    "step frame fov donor patient subject sample replicate timepoint timestamp time date meta "
    "metadata"
)
WORDS = IDENTIFIERS.union(ORIGINS.split())
# How profiling pipelines mark columns that are about a well, not measured in it.
ABOUT = ("Metadata_", "Image_Metadata_")
# Counters and positions that CellProfiler writes beside its measurements.
COUNTED = ("ImageNumber", "ObjectNumber", "TableNumber", "*_Number_Object_Number", "*_Location_*", "Location_*")
WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
# Values say little in fewer rows, and enough in the first rows of many.
FEWEST, MOST = 20, 4096
MOST_NUMBERS = 1 << 23
# Rows, and bytes of text, in which names are looked for.
MOST_NAMES, MOST_TEXT = 1_000_000, 1 << 24
# Rows for each value of a column of labels, on average.
ROWS_PER_LABEL = 10
# More names than this are not typed one by one.
MOST_TYPED = 50
# Columns whose names differ in their number alone, as col1, col2, col3, are features that were numbered.
NUMBERED = 3


class Suspect(NamedTuple):
    """A column that looks like metadata, why, and whether it may name the rows."""

    name: str
    reason: str
    identifies: bool


def column_names(rows: Rows) -> tuple[str, ...]:
    """Names of the columns; their places, counted from 0, where they have none."""
    return rows.columns or tuple(map(str, range(rows.shape[1])))


def choose_columns(
    sources: Sequence[Rows], features: Iterable[str] | str | None = None, exclude: Iterable[str] | str | None = None
) -> list[Rows]:
    """Sources with the columns that fit a pattern of `features` (all by default) and none of `exclude`.

    Patterns are names in which * stands for any text, ? for a letter and [ab] for one of these; one by one, or in a
    text with commas. One that is the name of a column means this column alone. Each must fit a column of at least one
    source; one of `exclude` may be a column that is no feature anyway, as of text.
    """
    used = dict.fromkeys(name for rows in sources for name in column_names(rows))
    every = {**used, **dict.fromkeys(name for rows in sources for name in rows.unused)}
    wanted = _patterns("features", features, every)
    unwanted = _patterns("exclude", exclude, every)
    for option, patterns, names in (("features", wanted, used), ("exclude", unwanted, every)):
        for given, pattern in (patterns or {}).items():
            if not any(_fits(name, [pattern]) for name in names):
                among = " or ".join(rows.name for rows in sources)
                kind = "numeric column" if option == "features" else "column"
                raise InputError(f"No {kind} of {among} fits {given!r} (given as {option}). {nearest(given, names)}")
    return [_chosen(rows, wanted, unwanted) for rows in sources]


def _patterns(option: str, given: Iterable[str] | str | None, names: Iterable[str]) -> dict[str, str] | None:
    """What was typed, and the patterns that it stands for."""
    if given is None:
        return None
    known = set(names)
    return {part: literal(part) if part in known else part for part in listed(given, f"column of {option}")}


def literal(name: str) -> str:
    """The pattern that fits this name alone: brackets make letters of what would be wildcards."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _chosen(rows: Rows, wanted: dict[str, str] | None, unwanted: dict[str, str] | None) -> Rows:
    names = column_names(rows)
    features, left_out = (wanted or {}).values(), (unwanted or {}).values()
    # Beside a table, rows whose columns have no names keep them all.
    every = wanted is None or (rows.columns is None and not any(_fits(name, features) for name in names))
    kept = [at for at, name in enumerate(names) if (every or _fits(name, features)) and not _fits(name, left_out)]
    if not kept:
        asked = " and ".join(
            f"{option}={list(given)!r}" for option, given in (("features", wanted), ("exclude", unwanted)) if given
        )
        raise InputError(f"No column of {rows.name} is chosen by {asked}. Its columns: {few(map(repr, names))}.")
    return rows if len(kept) == len(names) else SelectedColumns(rows, np.array(kept))


def input_alerts(pair: Pair) -> list[Alert]:
    """Alerts about both inputs: their notes, and columns that look like metadata."""
    notes = _in_other_order(pair) + [Alert("input", note) for note in pair.notes]
    return notes + [alert for rows in (pair.x, pair.y) for alert in metadata_alerts(rows)] + _shared(pair)


def _in_other_order(pair: Pair) -> list[Alert]:
    """An alert where a column of both tables names the same rows in another order, and position pairs them."""
    by_position = pair.x_index is None and pair.y_index is None
    if not (by_position and pair.x.is_table and pair.y.is_table and pair.n <= MOST_NAMES):
        return []
    common = set(_may_name_rows(pair.y))
    for column in (name for name in _may_name_rows(pair.x) if name in common):
        held = [beside(rows, column)[1] if _soon_read(rows) else None for rows in (pair.x, pair.y)]
        x, y = ([] if values is None else list(map(str, values)) for values in held)
        if x != y and len(set(x)) == pair.n and set(x) == set(y):
            return [
                Alert(
                    "order_differs",
                    f"The column {column!r} holds the same names in {pair.x.name} and {pair.y.name}, in another order, "
                    "but rows are paired by position: different rows are compared. To pair them by it: "
                    f"ids={column!r} (--ids {shlex.quote(column)}).",
                )
            ]
    return []


def _may_name_rows(rows: Rows) -> list[str]:
    return [*rows.unused, *(suspect.name for suspect in suspects(rows) if suspect.identifies)]


def _soon_read(rows: Rows) -> bool:
    """Whether a column is read in no time: text is read as a whole for it."""
    text = isinstance(rows.origin, str) and ".parquet" not in rows.origin
    return not text or os.path.getsize(rows.origin) <= MOST_TEXT


def _shared(pair: Pair) -> list[Alert]:
    """An alert that names columns of both tables which hold the same numbers: no two runs learn such columns."""
    if not (pair.x.is_table and pair.y.is_table and pair.x.columns and pair.y.columns):
        return []
    places = [
        (pair.x.columns.index(name), pair.y.columns.index(name), name)
        for name in pair.x.columns
        if name in pair.y.columns
    ]
    if not places:
        return []
    x, y = pair.take(np.arange(min(pair.n, MOST, max(MOST_NUMBERS // pair.x.shape[1], 2))))
    same = [name for i, j, name in places if np.array_equal(x[:, i], y[:, j]) and np.ptp(x[:, i]) > 0]
    if not same or len(same) == pair.x.shape[1]:
        return []
    return [
        Alert(
            "shared_columns",
            f"Columns of {pair.x.name} and {pair.y.name} hold the same numbers in both, as metadata do: "
            f"{few(map(repr, same))}. Unrelated runs look alike with them. "
            f"To leave them out: {typed_exclude(same)}.",
        )
    ]


def metadata_alerts(rows: Rows) -> list[Alert]:
    """An alert that names the columns of a table that look like metadata, and what to type to leave them out."""
    marked = suspects(rows) if rows.is_table else []
    if not marked:
        return []
    described = few(f"{suspect.name!r} ({suspect.reason})" for suspect in marked)
    told = f"Columns of {rows.name} that look like metadata are used as features: {described}. "
    if len(marked) > MOST_TYPED:
        told += "Name the features with a pattern: features='emb_*' (--features 'emb_*')."
    else:
        told += f"To leave them out: {typed_exclude(suspect.name for suspect in marked)}."
    names = next((s.name for s in marked if s.identifies), None)
    if names is not None and rows.ids is None and rows.columns is not None:
        told += f" If {names!r} names the rows: ids={names!r} (--ids {shlex.quote(names)})."
    return [Alert("metadata_columns", told)]


def row_names(table: Columns) -> str | None:
    """A column that may name the rows: the index that pandas wrote, text that differs in every row, or whole numbers.

    The latter only where the name of the column says so and they are more than a count.
    """
    if table.names_rows is not None:
        return table.names_rows
    for name, values in table.values.items():
        if len(values) < FEWEST or len(set(values.tolist())) < len(values):
            continue
        words = {word.lower() for word in re.findall(WORD, name)}
        counts = values.dtype.kind in "fiu" and np.array_equal(values, np.arange(len(values)) + values[0])
        text = values.dtype.kind in "OUST" and all(isinstance(value, str | bytes) for value in values)
        if text or (words & IDENTIFIERS and not counts):
            return name
    return None


def typed_exclude(names: Iterable[str]) -> str:
    """What to type to leave columns out, in Python and on the command line."""
    # Commas separate patterns.
    typed = ",".join(literal(name).replace(",", "?") for name in names)
    return f"exclude={typed!r} (--exclude {shlex.quote(typed)})"


def suspects(rows: Rows) -> list[Suspect]:
    """Columns that look like ids, counters, positions or labels, by their names and by their first values."""
    names = column_names(rows)
    n, d = rows.shape
    block = rows.read(0, min(n, MOST, max(FEWEST, MOST_NUMBERS // d)))
    whole, different = _whole(block)
    enough = len(block) >= FEWEST
    ids = whole & (different == len(block)) & enough
    few = whole & (different > 1) & (different * ROWS_PER_LABEL <= len(block)) & enough
    # What most columns have in common is no mark of metadata: counts, binary features, quantised embeddings.
    ids &= 2 * ids.sum() <= d
    few &= 2 * whole.sum() <= d
    named = _named(names, whole)
    marked = []
    for at, name in enumerate(names):
        reasons = ["its name"] * (at in named) + ["a different whole number in each row"] * bool(ids[at])
        reasons += [f"{different[at]} different whole numbers"] * bool(few[at])
        if reasons:
            marked.append(Suspect(name, ", ".join(reasons), bool(ids[at]) or named.get(at) in IDENTIFIERS))
    return marked


def _whole(block: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Columns of whole numbers beside what is missing, and how many different numbers they hold."""
    # Beyond this every number of this precision is whole.
    exact = 1 / np.finfo(block.dtype).eps
    whole = np.all(np.isnan(block) | ((np.abs(block) < exact) & (block == np.rint(block))), axis=0)
    different = np.zeros(block.shape[1], dtype=int)
    ordered = np.sort(block[:, whole], axis=0)
    first = ~np.isnan(ordered[:1])
    # NaN comes last, and is not counted.
    different[whole] = first.sum(axis=0) + np.sum((np.diff(ordered, axis=0) > 0), axis=0)
    return whole & (different > 0), different


def _named(names: Sequence[str], whole: np.ndarray) -> dict[int, str]:
    """Places of columns whose names have a word for metadata, and the word.

    Among several words, as of refractive_index, it counts only where the values are whole numbers, or after the mark
    of a profiling pipeline.
    """
    families = Counter(re.sub(r"\d+", "#", name) for name in names)
    words_at: dict[int, str] = {}
    for at, name in enumerate(names):
        words = [word.lower() for word in re.findall(WORD, name)]
        telling = [word for word in words if word in WORDS]
        alone = families[re.sub(r"\d+", "#", name)] < NUMBERED
        about = name.startswith(ABOUT)
        if _fits(name, COUNTED):
            words_at[at] = "position"
        elif telling and (about or (alone and (whole[at] or len(words) == 1))):
            words_at[at] = next((word for word in telling if word in IDENTIFIERS), telling[0])
    return words_at
