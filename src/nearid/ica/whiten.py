"""Whitening from moments: the map that makes a covariance the identity on the directions that exist."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from nearid.base.errors import InputError
from nearid.moments import Floats, Moments, spectrum

Form = Literal["pca", "zca"]

# Directions need this many times the variance of rounding to be distinguished from it.
ROUNDINGS = 4


@dataclass(frozen=True)
class Whitener:
    """z = (x - mean) forward^T, x = z backward^T + mean.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    forward : ndarray of shape (k, p)
    backward : ndarray of shape (p, k)
    variances : ndarray of shape (rank,)
        Variances along all resolvable principal directions, descending.
    rank : int
        Number of resolvable directions; k of them are kept.
    """

    mean: Floats
    forward: Floats
    backward: Floats
    variances: Floats
    rank: int


def fit_whitener(
    moments: Moments,
    *,
    components: int | None = None,
    form: Form = "pca",
    rtol: float = 0.0,
    stored: np.dtype | None = None,
) -> Whitener:
    """Whiten along the principal directions above the cut.

    The rank is judged in units of each column's own size, so that mixed scales lose nothing: columns are brought to
    unit variance first, their span found there, and the principal directions of the data's own units taken within it.

    Parameters
    ----------
    components : int, optional
        Leading directions to keep; all by default.
    form : {"pca", "zca"}
        "pca" orders by variance; "zca" rotates back, so that z stays as near to x as it can (p columns).
    rtol : float
        Further relative cut on variances.
    stored : dtype, optional
        Precision of the rows: directions that vary no more than its rounding do not exist. Float64 by default.
    """
    units = spectrum(moments.scatter / max(moments.n, 1), moments.n)
    # Rounding moves a value by up to half a unit in its last place, evenly: a twelfth of the unit squared.
    unit = float(np.finfo(stored or np.float64).eps) * moments.mean / units.sizes
    real = units.values > ROUNDINGS * (units.vectors**2).T @ (unit**2 / 12)
    if not real.any():
        raise InputError("No column varies by more than the rounding of its numbers: there is nothing to whiten.")
    units = replace(units, values=units.values[real], vectors=units.vectors[:, real])
    # Rows of `span` carry unit coordinates to the data's own units, `unspan` back. The principal directions of the data
    # are a rotation u of those coordinates: applying u, never dividing by singular values, keeps small scales exact.
    span = (units.vectors * np.sqrt(units.values)).T * units.sizes
    unspan = units.vectors / np.sqrt(units.values) / units.sizes[:, None]
    u, singular, vt = np.linalg.svd(span, full_matrices=False)
    rank = len(singular) if rtol == 0 else int(np.sum(singular > np.sqrt(rtol) * singular[0]))
    k = rank if components is None else min(components, rank)
    # Signs of principal directions are arbitrary: the largest loading of each is made positive.
    signs = np.sign(vt[np.arange(k), np.abs(vt[:k]).argmax(axis=1)])
    forward, backward, lead = (unspan @ u[:, :k] * signs).T, span.T @ u[:, :k] * signs, vt[:k].T * signs
    if form == "zca":
        forward, backward = lead @ forward, backward @ lead.T
    return Whitener(moments.mean, forward, backward, singular[:rank] ** 2, rank)
