"""Contrasts: functions G whose mean measures how far a component of unit variance is from Gaussian."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple, Protocol

import numpy as np

from nearid.ica.solver import State
from nearid.moments import Floats


class Slope(Protocol):
    """Function that returns g' of every entry of y. If g is already known, it can be passed to save time."""

    def __call__(self, y: Floats, g: Floats | None = None) -> Floats: ...


class Evaluated(NamedTuple):
    """g = G' of every entry, and per component the sums of g' and (on request) of G."""

    g: Floats
    slopes: Floats
    values: Floats


@dataclass(frozen=True)
class Contrast:
    """A contrast with its values for a standard Gaussian.

    Attributes
    ----------
    evaluate : callable
        (y, with_values) -> Evaluated, for y of shape (rows, k).
    slope : callable
        (y, g) -> g' of every entry. Passing a known g saves time.
    heavy : int
        1 if E[G] of super-Gaussian (heavy-tailed) components is larger than that of a Gaussian component, else -1.
    gaussian : float
        E[G(v)] for a standard normal v.
    spread : float
        Standard deviation of G(v) after regression on v and v^2, because the mean and the variance of whitened
        components are fixed. For Gaussian components, sqrt(n) (mean G - gaussian) / spread is standard normal.
    """

    name: str
    evaluate: Callable[[Floats, bool], Evaluated]
    slope: Slope
    heavy: int
    gaussian: float
    spread: float

    def values(self, y: Floats) -> Floats:
        """Return G of every entry."""
        return _each(self.evaluate, y)


# Number of rounds in which numbers are multiplied in pairs before their logarithms are summed.
HALVINGS = 6


def _column_sums(rows: Floats) -> Floats:
    # Along contiguous memory numpy adds pairwise, which keeps the precision of the rows.
    sums = np.sum(rows, axis=0) if rows.flags.f_contiguous else np.sum(rows, axis=0, dtype=np.float64)
    return np.asarray(sums, dtype=np.float64)


def _square_sums(rows: Floats) -> Floats:
    # Along memory if columns are contiguous; otherwise einsum is faster.
    sums = np.vecdot(rows.T, rows.T) if rows.flags.f_contiguous else np.einsum("ij,ij->j", rows, rows)
    return np.asarray(sums.astype(np.float64))


def _logcosh(y: Floats, with_values: bool) -> Evaluated:
    g = np.tanh(y)
    values = np.zeros(y.shape[1])
    if with_values:
        # log cosh y = |y| - log(1 + tanh |y|).
        factors = np.abs(g)
        factors += 1
        values = _column_sums(np.abs(y)) - _log_sums(factors)
    return Evaluated(g, len(y) - _square_sums(g), values)


def _log_sums(rows: Floats) -> Floats:
    """Return sums of logarithms of numbers between 1 and 2, as logarithms of products. The rows are overwritten."""
    sums = np.zeros(rows.shape[1])
    # The two halves are multiplied with each other. Products stay below 2^64, far below the maximum of float32.
    for _ in range(HALVINGS):
        half = len(rows) // 2
        if len(rows) % 2:
            sums += np.log(rows[-1], dtype=np.float64)
        rows = np.multiply(rows[:half], rows[half : 2 * half], out=rows[:half])
    return sums + _column_sums(np.log(rows))


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


def _logcosh_slope(y: Floats, g: Floats | None = None) -> Floats:
    return np.asarray(1 - np.square(np.tanh(y) if g is None else g))


def _exp_slope(y: Floats, g: Floats | None = None) -> Floats:
    return np.asarray((1 - y * y) * np.exp(y * y / -2))


def _cube_slope(y: Floats, g: Floats | None = None) -> Floats:
    return np.asarray(3 * y * y)


def _radial(y: Floats, with_values: bool) -> Evaluated:
    k = y.shape[1]
    weights = np.log1p(np.einsum("ij,ij->i", y, y) / k) - y.dtype.type(np.log(2))
    return Evaluated(y * weights[:, None], np.zeros(k), np.zeros(k))


def _radial_slope(y: Floats, g: Floats | None = None) -> Floats:
    return np.zeros_like(y)


def _each(evaluate: Callable[[Floats, bool], Evaluated], y: Floats) -> Floats:
    # Sums over one row are the entries themselves.
    return evaluate(y.reshape(1, -1), True).values.reshape(y.shape)


def _contrast(name: str, evaluate: Callable[[Floats, bool], Evaluated], slope: Slope, heavy: int) -> Contrast:
    """Return a contrast with its values for a standard normal, computed by Gauss-Hermite quadrature."""
    v, weights = np.polynomial.hermite_e.hermegauss(120)
    weights = weights / weights.sum()
    values = _each(evaluate, v)
    mean, bend = float(weights @ values), float(weights @ (values * (v**2 - 1))) / 2
    spread = float(np.sqrt(weights @ (values - mean - bend * (v**2 - 1)) ** 2))
    return Contrast(name, evaluate, slope, heavy, mean, spread)


CONTRASTS = {
    c.name: c
    for c in (
        _contrast("logcosh", _logcosh, _logcosh_slope, -1),
        _contrast("exp", _exp, _exp_slope, -1),
        _contrast("cube", _cube, _cube_slope, 1),
    )
}

# Not a contrast of single components: g is each row times an increasing function of its length. For whitened rows the
# eigenvectors of E[g(y) y^T] separate sources of different kurtosis. In fourth-order blind identification (Cardoso
# 1989) the weight is the squared length. Its logarithm is used here to limit the influence of outlying rows.
RADIAL = Contrast("radial", _radial, _radial_slope, 1, 0.0, 1.0)


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Return nodes and weights for means over a standard Gaussian. Every pass over a rotation uses them."""
    v, weights = np.polynomial.hermite_e.hermegauss(60)
    return v, weights / weights.sum()


@dataclass(frozen=True)
class UnwhitenedContrast:
    """Corrections of the contrast for rows that are not whitened.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Variances along the principal directions, in one common unit.
    """

    variances: Floats
    contrast: Contrast

    def covariance(self, rotation: Floats) -> Floats:
        """Return the covariance of the components."""
        return np.asarray(rotation * self.variances @ rotation.T)

    def _gaussian(self, variances: Floats) -> tuple[Floats, Floats, Floats]:
        """Return E[G], E[g'] and the derivative of E[g'] by the variance, for Gaussian components."""
        v, weights = _quadrature()
        y = np.sqrt(variances)[:, None] * v
        slopes = self.contrast.slope(y)
        return self.contrast.values(y) @ weights, slopes @ weights, slopes @ (weights * (v**2 - 1)) / (2 * variances)

    def corrected(self, state: State) -> State:
        """Return the state of a pass minus the values of Gaussian components, in the form for unit variances."""
        covariance = self.covariance(state.rotation)
        variances = np.diag(covariance)
        values, slopes, change = self._gaussian(variances)
        # If i is rotated into j, a variance changes by twice the covariance, and E[G] by E[g'] / 2 times that.
        products = state.products - slopes[:, None] * (covariance - np.diag(variances))
        seconds = state.seconds
        if seconds is not None:
            # The same correction for E[g'(y_i) y_j^2] - E[g(y_i) y_i].
            lost = np.outer(slopes, variances) + 2 * change[:, None] * covariance**2
            seconds = seconds - lost + (slopes * variances)[:, None]
        return replace(
            state,
            products=products,
            slopes=variances * state.slopes,
            values=None if state.values is None else state.values - values + self.contrast.gaussian,
            seconds=seconds,
        )
