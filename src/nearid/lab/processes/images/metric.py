"""The pullback metric of images on their factors, by finite differences, and its distortion."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nearid.base.errors import InputError
from nearid.moments import Floats

# A direction with less than this share of the largest stretch counts as one that does not change the image.
LOST = 1e-6


@dataclass(frozen=True, eq=False)
class Distortion:
    """How far a map is from a scaled isometry, from its metric tensors at some points.

    Attributes
    ----------
    stretches : ndarray of shape (size, k)
        Singular values of the differential at each point, ascending.
    anisotropy : ndarray of shape (size,)
        Largest over smallest stretch at each point: 1 everywhere for a conformal map.
    spread : float
        Largest over smallest geometric mean of the stretches among the points: 1 if the size of the differential does
        not depend on the point. A scaled isometry has this and an anisotropy of 1.
    bilipschitz : float
        Local bi-Lipschitz constant after the best global scaling: the root of the largest over the smallest stretch of
        all points. It is a lower bound, because the points are a sample. Infinite if a direction is lost.
    """

    stretches: Floats
    anisotropy: Floats
    spread: float
    bilipschitz: float


def metric_tensors(observe: Callable[[Floats], Floats], z: Floats, steps: ArrayLike, *, cell: float = 1.0) -> Floats:
    """Metric tensors J^T J of a map at points, by central differences.

    Parameters
    ----------
    observe : callable
        Function from latents of shape (size, d) to images of shape (size, ...) in float64.
    z : ndarray of shape (size, d)
    steps : ndarray of shape (d,)
        Length of the step in each latent; a step of 0 leaves that latent out.
    cell : float
        Area of a pixel, for norms that approximate those of continuous images.

    Returns
    -------
    ndarray of shape (size, k, k), k the number of latents with a step
    """
    steps = np.asarray(steps, dtype=np.float64)
    if z.ndim != 2 or steps.shape != z.shape[1:]:
        raise InputError(f"z has shape {z.shape} and steps {steps.shape}, but (size, d) and (d,) are expected.")
    slopes = []
    for k in np.flatnonzero(steps):
        shift = np.zeros(z.shape[1])
        shift[k] = steps[k]
        # The actual step at each point after rounding.
        length = ((z + shift) - (z - shift))[:, k]
        change = np.asarray(observe(z + shift) - observe(z - shift), dtype=np.float64).reshape(len(z), -1)
        slopes.append(change / length[:, None])
    if not slopes:
        raise InputError(
            "All steps are 0, so there is no direction to differentiate in. Give at least one step above 0."
        )
    jacobian = np.stack(slopes, axis=1)
    return np.asarray(cell * (jacobian @ jacobian.transpose(0, 2, 1)))


def distortion(metrics: Floats) -> Distortion:
    """Return the distortion of a map from its metric tensors of shape (size, k, k)."""
    if metrics.ndim != 3 or metrics.shape[1] != metrics.shape[2] or not metrics.size:
        raise InputError(f"The metric tensors have shape {metrics.shape}, but (size, k, k) is expected.")
    stretches = np.sqrt(np.clip(np.linalg.eigvalsh(metrics), 0, None))
    least, most = float(stretches[:, 0].min()), float(stretches[:, -1].max())
    if not least > LOST * most:
        anisotropy = np.full(len(stretches), np.inf)
        kept = stretches[:, 0] > LOST * most
        anisotropy[kept] = stretches[kept, -1] / stretches[kept, 0]
        return Distortion(stretches, anisotropy, float("inf"), float("inf"))
    sizes = np.exp(np.log(stretches).mean(axis=1))
    spread = float(sizes.max() / sizes.min())
    return Distortion(stretches, stretches[:, -1] / stretches[:, 0], spread, float(np.sqrt(most / least)))
