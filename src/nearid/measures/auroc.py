"""Area under the ROC curve, by ranks."""

from __future__ import annotations

import numpy as np

from nearid.moments import Floats


def auroc(positive: np.ndarray, scores: Floats) -> float:
    """Share of pairs of a positive and a negative row in the right order, ties counted half (Mann & Whitney).

    NaN where a class has no rows.
    """
    from scipy.stats import rankdata

    hits = int(positive.sum())
    pairs = hits * (len(positive) - hits)
    if not pairs:
        return float("nan")
    return float((rankdata(scores)[positive].sum() - hits * (hits + 1) / 2) / pairs)
