"""How far a decoder is from an isometry: local bi-Lipschitz constants, the spectrum of its Jacobians, pairs of rows.

A map that stretches lengths near a point by factors between a and b is bi-Lipschitz there with L = max(b, 1/a). Latents
in other units have all factors multiplied by one number: the best leaves L = sqrt(b/a), the root of the condition
number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.moments import Floats

# Quantiles of the local constants.
SHARES = (0.05, 0.5, 0.95, 0.99)
OVER_POINTS = "points, Student's t"
# Rows whose pairs are all measured.
PAIRED = 2_000
# Squared distances below this share of the largest squared length are lost in rounding.
RESOLVED = 1e-12
# Quantiles of singular values and of ratios of distances.
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Maximum:
    """The largest of the local constants, and how far it can be trusted.

    Attributes
    ----------
    value : float
        A lower bound of the supremum over all latents.
    point : int
        Where it is, counted from 0 among the points.
    of_half : float
        Expected maximum of a random half of the points: where it is much smaller, more points would find more.
    beyond : float
        With 95% confidence at most this share of the latents has a larger constant, whatever the distribution.
    """

    value: float
    point: int
    of_half: float
    beyond: float


@dataclass(frozen=True)
class Distribution:
    """Local constants over the points.

    Attributes
    ----------
    mean : Estimate
        Infinite where a point has no finite constant.
    quantiles : dict of float to Estimate
        5%, 50%, 95% and 99%, with intervals from order statistics, which hold for any distribution. An end that so
        few points cannot give is 1 below (no constant is smaller) or infinite above.
    """

    mean: Estimate
    quantiles: dict[float, Estimate]
    maximum: Maximum


@dataclass(frozen=True, eq=False)
class Constants:
    """Local bi-Lipschitz constants at some points, as they are and under the best global scale.

    Attributes
    ----------
    least, greatest : ndarray of shape (n,)
        Smallest and largest stretch at each point.
    local : Distribution
        Of L(z) = max(greatest, 1 / least).
    scale : float
        Factor s of all stretches that makes the mean of max(s greatest, 1 / (s least)) smallest.
    scaled : Distribution
        Of the local constants with that factor.
    scale_free : float
        Smallest maximum that any factor can give: sqrt(largest stretch / smallest stretch) over all points.
    """

    least: Floats
    greatest: Floats
    local: Distribution
    scale: float
    scaled: Distribution
    scale_free: float

    @classmethod
    def of(cls, least: Floats, greatest: Floats) -> Constants:
        """Constants from the smallest and the largest stretch at each point."""
        scale = best_scale(least, greatest)
        local, scaled = two_sided(least, greatest), two_sided(scale * least, scale * greatest)
        whole = float(scale_free(least.min(), greatest.max()))
        return cls(least, greatest, distribution(local), scale, distribution(scaled), whole)

    @property
    def values(self) -> Floats:
        """L(z) at each point."""
        return two_sided(self.least, self.greatest)

    def to_dict(self) -> dict[str, Any]:
        """As plain data, with L(z) in the place of the stretches."""
        return {name: getattr(self, name) for name in ("local", "scale", "scaled", "scale_free", "values")}


def two_sided(least: Floats | float, greatest: Floats | float) -> Floats:
    """L = max(greatest, 1 / least); infinite where something is not stretched at all."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(greatest, 1 / np.asarray(least, dtype=np.float64)))


def scale_free(least: Floats | float, greatest: Floats | float) -> Floats:
    """L = sqrt(greatest / least), under the scale that fits best; infinite where something is not stretched at all."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(least) > 0, np.sqrt(greatest / np.asarray(least, dtype=np.float64)), np.inf)


def best_scale(least: Floats, greatest: Floats) -> float:
    """The factor s that makes the mean of max(s greatest, 1 / (s least)) least, over points where that is finite.

    The mean is convex in s, and A s + B / s between neighbouring breakpoints 1 / sqrt(least greatest).
    """
    known = least > 0
    if not known.any():
        return 1.0
    a, b = least[known], greatest[known]
    breaks = 1 / np.sqrt(a * b)
    order = np.argsort(breaks)
    # Beyond its breakpoint a point pays s b, before it 1 / (s a).
    rising = np.concatenate([[0.0], np.cumsum(b[order])])
    falling = np.concatenate([np.cumsum(1 / a[order][::-1])[::-1], [0.0]])
    ends = np.concatenate([[breaks.min()], breaks[order], [breaks.max()]])
    with np.errstate(divide="ignore"):
        best = np.clip(np.sqrt(falling / rising), ends[:-1], ends[1:])
    return float(best[np.argmin(rising * best + falling / best)])


def distribution(values: Floats) -> Distribution:
    """Mean, quantiles and maximum of local constants at random points."""
    n = len(values)
    mean = Estimate(float(np.inf), of=OVER_POINTS, n=n)
    if np.isfinite(values).all():
        mean = Estimate.over(values, OVER_POINTS).within(1.0, np.inf)
    ordered = np.sort(values)
    maximum = Maximum(
        float(ordered[-1]), int(values.argmax()), maximum_of_half(ordered), 1 - (1 - CONFIDENCE) ** (1 / n)
    )
    return Distribution(mean, {share: _quantile(ordered, share) for share in SHARES}, maximum)


def _quantile(ordered: Floats, share: float) -> Estimate:
    from scipy.special import bdtr

    n = len(ordered)
    # So many points lie below the quantile, a binomial number: the order statistics around it bound it.
    below, above = np.searchsorted(bdtr(np.arange(n + 1), n, share), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    low = float(ordered[below - 1]) if below > 0 else 1.0
    high = float(ordered[above]) if above < n else float(np.inf)
    # No interpolation: between a finite and an infinite constant there is nothing.
    value = float(np.quantile(ordered, share, method="inverted_cdf"))
    return Estimate(value, low, high, of="points, order statistics", n=n)


def maximum_of_half(ordered: Floats) -> float:
    """Expected maximum of a random half of ascending values, drawn without replacement."""
    from scipy.special import gammaln

    n = len(ordered)
    # A half holds the largest at least every other time, whatever the others are.
    if np.isposinf(ordered[-1]):
        return float(np.inf)
    m = (n + 1) // 2
    rank = np.arange(m, n + 1)
    # The k-th smallest is the largest of m with probability C(k - 1, m - 1) / C(n, m).
    log = gammaln(rank) - gammaln(m) - gammaln(rank - m + 1)
    log -= gammaln(n + 1) - gammaln(m + 1) - gammaln(n - m + 1)
    return float(np.exp(log) @ ordered[m - 1 :])


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
            _quantiles(values.ravel()),
            _quantiles(condition),
            _anisotropy(values),
            np.quantile(values, QUANTILES, axis=0).T,
        )


@dataclass(frozen=True)
class Pairwise:
    """Distances of outputs over distances of latents, for all pairs of some rows.

    Attributes
    ----------
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
        return cls(len(ratios), least, greatest, _quantiles(ratios), constant, free)


def _quantiles(values: Floats) -> tuple[float, ...]:
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
