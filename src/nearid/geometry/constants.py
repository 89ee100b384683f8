"""Distance of a decoder from an isometry: local bi-Lipschitz constants, singular values of Jacobians, pairs of rows.

If a map stretches lengths near a point by factors between a and b, it is bi-Lipschitz there with L = max(b, 1/a). A
change of the units of the latents multiplies all factors by one number. With the best units L is sqrt(b/a), the square
root of the condition number.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import CONFIDENCE, Estimate
from nearid.moments import Floats

# Quantiles of the local constants that are reported.
SHARES = (0.05, 0.5, 0.95, 0.99)
OVER_POINTS = "points, Student's t"
# Number of rows of which all pairs are measured.
PAIRED = 2_000
# Squared distances below this share of the largest squared length are smaller than rounding errors.
RESOLVED = 1e-12
# Quantiles of singular values and of ratios of distances that are reported.
QUANTILES = (0.05, 0.5, 0.95)


@dataclass(frozen=True)
class Maximum:
    """The largest local constant over the points, with two measures of its reliability.

    Attributes
    ----------
    value : float
        The maximum over the points, a lower bound of the supremum over all latents.
    point : int
        Number of the point with the maximum, counted from 0.
    of_half : float
        Expected maximum of a random half of the points. If it is much smaller than `value`, more points would
        probably give a larger maximum.
    beyond : float
        With 95% confidence at most this share of the latents has a larger constant. This holds for any distribution.
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
        Mean over the points. It is infinite if the constant of a point is infinite.
    quantiles : dict of float to Estimate
        The quantiles 5%, 50%, 95% and 99%. Their intervals come from order statistics and hold for any distribution.
        With too few points, the lower end is 1 (the smallest possible constant) or the upper end is infinite.
    """

    mean: Estimate
    quantiles: dict[float, Estimate]
    maximum: Maximum


@dataclass(frozen=True, eq=False)
class Constants:
    """Local bi-Lipschitz constants at sample points, without and with the best global scale.

    Attributes
    ----------
    least, greatest : ndarray of shape (n,)
        Smallest and largest stretch at each point.
    local : Distribution
        Distribution of L(z) = max(greatest, 1 / least).
    scale : float
        The factor s that minimises the mean of max(s greatest, 1 / (s least)).
    scaled : Distribution
        Distribution of the local constants after scaling by this factor.
    scale_free : float
        The smallest possible maximum over all factors: sqrt(largest stretch / smallest stretch) over all points.
    """

    least: Floats
    greatest: Floats
    local: Distribution
    scale: float
    scaled: Distribution
    scale_free: float

    @classmethod
    def of(cls, least: Floats, greatest: Floats) -> Constants:
        """Return the constants for given smallest and largest stretches at each point."""
        scale = best_scale(least, greatest)
        local, scaled = two_sided(least, greatest), two_sided(scale * least, scale * greatest)
        whole = float(scale_free(least.min(), greatest.max()))
        return cls(least, greatest, distribution(local), scale, distribution(scaled), whole)

    @property
    def values(self) -> Floats:
        """L(z) at each point."""
        return two_sided(self.least, self.greatest)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data, with L(z) instead of the stretches."""
        return {name: getattr(self, name) for name in ("local", "scale", "scaled", "scale_free", "values")}


def two_sided(least: Floats | float, greatest: Floats | float) -> Floats:
    """Return L = max(greatest, 1 / least); infinite if a stretch is 0."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.maximum(greatest, 1 / np.asarray(least, dtype=np.float64)))


def scale_free(least: Floats | float, greatest: Floats | float) -> Floats:
    """Return L = sqrt(greatest / least), the constant under the best scale; infinite if a stretch is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.asarray(least) > 0, np.sqrt(greatest / np.asarray(least, dtype=np.float64)), np.inf)


