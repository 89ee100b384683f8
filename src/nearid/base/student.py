"""Quantiles of Student's t without `scipy.special`, whose import takes longer than a small comparison."""

from __future__ import annotations

import math

# Above this number of degrees of freedom, two terms of the expansion about the normal distribution are used, which is
# within 1e-5 at 95%.
NEARLY_NORMAL = 1000
# Relative size at which a continued fraction and Newton's method end, and their largest number of steps.
CLOSE, STEPS = 1e-15, 500


def student(freedom: float, confidence: float) -> float:
    """Return the two-sided quantile of Student's t: |t| is smaller with this probability.

    Parameters
    ----------
    freedom : float
        Degrees of freedom, at least 1 and not necessarily whole; infinity gives the normal distribution.
    confidence : float
        Between 0 and 1.
    """
    from statistics import NormalDist

    z = NormalDist().inv_cdf((1 + confidence) / 2)
    if freedom > NEARLY_NORMAL:
        return z + (z**3 + z) / 4 / freedom
    # The probability beyond t is convex and falls, so Newton's method comes from below and never overshoots.
    t, outside = z, 1 - confidence
    log_density = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    for _ in range(STEPS):
        slope = 2 * math.exp(log_density - (freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (_beyond(t, freedom) - outside) / slope
        t += step
        if abs(step) <= 8 * CLOSE * t:
            break
    return t


def _beyond(t: float, freedom: float) -> float:
    """Return the probability that |t| is larger: the incomplete beta function of freedom / (freedom + t^2)."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(log_front + a * math.log(x) + b * math.log(t * t / (freedom + t * t)))
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d, c = 1 / (1 + term * d), 1 + term / c
            value *= c * d
        if abs(c * d - 1) <= CLOSE:
            break
    return value
