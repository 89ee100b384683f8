"""Sparsity of shares: on how few of many things a whole rests."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def hoyer(weights: ArrayLike) -> float:
    """Hoyer's sparsity of weights of at least 0: (sqrt(d) - sum / norm) / (sqrt(d) - 1).

    It is 1 where one weight alone is not 0, and 0 where all are equal. NaN where all are 0, or where there is but one.
    """
    w = np.abs(np.asarray(weights, dtype=np.float64))
    norm = np.linalg.norm(w)
    if len(w) < 2 or norm == 0:
        return float("nan")
    root = np.sqrt(len(w))
    return float((root - w.sum() / norm) / (root - 1))
