"""Finding the rotation: FastICA's fixed point first, then L-BFGS on the orthogonal group.

For whitened z and a rotation W, y = W z. Stationary points of sum_i s_i E[G(y_i)], with s_i the sign of
kappa_i = E[g'(y_i)] - E[g(y_i) y_i], are the components: s_i tells whether E[G] of component i is to be made small or
large (super- or sub-Gaussian). With M = E[g(y) y^T] the gradient along rotations is S M - M^T S, and its size relative
to M is what `tol` bounds.

The fixed point is a Newton step for well-separated sources and soon done there. On real embeddings it creeps; L-BFGS
with the pairwise Hessian |kappa_i| + |kappa_j| as preconditioner takes over once signs have settled and it is slow.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nearid.groups.fits import polar
from nearid.moments import Floats

# The fixed point hands over when the gradient falls by less than this a step, with signs settled for SETTLED steps.
SLOW, SETTLED = 0.8, 4
# Not before the gradient is below this share of its peak: a random start of many components first wanders on a plateau
# of sampling noise, where signs mean nothing yet; nor later than so many passes.
FALLEN, PATIENT = 0.5, 100
MEMORY = 20
# Curvature below this share of the median is that of near-Gaussian pairs; dividing by it would leap.
LEAST_CURVATURE = 1e-2


@dataclass(frozen=True)
class State:
    """A rotation and what a pass found there.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
    products : ndarray of shape (k, k)
        M = E[g(y) y^T].
    slopes, values : ndarray of shape (k,)
        E[g'(y)] and E[G(y)].
    """

    rotation: Floats
    products: Floats
    slopes: Floats
    values: Floats

    @property
    def kappa(self) -> Floats:
        """E[g'(y)] - E[g(y) y] of each component: 0 for a Gaussian one."""
        return self.slopes - np.diag(self.products)

    def gradient(self, signs: Floats) -> Floats:
        """Derivative along rotations, antisymmetric."""
        signed = signs[:, None] * self.products
        return signed - signed.T

    def relative_gradient(self, signs: Floats) -> float:
        """Size of the gradient relative to M."""
        return float(np.linalg.norm(self.gradient(signs)) / np.sqrt(2) / np.linalg.norm(self.products))


@dataclass(frozen=True)
class Solution:
    """Where the search ended.

    Attributes
    ----------
    state : State
    signs : ndarray of shape (k,)
    gradients : list of float
        Relative gradient after each pass.
    converged : bool
    """

    state: State
    signs: Floats
    gradients: list[float]
    converged: bool


Oracle = Callable[[Floats, bool], State]


def solve(oracle: Oracle, start: Floats, *, tol: float, max_passes: int, n: int) -> Solution:
    """Search from a rotation.

    Parameters
    ----------
    oracle : callable
        (rotation, with_values) -> State; one pass over the rows.
    start : ndarray of shape (k, k)
    tol : float
        Relative gradient to stop at.
    max_passes : int
    n : int
        Rows behind each mean: signs of kappa within 2 / sqrt(n) of zero are noise and do not flip.
    """
    state = oracle(start, False)
    signs = np.where(state.kappa < 0, -1.0, 1.0)
    gradients = [state.relative_gradient(signs)]
    settled = 0
    while gradients[-1] > tol and len(gradients) < max_passes:
        begun = gradients[-1] < FALLEN * max(gradients) or len(gradients) >= PATIENT
        if begun and settled >= SETTLED and gradients[-1] > SLOW * gradients[-2]:
            return _descend(oracle, oracle(state.rotation, True), signs, gradients, tol, max_passes, n)
        step = state.products - np.diag(state.slopes)
        # The fixed point may turn a component over; components keep their direction here.
        turned = polar(step)
        turned *= np.where(np.diag(turned) < 0, -1.0, 1.0)[:, None]
        state = oracle(turned @ state.rotation, False)
        before, signs = signs, _flipped(signs, state.kappa, n)
        settled = settled + 1 if np.array_equal(before, signs) else 0
        gradients.append(state.relative_gradient(signs))
    return Solution(state, signs, gradients, gradients[-1] <= tol)


def _flipped(signs: Floats, kappa: Floats, n: int) -> Floats:
    return np.where(np.abs(kappa) > 2 / np.sqrt(n), np.where(kappa < 0, -1.0, 1.0), signs)


def _descend(
    oracle: Oracle, state: State, signs: Floats, gradients: list[float], tol: float, max_passes: int, n: int
) -> Solution:
    """L-BFGS with the pairwise preconditioner, Cayley retraction and Armijo steps."""
    memory: deque[tuple[Floats, Floats]] = deque(maxlen=MEMORY)
    gradients = [*gradients, state.relative_gradient(signs)]
    while gradients[-1] > tol and len(gradients) < max_passes:
        gradient = state.gradient(signs)
        direction = -_two_loops(gradient, memory, _curvature(state))
        slope = float(np.sum(gradient * direction)) / 2
        if slope >= 0:
            memory.clear()
            direction = -gradient / _curvature(state)
            slope = float(np.sum(gradient * direction)) / 2
        value, length = float(signs @ state.values), 1.0
        while True:
            after = oracle(_cayley(length * direction) @ state.rotation, True)
            gradients.append(after.relative_gradient(signs))
            # Rounding of the mean contrast must not reject the last steps.
            enough = float(signs @ after.values) <= value + 1e-4 * length * slope + 1e-7 * abs(value)
            if enough or length < 1e-3 or len(gradients) >= max_passes:
                break
            length /= 2
        change = after.gradient(signs) - gradient
        if np.sum(length * direction * change) > 0:
            memory.append((length * direction, change))
        state, before, signs = after, signs, _flipped(signs, after.kappa, n)
        if not np.array_equal(before, signs):
            memory.clear()
            gradients[-1] = state.relative_gradient(signs)
    return Solution(state, signs, gradients, gradients[-1] <= tol)


def _curvature(state: State) -> Floats:
    """Second derivative along each pair's rotation, were the components independent."""
    size = np.abs(state.kappa)
    pairs = size[:, None] + size
    return np.asarray(np.maximum(pairs, LEAST_CURVATURE * np.median(pairs) + np.finfo(float).tiny))


def _two_loops(gradient: Floats, memory: deque[tuple[Floats, Floats]], curvature: Floats) -> Floats:
    """The L-BFGS product of the inverse Hessian with the gradient."""
    q, factors = gradient.copy(), []
    for step, change in reversed(memory):
        factor = np.sum(step * q) / np.sum(step * change)
        factors.append(factor)
        q -= factor * change
    q /= curvature
    for (step, change), factor in zip(memory, reversed(factors), strict=True):
        q += step * (factor - np.sum(change * q) / np.sum(step * change))
    return q


def _cayley(skew: Floats) -> Floats:
    """The rotation (I - A/2)^-1 (I + A/2)."""
    eye = np.eye(len(skew))
    rotation: Floats = np.linalg.solve(eye - skew / 2, eye + skew / 2)
    return rotation
