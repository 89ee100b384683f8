"""Feature columns of a table, chosen by patterns, and columns that look like metadata."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from nearid.arrays.blocks import beside
from nearid.arrays.derived import SelectedColumns
from nearid.arrays.names import few, nearest
from nearid.arrays.pair import Pair
from nearid.arrays.rows import Rows
from nearid.arrays.storage import state_of
from nearid.arrays.tables import Columns
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import listed

IDENTIFIERS = frozenset(("id", "ids", "idx", "index", "uid", "uuid", "barcode"))
# Words in column names that describe a row or its origin, not a measurement.
ORIGINS = (
    "row rows col cols column columns position pos site well plate batch fold split label labels class target cluster "
    "seed group run concentration dose molecule geometry epoch "
    "step frame fov donor patient subject sample replicate timepoint timestamp time date meta "
    "metadata"
)
WORDS = IDENTIFIERS.union(ORIGINS.split())
# Prefixes with which profiling pipelines mark columns that describe a well.
ABOUT = ("Metadata_", "Image_Metadata_")
# Counters and positions that CellProfiler writes beside its measurements.
COUNTED = ("ImageNumber", "ObjectNumber", "TableNumber", "*_Number_Object_Number", "*_Location_*", "Location_*")
WORD = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"
# With fewer rows than FEWEST the values decide nothing. At most the first MOST rows are read.
FEWEST, MOST = 20, 4096
MOST_NUMBERS = 1 << 23
# Limits on the number of rows, and on the bytes of text, that are searched for names of rows.
MOST_NAMES, MOST_TEXT = 1_000_000, 1 << 24
# A column of labels has on average at least so many rows per value.
ROWS_PER_LABEL = 10
# A message lists at most so many names to type; with more it suggests a pattern.
MOST_TYPED = 50
# If so many column names differ only in their number (col1, col2, col3), the columns are numbered features.
NUMBERED = 3


class Suspect(NamedTuple):
    """A column that looks like metadata, the reason, and whether it may hold the ids of the rows."""

    name: str
    reason: str
    identifies: bool


def column_names(rows: Rows) -> tuple[str, ...]:
    """Return the names of the columns; without names, their positions counted from 0."""
    return rows.columns or rows.titles or tuple(map(str, range(rows.shape[1])))


def choose_columns(
    sources: Sequence[Rows], features: Iterable[str] | str | None = None, exclude: Iterable[str] | str | None = None
) -> list[Rows]:
    """Return the sources with the columns that match a pattern of `features` (default: all) and none of `exclude`.

    In a pattern, * matches any text, ? matches one character, and [ab] matches a or b. Patterns are given as a list or
    as one string with commas. A pattern that equals the name of a column matches only this column. Each pattern must
    match a column of at least one source. A pattern of `exclude` may also match a column that is not a feature, such
    as text.
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
                raise InputError(f"No {kind} of {among} matches {option}={given!r}. {nearest(given, names)}")
    return [_chosen(rows, wanted, unwanted) for rows in sources]


def _patterns(option: str, given: Iterable[str] | str | None, names: Iterable[str]) -> dict[str, str] | None:
    """Return the pattern for each part that the user typed; None if the option was not given."""
    if given is None:
        return None
    known = set(names)
    return {part: literal(part) if part in known else part for part in listed(given, f"column of {option}")}


def literal(name: str) -> str:
    """Return the pattern that matches only this name: wildcards in the name are put in brackets."""
    return re.sub(r"([*?[])", r"[\1]", name)


def _fits(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _chosen(rows: Rows, wanted: dict[str, str] | None, unwanted: dict[str, str] | None) -> Rows:
    names = column_names(rows)
    features, left_out = (wanted or {}).values(), (unwanted or {}).values()
    # If another source is a table, rows without column names keep all columns.
    every = wanted is None or (rows.columns is None and not any(_fits(name, features) for name in names))
    kept = [at for at, name in enumerate(names) if (every or _fits(name, features)) and not _fits(name, left_out)]
    if not kept:
        options = " and ".join(
            f"{option}={list(given)!r}" for option, given in (("features", wanted), ("exclude", unwanted)) if given
        )
        raise InputError(f"{options} leaves no column of {rows.name}. Its columns: {few(map(repr, names))}.")
    return rows if len(kept) == len(names) else SelectedColumns(rows, np.array(kept))


def input_alerts(pair: Pair) -> list[Alert]:
    """Return the alerts about both inputs: their notes, and columns that look like metadata."""
    notes = _in_other_order(pair) + [Alert("input", note) for note in pair.notes]
    return notes + [alert for rows in (pair.x, pair.y) for alert in metadata_alerts(rows)] + _shared(pair)


def _in_other_order(pair: Pair) -> list[Alert]:
    """Return an alert if a column holds the same row names in a different order, but rows are paired by position."""
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
                    f"The column {column!r} holds the same names in {pair.x.name} and {pair.y.name}, but in a "
                    "different order. The rows are paired by position, so different rows are compared. To pair rows by "
                    f"this column: ids={column!r} (--ids {shlex.quote(column)}).",
                )
            ]
    return []


def _may_name_rows(rows: Rows) -> list[str]:
    return [*rows.unused, *(suspect.name for suspect in suspects(rows) if suspect.identifies)]


