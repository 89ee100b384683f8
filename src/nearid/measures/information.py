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
    return _entropy_of_counts(np.bincount(codes))


def discrete_mutual_information(a: Codes, b: Codes) -> float:
    """Mutual information of two discrete variables, H(a) + H(b) - H(a, b).

    Parameters
    ----------
    a, b : ndarray of int of shape (n,)
        Values from 0 on.
    """
    # The pairs are counted among those that occur: a table of all of them could be larger than memory.
    joint = np.unique(a.astype(np.int64) * (int(b.max()) + 1) + b, return_counts=True)[1]
    # Rounding must not make it negative.
    return max(0.0, entropy(a) + entropy(b) - _entropy_of_counts(joint))


def _entropy_of_counts(counts: Codes) -> float:
    shares = counts[counts > 0] / counts.sum()
    return max(0.0, -float(shares @ np.log(shares)))
