"""Base of image processes: factors drawn at random or from a grid, their images, and conditions of the theorems."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.base.threads import share_out
from nearid.lab.processes.images.factors import (
    Codes,
    Factor,
    draw_factors,
    grid_codes,
    grid_size,
    grid_values,
)
from nearid.lab.processes.images.metric import distortion, metric_tensors
from nearid.lab.processes.spaces import Assumption
from nearid.moments import Floats

# Edges are soft over this many pixels to either side, so that pixels are smooth functions of the factors.
SOFT = 1.0
# Shapes at least this thick, in units of the soft edge, are opaque in the middle, where their distance has a corner.
THICK = 1.05
# Points at which the bi-Lipschitz constant is measured for the report on assumptions.
POINTS = 64
STEP = 1e-4


class Setting(NamedTuple):
    """Range of one factor that a renderer can draw, and its value if the factor does not vary.

    A factor with a period looks the same after one period. A factor without a period cannot be a circle.
    """

    low: float
    high: float
    default: float
    period: float | None = None


@dataclass(frozen=True)
class FactorImages(ABC):
    """Images of independent uniform factors.

    Parameters
    ----------
    side : int
        Pixels of a side.
    factors : tuple of Factor
        Factors that vary, in the order of the columns. Other factors of the renderer keep their default value.
    """

    side: int
    factors: tuple[Factor, ...]

    settings: ClassVar[Mapping[str, Setting]]
    shapes: ClassVar[tuple[str, ...]]

    def __post_init__(self) -> None:
        at_least("side", self.side, 8)
        if not self.factors or len(set(self.names)) < len(self.factors):
            raise InputError(
                f"The factors are {list(self.names)}, but at least one factor is expected, and names must differ."
            )
        for factor in self.factors:
            self._check_setting(factor)
        if self._thinnest < THICK * SOFT:
            raise InputError(
                f"The smallest shape is {self._thinnest:.2g} pixels from its middle to its edge, less than the soft "
                f"edge. Use a larger side than {self.side}, or a larger smallest scale."
            )

    def _check_setting(self, factor: Factor) -> None:
        if factor.name not in self.settings:
            known = ", ".join(self.settings)
            raise InputError(f"{factor.name} is not a factor of these images. Their factors are {known}.")
        low, high, _, period = self.settings[factor.name]
        if factor.low < low or factor.high > high:
            raise InputError(
                f"{factor.name} runs from {factor.low:g} to {factor.high:g}, but only {low:g} to {high:g} can be drawn."
            )
        if (factor.name == "shape") != (factor.kind == "category"):
            raise InputError(f"{factor.name} is given as a {factor.kind}, but only shape is a category.")
        if factor.kind == "circle" and period is None:
            raise InputError(f"{factor.name} is given as a circle, but its two ends look different. Use interval().")
        if factor.kind == "circle" and not math.isclose(factor.high - factor.low, period or 0.0):
            raise InputError(
                f"{factor.name} is given as a circle of {factor.high - factor.low:g}, but its period is {period:g}. "
                f"Use this period, or interval() for a part of it."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(f.name for f in self.factors)

    @property
    @abstractmethod
    def channels(self) -> int:
        """1 for images in grey, 3 for red, green and blue."""

    @property
    def grid_size(self) -> int:
        """Number of images of the finite data set of all combinations of grid values."""
        return grid_size(self.factors)

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Draw factors of shape (size, k), uniform in their ranges."""
        return draw_factors(self.factors, size, rng)

    def sample_grid(self, size: int, rng: np.random.Generator) -> tuple[Floats, Codes]:
        """Draw (factors, their grid indices), each of shape (size, k), uniformly from the grid."""
        at_least("size", size, 1)
        return self.grid(rng.integers(0, self.grid_size, size))

    def grid(self, index: ArrayLike) -> tuple[Floats, Codes]:
        """Return (factors, their grid indices) of grid points 0 to grid_size - 1; the last factor varies fastest."""
        codes = grid_codes(self.factors, index)
        return grid_values(self.factors, codes), codes

    def observe(self, z: Floats, dtype: DTypeLike = np.float32, *, threads: int = 1) -> Floats:
        """Images of factors.

        Parameters
        ----------
        z : ndarray of shape (size, k)
        dtype : float32 or float64

        Returns
        -------
        ndarray of shape (size, channels, side, side), from 0 (black) to 1
        """
        at_least("threads", threads, 1)
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != len(self.factors):
            raise InputError(f"The factors have shape {z.shape}, but (size, {len(self.factors)}) is expected.")
        for k, factor in enumerate(self.factors):
            factor.check(z[:, k])
        images = empty_images(len(z), self.channels, self.side, dtype)
        share_out(threads, len(z), lambda part: self._draw(z[part], images[part]))
        return images

    def assumptions(self) -> tuple[Assumption, ...]:
        """Conditions to recover the factors by an autoencoder and ICA (Nelson et al. 2026, Theorem 3)."""
        k = len(self.factors)
        whole = [f.name for f in self.factors if f.kind == "category" and f.count > 1]
        round_ = [f.name for f in self.factors if f.kind == "circle"]
        gaps = [f"{', '.join(whole)}: separate values"] * bool(whole) + [f"{', '.join(round_)}: a circle"] * bool(
            round_
        )
        return (
            Assumption("independent factors", "factors are independent", True, f"{k} factors, each drawn on its own"),
            Assumption("non-Gaussian factors", "at most one factor is normal", True, "all are uniform"),
            Assumption(
                "convex latents",
                "factors fill a convex body",
                not gaps,
                "; ".join(gaps) or f"a box in R^{k}",
            ),
            self._injective(),
            self._bilipschitz(),
        )

    def _bilipschitz(self) -> Assumption:
        needed = "rendering is locally bi-Lipschitz in factors of unit variance"
        moving = [f for f in self.factors if f.continuous]
        if not moving:
            return Assumption("bi-Lipschitz rendering", needed, False, "no factor is continuous")
        z = self.sample(POINTS, np.random.default_rng(0))
        steps = [STEP * f.deviation if f.continuous else 0.0 for f in self.factors]
        metrics = metric_tensors(lambda at: self.observe(at, np.float64), z, steps)
        scales = np.array([f.deviation for f in moving])
        constant = distortion(metrics * np.outer(scales, scales)).bilipschitz
        note = f"at least {constant:.3g} after the best scaling, measured at {POINTS} draws of the continuous factors"
        return Assumption("bi-Lipschitz rendering", needed, bool(np.isfinite(constant)), note)

    def _column(self, z: Floats, name: str) -> Floats:
        """Values of one factor, or its default."""
        if name in self.names:
            return np.ascontiguousarray(z[:, self.names.index(name)])
        return np.full(len(z), self.settings[name].default)

    def _range(self, name: str) -> tuple[float, float]:
        """Least and largest value of one factor."""
        ranges = [(f.low, f.high) for f in self.factors if f.name == name]
        return ranges[0] if ranges else (self.settings[name].default, self.settings[name].default)

    def _shapes_drawn(self) -> tuple[int, ...]:
        low, high = self._range("shape")
        return tuple(range(int(low), int(high) + 1))

    @property
    @abstractmethod
    def _thinnest(self) -> float:
        """Least distance from the middle of a shape to its edge, in pixels."""

    @abstractmethod
    def _injective(self) -> Assumption:
        """Whether images determine the factors."""

    @abstractmethod
    def _draw(self, z: Floats, out: Floats) -> None:
        """Draw images of factors into an array."""


def empty_images(size: int, channels: int, side: int, dtype: DTypeLike) -> Floats:
    """An uninitialised array for images of float32 or float64."""
    if np.dtype(dtype) not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InputError(f"dtype is {np.dtype(dtype)}, but float32 or float64 is expected.")
    return np.empty((size, channels, side, side), dtype)


def hue_colours(hue: Floats) -> Floats:
    """Colours of shape (size, 3) of hues in turns, by cosines (the usual colour wheel is not smooth)."""
    return np.asarray(0.5 + 0.4 * np.cos(2 * np.pi * (hue[:, None] - np.arange(3) / 3)))
