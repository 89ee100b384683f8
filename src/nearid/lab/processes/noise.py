"""Symmetric noise of independent coordinates, free or cut off by walls: normal, Laplace, generalised normal.

Each family has the density exp(-(|t| / scale)^exponent) up to constants, and so matches a loss of that exponent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import positive
from nearid.moments import Floats

# Where |t|^beta is below this, the density exp(-|t|^beta) is 1 in float64; its power may underflow there.
FLAT = 1e-17


@dataclass(frozen=True)
class Noise(ABC):
    """Noise about zero, the same and independent in each coordinate.

    Parameters
    ----------
    scale : float
        Unit of length of the family.
    """

    scale: float

    def __post_init__(self) -> None:
        positive("The scale of the noise", self.scale)

    @property
    @abstractmethod
    def exponent(self) -> float:
        """The p of the distance L_p^p that the logarithm of the density is made of."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Name with parameters."""

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Free noise."""
        return self.scale * self._standard(shape, rng)

    def draw_between(self, below: Floats, above: Floats, rng: np.random.Generator) -> Floats:
        """Noise given that it lies in [-below, above], elementwise; both distances are at least 0.

        Free draws that lie inside are kept. The others are drawn by the inverse distribution function, which costs
        the same wherever the walls are; both ways have the same law, and so has their mixture.
        """
        noise = self.draw(below.shape, rng)
        out = (noise < -below) | (noise > above)
        low, high = below[out], above[out]
        # The law of |t| on either side: nothing cancels, neither at a wall nor in a box far narrower than the noise.
        left, right = self._mass(low / self.scale), self._mass(high / self.scale)
        place = rng.random(left.shape) * (left + right) - left
        noise[out] = np.clip(np.sign(place) * self.scale * self._quantile(np.abs(place)), -low, high)
        return noise

    @abstractmethod
    def _standard(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Free noise of scale 1."""

    @abstractmethod
    def _mass(self, distance: Floats) -> Floats:
        """P(|t| <= distance) at scale 1."""

    @abstractmethod
    def _quantile(self, mass: Floats) -> Floats:
        """Inverse of `_mass`."""


@dataclass(frozen=True)
class Normal(Noise):
    """Normal noise; the scale is the standard deviation."""

    @property
    def exponent(self) -> float:
        return 2.0

    @property
    def label(self) -> str:
        return f"normal({self.scale:g})"

    def _standard(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.standard_normal(shape)

    def _mass(self, distance: Floats) -> Floats:
        from scipy.special import erf

        return np.asarray(erf(distance / np.sqrt(2)))

    def _quantile(self, mass: Floats) -> Floats:
        from scipy.special import erfinv

        return np.asarray(np.sqrt(2) * erfinv(mass))


@dataclass(frozen=True)
class Laplace(Noise):
    """Laplace noise; the scale is the mean of |t|."""

    @property
    def exponent(self) -> float:
        return 1.0

    @property
    def label(self) -> str:
        return f"Laplace({self.scale:g})"

    def _standard(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        return rng.laplace(size=shape)

    def _mass(self, distance: Floats) -> Floats:
        return -np.expm1(-distance)

    def _quantile(self, mass: Floats) -> Floats:
        return -np.log1p(-mass)


@dataclass(frozen=True)
class GeneralisedNormal(Noise):
    """Noise of density exp(-(|t| / scale)^beta): Laplace at beta 1, normal of deviation scale / sqrt(2) at beta 2.

    Parameters
    ----------
    scale : float
    beta : float
        Shape, at least 0.1; the noise tends to the uniform one on [-scale, scale] as it grows.
    """

    beta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        # Far below, the tails leave float64.
        if positive("beta", self.beta) < 0.1:
            raise InputError(f"beta is {self.beta}, but at least 0.1 is expected: theorems speak of 1 and above.")

    @property
    def exponent(self) -> float:
        return self.beta

    @property
    def label(self) -> str:
        return f"generalised normal({self.scale:g}, beta {self.beta:g})"

    def _standard(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        # |t|^beta is Gamma(1/beta) = Gamma(1 + 1/beta) U^beta: no underflow, however large beta is.
        reach = rng.standard_gamma(1 + 1 / self.beta, shape) ** (1 / self.beta)
        return reach * rng.uniform(-1, 1, shape)

    def _mass(self, distance: Floats) -> Floats:
        from scipy.special import gamma, gammainc

        with np.errstate(over="ignore"):
            power = distance**self.beta
        near = distance / gamma(1 + 1 / self.beta)
        return np.asarray(np.where(power < FLAT, near, gammainc(1 / self.beta, power)))

    def _quantile(self, mass: Floats) -> Floats:
        from scipy.special import gamma, gammaincinv

        near = mass * gamma(1 + 1 / self.beta)
        far = gammaincinv(1 / self.beta, mass) ** (1 / self.beta)
        return np.asarray(np.where(near**self.beta < FLAT, near, far))
