"""A white square that moves and grows on black: images of known metric, blurred so that they can be differentiated.

Moving alone is a scaled isometry; moving and growing is a conformal map once the half-side is counted in units of
1 / sqrt(2) (Nelson et al. 2026, Appendix A.6). The images are those of a continuous frame [-1, 1]^2, convolved with a
normal density of deviation sigma and seen at the centres of pixels.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike

from nearid.base.errors import InputError
from nearid.base.options import at_least, positive
from nearid.lab.processes.images.factors import Factor, draw_factors, interval
from nearid.lab.processes.images.metric import metric_tensors
from nearid.lab.processes.spaces import Assumption
from nearid.moments import Floats

STEP = 1e-3
# Smallest blur in pixels at which sums over pixels approximate integrals: error up to 3% here, 0.02% at one pixel.
LEAST_BLUR = 0.7
# Blur beyond the edge that must fit into the frame, in deviations.
TAIL = 4.0


@dataclass(frozen=True)
class SquareProcess:
    """Images of a square with centre (x, y) and half-side r.

    Parameters
    ----------
    side : int
        Pixels of a side.
    smallest, largest : float
        Ends of the half-side r, uniform between them.
    sigma : float or None
        Deviation of the blur; by default one pixel, 2 / side.
    """

    side: int = 64
    smallest: float = 0.2
    largest: float = 0.4
    sigma: float | None = None

    def __post_init__(self) -> None:
        at_least("side", self.side, 8)
        positive("smallest", self.smallest)
        if not self.smallest < self.largest:
            raise InputError(
                f"The half-side has the range {self.smallest} to {self.largest}, but the smaller end must come first."
            )
        if not self._room > 0:
            raise InputError(
                f"A square of half-side {self.largest:g} with a blur of {self.blur:g} is too large to move in the "
                f"frame [-1, 1]^2. Use a smaller `largest`, a smaller sigma or a larger side."
            )

    @property
    def blur(self) -> float:
        """Deviation of the blur, in units of the frame."""
        return 2 / self.side if self.sigma is None else positive("sigma", self.sigma)

    @property
    def _room(self) -> float:
        """Largest |x| and |y| at which the square and its blur are inside the frame."""
        return 1 - self.largest - TAIL * self.blur

    @property
    def factors(self) -> tuple[Factor, ...]:
        """x, y and r: the square and its blur stay inside the frame."""
        room = self._room
        grid = 16
        return (
            interval("x", -room, room, grid),
            interval("y", -room, room, grid),
            interval("r", self.smallest, self.largest, grid),
        )

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Latents (x, y, r) of shape (size, 3), independent and uniform."""
        return draw_factors(self.factors, size, rng)

    def observe(self, z: Floats, dtype: DTypeLike = np.float64) -> Floats:
        """Images of shape (size, 1, side, side) of latents (x, y, r) of shape (size, 3)."""
        check_latents(z)
        from scipy.special import ndtr

        pixels = (2 * np.arange(self.side) + 1) / self.side - 1
        ends = pixels - z[:, :2, None]
        half = z[:, 2, None, None]
        # One row of the image for x and one column for y: the square and the normal density are products.
        bars = ndtr((ends + half) / self.blur) - ndtr((ends - half) / self.blur)
        return np.asarray(bars[:, 1, :, None] * bars[:, 0, None, :], dtype=dtype)[:, None]

    def measured_metric(self, z: Floats, *, any_blur: bool = False) -> Floats:
        """Metric tensors of shape (size, 3, 3) of the images, by finite differences; norms are those of the frame.

        Parameters
        ----------
        z : ndarray of shape (size, 3)
        any_blur : bool
            Whether to accept images with a blur far below a pixel. Their metric depends on where edges lie between
            pixels, and is far from that of continuous images.
        """
        check_latents(z)
        pixels = self.blur * self.side / 2
        if pixels < LEAST_BLUR and not any_blur:
            raise InputError(
                f"The blur is {pixels:.2g} pixels, but below {LEAST_BLUR:g} sums over pixels are far from the metric "
                f"of continuous images. Use sigma of at least {LEAST_BLUR * 2 / self.side:.2g} or a larger side, or "
                f"any_blur=True to measure the metric of the pixels."
            )
        return metric_tensors(self.observe, z, np.full(3, STEP * self.blur), cell=(2 / self.side) ** 2)

    def blurred_metric(self, z: Floats) -> Floats:
        """Metric tensors of shape (size, 3, 3) of the blurred images on the continuous frame, in closed form.

        The image is a(u) b(v), bars of half-length r. With s = sigma, w = exp(-r^2 / s^2):
        |a|^2 = 2 r erf(r / s) - (2 s / sqrt(pi)) (1 - w), |a_x|^2 = (1 - w) / (s sqrt(pi)),
        |a_r|^2 = (1 + w) / (s sqrt(pi)), <a, a_r> = erf(r / s); all other products vanish by symmetry.
        """
        check_latents(z)
        from scipy.special import erf

        r, s = z[:, 2], self.blur
        w = np.exp(-((r / s) ** 2))
        inside = 2 * r * erf(r / s) - 2 * s / np.sqrt(np.pi) * (1 - w)
        move = (1 - w) / (s * np.sqrt(np.pi)) * inside
        grow = 2 * (1 + w) / (s * np.sqrt(np.pi)) * inside + 2 * erf(r / s) ** 2
        return np.asarray(np.stack([move, move, grow], axis=1)[:, :, None] * np.eye(3))

    def sharp_metric(self, z: Floats) -> Floats:
        """Metric tensors of shape (size, 3, 3) in the limit of no blur, 4 r diag(1, 1, 2), in units of its constant.

        A sharp edge has no finite derivative. As sigma tends to 0, the metric tends to the length of the moving edges
        (two sides of 2 r for x or y, four for r) times `edge_norm`.
        """
        check_latents(z)
        return np.asarray(4 * z[:, 2, None, None] * np.diag([1.0, 1.0, 2.0]))

    @property
    def edge_norm(self) -> float:
        """Squared norm of the derivative of a blurred edge per unit of its length: 1 / (2 sigma sqrt(pi))."""
        return float(1 / (2 * self.blur * np.sqrt(np.pi)))

    @property
    def bilipschitz(self) -> float:
        """Local constant of (x, y, sqrt(2) r) after the best scaling, without blur: stretches go as the root of r."""
        return float((self.largest / self.smallest) ** 0.25)

    def assumptions(self) -> tuple[Assumption, ...]:
        """Conditions to recover (x, y, sqrt(2) r) by an autoencoder and ICA (Nelson et al. 2026, Theorem 3)."""
        return (
            Assumption("independent factors", "factors are independent", True, "x, y and r, each drawn on its own"),
            Assumption("non-Gaussian factors", "at most one factor is normal", True, "all are uniform"),
            Assumption("convex latents", "factors fill a convex body", True, "a box in R^3"),
            Assumption("injective rendering", "images determine the factors", True, "place and size of the square"),
            Assumption(
                "bi-Lipschitz rendering",
                "rendering is locally bi-Lipschitz",
                True,
                f"conformal, with constant {self.bilipschitz:.3g} after the best scaling in the limit of no blur",
            ),
        )


def isotropic(metrics: Floats) -> Floats:
    """The metric tensors in (x, y, sqrt(2) r), where those of sharp squares are multiples of the identity."""
    scale = np.array([1, 1, np.sqrt(0.5)])
    return np.asarray(metrics * np.outer(scale, scale))


def check_latents(z: Floats) -> None:
    """Raise an error unless z has valid latents (x, y, r)."""
    if z.ndim != 2 or z.shape[1] != 3:
        raise InputError(f"The latents have shape {z.shape}, but (size, 3) is expected: x, y and r.")
    if not (np.isfinite(z).all() and (z[:, 2] > 0).all()):
        raise InputError("Some latents are not finite, or some half-sides r are not above 0.")