def best_scale(least: Floats, greatest: Floats) -> float:
    """Return the factor s that minimises the mean of max(s greatest, 1 / (s least)) over points where it is finite.

    The mean is convex in s. Between neighbouring breakpoints 1 / sqrt(least greatest) it has the form A s + B / s.
    """
    known = least > 0
    if not known.any():
        return 1.0
    a, b = least[known], greatest[known]
    breaks = 1 / np.sqrt(a * b)
    order = np.argsort(breaks)
    # Above its breakpoint a point contributes s b, below it 1 / (s a).
    rising = np.concatenate([[0.0], np.cumsum(b[order])])
    falling = np.concatenate([np.cumsum(1 / a[order][::-1])[::-1], [0.0]])
    ends = np.concatenate([[breaks.min()], breaks[order], [breaks.max()]])
    with np.errstate(divide="ignore"):
        best = np.clip(np.sqrt(falling / rising), ends[:-1], ends[1:])
    return float(best[np.argmin(rising * best + falling / best)])


def distribution(values: Floats) -> Distribution:
    """Return mean, quantiles and maximum of local constants at random points."""
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
    # The number of points below the quantile is binomial, so two order statistics bound the quantile.
    below, above = np.searchsorted(bdtr(np.arange(n + 1), n, share), [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    low = float(ordered[below - 1]) if below > 0 else 1.0
    high = float(ordered[above]) if above < n else float(np.inf)
    # No interpolation, because some constants may be infinite.
    value = float(np.quantile(ordered, share, method="inverted_cdf"))
    return Estimate(value, low, high, of="points, order statistics", n=n)


def maximum_of_half(ordered: Floats) -> float:
    """Return the expected maximum of a random half of sorted values, drawn without replacement."""
    from scipy.special import gammaln

    n = len(ordered)
    # A random half contains the largest value with probability of at least 1/2, so the mean is infinite, too.
    if np.isposinf(ordered[-1]):
        return float(np.inf)
    m = (n + 1) // 2
    rank = np.arange(m, n + 1)
    # The k-th smallest value is the maximum of m draws with probability C(k - 1, m - 1) / C(n, m).
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
        Smallest and largest singular value over all points.
    mean, deviation : float
        Mean and standard deviation of all singular values.
    quantiles : tuple of float
        5%, 50%, 95% of all singular values.
    condition : tuple of float
        5%, 50%, 95% of the condition numbers of the points. The condition number of a singular Jacobian is infinite.
    anisotropy : float
        Share of the variance of log singular values that lies within points. If it is near 0, the decoder is
        conformal: it stretches equally in all directions, by a factor that may depend on the point. It is NaN if all
        singular values are equal or some are 0.
    spectrum : ndarray of shape (d, 3)
        5%, 50%, 95% over the points of the largest, the second largest, ... singular value.
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
        """Return the isometry for singular values of shape (n, d), in descending order in each row."""
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
    """Ratios of output distances to latent distances, for all pairs of some rows.

    Attributes
    ----------
    least, greatest : float
        Smallest and largest ratio.
    quantiles : tuple of float
        5%, 50%, 95% of the ratios.
    constant : float
        max(greatest, 1 / least), a lower bound of the global bi-Lipschitz constant.
    scale_free : float
        sqrt(greatest / least), the same under the best scale.
    """

    pairs: int
    least: float
    greatest: float
    quantiles: tuple[float, ...]
    constant: float
    scale_free: float

    @classmethod
    def of(cls, latents: Floats, outputs: Floats) -> Pairwise:
        """Return the pairwise ratios of rows. Pairs of equal latents are left out."""
        near, known = _squares(latents)
        far, _ = _squares(outputs)
        ratios = np.sqrt(far[known] / near[known])
        if not len(ratios):
            raise InputError("All latents are equal, so there are no distances to compare.")
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
    # A variance of the size of rounding errors counts as 0.
    return within / total if total > 1e-12 else float("nan")


def _squares(rows: Floats) -> tuple[Floats, np.ndarray]:
    """Return squared distances of all pairs, and which of them are larger than rounding errors in float64."""
    x = rows.astype(np.float64)
    x -= x.mean(axis=0)
    lengths = np.einsum("ij,ij->i", x, x)
    i, j = np.triu_indices(len(x), 1)
    squares = lengths[i] + lengths[j] - 2 * (x @ x.T)[i, j]
    resolved = squares > RESOLVED * lengths.max()
    return np.where(resolved, squares, 0.0), resolved
