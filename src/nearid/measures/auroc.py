"""Area under the ROC curve, by ranks."""

from __future__ import annotations

import numpy as np

from nearid.measures.ranks import average_ranks
from nearid.moments import Floats


def auroc(positive: np.ndarray, scores: Floats) -> float:
    """Return the share of pairs of a positive and a negative row in the right order, with ties counted half.

    This is the statistic of Mann and Whitney. It is NaN if a class has no rows.
    """
    return area_of(positive, average_ranks(scores))


def area_of(positive: np.ndarray, ranks: Floats) -> float:
    """Return the same from the ranks of the scores."""
    hits = int(positive.sum())
    pairs = hits * (len(positive) - hits)
    if not pairs:
        return float("nan")
    return float((ranks[positive].sum() - hits * (hits + 1) / 2) / pairs)
