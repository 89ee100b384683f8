"""Latent spaces (the unit sphere, a box, all of R^n), and the record of a condition of a theorem."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.lab.processes.noise import Noise, VonMisesFisher
from nearid.moments import Floats


@dataclass(frozen=True)
class Assumption:
    """One condition of a theorem, and whether a process meets it.

    Attributes
    ----------
    name : str
        Stable name, for programs.
    needed : str
        The condition of the theorem.
    note : str
        How the process meets the condition, or what it has instead.
    """

    name: str
    needed: str
    holds: bool
    note: str


def violated(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return the assumptions that do not hold."""
    return tuple(a for a in assumptions if not a.holds)


# Unit vectors that were converted to float32 deviate by this much.
OFF_SPHERE = 1e-5


@dataclass(frozen=True)
class Sphere:
    """The unit sphere in R^n, n at least 2."""

    n: int

    def __post_init__(self) -> None:
        at_least("n of the sphere", self.n, 2)

    @property
    def label(self) -> str:
        """Name with parameters."""
        return f"sphere in R^{self.n}"

    @property
    def centre(self) -> Floats:
        """Centre of marginals that are not uniform: the first unit vector."""
        return np.eye(1, self.n).ravel()

    def uniform(self, size: int, rng: np.random.Generator) -> Floats:
        """Points of shape (size, n)."""
        return _projected(rng.standard_normal((size, self.n)))

    def around(self, centres: Floats, spread: Noise | VonMisesFisher, rng: np.random.Generator) -> Floats:
        """Draw one point around each centre. Noise is added in R^n and then projected to the sphere."""
        _check_width(centres, self.n)
        if np.any(np.abs(np.linalg.norm(centres, axis=1) - 1) > OFF_SPHERE):
            raise InputError("Some centres are not on the unit sphere: divide each row by its norm.")
        if isinstance(spread, VonMisesFisher):
            return spread.draw(centres, rng)
        return _projected(centres + spread.draw(centres.shape, rng))


@dataclass(frozen=True)
class Box:
    """The box [low, high]^n."""

    n: int
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        at_least("n of the box", self.n, 1)
        if not np.isfinite([self.low, self.high]).all() or self.low >= self.high:
            raise InputError(f"The box [{self.low}, {self.high}] is empty or unbounded: give finite low < high.")

    @property
    def label(self) -> str:
        """Name with parameters."""
        return f"box [{self.low:g}, {self.high:g}]^{self.n}"

    @property
    def centre(self) -> Floats:
        """The middle."""
        return np.full(self.n, (self.low + self.high) / 2)

    def uniform(self, size: int, rng: np.random.Generator) -> Floats:
        """Points of shape (size, n)."""
        return rng.uniform(self.low, self.high, (size, self.n))

    def around(self, centres: Floats, spread: Noise | VonMisesFisher, rng: np.random.Generator) -> Floats:
        """Draw one point around each centre: noise, conditioned on staying inside the box."""
        noise = as_noise(spread, self)
        _check_width(centres, self.n)
        below, above = centres - self.low, self.high - centres
        if centres.size and min(below.min(), above.min()) < 0:
            raise InputError(
                f"Some centres are outside the {self.label}, but noise can only be truncated around centres inside it."
            )
        return np.clip(centres + noise.draw_between(below, above, rng), self.low, self.high)


@dataclass(frozen=True)
class Unbounded:
    """All of R^n; it has no uniform distribution."""

    n: int

    def __post_init__(self) -> None:
        at_least("n of the space", self.n, 1)

    @property
    def label(self) -> str:
        """Name with parameters."""
        return f"R^{self.n}"

    @property
    def centre(self) -> Floats:
        """The origin."""
        return np.zeros(self.n)

    def around(self, centres: Floats, spread: Noise | VonMisesFisher, rng: np.random.Generator) -> Floats:
        """Draw one point around each centre."""
        noise = as_noise(spread, self)
        _check_width(centres, self.n)
        return centres + noise.draw(centres.shape, rng)


Space = Sphere | Box | Unbounded


def as_noise(spread: Noise | VonMisesFisher, space: Box | Unbounded) -> Noise:
    """Return the spread if it is noise; other spreads exist only on the sphere."""
    if isinstance(spread, VonMisesFisher):
        raise InputError(f"{spread.label} is defined on the sphere, not in the {space.label}. Use noise, or Sphere(n).")
    return spread


def _check_width(centres: Floats, n: int) -> None:
    if centres.ndim != 2 or centres.shape[1] != n:
        raise InputError(f"The centres have shape {centres.shape}, but (size, {n}) is expected.")


def _projected(points: Floats) -> Floats:
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return points
