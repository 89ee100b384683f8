"""How near a decoder is to an isometry: the spectrum of its Jacobians (dynamical isometry), and distances of pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.base.errors import InputError
from nearid.geometry.constants import scale_free, two_sided
from nearid.moments import Floats

# Rows whose pairs are all measured.
PAIRED = 2_000
# Squared distances below this share of the largest squared length are lost in rounding.
RESOLVED = 1e-12
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True, eq=False)
class Isometry:
    """Singular values of the Jacobians at all points.

    If they lie in [a, b] everywhere, the decoder is locally bi-Lipschitz with max(b, 1/a), and with sqrt(b/a) under
    the best global scale.

    Attributes
    ----------
    smallest, largest : float
        Over all points.
    mean, deviation : float
        Of all singular values.
    quantiles : tuple of float
        5%, 50%, 95% of all singular values.
    condition : tuple of float
        5%, 50%, 95% of the condition numbers of the points; infinite where a Jacobian is singular.
    anisotropy : float
        Share of the variance of log singular values that lies within points. Near 0 the decoder is conformal: it
        stretches alike in all directions, by a factor that may depend on the point. NaN where all are equal, or some
        are 0.
    spectrum : ndarray of shape (d, 3)
        The same quantiles over points of the largest, the second, ... singular value.
    """

    smallest: float
    largest: float
    mean: float
    deviation: float
    quantiles: tuple[float, ...]
    condition: tuple[float, ...]
    anisotropy: float
    spectrum: Floats

    @classmethod
    def of(cls, values: Floats) -> Isometry:
        """Isometry of singular values of shape (n, d), descending in each row."""
        condition = np.full(len(values), np.inf)
        np.divide(values[:, 0], values[:, -1], out=condition, where=values[:, -1] > 0)
        return cls(
            float(values.min()),
            float(values.max()),
            float(values.mean()),
            float(values.std()),
            _told(values.ravel()),
            _told(condition),
            _anisotropy(values),
            np.quantile(values, QUANTILES, axis=0).T,
        )


@dataclass(frozen=True)
class Pairwise:
    """Distances of outputs over distances of latents, for all pairs of some rows.

    Attributes
    ----------
    pairs : int
    least, greatest : float
        Smallest and largest ratio.
    quantiles : tuple of float
        5%, 50%, 95% of the ratios.
    constant : float
        max(greatest, 1 / least): no smaller global bi-Lipschitz constant is possible.
    scale_free : float
        sqrt(greatest / least), under the best scale.
    """

    pairs: int
    least: float
    greatest: float
    quantiles: tuple[float, ...]
    constant: float
    scale_free: float

    @classmethod
    def of(cls, latents: Floats, outputs: Floats) -> Pairwise:
        """Pairwise ratios of rows; pairs of equal latents are left out."""
        near, known = _squares(latents)
        far, _ = _squares(outputs)
        ratios = np.sqrt(far[known] / near[known])
        if not len(ratios):
            raise InputError("All latents are equal: there is no distance to preserve.")
        least, greatest = float(ratios.min()), float(ratios.max())
        constant, free = float(two_sided(least, greatest)), float(scale_free(least, greatest))
        return cls(len(ratios), least, greatest, _told(ratios), constant, free)


def _told(values: Floats) -> tuple[float, ...]:
    return tuple(float(q) for q in np.quantile(values, QUANTILES, method="inverted_cdf"))


def _anisotropy(values: Floats) -> float:
    if values.min() <= 0:
        return float("nan")
    log = np.log(values)
    total = float(log.var())
    within = float(log.var(axis=1).mean())
    # Rounding alone is no variance.
    return within / total if total > 1e-12 else float("nan")


def _squares(rows: Floats) -> tuple[Floats, np.ndarray]:
    """Squared distances of all pairs, and which of them stand above the rounding of a product in float64."""
    x = rows.astype(np.float64)
    x -= x.mean(axis=0)
    lengths = np.einsum("ij,ij->i", x, x)
    i, j = np.triu_indices(len(x), 1)
    squares = lengths[i] + lengths[j] - 2 * (x @ x.T)[i, j]
    resolved = squares > RESOLVED * lengths.max()
    return np.where(resolved, squares, 0.0), resolved
