"""True factors: named columns, each with a kind (given or inferred) that determines how it is compared."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Annotated, Any

import numpy as np

from nearid.arrays import Columns, Pair, Rows, first_nonfinite, nonfinite, open_columns, open_rows, pair_rows
from nearid.arrays.blocks import open_blocks
from nearid.arrays.dates import date_texts
from nearid.arrays.labels import block_codes
from nearid.arrays.memory import MemoryRows
from nearid.arrays.metadata import input_alerts
from nearid.arrays.names import few, not_found
from nearid.arrays.rows import is_numeric
from nearid.arrays.tables import refuse_repeats
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.options import Bound, checked
from nearid.folds import pair_traits, repeated_rows
from nearid.moments import ROUNDING, Floats

KINDS = ("continuous", "integer", "categorical", "circular")
# The kind of a column that is not a factor.
NO_FACTOR = "none"
# Whole numbers with more levels than this are measurements rather than classes, unless a kind is given.
LEVELS = 256
# Beyond this size, or with a spread below its inverse, squares leave float64.
LARGEST = 1e150
# Number of bins of equal width for continuous values, if a measure needs classes. It is usual in the literature.
BINS = 20
Bins = Annotated[int, Bound(2)]
# Texts of missing values after a conversion to text.
MISSING = frozenset(("nan", "none", "na", "n/a", "<na>", "nat", "null"))
# With fewer rows than this, a class of one row is not reported as rare.
FEWEST = 20
# Alerts that depend on the rows, so they are computed again for other rows.
ROW_DEPENDENT = ("singleton_classes", "looks_like_ids", "doubtful_period", "missing_as_text")


@dataclass(frozen=True)
class Factor:
    """One true factor.

    Attributes
    ----------
    name : str
    kind : {"continuous", "integer", "categorical", "circular"}
    inferred : bool
        Whether nearid inferred the kind from the values. Otherwise it was given.
    values : ndarray of shape (n,)
        The numbers. For a categorical factor, the class of each row, counted from 0.
    labels : ndarray
        Labels of the classes of a categorical factor. Empty for the others.
    period : float or None
        Period of a circular factor.
    """

    name: str
    kind: str
    inferred: bool
    values: Floats
    labels: np.ndarray
    period: float | None = None

    @property
    def discrete(self) -> bool:
        """Whether the values are classes."""
        return self.kind in ("integer", "categorical")

    def codes(self, bins: int = BINS) -> np.ndarray:
        """Return the class of each row, counted from 0. Factors without classes are cut into `bins` of equal width."""
        if self.discrete:
            return np.unique(self.values, return_inverse=True)[1]
        if self.period is not None:
            turns = np.mod(self.values / self.period, 1.0)
            return np.asarray(np.minimum((turns * bins).astype(np.intp), bins - 1))
        return binned(self.values, bins)

    @cached_property
    def columns(self) -> Floats:
        """Return the targets of a regression, of shape (n, k): one-hot classes, cosine and sine, or the number."""
        if self.kind == "categorical":
            return np.asarray(self.values[:, None] == np.arange(len(self.labels)), dtype=np.float64)
        if self.period is not None:
            angle = 2 * np.pi * np.mod(self.values / self.period, 1.0)
            return np.column_stack([np.cos(angle), np.sin(angle)])
        return self.values[:, None]


def binned(values: Floats, bins: int) -> np.ndarray:
    """Return the bin of each value, counted from 0, with bins of equal width over the range of the values."""
    return all_binned(values[:, None], bins)[:, 0]


def all_binned(columns: Floats, bins: int) -> np.ndarray:
    """Return the same for each column of an array, shape (n, d)."""
    low = columns.min(axis=0)
    width = columns.max(axis=0) - low
    # A constant column is one bin.
    shares = (columns - low) / np.where(width > 0, width, 1.0)
    return np.asarray(np.minimum((shares * bins).astype(np.intp), bins - 1))


def check_bins(bins: int, n: int) -> None:
    """Raise an error if there are more bins than n rows can fill."""
    if bins > max(n, BINS):
        raise InputError(f"bins must be at most {max(n, BINS)} for {n} rows, not {bins}. The usual number is {BINS}.")


def missing_as_text(column: str, names: Sequence[str], counts: np.ndarray) -> Iterator[Alert]:
    """Yield alerts about classes whose text looks like a missing value."""
    for name, count in zip(names, counts, strict=True):
        if name.lower() in MISSING:
            yield Alert(
                "missing_as_text",
                f"{column} has the text {name!r} in {count} rows, which is treated as a separate class. If it means a "
                "missing value, leave these rows out.",
            )


def as_factor(name: str, values: np.ndarray, kind: str | None, period: float | None) -> Factor:
    """Return a column as a factor of the given kind, or of the kind inferred from its values."""
    if kind not in (None, *KINDS):
        known = ", ".join((*KINDS, NO_FACTOR))
        raise InputError(f"The kind of the factor {name!r} must be one of {known}, not {kind!r}.")
    dates = date_texts(values)
    if dates is not None and kind != "categorical":
        raise InputError(_dated([name]))
    values = values if dates is None else dates
    if values.dtype.kind in "OSUT":
        return _text(name, values, kind, period)
    if not is_numeric(values.dtype):
        raise InputError(f"The factor {name!r} has dtype {values.dtype}, but numbers or text are expected.")
    numbers = values.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if len(bad):
        raise InputError(
            f"The factor {name!r} has {numbers[bad[0]]} at row {bad[0]} (counted from 0). Fix the value, or drop the "
            "row from latents and factors."
        )
    chosen = kind or _inferred(numbers)
    _check_size(name, numbers)
    if chosen == "categorical":
        return _categorical(name, values, kind is None)
    if chosen == "integer" and np.any(numbers != np.rint(numbers)):
        row = int(np.argmax(numbers != np.rint(numbers)))
        raise InputError(
            f"The factor {name!r} is given as integer, but has {numbers[row]} at row {row}. Give it as continuous."
        )
    if chosen == "circular" and period is None:
        raise InputError(
            f"The factor {name!r} is circular, so its period is needed, for example periods={{{name!r}: 360}} (on the "
            f"command line --periods {shlex.quote(f'{name}=360')})."
        )
    return Factor(name, chosen, kind is None, numbers, np.empty(0), period)


def _check_size(name: str, numbers: Floats) -> None:
    """Raise an error for numbers whose squares overflow or vanish, because their variance cannot be computed."""
    largest, spread = np.abs(numbers).max(initial=0), np.ptp(numbers / 2) if len(numbers) else 0.0
    if largest > LARGEST or 0 < spread < 1 / LARGEST:
        raise InputError(
            f"Squares of the values of the factor {name!r} leave the range of float64. Divide it by its typical size."
        )


def _inferred(numbers: Floats) -> str:
    if np.any(numbers != np.rint(numbers)):
        return "continuous"
    return "integer" if len(np.unique(numbers)) <= min(LEVELS, len(numbers) / 2) else "continuous"


def _text(name: str, values: np.ndarray, kind: str | None, period: float | None) -> Factor:
    for row, value in enumerate(values):
        if not isinstance(value, str | bytes | bool | np.bool_) or value in ("", b""):
            raise InputError(
                f"The factor {name!r} has {value!r} at row {row} (counted from 0), but text in every row is expected. "
                "Fix the value, or drop the row from latents and factors."
            )
    wordy = [row for row, value in enumerate(values) if not _is_number(value)]
    # A few words in a column of numbers are typing errors. A column with numbers as text may hold names of classes.
    if wordy and (kind not in (None, "categorical") or (kind is None and len(wordy) < len(values) / 10)):
        raise InputError(
            f"The factor {name!r} has the text {str(values[wordy[0]])!r} at row {wordy[0]} (counted from 0) and "
            f"numbers in {len(values) - len(wordy)} of {len(values)} rows. Fix it, or give the factor as categorical."
        )
    if kind not in (None, "categorical"):
        return as_factor(name, values.astype(np.str_).astype(np.float64), kind, period)
    return _categorical(name, values.astype(np.str_), kind is None)


def _is_number(value: str | bytes | bool | np.bool_) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _dated(names: Sequence[str]) -> str:
    """Return a message on how to use columns with dates, which are not factors by default."""
    typed = shlex.quote(f"{names[0]}=categorical")
    return (
        f"Dates and times are factors only if they are given as categorical: {few(map(repr, names))}. To do so: "
        f"kinds={{{names[0]!r}: 'categorical'}} (--kinds {typed}). To use them as numbers, convert them first, for "
        "example to days since the first date."
    )


def _left_out(name: str) -> str:
    """Return what to type to leave a column out."""
    return f"leave it out: kinds={{{name!r}: {NO_FACTOR!r}}} (--kinds {shlex.quote(f'{name}={NO_FACTOR}')})"


def _categorical(name: str, values: np.ndarray, inferred: bool) -> Factor:
    labels, codes = np.unique(values, return_inverse=True)
    if len(labels) > max(LEVELS, len(values) / 2):
        hint = (
            " Check that the cells are separated by the character that the suffix of the file means."
            if set(name) & set(";|\t")
            else ""
        )
        raise InputError(
            f"The factor {name!r} has {len(labels)} classes in {len(values)} rows, so nearly every row has its own "
            "class. If it holds the ids of the rows, pair latents and factors by it with ids (--ids). If it is not a "
            f"factor, {_left_out(name)}. Numbers may be given as continuous.{hint}"
        )
    check_memory(f"The factor {name!r}", 8 * len(labels) * len(values), "Merge rare classes.")
    return Factor(name, "categorical", inferred, codes.astype(np.float64), labels)


def plausibility_alerts(factor: Factor) -> Iterator[Alert]:
    """Yield alerts about a factor whose values do not look like its kind."""
    values, n = factor.values, len(factor.values)
    if factor.kind == "categorical":
        counts = np.bincount(values.astype(np.intp), minlength=len(factor.labels))
        present = np.flatnonzero(counts)
        texts = [str(factor.labels[at]) for at in present]
        yield from missing_as_text(f"The factor {factor.name!r}", texts, counts[present])
    if factor.kind == "continuous" and factor.inferred and n >= 20 and not np.any(values % 1) and len(set(values)) == n:
        yield Alert(
            "looks_like_ids",
            f"The factor {factor.name!r} has a different whole number in every row. If these are ids of the rows, "
            f"give it as ids (--ids) or {_left_out(factor.name)}. Otherwise it counts as a factor to recover.",
        )
    if factor.period is not None:
        turns = float(np.ptp(values)) / factor.period
        if not 0.05 <= turns <= 3:
            yield Alert(
                "doubtful_period",
                f"The values of {factor.name!r} cover {turns:.2g} times its period {factor.period:g}. Check that the "
                "period is in the units of the values (degrees or radians).",
            )


@dataclass(frozen=True)
class Factors:
    """The true factors of some rows, as read by `open_factors`.

    Attributes
    ----------
    name : str
    items : tuple of Factor
        The factors that vary. Constant factors are left out with an alert.
    ids : ndarray of shape (n,) or None
    alerts : tuple of Alert
    index : pandas.Index or None
    blocks : ndarray of shape (n,) or None
        Block of each row. None if the rows are treated as independent.
    """

    name: str
    items: tuple[Factor, ...]
    ids: np.ndarray | None
    alerts: tuple[Alert, ...]
    index: Any = None
    blocks: np.ndarray | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(factor.name for factor in self.items)

    @cached_property
    def rows(self) -> Rows:
        """Targets of regressions, for all factors side by side."""
        return self._placed(np.hstack([factor.columns for factor in self.items]))

    @property
    def geometry(self) -> Rows | None:
        """The factors as points with unit variance, with angles as points on a circle; None if all are categorical.

        Factors have different units, so distances are meaningful only if all factors have the same spread. Categorical
        factors have no order and are left out.
        """
        placed = [factor.columns for factor in self.items if factor.kind != "categorical"]
        if not placed:
            return None
        # The same scale for cosine and sine, so that a circle stays a circle.
        scaled = [(c - c.mean(axis=0)) / np.sqrt(c.var(axis=0).sum()) for c in placed]
        return self._placed(np.hstack(scaled))

    def _placed(self, values: Floats) -> Rows:
        rows = MemoryRows(self.name, values, self.ids, index=self.index)
        rows.blocks = self.blocks
        return rows

    @property
    def block_codes(self) -> np.ndarray | None:
        """The block of each row, counted from 0."""
        return None if self.blocks is None else block_codes(self.blocks)

    def take(self, index: np.ndarray | None) -> Factors:
        """Return the factors of some rows, in this order. None means all rows."""
        if index is None:
            return self
        taken = [replace(factor, values=factor.values[index]) for factor in self.items]
        still_true = tuple(alert for alert in self.alerts if alert.code not in ROW_DEPENDENT)
        blocks = None if self.blocks is None else self.blocks[index]
        return replace(_checked(self.name, taken, None, still_true), blocks=blocks)


@checked
def open_factors(
    source: object,
    *,
    kinds: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    key: str | None = None,
    ids: object = None,
    name: str | None = None,
) -> Factors:
    """Return the true factors of a source, one per column.

    Parameters
    ----------
    source : array, structured array, DataFrame, dict of columns, path of a table or array, or Factors
        Columns without names are called "0", "1" and so on.
    kinds : mapping of column to kind, optional
        "continuous", "integer", "categorical" or "circular", or "none" for a column that is not a factor. nearid infers
        the kind of the other columns. Text is categorical. Booleans and whole numbers are integer if they have at most
        256 levels and on average at least two rows per level. Everything else is continuous. Dates are left out with an
        alert, unless they are given as categorical. Circular factors cannot be inferred and must be given.
    periods : mapping of column to number, optional
        Period of each circular factor, such as 360 or 2 * pi. A column with a period is circular.
    key : str, optional
        The array to read if a file holds several, see `nearid.open_rows`.
    ids : str or array-like of shape (n,), optional
        Ids of the rows, see `nearid.open_rows`.
    name : str, optional
        Name of the factors in messages and reports. Default: the file name.

    Returns
    -------
    Factors
        The factors by column, each with its name, kind and values.

    Examples
    --------
    >>> import nearid
    >>> factors = nearid.open_factors({"shape": ["disc", "square", "disc"], "pan": [0, 90, 350]}, periods={"pan": 360})
    >>> [(factor.name, factor.kind) for factor in factors.items]
    [('shape', 'categorical'), ('pan', 'circular')]
    """
    if isinstance(source, Factors):
        if any(option is not None for option in (kinds, periods, key, ids, name)):
            raise InputError(f"{source.name} is already open. Pass its options when you open it.")
        return source
    return factors_of(open_columns(source, key=key, ids=ids, name=name or unnamed(source, "factors")), kinds, periods)


def open_both(
    latents: Rows,
    factors: object,
    blocks: object = None,
    *,
    kinds: Mapping[str, str] | None = None,
    periods: Mapping[str, float] | None = None,
    key: str | None = None,
    ids: object = None,
) -> tuple[Rows, Factors]:
    """Return latents and factors with their blocks: the stored ones, or those given as in `open_rows`.

    A column of the table of factors may be the blocks. It is then not a factor.
    """
    if isinstance(factors, Factors):
        known = open_factors(factors, kinds=kinds, periods=periods, key=key, ids=ids)
        (latents, _), _ = open_blocks(blocks, [latents, known.rows])
        return latents, known if blocks is None else replace(known, blocks=None)
    columns = (
        factors
        if isinstance(factors, Columns)
        else open_columns(factors, key=key, ids=ids, name=unnamed(factors, "factors"))
    )
    size = len(next(iter(columns.values.values())))
    # Stands for the table where blocks are looked for.
    table: Rows = MemoryRows(columns.name, np.zeros((size, 1)), columns.ids, index=columns.index)
    table.origin = columns
    (latents, table), _ = open_blocks(blocks, [latents, table])
    if table.blocks is not None:
        columns = columns._replace(values={name: v for name, v in columns.values.items() if name != blocks})
        if not columns.values:
            raise InputError(f"{columns.name} has no factors: its only column is {blocks!r}, which is used as blocks.")
    return latents, replace(factors_of(columns, kinds, periods), blocks=table.blocks)


def factors_of(
    columns: Columns, kinds: Mapping[str, str] | None = None, periods: Mapping[str, float] | None = None
) -> Factors:
    """Return factors from columns that are already loaded, see `open_factors`."""
    # Columns without names may be given by their numbers.
    for option, given in (("kinds", kinds), ("periods", periods)):
        refuse_repeats(option, [str(column) for column in given or {}])
    kinds = {str(column): kind for column, kind in (kinds or {}).items()}
    periods = {str(column): period for column, period in (periods or {}).items()}
    for option, given in (("kinds", kinds), ("periods", periods)):
        for wanted in given:
            if wanted not in columns.values:
                raise not_found(columns.name, option, wanted, columns.values)
    for wanted, period in periods.items():
        if kinds.setdefault(wanted, "circular") != "circular":
            raise InputError(
                f"The factor {wanted!r} is given as {kinds[wanted]} and with a period. Leave one of the two out."
            )
        if not isinstance(period, Real) or isinstance(period, bool) or not (np.isfinite(period) and period > 0):
            raise InputError(f"The period of {wanted!r} must be a positive number such as 360, not {period!r}.")
    named = {c: values for c, values in columns.values.items() if kinds.get(c) != NO_FACTOR}
    if not named:
        raise InputError(f"No column of {columns.name} is a factor: all are given as {NO_FACTOR!r} (kinds).")
    dates = [c for c, values in named.items() if c not in kinds and date_texts(values) is not None]
    if len(dates) == len(named):
        raise InputError(_dated(dates))
    named = {c: values for c, values in named.items() if c not in dates}
    notes = columns.notes + ((f"{_dated(dates)} They are left out.",) if dates else ())
    items = [as_factor(c, values, kinds.get(c), periods.get(c)) for c, values in named.items()]
    checked = _checked(columns.name, items, columns.ids, tuple(Alert("input", note) for note in notes))
    return replace(checked, index=columns.index)


def load_pair(
    latents: object, factors: object, *, blocks: object = None, drop_nonfinite: bool = False
) -> tuple[Floats, Factors, tuple[Alert, ...]]:
    """Return latents as a float64 array of shape (n, d), the factors of the same rows, and alerts about both."""
    rows, known = open_both(open_latents(latents), factors, blocks)
    return load_paired(pair_rows(rows, known.rows), known, drop_nonfinite=drop_nonfinite)


def load_paired(
    pair: Pair, known: Factors, *, drop_nonfinite: bool = False, most: int | None = None, random_state: int = 0
) -> tuple[Floats, Factors, tuple[Alert, ...]]:
    """Return the same for latents that are already paired with `known`. Of more rows than `most`, take a sample."""
    rows, alerts = pair.x, tuple(input_alerts(pair))
    x_index, y_index, blocks = pair.x_index, pair.y_index, pair.blocks
    if most is not None and pair.n > most:
        # With blocks, the sample has rows of all blocks: many blocks are more informative than many rows of few.
        picked = np.sort(np.random.default_rng([random_state, 5]).choice(pair.n, most, replace=False))
        x_index, y_index = (picked if index is None else index[picked] for index in (x_index, y_index))
        blocks = None if blocks is None else blocks[picked]
    x = rows.read(0, pair.n) if x_index is None else rows.take(x_index)
    x, taken = x.astype(np.float64), replace(known.take(y_index), blocks=blocks)
    bad = first_nonfinite(x, 0)
    if bad and not drop_nonfinite:
        row, column, value = bad
        raise nonfinite(rows.name, row if x_index is None else int(x_index[row]), column, value, rows.columns)
    if bad:
        good = np.flatnonzero(np.isfinite(x).all(axis=1))
        if len(good) < 2:
            raise InputError(f"{rows.name} has {len(good)} rows of finite numbers, but at least 2 are needed.")
        alerts += (dropped_rows(len(x) - len(good), len(x)),)
        x, taken = x[good], taken.take(good)
    # Halved, so that none overflows.
    ranges = x.max(axis=0) / 2 - x.min(axis=0) / 2
    # Rows are paired now.
    taken = replace(taken, ids=None, index=None)
    return x, taken, alerts + taken.alerts + constant_latents(ranges <= ROUNDING * np.abs(x / 2).max(axis=0))


def open_latents(latents: object) -> Rows:
    """Return rows of latents with a name for messages."""
    return open_rows(latents, name=unnamed(latents, "latents"))


def unnamed(source: object, name: str) -> str | None:
    """Return the name for a source that has no name."""
    return None if isinstance(source, Rows | str | os.PathLike) else name


def constant_latents(still: np.ndarray) -> tuple[Alert, ...]:
    """Return an alert about constant latents."""
    at = np.flatnonzero(still)
    if not len(at):
        return ()
    text = f"{len(at)} of {len(still)} latents are constant ({shortened(at)}) and carry no information."
    return (Alert("constant_latents", text),)


def shortened(names: Sequence[object] | np.ndarray) -> str:
    """Return the first five names or numbers as text."""
    return ", ".join(map(str, names[:5])) + (" ..." if len(names) > 5 else "")


def dropped_rows(count: int, n: int) -> Alert:
    """Return the alert about rows that are left out."""
    return Alert("dropped_rows", f"{count} of {n} rows have a NaN or an infinity and are left out.")


def repeated_pairs(x: Floats, factors: Factors, folds: int) -> tuple[Alert, ...]:
    """Return an alert about rows that repeat others in both latents and factors, if rows are held out."""
    if folds == 1:
        return ()
    traits = pair_traits(x, np.column_stack([factor.values for factor in factors.items]))
    return repeated_rows(traits, len(x), in_blocks=factors.blocks is not None)


def constant_factor(name: str) -> Alert:
    """Return the alert about a constant factor."""
    return Alert("constant_factor", f"The factor {name!r} is constant and is left out: there is nothing to recover.")


def _checked(name: str, items: list[Factor], ids: np.ndarray | None, alerts: tuple[Alert, ...]) -> Factors:
    """Return the factors without constant ones, and with alerts about rare classes."""
    kept: list[Factor] = []
    for factor in items:
        columns = factor.columns if factor.period is not None else factor.values[:, None]
        if np.all(np.ptp(columns, axis=0) <= ROUNDING * np.abs(columns).max(axis=0)):
            alerts += (constant_factor(factor.name),)
            continue
        sizes = np.bincount(factor.codes()) if factor.discrete else np.zeros(0)
        single = int(np.sum(sizes == 1))
        if factor.kind == "categorical" and np.sum(sizes > 1) == 1 and len(factor.values) >= FEWEST:
            alerts += (
                Alert(
                    "one_class",
                    f"The factor {factor.name!r} is left out: all rows except {single} belong to one class, and the "
                    "other classes have one row each.",
                ),
            )
            continue
        kept.append(factor)
        alerts += tuple(plausibility_alerts(factor))
        if single:
            alerts += (
                Alert(
                    "singleton_classes",
                    f"{single} classes of the factor {factor.name!r} have one row each. Such a class cannot be both "
                    "learned and tested. Merge rare classes, or give the factor as continuous.",
                ),
            )
    if not kept:
        rare = any(alert.code == "one_class" for alert in alerts)
        what = "constant, or has one class and rows of classes seen once" if rare else "constant"
        raise InputError(f"Every factor of {name} is {what}: there is nothing to recover.")
    return Factors(name, tuple(kept), ids, alerts)
