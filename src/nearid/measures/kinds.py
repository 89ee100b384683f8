"""One true factor: its kind, given or told by its values, and what measures aim at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearid.arrays.rows import is_numeric
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.moments import Floats

KINDS = ("continuous", "integer", "categorical", "circular")
# Whole numbers with more levels than this are measurements rather than classes, unless a kind is given.
LEVELS = 256
# Beyond this size, or with a spread below its inverse, squares leave float64.
LARGEST = 1e150
# Equal-width bins of what is continuous, where a measure needs classes; the literature's number.
BINS = 20
# What becomes of a missing value where text is made of it.
MISSING = frozenset(("nan", "none", "na", "n/a", "<na>", "nat", "null"))


@dataclass(frozen=True)
class Factor:
    """One true factor.

    Attributes
    ----------
    name : str
    kind : {"continuous", "integer", "categorical", "circular"}
    inferred : bool
        Whether the kind follows from the values; otherwise it was given.
    values : ndarray of shape (n,)
        Numbers; of a categorical factor, the class of each row counted from 0.
    labels : ndarray
        What the classes of a categorical factor stand for; empty for the others.
    period : float or None
        Of a circular factor: what takes a value back to itself.
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
        """Class of each row, counted from 0: its own where there are such, else one of `bins` of equal width."""
        if self.discrete:
            return np.unique(self.values, return_inverse=True)[1]
        if self.period is not None:
            turns = np.mod(self.values / self.period, 1.0)
            return np.asarray(np.minimum((turns * bins).astype(np.intp), bins - 1))
        return binned(self.values, bins)

    @cached_property
    def columns(self) -> Floats:
        """What a regression aims at, of shape (n, k): one-hot classes, cosine and sine, or the number itself."""
        if self.kind == "categorical":
            return np.asarray(self.values[:, None] == np.arange(len(self.labels)), dtype=np.float64)
        if self.period is not None:
            angle = 2 * np.pi * np.mod(self.values / self.period, 1.0)
            return np.column_stack([np.cos(angle), np.sin(angle)])
        return self.values[:, None]


def binned(values: Floats, bins: int) -> np.ndarray:
    """Bin of each value, counted from 0, among bins of equal width over the range of all."""
    low, high = values.min(), values.max()
    if high <= low:
        return np.zeros(len(values), dtype=np.intp)
    return np.asarray(np.minimum(((values - low) / (high - low) * bins).astype(np.intp), bins - 1))


def check_bins(bins: int, n: int) -> None:
    """Refuse a number of bins that is no cut of n rows."""
    if bins < 2:
        raise InputError(f"bins must be at least 2, not {bins}.")
    if bins > max(n, BINS):
        raise InputError(f"bins must be at most {max(n, BINS)} for {n} rows, not {bins}. The usual number is {BINS}.")


def missing_as_text(column: str, names: Sequence[str], counts: np.ndarray) -> Iterator[Alert]:
    """The caution about classes whose text is that of a missing value."""
    for name, count in zip(names, counts, strict=True):
        if name.lower() in MISSING:
            yield Alert(
                "missing_as_text",
                f"{column} has the text {name!r} in {count} rows, which counts as a class of its own. If it stands for "
                "a missing value, leave these rows out.",
            )


def as_factor(name: str, values: np.ndarray, kind: str | None, period: float | None) -> Factor:
    """A column as a factor of the given kind, or of the kind that its values tell."""
    if kind not in (None, *KINDS):
        raise InputError(f"The kind of the factor {name!r} must be one of {', '.join(KINDS)}, not {kind!r}.")
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
            f"The factor {name!r} is given as integer but has {numbers[row]} at row {row}. Give it as continuous."
        )
    if chosen == "circular" and period is None:
        raise InputError(f"The factor {name!r} is circular: say its period, as in periods={{{name!r}: 360}}.")
    return Factor(name, chosen, kind is None, numbers, np.empty(0), period)


def _check_size(name: str, numbers: Floats) -> None:
    """Refuse numbers whose squares overflow or vanish: no share of their variance could be given."""
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
    # A few words in a column of numbers are slips; numbers written as text may well be names of classes.
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


def _categorical(name: str, values: np.ndarray, inferred: bool) -> Factor:
    labels, codes = np.unique(values, return_inverse=True)
    if len(labels) > max(LEVELS, len(values) / 2):
        hint = (
            " Are its cells separated by something else than the suffix of the file says?"
            if set(name) & set(";|\t")
            else ""
        )
        raise InputError(
            f"The factor {name!r} has {len(labels)} classes in {len(values)} rows, so nearly every row is a class of "
            "its own. If it names the rows, say so with ids (--ids); else leave it out, or give numbers as continuous."
            f"{hint}"
        )
    check_memory(f"The factor {name!r}", 8 * len(labels) * len(values), "Merge rare classes.")
    return Factor(name, "categorical", inferred, codes.astype(np.float64), labels)


def doubts(factor: Factor) -> Iterator[Alert]:
    """Whether a factor looks like something else than it is taken for."""
    values, n = factor.values, len(factor.values)
    if factor.kind == "categorical":
        counts = np.bincount(values.astype(np.intp), minlength=len(factor.labels))
        present = np.flatnonzero(counts)
        texts = [str(factor.labels[at]) for at in present]
        yield from missing_as_text(f"The factor {factor.name!r}", texts, counts[present])
    if factor.kind == "continuous" and factor.inferred and n >= 20 and not np.any(values % 1) and len(set(values)) == n:
        yield Alert(
            "looks_like_ids",
            f"The factor {factor.name!r} has another whole number in every row. If it names the rows, say so with ids "
            "(--ids) or leave it out: otherwise it is a factor that must be recovered.",
        )
    if factor.period is not None:
        turns = float(np.ptp(values)) / factor.period
        if not 0.05 <= turns <= 3:
            yield Alert(
                "doubtful_period",
                f"The values of {factor.name!r} run over {turns:.2g} of the period {factor.period:g}. Is that its "
                "period, in the units of the values (degrees or radians)?",
            )
