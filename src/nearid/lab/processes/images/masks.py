"""Masks that move in time: outlines that move and grow step by step, and pairs of frames for contrastive losses.

Modelled on KITTI Masks (Klindt et al. 2021): each sequence shows one walker. Its factors are the position of its centre
of mass and its area. Unlike in KITTI Masks, the distribution of the steps is known.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.base.threads import share_out
from nearid.lab.processes.images.base import SOFT, THICK, empty_images
from nearid.lab.processes.images.kernels import draw_masks
from nearid.lab.processes.images.outlines import Outline, draw_walkers
from nearid.lab.processes.noise import Laplace, Noise
from nearid.lab.processes.pairs import PairProcess
from nearid.lab.processes.spaces import Assumption, Box
from nearid.moments import Floats

Walkers = NDArray[np.int64]
BOX = Box(3)
# Area of a mask at the ends of its latent, as shares of the frame.
AREAS = 0.02, 0.06


@dataclass(frozen=True, eq=False)
class MaskProcess:
    """Latents (y, x, area) in the box [0, 1]^3 that take random steps, and masks of walkers with these latents.

    A sequence starts uniformly in the box. A step is noise, conditioned on staying inside. So frames one step apart are
    the positive pairs of a theorem. The steps are reversible, and long sequences are less often near walls.

    Parameters
    ----------
    walkers : tuple of Outline
        Outlines of area 1; `draw_mask_process` draws them. With one walker, images are a function of the latents.
    step : Noise
        Distribution of a step, in units of the box.
    gap : int
        Frames of a pair are 1 to `gap` steps apart, uniformly.
    side : int
        Pixels of a side.
    areas : tuple of float
        Area of the mask at the ends of the third latent, as shares of the frame.
    binary : bool
        Whether pixels are 0 or 1. Otherwise they are smooth across the edge.
    """

    walkers: tuple[Outline, ...]
    step: Noise
    gap: int = 1
    side: int = 64
    areas: tuple[float, float] = AREAS
    binary: bool = True

    def __post_init__(self) -> None:
        at_least("gap", self.gap, 1)
        at_least("side", self.side, 8)
        if not self.walkers or any(abs(w.area - 1) > 1e-9 for w in self.walkers):
            raise InputError("At least one walker is needed, and each must have area 1. Scale outlines by area**-0.5.")
        small, large = self.areas
        if not 0 < small < large:
            raise InputError(
                f"areas is {self.areas}, but two shares of the frame above 0, the smaller first, are expected."
            )
        if not self._margin < 0.5:
            raise InputError(f"A mask of area {large:g} is too large to move in the frame. Use smaller areas.")
        thinnest = min(w.thickness for w in self.walkers)
        if thinnest < least_thickness(self.side, self.areas):
            pixels = self.side * np.sqrt(small) * thinnest
            raise InputError(
                f"The smallest mask is {pixels:.2g} pixels from its middle to its edge, less than the soft edge. Use "
                f"a larger side than {self.side}, or larger areas."
            )

    @property
    def _margin(self) -> float:
        """Least distance of the centre of mass from the frame."""
        return float(np.sqrt(self.areas[1]) * max(w.reach for w in self.walkers) + SOFT / self.side)

    def sequences(self, count: int, length: int, rng: np.random.Generator) -> tuple[Floats, Walkers]:
        """(latents of shape (count, length, 3), walkers of shape (count,))."""
        at_least("count", count, 1)
        at_least("length", length, 1)
        frames = [BOX.uniform(count, rng)]
        for _ in range(length - 1):
            frames.append(BOX.around(frames[-1], self.step, rng))
        return np.stack(frames, axis=1), self._draw_walkers(count, rng)

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats, Walkers]:
        """Return (latents, positives, walkers): uniform latents of shape (size, 3), and those of the walker steps "
        "later."""
        at_least("size", size, 1)
        z = BOX.uniform(size, rng)
        positives, gaps = z.copy(), rng.integers(1, self.gap + 1, size)
        for k in range(self.gap):
            moving = gaps > k
            positives[moving] = BOX.around(positives[moving], self.step, rng)
        return z, positives, self._draw_walkers(size, rng)

    def factors(self, z: Floats) -> Floats:
        """Centre of mass (y, x) and area of the masks of latents, as shares of the frame; of any shape (..., 3)."""
        low, span = self._scales
        return low + span * z

    def observe(self, z: Floats, walkers: ArrayLike = 0, dtype: DTypeLike = np.float32, *, threads: int = 1) -> Floats:
        """Masks of shape (size, 1, side, side) of latents of shape (size, 3) and the walkers that they show."""
        at_least("threads", threads, 1)
        z = np.asarray(z, dtype=np.float64)
        if z.ndim != 2 or z.shape[1] != 3:
            raise InputError(f"The latents have shape {z.shape}, but (size, 3) is expected: y, x and area.")
        if z.size and not (z.min() >= -0.01 and z.max() <= 1.01):
            raise InputError("Some latents are not in the box [0, 1]^3.")
        shown = np.broadcast_to(np.asarray(walkers, dtype=np.int64), len(z))
        if shown.size and not (shown.min() >= 0 and shown.max() < len(self.walkers)):
            raise InputError(f"Some walkers do not exist: they are numbered from 0 to {len(self.walkers) - 1}.")
        cosines, sines, bounds, centres = self._harmonics
        factors = self.factors(z)
        scale = self.side * np.sqrt(factors[:, 2])
        pole = self.side * factors[:, 1::-1] - scale[:, None] * centres[shown]
        images = empty_images(len(z), 1, self.side, dtype)
        share_out(
            threads,
            len(z),
            lambda part: draw_masks(shown[part], scale[part], pole[part], cosines, sines, bounds, SOFT, images[part]),
        )
        return np.greater_equal(images, 0.5, out=images) if self.binary else images

    def assumptions(self, similarity: float | None = None) -> tuple[Assumption, ...]:
        """Conditions of the theorem on contrastive losses for a loss L_p^p (default: the exponent of the steps)."""
        assumptions = []
        for assumption in PairProcess(BOX, "uniform", self.step).assumptions(similarity):
            if assumption.name == "matching conditional" and self.gap > 1:
                note = f"1 to {self.gap} steps of {self.step.label}"
                assumption = replace(assumption, holds=False, note=note)
            if assumption.name == "injective mixing":
                assumption = self._injective()
            assumptions.append(assumption)
        return tuple(assumptions)

    def _injective(self) -> Assumption:
        several, rounded = len(self.walkers) > 1, self.binary
        notes = [f"one of {len(self.walkers)} walkers is shown, too"] * several
        notes += ["pixels are 0 or 1: latents a fraction of a pixel apart look the same"] * rounded
        note = "; ".join(notes) or "one walker, in smooth pixels"
        return Assumption("injective mixing", "observations determine the latents, and nothing else", not notes, note)

    def _draw_walkers(self, size: int, rng: np.random.Generator) -> Walkers:
        return rng.integers(0, len(self.walkers), size)

    @cached_property
    def _scales(self) -> tuple[Floats, Floats]:
        """Factors at the origin of the box, and their change along its edges."""
        margin, (small, large) = self._margin, self.areas
        return np.array([margin, margin, small]), np.array([1 - 2 * margin, 1 - 2 * margin, large - small])

    @cached_property
    def _harmonics(self) -> tuple[Floats, Floats, Floats, Floats]:
        return (
            np.array([w.cosines for w in self.walkers]),
            np.array([w.sines for w in self.walkers]),
            np.array([w.bounds for w in self.walkers]),
            np.array([w.centre for w in self.walkers]),
        )


def draw_mask_process(
    walkers: int,
    rng: np.random.Generator,
    *,
    step: Noise | None = None,
    gap: int = 1,
    side: int = 64,
    binary: bool = True,
) -> MaskProcess:
    """Return a mask process with random walkers; by default it takes Laplace steps of scale 0.05.

    Walkers that are too thin for the pixels are drawn again.
    """
    drawn = draw_walkers(walkers, rng, thickness=least_thickness(side, AREAS))
    return MaskProcess(drawn, step or Laplace(0.05), gap, side, binary=binary)


def least_thickness(side: int, areas: tuple[float, float]) -> float:
    """Thickness that an outline of area 1 needs, so that its smallest mask is opaque in the middle."""
    return float(THICK * SOFT / (side * np.sqrt(areas[0])))
