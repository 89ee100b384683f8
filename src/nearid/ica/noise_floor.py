"""Number of principal directions above noise, by a parallel analysis without permutations.

Horn (1965) compares the variances along principal directions with those after permuting each column separately. For
unrelated columns of unit variance, the distribution of the largest variance is known (Johnstone 2001), so nothing needs
to be permuted.
"""

from __future__ import annotations

import numpy as np

from nearid.moments import Floats

# 99% quantile of the Tracy-Widom law of order 1.
TRACY_WIDOM = 2.0234


def largest_by_chance(n: int, p: int) -> float:
    """Return the 99% quantile of the largest principal variance of n rows of p unrelated columns of unit variance."""
    rows, columns = np.sqrt(n - 1), np.sqrt(p)
    spread = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    return float(((rows + columns) ** 2 + TRACY_WIDOM * spread) / n)


def directions_above_noise(backward: Floats, sizes: Floats, n: int) -> int:
    """Return the number of directions with more variance than unrelated columns, with columns scaled to unit variance.

    Parameters
    ----------
    backward : ndarray of shape (p, k)
        The map from whitened rows back to the columns: principal directions times their standard deviations.
    sizes : ndarray of shape (p,)
        Standard deviations of the columns, including the variance along directions that were not kept.
    n : int
        Number of rows.
    """
    scaled = backward[sizes > 0] / sizes[sizes > 0][:, None]
    # Variances are squared singular values. The smaller of the two Gram matrices has all that are not 0.
    values = np.linalg.eigvalsh(scaled.T @ scaled)
    return int(np.sum(values > largest_by_chance(n, len(scaled))))
