"""Spread around centres: independent noise, free or truncated by walls, and von Mises-Fisher on the sphere.

Each family of noise has the density exp(-(|t| / scale)^exponent) up to constants. So it matches a loss with this
exponent. The von Mises-Fisher density exp(kappa <z, centre>) matches the dot product.
"""

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
    """Noise around zero, independent and identically distributed in each coordinate.

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
        """Exponent p of the distance L_p^p in the logarithm of the density."""

    @property
    @abstractmethod
    def label(self) -> str:
        """Name with parameters."""

    def draw(self, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Free noise."""
        return self.scale * self._standard(shape, rng)

    def draw_between(self, below: Floats, above: Floats, rng: np.random.Generator) -> Floats:
        """Draw noise conditioned on [-below, above], elementwise; both distances are at least 0.

        Free draws that lie inside are kept. The others are drawn by the inverse distribution function, whose cost does
        not depend on the walls. Both methods have the same distribution, so their mixture has it too.
        """
        noise = self.draw(below.shape, rng)
        out = (noise < -below) | (noise > above)
        low, high = below[out], above[out]
        # Use the distribution of |t| on each side: no digits cancel, even at a wall or in a very narrow box.
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
    beta : float
        Shape, at least 0.1. As beta grows, the noise tends to uniform noise on [-scale, scale].
    """

    beta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        # For much smaller values the tails overflow float64.
        if positive("beta", self.beta) < 0.1:
            raise InputError(f"beta is {self.beta}, but at least 0.1 is expected (the theorems need at least 1).")

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


LARGEST_KAPPA = 1e300


@dataclass(frozen=True)
class VonMisesFisher:
    """Spread about centres on the unit sphere.

    Parameters
    ----------
    kappa : float
        Concentration; 0 is the uniform distribution.
    """

    kappa: float

    def __post_init__(self) -> None:
        if positive("kappa", self.kappa, zero=True) > LARGEST_KAPPA:
            raise InputError(
                f"kappa is {self.kappa}, but at most {LARGEST_KAPPA:g} is expected: for larger values the draws "
                f"underflow."
            )

    @property
    def label(self) -> str:
        """Name with parameters."""
        return f"vMF({self.kappa:g})"

    def draw(self, centres: Floats, rng: np.random.Generator) -> Floats:
        """Draw one point around each row of `centres`, unit vectors of shape (size, n) with n at least 2."""
        size, n = centres.shape
        gap = _gaps(self.kappa, n, size, rng)[:, None]
        tangent = rng.standard_normal((size, n))
        tangent -= np.einsum("ij,ij->i", tangent, centres)[:, None] * centres
        tangent *= np.sqrt(gap * (2 - gap)) / np.sqrt(np.einsum("ij,ij->i", tangent, tangent))[:, None]
        tangent += (1 - gap) * centres
        return tangent


def _gaps(kappa: float, n: int, size: int, rng: np.random.Generator) -> Floats:
    """1 - <z, centre> of each of `size` points, by Wood's rejection (1994).

    It uses gaps instead of cosines, so no digits cancel near the centre and kappa can be large.
    """
    b = (n - 1) / (2 * kappa + np.hypot(2 * kappa, n - 1))
    mode_gap = 2 * b / (1 + b)
    gaps = np.empty(size)
    left = np.arange(size)
    while len(left):
        beta = rng.beta((n - 1) / 2, (n - 1) / 2, len(left))
        gap = 2 * b * beta / ((1 - beta) + b * beta)
        # log of (1 - x0 w) / (1 - x0^2), with the envelope's mode x0 = 1 - mode_gap and w = 1 - gap
        ratio = np.log1p((1 - mode_gap) * (gap - mode_gap) / (mode_gap * (2 - mode_gap)))
        accepted = kappa * (mode_gap - gap) + (n - 1) * ratio >= -rng.standard_exponential(len(left))
        gaps[left[accepted]] = gap[accepted]
        left = left[~accepted]
    return gaps
