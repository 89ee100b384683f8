"""Entropy and mutual information of discrete codes, in nats."""

from __future__ import annotations

import numpy as np


def entropy(codes: np.ndarray) -> float:
    """Entropy of integer codes of shape (n,)."""
    share = np.unique(codes, return_counts=True)[1] / len(codes)
    return max(0.0, -float(np.sum(share * np.log(share))))


def discrete_mutual_information(a: np.ndarray, b: np.ndarray) -> float:
    """Mutual information of two columns of integer codes, each of shape (n,)."""
    left, right = (np.unique(codes, return_inverse=True)[1] for codes in (a, b))
    width = int(right.max()) + 1
    joint = np.bincount(left * width + right, minlength=(int(left.max()) + 1) * width).reshape(-1, width)
    alone = np.outer(joint.sum(axis=1), joint.sum(axis=0))
    seen = joint > 0
    # Counts are exact, so that independent tables give 0 and not what rounding leaves of it.
    return max(0.0, float(np.sum(joint[seen] * np.log(len(left) * joint[seen] / alone[seen])) / len(left)))