def _soon_read(rows: Rows) -> bool:
    """Return whether a column is quick to read. Files of text must be read completely for one column."""
    text = isinstance(rows.origin, str) and ".parquet" not in rows.origin
    return not text or state_of(rows.origin).size <= MOST_TEXT


def _shared(pair: Pair) -> list[Alert]:
    """Return an alert that names columns with the same numbers in both tables, which two runs would not learn."""
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
            f"These columns hold the same numbers in {pair.x.name} and {pair.y.name}, so they may be metadata: "
            f"{few(map(repr, same))}. They make unrelated runs look similar. "
            f"To leave them out: {typed_exclude(same)}.",
        )
    ]


def metadata_alerts(rows: Rows) -> list[Alert]:
    """Return an alert that names the columns that look like metadata and shows how to leave them out."""
    marked = suspects(rows) if rows.is_table else []
    if not marked:
        return []
    described = few(f"{suspect.name!r} ({suspect.reason})" for suspect in marked)
    message = f"Columns of {rows.name} that look like metadata are used as features: {described}. "
    if len(marked) > MOST_TYPED:
        message += "Choose the features with a pattern: features='emb_*' (--features 'emb_*')."
    else:
        message += f"To leave them out: {typed_exclude(suspect.name for suspect in marked)}."
    column = next((s.name for s in marked if s.identifies), None)
    if column is not None and rows.ids is None and rows.columns is not None:
        message += f" If {column!r} holds the ids of the rows: ids={column!r} (--ids {shlex.quote(column)})."
    return [Alert("metadata_columns", message)]


def without_suspects(rows: Rows, more: Mapping[str, str] | None = None) -> tuple[np.ndarray | None, list[Alert]]:
    """Return the places of the columns of a table that do not look like metadata, and an alert that lists the others.

    None instead of the places means all columns: nothing looks like metadata, or everything does.

    Parameters
    ----------
    more : mapping of str to str, optional
        Further columns to leave out, with the reasons. The alert lists them first, because names are plain to see.
    """
    if not rows.is_table:
        return None, []
    more = more or {}
    names = column_names(rows)
    reasons = {name: "its name" for name in names if name.startswith(ABOUT)}
    reasons |= {suspect.name: suspect.reason for suspect in suspects(rows)}
    for name, reason in more.items():
        reasons[name] = ", ".join(filter(None, [reasons.get(name), reason]))
    kept = [at for at, name in enumerate(names) if name not in reasons]
    if not reasons or not kept:
        return None, []
    listed = sorted((name for name in names if name in reasons), key=lambda name: name not in more)
    alike: dict[str, list[str]] = {}
    for name in listed:
        alike.setdefault(reasons[name], []).append(repr(name))
    several = {reason: reason.replace("its name", "their names") if alike[reason][1:] else reason for reason in alike}
    described = "; ".join(f"{few(quoted)} ({several[reason]})" for reason, quoted in alike.items())
    message = (
        f"Columns of {rows.name} that look like metadata are left out: {described}. To use all numeric columns: "
        "features='*' (--features '*')."
    )
    return np.array(kept), [Alert("metadata_columns", message)]


def row_names(table: Columns) -> str | None:
    """Return the name of a column that may hold the ids of the rows; None if there is none.

    It is the index that pandas wrote, a column of text that differs in every row, or a column of whole numbers.
    Whole numbers count only if the name of the column suggests ids and the numbers do not just count the rows.
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
    """Return what to type to leave columns out, in Python and on the command line."""
    # A comma would separate two patterns.
    typed = ",".join(literal(name).replace(",", "?") for name in names)
    return f"exclude={typed!r} (--exclude {shlex.quote(typed)})"


def suspects(rows: Rows) -> list[Suspect]:
    """Return the columns whose names or first values look like ids, counters, positions or labels."""
    names = column_names(rows)
    n, d = rows.shape
    block = rows.read(0, min(n, MOST, max(FEWEST, MOST_NUMBERS // d)))
    whole, different = _whole(block)
    enough = len(block) >= FEWEST
    ids = whole & (different == len(block)) & enough
    few = whole & (different > 1) & (different * ROWS_PER_LABEL <= len(block)) & enough
    # A property of most columns does not indicate metadata: counts, binary features, quantised embeddings.
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
    """Return which columns hold only whole numbers or NaN, and how many different numbers each of them holds."""
    # Beyond this limit every number of this precision is whole.
    exact = 1 / np.finfo(block.dtype).eps
    whole = np.all(np.isnan(block) | ((np.abs(block) < exact) & (block == np.rint(block))), axis=0)
    different = np.zeros(block.shape[1], dtype=int)
    ordered = np.sort(block[:, whole], axis=0)
    first = ~np.isnan(ordered[:1])
    # NaN is sorted to the end and not counted.
    different[whole] = first.sum(axis=0) + np.sum((np.diff(ordered, axis=0) > 0), axis=0)
    return whole & (different > 0), different


def _named(names: Sequence[str], whole: np.ndarray) -> dict[int, str]:
    """Return the positions of columns whose names contain a word for metadata, with this word.

    In a name of several words, such as refractive_index, the word counts only if the values are whole numbers or the
    name has the prefix of a profiling pipeline.
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
