"""Contrasts: the function G whose mean tells how far a unit-variance component is from Gaussian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.moments import Floats


class Evaluated(NamedTuple):
    """g = G' of every entry, and per component the sums of g' and (where asked) of G."""

    g: Floats
    slopes: Floats
    values: Floats


@dataclass(frozen=True)
class Contrast:
    """A contrast and what it gives for a standard Gaussian.

    Attributes
    ----------
    name : str
    evaluate : callable
        (y, with_values) -> Evaluated, of y of shape (rows, k).
    gaussian : float
        E[G(v)] for a standard normal v.
    """

    name: str
    evaluate: Callable[[Floats, bool], Evaluated]
    gaussian: float


def _column_sums(rows: Floats) -> Floats:
    return np.asarray(np.sum(rows, axis=0, dtype=np.float64))


def _logcosh(y: Floats, with_values: bool) -> Evaluated:
    values = np.zeros(y.shape[1])
    if with_values:
        # log cosh y = |y| + log(1 + exp(-2 |y|)) - log 2.
        size = np.abs(y)
        values = _column_sums(size) - len(y) * np.log(2)
        size *= -2
        np.exp(size, out=size)
        values += _column_sums(np.log1p(size, out=size))
    g = np.tanh(y)
    return Evaluated(g, len(y) - np.einsum("ij,ij->j", g, g).astype(np.float64), values)


def _exp(y: Floats, with_values: bool) -> Evaluated:
    squares = y * y
    bell = np.exp(squares / -2)
    values = -_column_sums(bell) if with_values else np.zeros(y.shape[1])
    slopes = _column_sums(bell) - np.einsum("ij,ij->j", squares, bell).astype(np.float64)
    bell *= y
    return Evaluated(bell, slopes, values)


def _cube(y: Floats, with_values: bool) -> Evaluated:
    squares = y * y
    values = _column_sums(squares * squares) / 4 if with_values else np.zeros(y.shape[1])
    slopes = 3 * _column_sums(squares)
    squares *= y
    return Evaluated(squares, slopes, values)


def _radial(y: Floats, with_values: bool) -> Evaluated:
    k = y.shape[1]
    weights = np.log1p(np.einsum("ij,ij->i", y, y) / k) - y.dtype.type(np.log(2))
    return Evaluated(y * weights[:, None], np.zeros(k), np.zeros(k))


def _gaussian_mean(function: Callable[[Floats, bool], Evaluated]) -> float:
    """Mean of G under a standard normal, by Gauss-Hermite quadrature."""
    points, weights = np.polynomial.hermite_e.hermegauss(120)
    values = [function(np.array([[p]]), True).values[0] for p in points]
    return float(weights @ values / weights.sum())


CONTRASTS = {
    name: Contrast(name, function, _gaussian_mean(function))
    for name, function in (("logcosh", _logcosh), ("exp", _exp), ("cube", _cube))
}

# Not a contrast of single components: g is each row times a growing function of its length. For whitened rows the
# eigenvectors of E[g(y) y^T] part sources of different kurtosis (Cardoso 1989: fourth-order blind identification, whose
# weight is the squared length itself; its logarithm keeps outlying rows from deciding).
RADIAL = Contrast("radial", _radial, 0.0)
