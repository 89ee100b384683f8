"""Bounds for bi-Lipschitz decoders (Nelson et al. 2026). Proven and fitted quantities are kept separate.

Theorem 1. Two optimal models whose decoders are locally L-bi-Lipschitz are linked by an L^2-bi-Lipschitz map of their
latents, which is an (L^2 - 1) D-near-isometry for latents of diameter D and convex support. Near-isometries are near
isometries (Alestalo, Trotsenko and Vaisala 2001): for L^2 - 1 < 1 there is a rigid motion within
c_d D sqrt(L^2 - 1). It is proven that c_d exists and depends only on the dimension. Its size is given by the caller or
fitted.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate


@dataclass(frozen=True)
class RigidBound:
    """Theorem 1 for a bi-Lipschitz constant.

    Attributes
    ----------
    lipschitz : float
        The constant L. Samples give only a lower bound of it.
    rate : float
        sqrt(L^2 - 1), proven up to the constant.
    applies : bool
        Whether L^2 - 1 < 1, which the theorem on near-isometries needs.
    constant : float or None
        The factor of the rate: given by the caller, or fitted.
    epsilon : float or None
        constant * rate: the error of the best rigid motion over the diameter of the latents. None without a
        constant, or if the theorem does not apply.
    """

    lipschitz: float
    rate: float
    applies: bool
    constant: float | None
    epsilon: float | None


@dataclass(frozen=True)
class FittedRate:
    """The curve error = c sqrt(L^2 - 1), fitted to measured errors.

    Attributes
    ----------
    constant : Estimate
        c by least squares. It describes only these runs.
    r2 : float
        Share of the variance of the errors that the curve explains. It is below 0 if the mean explains more.
    """

    constant: Estimate
    r2: float

    def at(self, lipschitz: ArrayLike) -> np.ndarray:
        """Return the error on the curve at given constants."""
        return np.asarray(self.constant.value * rate(lipschitz))


def rate(lipschitz: ArrayLike) -> np.ndarray:
    """Return sqrt(L^2 - 1) for bi-Lipschitz constants L."""
    constants = np.asarray(lipschitz, dtype=np.float64)
    if not (constants >= 1).all():
        raise InputError(f"Bi-Lipschitz constants must be at least 1, but {constants.min()} was given.")
    return np.asarray(np.sqrt((constants - 1) * (constants + 1)))


def rigid_bound(lipschitz: float, constant: float | None = None) -> RigidBound:
    """Return the bound of Theorem 1: the error of the best rigid motion between two optimal models.

    The error is relative to the diameter of the latents.

    Parameters
    ----------
    lipschitz : float
        A bound on the local bi-Lipschitz constants of both decoders.
    constant : float, optional
        The constant c_d of Alestalo, Trotsenko and Vaisala, or a fitted one.

    Returns
    -------
    RigidBound
        The rate, whether the theorem applies, and the bound if a constant was given.

    Examples
    --------
    >>> from nearid.geometry.bounds import rigid_bound
    >>> bound = rigid_bound(1.25, constant=2.0)
    >>> bound.applies, bound.rate, bound.epsilon
    (True, 0.75, 1.5)
    """
    if constant is not None and not 0 < constant < np.inf:
        raise InputError(f"The constant of the bound must be above 0 and finite, not {constant}.")
    grows = float(rate(lipschitz))
    applies = grows < 1
    return RigidBound(float(lipschitz), grows, applies, constant, constant * grows if constant and applies else None)


def fit_rate(lipschitz: ArrayLike, errors: ArrayLike) -> FittedRate:
    """Return the least-squares fit of error = c sqrt(L^2 - 1) to the errors of several runs, as in Figure 2.

    Parameters
    ----------
    lipschitz : array of shape (n,)
        Bi-Lipschitz constants of the runs: means or maxima over samples.
    errors : array of shape (n,)
        Rigid error of each run.

    Returns
    -------
    FittedRate
        The constant c with an interval, and R2.

    Examples
    --------
    >>> from nearid.geometry.bounds import fit_rate
    >>> fitted = fit_rate([1.0, 1.1, 1.2], [0.0, 0.09, 0.13])
    >>> round(fitted.constant.value, 2)
    0.2
    """
    from scipy.special import stdtrit

    x, y = rate(lipschitz), np.asarray(errors, dtype=np.float64)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 3:
        raise InputError(
            f"The constants have shape {x.shape} and the errors {y.shape}, but one constant and one error for each of "
            "at least 3 runs are expected."
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise InputError("Some constants or errors are not finite. Leave these runs out.")
    size = float(x @ x)
    if size == 0:
        raise InputError("All constants are 1, so the curve is 0 everywhere and cannot be fitted.")
    constant = float(x @ y) / size
    left = y - constant * x
    half = float(stdtrit(len(x) - 1, 0.975) * np.sqrt(left @ left / (len(x) - 1) / size))
    spread = float(np.sum((y - y.mean()) ** 2))
    r2 = 1 - float(left @ left) / spread if spread > 0 else float("nan")
    interval = constant - half, constant + half
    return FittedRate(Estimate(constant, *interval, of="runs, Student's t", n=len(x)), r2)


def statistical_bound(epsilon: float, *, norm: float = 1.0) -> float:
    """Return the largest distance of two runs that are both within epsilon of the truth: (1 + K) epsilon (A.5).

    So structural near-identifiability implies statistical near-identifiability.

    Parameters
    ----------
    epsilon : float
        Largest error of either run against the truth, up to the group.
    norm : float
        K, a bound on the operator norm of the elements of the group. It is 1 for signed permutations and rigid
        motions, and the ratio of the scales of the runs if the scale is free.

    Returns
    -------
    float
        (1 + K) epsilon.

    Examples
    --------
    >>> from nearid.geometry.bounds import statistical_bound
    >>> statistical_bound(0.1)
    0.2
    """
    if not epsilon >= 0 or not norm > 0:
        raise InputError(f"epsilon must be at least 0 and norm above 0, but they are {epsilon} and {norm}.")
    return (1 + norm) * epsilon


def leaky_relu_bound(leak: float, activations: int) -> tuple[float, float]:
    """Return the proven bound leak^-activations on the bi-Lipschitz constant of orthogonal layers with LeakyReLU.

    Every activation multiplies each coordinate by the leak or by 1. Layers with orthonormal columns preserve
    lengths. So all stretches lie between leak^activations and 1.

    Parameters
    ----------
    leak : float
        Slope for negative inputs, above 0 and at most 1.
    activations : int
        Number of LeakyReLU layers of the decoder.

    Returns
    -------
    tuple of float
        The bound, and its square root, which is the bound under the best global scale. Both are infinite if they
        exceed the range of floats.

    Examples
    --------
    >>> from nearid.geometry.bounds import leaky_relu_bound
    >>> leaky_relu_bound(0.25, 1)
    (4.0, 2.0)
    """
    if not 0 < leak <= 1 or activations < 0:
        raise InputError(
            "leak must be above 0 and at most 1, and activations a whole number of at least 0, but they are "
            f"{leak} and {activations}."
        )
    return _power(leak, -activations), _power(leak, -activations / 2)


def _power(base: float, exponent: float) -> float:
    """Return the power, or infinity if it is too large for a float."""
    try:
        return float(float(base) ** exponent)
    except OverflowError:
        return float(np.inf)
