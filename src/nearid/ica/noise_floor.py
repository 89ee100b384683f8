"""How many directions of rows stand out of noise: parallel analysis, from the principal directions that exist already.

Horn (1965) compares the variances along principal directions with those of columns that are permuted, each by itself.
Unrelated columns of unit variance have a largest one that is known (Johnstone 2001), so that nothing need be permuted.
"""

from __future__ import annotations

import numpy as np

from nearid.moments import Floats

# 99% quantile of the Tracy-Widom law of order 1.
TRACY_WIDOM = 2.0234


def largest_by_chance(n: int, p: int) -> float:
    """What the largest variance of n rows of p unrelated columns of unit variance stays below in 99% of all cases."""
    rows, columns = np.sqrt(n - 1), np.sqrt(p)
    spread = (rows + columns) * (1 / rows + 1 / columns) ** (1 / 3)
    return float(((rows + columns) ** 2 + TRACY_WIDOM * spread) / n)


def directions_above_noise(backward: Floats, sizes: Floats, n: int) -> int:
    """How many directions hold more variance than any of unrelated columns, with all columns in units of their size.

    Parameters
    ----------
    backward : ndarray of shape (p, k)
        From whitened rows back to the columns: principal directions times their standard deviations.
    sizes : ndarray of shape (p,)
        Standard deviations of the columns. Where only some directions are kept, the columns vary along the others too.
    n : int
        Rows.
    """
    scaled = backward[sizes > 0] / sizes[sizes > 0][:, None]
    # Variances are the squared singular values, of which the smaller one of two products has all that are not 0.
    values = np.linalg.eigvalsh(scaled.T @ scaled)
    return int(np.sum(values > largest_by_chance(n, len(scaled))))
