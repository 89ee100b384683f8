"""A value with its interval: the one type that every result uses for it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, TypeVar, cast

import numpy as np

CONFIDENCE = 0.95
T = TypeVar("T")


class Number:
    """What counts, compares and is written as its `value`; arithmetic gives plain floats.

    NumPy takes it for its value too: ``np.mean([m, m])``. It is true as every other object is, also where it is 0.
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
    # Python then asks the other side, and an array takes the number as its value.
    return cast(T, NotImplemented)


@dataclass(frozen=True, eq=False)
class Estimate(Number):
    """A value, its 95% interval and its chance level; NaN stands for what is not known.

    It counts and compares as its value does; two estimates are equal where all of their numbers are.

    Attributes
    ----------
    value : float
    low, high : float
        Ends of the interval.
    chance : float
        The value that unrelated data reach.
    of : str
        What the interval is over, as "rows, bootstrap" or "seeds, Student's t".
    n : int
        How many values the estimate is made of, where it is a mean of some.

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
        """The mean of some values with its interval by Student's t, which takes two values or more.

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
        from scipy.special import stdtrit

        half = float(stdtrit(len(x) - 1, (1 + CONFIDENCE) / 2) * np.std(x, ddof=1) / math.sqrt(len(x)))
        return cls(mean, mean - half, mean + half, of=of, n=len(x))

    def within(self, least: float, most: float) -> Estimate:
        """The same with an interval cut to a range, to be shown: Student's knows nothing of the ends of a score.

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
        """As plain data: the value, and what is known besides."""
        known: dict[str, Any] = {"value": self.value, "low": self.low, "high": self.high}
        if not math.isnan(self.chance):
            known["chance"] = self.chance
        if self.of:
            known["of"] = self.of
        if self.n:
            known["n"] = self.n
        return known
