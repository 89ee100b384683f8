"""A value with its interval, in the form that every result uses."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

from nearid.base.student import student

CONFIDENCE = 0.95
T = TypeVar("T")


class Number:
    """Base class of objects that behave like the number in their `value`. Arithmetic returns plain floats.

    NumPy functions use the value, too: ``np.mean([m, m])``. The truth value is True, even if the value is 0.
    """

    value: float

    def __float__(self) -> float:
        return float(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(float(self), dtype)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)

    def __neg__(self) -> float:
        return -float(self)

    def __abs__(self) -> float:
        return abs(float(self))

    def __eq__(self, other: object) -> bool:
        return _apply(float.__eq__, self, other)

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: object) -> bool:
        return _apply(float.__lt__, self, other)

    def __le__(self, other: object) -> bool:
        return _apply(float.__le__, self, other)

    def __gt__(self, other: object) -> bool:
        return _apply(float.__gt__, self, other)

    def __ge__(self, other: object) -> bool:
        return _apply(float.__ge__, self, other)

    def __add__(self, other: object) -> float:
        return _apply(float.__add__, self, other)

    def __sub__(self, other: object) -> float:
        return _apply(float.__sub__, self, other)

    def __rsub__(self, other: object) -> float:
        return _apply(float.__rsub__, self, other)

    def __mul__(self, other: object) -> float:
        return _apply(float.__mul__, self, other)

    def __truediv__(self, other: object) -> float:
        return _apply(float.__truediv__, self, other)

    def __rtruediv__(self, other: object) -> float:
        return _apply(float.__rtruediv__, self, other)

    def __pow__(self, other: object) -> float:
        return _apply(lambda a, b: cast(float, a**b), self, other)

    __radd__, __rmul__ = __add__, __mul__


def _apply(operation: Callable[[float, float], T], number: Number, other: object) -> T:
    if isinstance(other, Real | Number):
        return operation(float(number), float(other))
    # With NotImplemented, Python tries the other operand, and an array uses the value.
    return cast(T, NotImplemented)


@dataclass(frozen=True, eq=False)
class Estimate(Number):
    """A value with its 95% interval and its chance level. NaN means that a number is not known.

    Arithmetic and comparisons use the value. Two estimates are equal if all of their numbers are equal.

    Attributes
    ----------
    value : float
    low, high : float
        Ends of the interval.
    chance : float
        The value that unrelated data reach.
    of : str
        What the interval is over and how it was computed, such as "rows, bootstrap" or "seeds, Student's t".
    n : int
        Number of values, if the estimate is their mean.

    Examples
    --------
    >>> from nearid.base.estimate import Estimate
    >>> e = Estimate.over([0.8, 0.9, 1.0])
    >>> round(e, 3), round(e.low, 3), round(e.high, 3), e.of
    (0.9, 0.652, 1.148, "seeds, Student's t")
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    of: str = ""
    n: int = 0

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other) if isinstance(other, Estimate) else super().__eq__(other)

    __hash__ = Number.__hash__

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @classmethod
    def over(cls, values: Iterable[float], of: str = "seeds, Student's t") -> Estimate:
        """Return the mean of values with its interval by Student's t. The interval needs at least two values.

        Parameters
        ----------
        values : iterable of float
        of : str
            What the interval is an interval of.

        Returns
        -------
        Estimate
            Without an interval if there is a single value.
        """
        x = np.asarray(list(values), dtype=float)
        if len(x) == 0:
            return cls(math.nan, of=of)
        mean = float(np.mean(x))
        if len(x) == 1:
            return cls(mean, of=of, n=1)
        half = float(student(len(x) - 1, CONFIDENCE) * np.std(x, ddof=1) / math.sqrt(len(x)))
        return cls(mean, mean - half, mean + half, of=of, n=len(x))

    def within(self, least: float, most: float) -> Estimate:
        """Return the estimate with its interval cut to a range, because Student's t ignores the range of a score.

        Parameters
        ----------
        least, most : float
            Ends of the range.

        Returns
        -------
        Estimate
        """
        return replace(self, low=max(self.low, least), high=min(self.high, most))

    def to_dict(self) -> dict[str, Any]:
        """Return a dict of the value and of every other number that is known."""
        known: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        if not math.isnan(self.chance):
            known["chance"] = self.chance
        if self.of:
            known["of"] = self.of
        if self.n:
            known["n"] = self.n
        return known
