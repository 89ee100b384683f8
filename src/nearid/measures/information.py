"""Entropy and mutual information of discrete variables, in nats, from counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.integer]


def entropy(codes: Codes) -> float:
    """Entropy of a discrete variable.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        Values from 0 on.
    """
    counts = np.bincount(codes)
    shares = counts[counts > 0] / len(codes)
    return max(0.0, -float(np.sum(shares * np.log(shares))))


def discrete_mutual_information(a: Codes, b: Codes) -> float:
    """Mutual information of two discrete variables.

    Parameters
    ----------
    a, b : ndarray of int of shape (n,)
        Values from 0 on.
    """
    width = int(b.max()) + 1
    # The pairs are counted among those that occur: a table of all of them could be larger than memory.
    pairs, joint = np.unique(a.astype(np.int64) * width + b, return_counts=True)
    alone = np.bincount(a)[pairs // width] * np.bincount(b)[pairs % width]
    # Counts are exact, so that independent variables give 0 and not what rounding leaves of it.
    return max(0.0, float(np.sum(joint * np.log(len(a) * joint / alone)) / len(a)))
