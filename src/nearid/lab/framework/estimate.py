"""A mean over seeds and its interval."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Estimate:
    """Mean of n values and its 95% interval by Student's t; NaN where there are too few values."""

    n: int
    mean: float
    low: float
    high: float

    @classmethod
    def over(cls, values: Iterable[float]) -> Self:
        """The estimate from one value for each seed."""
        x = np.asarray(list(values), dtype=float)
        if len(x) == 0:
            return cls(0, math.nan, math.nan, math.nan)
        mean = float(np.mean(x))
        if len(x) == 1:
            return cls(1, mean, math.nan, math.nan)
        from scipy.special import stdtrit

        half = float(stdtrit(len(x) - 1, (1 + CONFIDENCE) / 2) * np.std(x, ddof=1) / math.sqrt(len(x)))
        return cls(len(x), mean, mean - half, mean + half)

    def within(self, least: float, most: float) -> Self:
        """The interval cut to a range, to be shown: Student's knows nothing of the ends of a score."""
        return replace(self, low=max(self.low, least), high=min(self.high, most))
