"""Simulated embeddings of a microscopy screen: perturbations shift some factors, batches others, then all are mixed.

Factors are independent and not Gaussian. A perturbation shifts a few biological factors. A batch shifts all technical
factors. The other factors depend on neither. The mixing rotates the factors, bends each coordinate slightly, stretches
it and rotates again. So no column of the embedding is purely biological or technical.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nearid.base.errors import InputError
from nearid.base.options import at_least, positive
from nearid.engines.local import blocks
from nearid.moments import Floats

Labels = NDArray[np.int64]


class Screen(NamedTuple):
    """Rows of a screen: their true factors of shape (n, width), perturbations (0 is the control) and batches."""

    factors: Floats
    labels: Labels
    batches: Labels


@dataclass(frozen=True, eq=False)
class MicroscopyProcess:
    """A screen with known biological and technical factors.

    Parameters
    ----------
    shifts : ndarray of shape (perturbations, biological)
        Shift of each biological factor by each perturbation, in standard deviations.
    offsets : ndarray of shape (batches, technical)
        Mean of each technical factor in each batch; variance 1 over batches.
    present : ndarray of bool, shape (perturbations, batches)
        Which perturbations each batch contains, besides its controls.
    control : float
        Share of controls in each batch.
    batch_effect : float
        Share of the variance of a technical factor between batches.
    inner, outer : ndarray of shape (width, width)
        Rotations before and after the bend.
    scales : ndarray of shape (width,)
        Stretch of each bent coordinate.
    bend : float
        Slopes of the bend lie in (1 - bend, 1 + bend).
    """

    shifts: Floats
    offsets: Floats
    present: np.ndarray
    control: float
    batch_effect: float
    inner: Floats
    outer: Floats
    scales: Floats
    bend: float

    @property
    def width(self) -> int:
        """Number of factors, and of columns of the embedding."""
        return len(self.scales)

    @property
    def kinds(self) -> np.ndarray:
        """Kind of each factor: "biological", "technical" or "other"."""
        biological, technical = self.shifts.shape[1], self.offsets.shape[1]
        counts = [biological, technical, self.width - biological - technical]
        return np.repeat(["biological", "technical", "other"], counts)

    def sample(self, size: int, rng: np.random.Generator, dtype: type = np.float32) -> Screen:
        """Draw rows: each has a uniformly drawn batch, and is a control or one of the perturbations of this batch."""
        at_least("size", size, 2)
        batch = rng.integers(0, self.present.shape[1], size)
        # Index of a row's perturbation among those of its batch.
        listed = np.argsort(~self.present.T, axis=1, kind="stable")
        place = np.floor(rng.random(size) * self.present.sum(axis=0)[batch]).astype(np.int64)
        label = np.where(rng.random(size) < self.control, 0, 1 + listed[batch, place])
        moved = np.vstack([np.zeros(self.shifts.shape[1]), self.shifts])
        biological, technical = self.shifts.shape[1], self.offsets.shape[1]
        within = np.sqrt(1 - self.batch_effect)
        factors: Floats = np.empty((size, self.width), dtype)
        for a, b in blocks(size, self.width):
            drawn = rng.laplace(scale=np.sqrt(0.5), size=(b - a, self.width))
            drawn[:, :biological] += moved[label[a:b]]
            drawn[:, biological : biological + technical] *= within
            drawn[:, biological : biological + technical] += np.sqrt(self.batch_effect) * self.offsets[batch[a:b]]
            factors[a:b] = drawn
        return Screen(factors, label, batch)

    def observe(self, factors: Floats, out: Floats | None = None) -> Floats:
        """Embedding of factors of shape (n, width), block by block; `out` may be the factors themselves."""
        embedding = np.empty_like(factors) if out is None else out
        inner, outer = self.inner.astype(factors.dtype), (self.scales[:, None] * self.outer).astype(factors.dtype)
        for a, b in blocks(*factors.shape):
            h = factors[a:b] @ inner
            # Slopes 1 + bend h / sqrt(1 + h^2).
            h += self.bend * (np.sqrt(1 + h * h) - 1)
            embedding[a:b] = h @ outer
        return embedding


def draw_microscopy(
    width: int,
    rng: np.random.Generator,
    *,
    biological: int,
    technical: int,
    perturbations: int,
    batches: int,
    targets: int = 3,
    effect: float = 1.5,
    batch_effect: float = 0.5,
    control: float = 0.3,
    presence: float = 0.5,
    bend: float = 0.2,
    condition: float = 10.0,
) -> MicroscopyProcess:
    """Draw a screen.

    Parameters
    ----------
    width : int
        Number of factors and columns. Factors that are neither biological nor technical depend on neither.
    biological, technical : int
        Numbers of such factors.
    targets : int
        Number of biological factors that a perturbation shifts.
    effect : float
        Size of these shifts, in standard deviations of the factor among controls.
    batch_effect : float
        Share of a technical factor's variance between batches, in [0, 1).
    control : float
        Share of controls, in (0, 1).
    presence : float
        Share of the batches that contain a given perturbation; at least two batches do.
    bend : float
        Nonlinearity of the mixing, in [0, 1); 0 is linear.
    condition : float
        Largest over smallest stretch of the mixing.
    """
    at_least("perturbations", perturbations, 1)
    at_least("batches", batches, 2)
    at_least("targets", targets, 1)
    at_least("biological", biological, targets)
    at_least("technical", technical, 0)
    at_least("width", width, max(biological + technical, 2))
    positive("effect", effect, zero=True)
    for name, value, low in (("batch_effect", batch_effect, 0), ("bend", bend, 0), ("presence", presence, 0)):
        if not low <= value <= 1 or (value == 1 and name != "presence"):
            raise InputError(f"{name} is {value}, but a number from {low} to below 1 is expected.")
    if not 0 < control < 1:
        raise InputError(f"control is {control}, but a share between 0 and 1 is expected.")
    if condition < 1:
        raise InputError(f"condition is {condition}, but a ratio of at least 1 is expected.")
    shifts = np.zeros((perturbations, biological))
    for row in shifts:
        moved = rng.choice(biological, targets, replace=False)
        row[moved] = effect * rng.choice([-1, 1], targets)
    offsets = rng.laplace(size=(batches, technical))
    offsets -= offsets.mean(axis=0)
    offsets /= offsets.std(axis=0)
    held = max(2, round(presence * batches))
    present = np.zeros((perturbations, batches), dtype=bool)
    for row in present:
        row[rng.choice(batches, held, replace=False)] = True
    # A batch with only controls would have no perturbation to draw, so it gets one.
    empty = np.flatnonzero(~present.any(axis=0))
    present[rng.integers(0, perturbations, len(empty)), empty] = True
    inner, outer = (np.linalg.qr(rng.standard_normal((width, width)))[0] for _ in range(2))
    scales = np.geomspace(1.0, 1.0 / condition, width)
    return MicroscopyProcess(shifts, offsets, present, control, batch_effect, inner, outer, scales, bend)
