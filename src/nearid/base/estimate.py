"""A value with its interval: the one type that every result uses for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """A value, its 95% interval and its chance level; NaN stands for what is not known.

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
    >>> round(float(e), 3), round(e.low, 3), round(e.high, 3), e.of
    (0.9, 0.652, 1.148, "seeds, Student's t")
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    chance: float = math.nan
    of: str = ""
    n: int = 0

    def __float__(self) -> float:
        return self.value

    @property
    def has_interval(self) -> bool:
        """Whether both ends of the interval are known."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @classmethod
    def over(cls, values: Iterable[float], of: str = "seeds, Student's t") -> Estimate:
        """The mean of some values with its interval by Student's t, which takes two values or more."""
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
        """The same with an interval cut to a range, to be shown: Student's knows nothing of the ends of a score."""
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
