"""Finding the rotation: L-BFGS on the orthogonal group out of the noise, FastICA's fixed point, L-BFGS to the end.

For whitened z and a rotation W, y = W z. Stationary points of sum_i s_i E[G(y_i)] are the components: s_i tells whether
E[G] of component i is to be made small or large (super- or sub-Gaussian). With M = E[g(y) y^T] the gradient along
rotations is S M - M^T S, and its size relative to M is what `tol` bounds.

Three stages, each for what it does best:

1. *Climb.* At the start every component is a mixture of many, and its contrast is no larger than sampling noise. The
   fixed point leaps about there; L-BFGS, whose steps are bounded by the noise, climbs. It ends once the gradient is
   well below its peak.
2. *Fixed point.* A Newton step for well-separated sources, soon done where the model holds. Components that sit in
   noise it throws about until they find a source, also one of the other sign, which a descent cannot.
3. *Descend.* On real embeddings the fixed point creeps or circles. L-BFGS takes over once signs have settled.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nearid.groups.fits import polar
from nearid.moments import Floats

# The climb ends when the gradient is below this share of its peak, and has been for a step, and components stand out of
# the noise: the sum of |kappa| is above this many times sqrt(k / n) E[g(y) y], twice what Gaussian rows give.
CLIMB_ENDS_AT, ABOVE_NOISE = 0.5, 1.2
# The fixed point hands over when for so many steps no sign has flipped, the gradient has not fallen to the one share of
# what it was, nor has the sum of |kappa| grown by the other: components on their way to a source show in one of these.
STEPS_WITHOUT_FLIP, SLOW_DESCENT, GAIN = 3, 0.7, 0.006
MEMORY = 20
# Curvature below this share of the sampling noise of a whole component's gradient, sqrt(k / n), tells nothing: dividing
# by it would leap. And none below this share of the median, where rows are so many that there is no noise.
NOISE, LEAST_CURVATURE = 0.3, 1e-2


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
class Checkpoint:
    """Where a search stands after a pass; `solve` can go on from it.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
    signs : ndarray of shape (k,)
    gradients : list of float
        Relative gradient after each pass.
    stage : {"climb", "fixed point", "descend"}
    """

    rotation: Floats
    signs: Floats
    gradients: list[float]
    stage: str


@dataclass(frozen=True)
class Solution:
    """Where the search ended.

    Attributes
    ----------
    signs : ndarray of shape (k,)
    gradients : list of float
        Relative gradient after each pass.
    """

    state: State
    signs: Floats
    gradients: list[float]
    converged: bool


Oracle = Callable[[Floats, bool], State]
Keep = Callable[[Checkpoint], object]


def solve(
    oracle: Oracle,
    start: Floats | Checkpoint,
    *,
    tol: float,
    max_passes: int,
    n: int,
    gaussian: float,
    keep: Keep | None = None,
) -> Solution:
    """Search from a rotation, or go on from a checkpoint.

    Parameters
    ----------
    oracle : callable
        (rotation, with_values) -> State; one pass over the rows.
    start : ndarray of shape (k, k) or Checkpoint
    tol : float
        Relative gradient to stop at.
    n : int
        Rows behind each mean: signs of kappa within 2 / sqrt(n) of zero are noise and do not flip.
    gaussian : float
        E[G] of a Gaussian component: the first signs tell on which side of it each component is.
    keep : callable, optional
        Given a Checkpoint after every pass.
    """
    search = _Search(oracle, tol, max_passes, n, keep or (lambda _: None))
    if isinstance(start, Checkpoint):
        search.gradients, search.stage, signs = list(start.gradients[:-1]), start.stage, start.signs
        state = search.look(start.rotation, True, signs)
    else:
        state = oracle(start, True)
        signs = _signs(gaussian - state.values)
        search.note(state, signs)
    if search.stage == "climb":
        state, signs = search.descend(state, signs, until=CLIMB_ENDS_AT)
        search.stage = "fixed point"
    if search.stage == "fixed point":
        state, signs = search.iterate(state, signs)
        search.stage = "descend"
    if not search.over:
        if not state.values.any():
            state = search.look(state.rotation, True, signs)
        state, signs = search.descend(state, signs)
    return Solution(state, signs, search.gradients, search.gradients[-1] <= tol)


@dataclass
class _Search:
    """The budget of a search and what it has seen."""

    oracle: Oracle
    tol: float
    max_passes: int
    n: int
    keep: Keep
    gradients: list[float] = field(default_factory=list)
    stage: str = "climb"

    @property
    def over(self) -> bool:
        return self.gradients[-1] <= self.tol or len(self.gradients) >= self.max_passes

    def note(self, state: State, signs: Floats) -> None:
        self.gradients.append(state.relative_gradient(signs))
        self.keep(Checkpoint(state.rotation, signs, list(self.gradients), self.stage))

    def look(self, rotation: Floats, with_values: bool, signs: Floats) -> State:
        state = self.oracle(rotation, with_values)
        self.note(state, signs)
        return state

    def iterate(self, state: State, signs: Floats) -> tuple[State, Floats]:
        """The fixed point, until it gains nothing more."""
        settled, strengths = 0, [_strength(state)]
        while not self.over:
            if (
                settled >= STEPS_WITHOUT_FLIP
                and self.gradients[-1] > SLOW_DESCENT * self.gradients[-1 - STEPS_WITHOUT_FLIP]
                and strengths[-1] < (1 + GAIN) * strengths[-1 - STEPS_WITHOUT_FLIP]
            ):
                break
            # The fixed point may turn a component over; components keep their direction here.
            turned = polar(state.products - np.diag(state.slopes))
            turned *= _signs(np.diag(turned))[:, None]
            state = self.oracle(turned @ state.rotation, False)
            before, signs = signs, _flipped(signs, state.kappa, self.n)
            self.note(state, signs)
            settled = settled + 1 if np.array_equal(before, signs) else 0
            strengths.append(_strength(state))
        return state, signs

    def descend(self, state: State, signs: Floats, until: float = 0.0) -> tuple[State, Floats]:
        """L-BFGS with the pairwise preconditioner, Cayley retraction and Armijo steps.

        Ends early once two gradients in a row are below `until` times the largest that was seen, and components stand
        out of the noise.
        """
        memory: deque[tuple[Floats, Floats]] = deque(maxlen=MEMORY)
        noise = ABOVE_NOISE * np.sqrt(len(signs) / self.n)
        while not self.over:
            fallen = max(self.gradients[-2:]) < until * max(self.gradients)
            if fallen and _strength(state) > noise * np.trace(state.products):
                break
            gradient, curvature = state.gradient(signs), _curvature(state, self.n)
            direction = -_two_loops(gradient, memory, curvature)
            slope = float(np.sum(gradient * direction)) / 2
            if slope >= 0:
                memory.clear()
                direction = -gradient / curvature
                slope = float(np.sum(gradient * direction)) / 2
            value, length = float(signs @ state.values), 1.0
            while True:
                after = self.look(_cayley(length * direction) @ state.rotation, True, signs)
                # Rounding of the mean contrast must not reject the last steps.
                enough = float(signs @ after.values) <= value + 1e-4 * length * slope + 1e-7 * abs(value)
                if enough or length < 1e-3:
                    break
                if len(self.gradients) >= self.max_passes:
                    # The search is over, and its last step was refused: it ends where it was.
                    self.gradients[-1] = state.relative_gradient(signs)
                    return state, signs
                length /= 2
            change = after.gradient(signs) - gradient
            if np.sum(length * direction * change) > 0:
                memory.append((length * direction, change))
            state, before, signs = after, signs, _flipped(signs, after.kappa, self.n)
            if not np.array_equal(before, signs):
                memory.clear()
                self.gradients[-1] = state.relative_gradient(signs)
        return state, signs


def _strength(state: State) -> float:
    return float(np.abs(state.kappa).sum())


def _signs(values: Floats) -> Floats:
    return np.where(values < 0, -1.0, 1.0)


def _flipped(signs: Floats, kappa: Floats, n: int) -> Floats:
    return np.where(np.abs(kappa) > 2 / np.sqrt(n), _signs(kappa), signs)


def _curvature(state: State, n: int) -> Floats:
    """Second derivative along each pair's rotation, were the components independent; not below the noise."""
    size = np.abs(state.kappa)
    pairs = size[:, None] + size
    least = max(NOISE * np.sqrt(len(size) / n), LEAST_CURVATURE * float(np.median(pairs)), np.finfo(float).tiny)
    return np.asarray(np.maximum(pairs, least))


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
