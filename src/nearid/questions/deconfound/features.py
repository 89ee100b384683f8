"""Which columns of the embedding components are made of: their correlations, from the moments of the rows alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from nearid.moments import ROUNDING, Floats, Moments
from nearid.questions.deconfound.conditions import Condition

# Columns that are named of a component, and of all technical components together.
OF_EACH, OF_ALL = 5, 10


class Named(NamedTuple):
    """A column and a figure of it: its correlation with a component, or its share in some components."""

    name: str
    value: float


class Features(NamedTuple):
    """Columns that technical components are most correlated with.

    Attributes
    ----------
    of_each : dict of int -> tuple of Named
        Of each technical component, the columns with the largest correlations.
    of_all : tuple of Named
        Columns with the largest share of their variance in all technical components together, and this share.
    """

    of_each: dict[int, tuple[Named, ...]]
    of_all: tuple[Named, ...]


NO_FEATURES = Features({}, ())


def features(condition: Condition, moments: Moments, which: np.ndarray, names: Sequence[str]) -> Features:
    """Columns of some components of a condition; the moments are those of its rows."""
    if not len(which):
        return NO_FEATURES
    r = correlations(condition.some(which), moments)
    of_each = {}
    for at, k in enumerate(which):
        top = np.argsort(-np.abs(r[:, at]), kind="stable")[:OF_EACH]
        of_each[int(k)] = tuple(Named(names[j], float(r[j, at])) for j in top if r[j, at])
    # The components are uncorrelated where they are whitened, so that their shares add up.
    shares = np.minimum(np.sum(r**2, axis=1), 1.0)
    top = np.argsort(-shares, kind="stable")[:OF_ALL]
    return Features(of_each, tuple(Named(names[j], float(shares[j])) for j in top if shares[j]))


def correlations(condition: Condition, moments: Moments) -> Floats:
    """Correlation of each column with each component, of shape (d, k); 0 for columns that are constant."""
    covariance = moments.scatter / moments.n
    deviations = np.sqrt(np.diagonal(covariance))
    live = deviations > ROUNDING * np.abs(moments.mean)
    if condition.matrix is None:
        shared, own = covariance[:, condition.columns], deviations[condition.columns]
    else:
        shared = covariance @ condition.matrix.T
        own = np.sqrt(np.einsum("kd,dk->k", condition.matrix, shared))
    r = np.zeros_like(shared)
    np.divide(shared, np.outer(deviations, own), out=r, where=live[:, None] & (own > 0))
    return np.clip(r, -1, 1)
