"""The von Mises-Fisher distribution on the sphere, density exp(kappa <z, centre>): exact draws, all rows at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import positive
from nearid.moments import Floats

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
                f"kappa is {self.kappa}, but at most {LARGEST_KAPPA:g} is expected: beyond, gaps underflow."
            )

    @property
    def label(self) -> str:
        """Name with parameters."""
        return f"vMF({self.kappa:g})"

    def draw(self, centres: Floats, rng: np.random.Generator) -> Floats:
        """One point about each row of `centres`, unit vectors of shape (size, n) with n at least 2."""
        size, n = centres.shape
        gap = _gaps(self.kappa, n, size, rng)[:, None]
        tangent = rng.standard_normal((size, n))
        tangent -= np.einsum("ij,ij->i", tangent, centres)[:, None] * centres
        tangent *= np.sqrt(gap * (2 - gap)) / np.sqrt(np.einsum("ij,ij->i", tangent, tangent))[:, None]
        tangent += (1 - gap) * centres
        return tangent


def _gaps(kappa: float, n: int, size: int, rng: np.random.Generator) -> Floats:
    """1 - <z, centre> of each of `size` points, by Wood's rejection (1994).

    Written in gaps instead of cosines, so that nothing cancels near the centre: kappa may be as large as one likes.
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
