"""Factors of variation: independent and uniform, drawn from their range or from a finite grid."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.moments import Floats

Codes = NDArray[np.int64]
# Values may exceed the ends of an interval by this share of its length: finite differences need it.
SLACK = 1e-2


@dataclass(frozen=True)
class Factor:
    """One factor, made by `interval`, `circle` or `category`.

    Parameters
    ----------
    kind : "interval", "circle" or "category"
        On a circle `high` is the same point as `low`.
    count : int
        Number of values on the grid.
    """

    name: str
    kind: Literal["interval", "circle", "category"]
    low: float
    high: float
    count: int

    def __post_init__(self) -> None:
        at_least(f"The number of values of {self.name}", self.count, 1)
        if self.kind == "category":
            if self.low != int(self.low) or self.high != self.low + self.count - 1:
                raise InputError(f"{self.name} has {self.count} kinds from {self.low} to {self.high}: use category().")
        elif not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise InputError(
                f"{self.name} has the range {self.low} to {self.high}, but finite ends are expected, the "
                f"lower one first."
            )

    @property
    def continuous(self) -> bool:
        """Whether it takes every value of its range."""
        return self.kind != "category"

    @property
    def values(self) -> Floats:
        """Values on the grid: equally spaced, with both ends of an interval, and each point of a circle once."""
        return np.linspace(self.low, self.high, self.count, endpoint=self.kind != "circle")

    @property
    def deviation(self) -> float:
        """Standard deviation of draws."""
        if self.kind == "category":
            return math.sqrt((self.count**2 - 1) / 12)
        return (self.high - self.low) / math.sqrt(12)

    def draw(self, size: int, rng: np.random.Generator) -> Floats:
        """Uniform values of shape (size,)."""
        if self.kind == "category":
            return self.low + rng.integers(0, self.count, size)
        return rng.uniform(self.low, self.high, size)

    def check(self, values: Floats) -> None:
        """Refuse values that this factor cannot have."""
        if not np.isfinite(values).all():
            raise InputError(f"Some values of {self.name} are not finite.")
        slack = SLACK * (self.high - self.low) if self.kind == "interval" else 0.0
        outside = (values < self.low - slack) | (values > self.high + slack)
        if self.kind != "circle" and outside.any():
            raise InputError(f"{self.name} is {values[outside][0]:g}, but it runs from {self.low:g} to {self.high:g}.")
        if self.kind == "category" and np.any(values != np.round(values)):
            raise InputError(f"Some values of {self.name} are not whole numbers from {self.low:g} to {self.high:g}.")


def interval(name: str, low: float, high: float, count: int) -> Factor:
    """A factor that is uniform between two ends; the grid has `count` values, including the ends."""
    return Factor(name, "interval", low, high, count)


def circle(name: str, turn: float, count: int) -> Factor:
    """A periodic factor; `turn` is the renderer's period, and the grid has `count` values."""
    return Factor(name, "circle", 0.0, turn, count)


def category(name: str, count: int, first: int = 0) -> Factor:
    """A factor with `count` unordered values, numbered from `first`."""
    return Factor(name, "category", first, first + count - 1, count)


def draw_factors(factors: Sequence[Factor], size: int, rng: np.random.Generator) -> Floats:
    """Independent uniform draws of shape (size, factors)."""
    at_least("size", size, 1)
    return np.column_stack([f.draw(size, rng) for f in factors])


def grid_size(factors: Sequence[Factor]) -> int:
    """Number of points of the grid of all combinations."""
    return math.prod(f.count for f in factors)


def grid_codes(factors: Sequence[Factor], index: ArrayLike) -> Codes:
    """Grid index of each factor, of shape (size, factors), at grid points; the last factor varies fastest."""
    index = np.asarray(index)
    if index.ndim != 1 or not np.issubdtype(index.dtype, np.integer):
        raise InputError(
            f"index has shape {index.shape} and type {index.dtype}, but a 1-D array of whole numbers is expected."
        )
    size = grid_size(factors)
    if index.size and not (index.min() >= 0 and index.max() < size):
        raise InputError(f"index runs from {index.min()} to {index.max()}, but the grid has points 0 to {size - 1}.")
    return np.column_stack(np.unravel_index(index, [f.count for f in factors])).astype(np.int64)


def grid_values(factors: Sequence[Factor], codes: Codes) -> Floats:
    """Values of the factors, of shape (size, factors), at these grid indices."""
    return np.column_stack([f.values[codes[:, i]] for i, f in enumerate(factors)])
