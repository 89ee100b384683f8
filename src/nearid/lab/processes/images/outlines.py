"""Star-shaped outlines given by a few harmonics: smooth, and with area and centre of mass in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import at_least, positive
from nearid.moments import Floats

# Largest number of attempts for an outline that is too thin.
TRIES = 100
# Angles at which outlines are sampled: sums over them are exact integrals of the cube of the radius.
ANGLES = 512
HARMONICS = 12


@dataclass(frozen=True, eq=False)
class Outline:
    """The curve at distance r(t) = sum_k cosines_k cos(k t) + sines_k sin(k t) from a pole, in the direction t.

    Parameters
    ----------
    cosines, sines : ndarray of shape (harmonics + 1,)
    """

    cosines: Floats
    sines: Floats

    def __post_init__(self) -> None:
        if self.cosines.ndim != 1 or self.cosines.shape != self.sines.shape or len(self.cosines) > ANGLES // 4:
            shapes = f"{self.cosines.shape} and {self.sines.shape}"
            raise InputError(
                f"The harmonics have shapes {shapes}, but two rows of the same length of at most {ANGLES // 4} are "
                f"expected."
            )
        if not self._radius.min() > 0:
            raise InputError("The radius of the outline must be above 0 in every direction, but it is not.")

    @cached_property
    def _radius(self) -> Floats:
        return self._series(self.cosines, self.sines)

    def _series(self, cosines: Floats, sines: Floats) -> Floats:
        turns = np.outer(_angles(), np.arange(len(cosines)))
        return np.asarray(np.cos(turns) @ cosines + np.sin(turns) @ sines)

    @cached_property
    def area(self) -> float:
        """Area inside."""
        return float(np.pi * np.mean(self._radius**2))

    @cached_property
    def centre(self) -> Floats:
        """Centre of mass of the inside, seen from the pole."""
        cube, t = self._radius**3, _angles()
        return 2 * np.pi / (3 * self.area) * np.array([np.mean(cube * np.cos(t)), np.mean(cube * np.sin(t))])

    @cached_property
    def reach(self) -> float:
        """Largest distance of the outline from its centre of mass."""
        t = _angles()
        points = self._radius[:, None] * np.column_stack([np.cos(t), np.sin(t)])
        return float(np.linalg.norm(points - self.centre, axis=1).max())

    @cached_property
    def _lengths(self) -> Floats:
        """Length of the outline per length across the direction to the pole, at all angles."""
        k = np.arange(len(self.cosines))
        return np.sqrt(1 + (self._series(k * self.sines, -k * self.cosines) / self._radius) ** 2)

    @cached_property
    def thickness(self) -> float:
        """Least distance of the pole from the tangents of the outline."""
        return float((self._radius / self._lengths).min())

    @cached_property
    def bounds(self) -> tuple[float, float, float]:
        """(least radius, largest radius, largest length of the outline per length across the direction to the pole)."""
        return float(self._radius.min()), float(self._radius.max()), float(self._lengths.max())

    def scaled(self, factor: float) -> Outline:
        """Return the outline scaled by this factor."""
        return Outline(factor * self.cosines, factor * self.sines)


def heart() -> Outline:
    """A heart inside the unit circle around its pole, with its tip in the second direction (down in an image)."""
    s = np.linspace(0, 2 * np.pi, 20 * ANGLES, endpoint=False)
    across = 16 * np.sin(s) ** 3
    down = -(13 * np.cos(s) - 5 * np.cos(2 * s) - 2 * np.cos(3 * s) - np.cos(4 * s))
    return _inside_unit_circle(np.interp(_angles(), np.arctan2(down, across), np.hypot(across, down), period=2 * np.pi))


def draw_walkers(
    count: int, rng: np.random.Generator, *, variety: float = 0.15, thickness: float = 0.0
) -> tuple[Outline, ...]:
    """Draw upright outlines of area 1, similar to distant people; each is a random deformation of an ellipse.

    Parameters
    ----------
    variety : float
        Approximate standard deviation of the logarithm of the radius.
    thickness : float
        Thinner outlines are drawn again, up to a limit.
    """
    at_least("The number of outlines", count, 1)
    positive("variety", variety, zero=True)
    t, k = _angles(), np.arange(2, 6)
    upright = 1 / np.sqrt((np.cos(t) / 0.5) ** 2 + np.sin(t) ** 2)

    def walker() -> Outline:
        waves = np.cos(np.outer(t, k) + rng.uniform(0, 2 * np.pi, len(k))) @ (rng.standard_normal(len(k)) / np.sqrt(k))
        outline = _inside_unit_circle(upright * np.exp(variety * waves))
        return outline.scaled(outline.area**-0.5)

    walkers = []
    for _ in range(count):
        drawn = (walker() for _ in range(TRIES))
        walkers.append(next((w for w in drawn if w.thickness >= thickness), None) or walker())
    return tuple(walkers)


def _inside_unit_circle(radius: Floats) -> Outline:
    """The first harmonics of a radius sampled at all angles; damped, so that corners are round without oscillations."""
    k = np.arange(HARMONICS + 1)
    harmonics = np.fft.rfft(radius)[: HARMONICS + 1] * np.exp(-((1.2 * k / HARMONICS) ** 2)) / ANGLES
    harmonics[1:] *= 2
    outline = Outline(harmonics.real, -harmonics.imag)
    return outline.scaled(1 / outline.bounds[1])


def _angles() -> Floats:
    return 2 * np.pi * np.arange(ANGLES) / ANGLES
