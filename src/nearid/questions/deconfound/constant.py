"""Columns that describe the rows instead of measuring them: they have one value within every group of rows.

The groups are batches, blocks, labels, and combinations of the metadata, such as a compound and its dose. A column is
constant within the rows of a compound and dose if it is a statistic of them, such as a p-value, and it would give the
label away. A measurement is hardly ever the same twice. Rows that are merely repeated in a table are the exception.
Therefore combinations are judged by rows of different batches.

A column with few different numbers may be a dose or a measurement, such as the share of cells in a phase. If nothing
marks it as metadata, it stays a feature. What is constant within such features alone, such as the share of the other
cells, gives no more away than they do, and stays a feature too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice

import numpy as np

from nearid.arrays import Columns, Rows
from nearid.arrays.metadata import ABOUT, ROWS_PER_LABEL, column_names, suspects
from nearid.moments import Floats

# Couples of rows of the same group that are compared.
COUPLES = 100
# A column is constant within groups if couples of different groups differ in at least so many cases, by which it is not
# so by chance, and couples of the same group in at most this share of as many.
FEWEST, EXCEPTIONS = 16, 0.02
# Metadata columns that are combined, how many of them at once, and the largest number of combinations.
MOST_DESCRIBING, AT_ONCE, MOST_COMBINATIONS = 12, 3, 150
# Different numbers of a numeric column by which rows are grouped, unless its name is that of metadata.
MOST_LEVELS = 20
# Rows that are looked at, those of a class that come before rows of the next one, and numbers that are read.
MOST_ROWS, MOST_OF_CLASS, MOST_NUMBERS = 1 << 14, 1 << 10, 1 << 23

Groups = Mapping[str, np.ndarray]


def describing(rows: Rows, table: Columns | None, known: Sequence[str]) -> dict[str, np.ndarray]:
    """Columns of a table with text, metadata or few different numbers: name -> values of all rows of the table.

    Parameters
    ----------
    rows : Rows
        Rows of the features.
    table : Columns or None
        All columns of the same table, or of the metadata.
    known : sequence of str
        Labels, batches and other columns that are combined anyway, or never.
    """
    found: dict[str, np.ndarray] = {}
    if table is None:
        return found
    marked = {suspect.name for suspect in suspects(rows)} if rows.is_table else set()
    for name, values in table.values.items():
        numeric = values.dtype.kind in "fiu"
        about = not numeric or name.startswith(ABOUT) or name in marked
        if name not in known and (about or _repeats(values)):
            found[name] = values
    # If there are many, text comes first, and what may be a measurement last.
    own = set(rows.columns or ()) - marked
    return dict(sorted(found.items(), key=lambda item: (item[1].dtype.kind in "fiu", item[0] in own)))


def _repeats(values: np.ndarray) -> bool:
    """Whether there are few numbers, each of which occurs often, such as doses."""
    some = values[:: max(len(values) // 4096, 1)]
    return len(np.unique(some)) <= min(MOST_LEVELS, len(some) // ROWS_PER_LABEL)


def constant_columns(
    rows: Rows, batches: np.ndarray, blocks: np.ndarray | None = None, groups: Groups | None = None
) -> dict[str, str]:
    """Names of columns that are constant within groups of rows, and within which.

    Parameters
    ----------
    batches, blocks : ndarray of int, shape (n,)
    groups : mapping of str to ndarray of int, shape (n,)
        Codes of the label and of other columns that describe the rows, by their quoted names.
    """
    rng = np.random.default_rng(0)
    places = _some_rows(batches, groups or {}, rng)
    looked = list(_groupings(places, batches, blocks, groups or {}, rng))
    if not looked:
        return {}
    most = max(FEWEST, MOST_NUMBERS // (2 * len(looked) * rows.shape[1]))
    read, at = np.unique(np.concatenate([pair[:, :most].ravel() for _, pair in looked]), return_inverse=True)
    x = rows.take(places[read])
    names = np.array(column_names(rows))
    found: dict[str, str] = {}
    own = _own_features(rows, groups or {})
    functions: list[tuple[set[str], np.ndarray]] = []
    start = 0
    for what, pair in looked:
        size = 2 * min(pair.shape[1], most)
        first, second = x[at[start : start + size]].reshape(2, size // 2, -1)
        start += size
        within, among = _differing(first, second), _differing(first, np.roll(second, 1, axis=0))
        constant = (among >= FEWEST) & (within <= EXCEPTIONS * among)
        if own.issuperset(what):
            functions.append((set(what), constant))
            continue
        for part, determined in functions:
            if part.issubset(what):
                constant &= ~determined
        for name in names[constant]:
            if repr(str(name)) not in what:
                found.setdefault(str(name), f"constant within each {' x '.join(what)}")
    return found


def _own_features(rows: Rows, groups: Groups) -> set[str]:
    """The groups that are columns of the rows, and not marked as metadata."""
    own = groups.keys() & {repr(str(name)) for name in column_names(rows)}
    return own - {repr(suspect.name) for suspect in suspects(rows)} if own else set()


def _differing(x: Floats, y: Floats) -> np.ndarray:
    """In how many rows each column differs; two missing values are equal."""
    return np.asarray(np.sum((x != y) & ~(np.isnan(x) & np.isnan(y)), axis=0))


def _some_rows(batches: np.ndarray, groups: Groups, rng: np.random.Generator) -> np.ndarray:
    """Places of at most MOST_ROWS rows in random order: whole classes of the first group, unless they are large.

    Of every class come at most MOST_OF_CLASS rows before any has more, so that one large class is not all there is.
    """
    codes = next(iter(groups.values()), batches)
    turn = rng.permutation(int(codes.max()) + 1)[codes]
    order = np.lexsort((rng.random(len(codes)), turn))
    sizes = np.bincount(turn)
    rank = np.arange(len(codes)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    some = order[np.argsort(rank // MOST_OF_CLASS, kind="stable")][:MOST_ROWS]
    return rng.permutation(some)


def _groupings(
    places: np.ndarray, batches: np.ndarray, blocks: np.ndarray | None, groups: Groups, rng: np.random.Generator
) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    """What rows are grouped by, and couples of rows of the same group (their indices in `places`), of shape (2, k)."""
    own = batches[places]
    yield from _enough(("batch",), _couples(own, None, rng))
    if blocks is not None:
        yield from _enough(("block",), _couples(blocks[places], None, rng))
    several = {name: codes[places] for name, codes in islice(_different(groups, places), MOST_DESCRIBING)}
    seen = 0
    for count in range(1, min(AT_ONCE, len(several)) + 1):
        for chosen in combinations(several, count):
            if seen == MOST_COMBINATIONS:
                return
            seen += 1
            codes = np.zeros(len(places), np.intp)
            for name in chosen:
                codes = np.unique(codes * (int(several[name].max()) + 1) + several[name], return_inverse=True)[1]
            yield from _enough(chosen, _couples(codes, own, rng))


def _enough(what: tuple[str, ...], couples: np.ndarray) -> Iterator[tuple[tuple[str, ...], np.ndarray]]:
    if couples.shape[1] >= FEWEST:
        yield what, couples


def _different(groups: Groups, places: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """The groups that are not all rows, nor single rows, nor those of an earlier column."""
    seen: set[bytes] = set()
    for name, codes in groups.items():
        _, first, inverse = np.unique(codes[places], return_index=True, return_inverse=True)
        key = first[inverse].tobytes()
        if 1 < len(first) < len(places) and key not in seen:
            seen.add(key)
            yield name, codes


def _couples(codes: np.ndarray, batches: np.ndarray | None, rng: np.random.Generator) -> np.ndarray:
    """Couples of rows of the same group, at most COUPLES; of different batches, if these are given.

    The rows are in random order. Each group has one couple before any has two.
    """
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    pairs = ordered[1:] == ordered[:-1]
    if batches is not None:
        pairs &= batches[order][1:] != batches[order][:-1]
    at = np.flatnonzero(pairs)
    starts = np.flatnonzero(np.diff(ordered[at], prepend=-1))
    turn = np.arange(len(at)) - np.repeat(starts, np.diff(starts, append=len(at)))
    at = at[np.lexsort((rng.random(len(at)), turn))[:COUPLES]]
    return np.stack([order[at], order[at + 1]])
