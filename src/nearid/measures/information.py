"""Entropy and mutual information of discrete variables, in nats, from counts; of binned latents and factors."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from nearid.base.alerts import Alert
from nearid.base.progress import Progress
from nearid.measures.factors import Factors, all_binned, check_bins
from nearid.moments import Floats

Codes = NDArray[np.integer]
# In finite samples the mutual information of independent codes is above 0. An alert reports it above this share of the
# entropy.
BIAS = 0.05


def entropy(codes: Codes) -> float:
    """Return the entropy of a discrete variable with values 0, 1, ..."""
    counts = np.bincount(codes)
    shares = counts[counts > 0] / len(codes)
    return max(0.0, -float(np.sum(shares * np.log(shares))))


def discrete_mutual_information(a: Codes, b: Codes) -> float:
    """Return the mutual information of two discrete variables with values 0, 1, ..."""
    width = int(b.max()) + 1
    # Only pairs that occur are counted, because a table of all pairs could be larger than memory.
    pairs, joint = np.unique(a.astype(np.int64) * width + b, return_counts=True)
    alone = np.bincount(a)[pairs // width] * np.bincount(b)[pairs % width]
    # Counts are exact, so that independent variables give exactly 0.
    return max(0.0, float(np.sum(joint * np.log(len(a) * joint / alone)) / len(a)))


def all_information(x: Floats, factor_codes: Sequence[Codes], bins: int, tick: Callable[[], object]) -> Floats:
    """Return the mutual information of every latent, in bins of equal width, with every discrete factor (d, m)."""
    # Compiled by numba, whose import takes most of a second.
    from nearid.measures.tables import information

    n, d = x.shape
    latent_codes = np.ascontiguousarray(all_binned(x, bins).T)
    # Logarithms of all counts.
    logs = np.log(np.maximum(np.arange(n + 1), 1))
    matrix = np.zeros((d, len(factor_codes)))
    for i, codes in enumerate(factor_codes):
        matrix[:, i] = information(latent_codes, np.asarray(codes, dtype=np.int64), bins, logs)
        tick()
    return matrix


def mutual_information(
    x: Floats, factors: Factors, bins: int, progress: Progress
) -> tuple[Floats, Floats, tuple[Alert, ...]]:
    """Return the mutual information of binned latents and factors (d, m), entropies of the factors, and alerts."""
    check_bins(bins, len(x))
    factor_codes = [factor.codes(bins) for factor in factors.items]
    matrix = all_information(x, factor_codes, bins, progress("information", len(factor_codes)))
    entropies = np.array([entropy(codes) for codes in factor_codes])
    # The first term of the bias (Miller 1955): (levels - 1)(levels - 1) / 2n
    levels = np.array([len(np.unique(codes)) for codes in factor_codes])
    bias = (bins - 1) * (levels - 1) / (2 * len(x)) / entropies
    short = [repr(name) for name, share in zip(factors.names, bias, strict=True) if share > BIAS]
    alerts: tuple[Alert, ...] = ()
    if short:
        alerts += (
            Alert(
                "few_rows",
                f"{len(x)} rows are few for {bins} bins and the levels of {', '.join(short)}: even noise would share "
                f"about {min(float(bias.max()), 1.0):.2g} of their entropy. Use fewer bins or more rows.",
            ),
        )
    return matrix, entropies, alerts
