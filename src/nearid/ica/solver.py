"""Search for the rotation in three stages: L-BFGS on the orthogonal group, the fixed point of FastICA, L-BFGS again.

For whitened z and a rotation W, y = W z. The components are stationary points of sum_i s_i E[G(y_i)]. The sign s_i says
whether E[G] of component i is minimised or maximised (super- or sub-Gaussian). With M = E[g(y) y^T] the gradient along
rotations is S M - M^T S. `tol` is a bound on its size relative to M.

The three stages are:

1. *Climb.* At the start every component is a mixture of many sources, and its contrast is no larger than sampling
   noise. The fixed point jumps around there. L-BFGS, with steps bounded by the noise, makes progress. The stage ends
   when the gradient is well below its peak. If the start separates sources by their kurtosis, the climb first rotates
   components only within groups of similar kurtosis, because there is less noise in fewer dimensions.
2. *Fixed point.* A Newton step for well-separated sources, which converges fast if the model holds. Components in noise
   move until they find a source, even one of the other sign, which a descent cannot do. If passes are expensive,
   components that no longer move are set aside: a pass for a third of the components costs 2/9 of a pass for all.
3. *Descend.* On real embeddings the fixed point may slow down or cycle. L-BFGS takes over when the signs no longer
   change. Its steps are scaled by second derivatives along the rotations of pairs, which are measured every few passes.
   Components of real rows are dependent, so these are only a fraction of the values for independent components.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearid.groups.fits import polar
from nearid.ica.recurrence import Tried
from nearid.moments import Floats

# The climb ends when the gradient is below this share of its peak for two steps, and components are above noise: sum
# of |kappa| is above this many times sqrt(k / n) E[g(y) y], which is twice the value for Gaussian rows.
CLIMB_ENDS_AT, ABOVE_NOISE = 0.5, 1.2
# The fixed point ends when, over so many steps, no sign has flipped, the gradient has not fallen to the first share of
# its value, and the sum of |kappa| has not grown by the second share. Otherwise components still move to a source.
STEPS_WITHOUT_FLIP, SLOW_DESCENT, GAIN = 3, 0.7, 0.006
# A climb within groups ends after so many passes, or earlier if components are above the noise of their group.
PASSES_IN_GROUPS = 12
# A component is at rest if two consecutive fixed-point steps moved it by less than this. Components at rest are set
# aside when they are at least this share of the active ones. When less than the last share of all is active, all
# components become active again.
AT_REST, SHARE_AT_REST, LEAST_IN_MOTION = 0.1, 0.1, 0.08
MEMORY = 20
# Number of steps of the descent for which measured second derivatives are used.
STEPS_OF_CURVATURE = 5
# Far from an optimum they are misleading. So they are bounded below by this share of the values for independent
# components, and near the optimum by so many times the relative gradient.
FAR_SHARE, NEAR_SHARE = 0.25, 2.0
# Number of consecutive passes with little expected gain before a search ends, since it may slowly cross a saddle.
PASSES_IN_TURN = 3
# Lower bounds of the curvature, to avoid large steps: this share of the sampling noise of the gradient of a component,
# sqrt(k / n), and this share of the typical curvature, for rows so many that there is no noise.
NOISE, LEAST_CURVATURE = 0.3, 1e-2
TINY = float(np.finfo(float).tiny)
ROOT_2 = float(np.sqrt(2))


@dataclass(frozen=True)
class State:
    """A rotation and the results of a pass at this rotation.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
    products : ndarray of shape (k, k)
        M = E[g(y) y^T].
    slopes : ndarray of shape (k,)
        E[g'(y)].
    values : ndarray of shape (k,) or None
        E[G(y)], if requested.
    seconds : ndarray of shape (k, k) or None
        E[g'(y_i) y_j^2] - E[g(y_i) y_i], the second derivative of E[G(y_i)] when i is rotated into j, if requested.
    """

    rotation: Floats
    products: Floats
    slopes: Floats
    values: Floats | None = None
    seconds: Floats | None = None

    @property
    def kappa(self) -> Floats:
        """E[g'(y)] - E[g(y) y] of each component: 0 for a Gaussian one."""
        return np.asarray(self.slopes - self.products.diagonal())

    def measured(self) -> Floats:
        """Return E[G(y)], which the pass must have computed."""
        assert self.values is not None
        return self.values

    def gradient(self, signs: Floats) -> Floats:
        """Return the derivative along rotations, an antisymmetric matrix."""
        signed = signs[:, None] * self.products
        return signed - signed.T

    def relative_gradient(self, signs: Floats) -> float:
        """Return the size of the gradient relative to M."""
        return _size(self.gradient(signs)) / ROOT_2 / _size(self.products)


@dataclass(frozen=True)
class Checkpoint:
    """State of a search after a pass, from which `solve` can continue.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
    signs : ndarray of shape (k,)
    gradients : list of float
        Relative gradient after each pass.
    stage : {"climb", "fixed point", "descend"}
    tried : Tried or None
        Results of several starts, of which this search is the best.
    race : tuple of Checkpoint
        Checkpoints of the searches from several starts, until the best one is chosen.
    """

    rotation: Floats
    signs: Floats
    gradients: list[float]
    stage: str
    tried: Tried | None = None
    race: tuple[Checkpoint, ...] = ()


@dataclass(frozen=True)
class Solution:
    """Result of a search.

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


Oracle = Callable[[Floats, bool, bool], State]
Keep = Callable[[Checkpoint], object]
Stage = Literal["climb", "fixed point", "descend"]


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
    """Return the solution of a search from a rotation or a checkpoint, until the relative gradient is at most `tol`.

    See `Search` for the other parameters.
    """
    search = Search(oracle, start, max_passes=max_passes, n=n, gaussian=gaussian, keep=keep)
    search.advance(tol)
    return search.solution(tol)


class Search:
    """A search for a rotation, which can be continued with a smaller tolerance.

    Parameters
    ----------
    oracle : callable
        (rotation, with_values, with_seconds) -> State; one pass over the rows.
    start : ndarray of shape (k, k) or Checkpoint
    max_passes : int
        Maximum number of passes.
    n : int
        Number of rows. Values of kappa within 2 / sqrt(n) of zero are noise and do not flip a sign.
    gaussian : float
        E[G] of a Gaussian component. It determines the initial sign of each component.
    keep : callable, optional
        Called with a Checkpoint after every pass.
    stage : {"climb", "fixed point"}
        First stage of a search from a rotation.
    groups : int
        Number of groups of neighbouring components within which the climb begins, if the start is in the noise.
    set_aside : bool
        Whether the fixed point sets components at rest aside. The oracle then also gets rotations with fewer rows.

    Attributes
    ----------
    tried : Tried or None
        Results of several starts, of which this is the best. They are stored in every Checkpoint.
    """

    def __init__(
        self,
        oracle: Oracle,
        start: Floats | Checkpoint,
        *,
        max_passes: int,
        n: int,
        gaussian: float,
        keep: Keep | None = None,
        stage: Stage = "climb",
        groups: int = 1,
        set_aside: bool = False,
    ) -> None:
        self.keep, self.tried = keep, start.tried if isinstance(start, Checkpoint) else None
        self.stage: str = stage
        self.signs: Floats
        self.gradients: list[float] = []
        self._oracle, self._max_passes, self._n = oracle, max_passes, n
        self._memory: deque[tuple[Floats, Floats, float]] = deque(maxlen=MEMORY)
        # Number of fixed-point steps since a sign flipped.
        self._settled = 0
        # Pairs of components that may be rotated (None: all), and the number of components per group.
        self._pairs: Floats | None = None
        self._group = len(start.rotation if isinstance(start, Checkpoint) else start)
        # Components that are set aside with their signs, and the number of steps each other one has been at rest.
        self._set_aside, self._aside, self._rested = set_aside, _Aside(), np.zeros(self._group)
        # Measured second derivatives, and the number of steps since the measurement.
        self._seconds: Floats | None = None
        self._age = 0
        if isinstance(start, Checkpoint):
            self.gradients, self.stage = list(start.gradients[:-1]), start.stage
            self._arrive(oracle(start.rotation, True, self.stage == "descend"), start.signs)
        else:
            state = oracle(start, True, False)
            if groups > 1 and stage == "climb" and not stands_out(state, n):
                group = np.arange(self._group) * groups // self._group
                self._pairs, self._group = 1.0 * (group[:, None] == group), -(-self._group // groups)
            self._arrive(state, _signs(gaussian - state.measured()))
        # The sum of |kappa| at the beginning of the fixed point and after each of its steps.
        self._strengths = [_strength(self.state)]

    def advance(self, tol: float, gain: float = 0.0) -> None:
        """Continue until the relative gradient is at most `tol`, or the maximum number of passes is reached.

        Parameters
        ----------
        gain : float
            The search also ends if each of the last passes was expected to gain at most this share of the contrast.
        """
        promised: list[float] = []
        while (self.gradients[-1] > tol or len(self._aside)) and len(self.gradients) < self._max_passes:
            if gain:
                promised.append(self._promised())
                if len(promised) >= PASSES_IN_TURN and max(promised[-PASSES_IN_TURN:]) < gain:
                    return
            if self.stage == "climb" and self._has_climbed():
                self._begin("fixed point")
            elif self._pairs is not None and len(self.gradients) >= PASSES_IN_GROUPS:
                self._join_groups()
            if self.stage == "fixed point" and self._has_stalled():
                self._begin("descend")
                self._arrive(self._oracle(self._whole(), True, True), self.signs)
                continue
            if len(self._aside) and self._should_rejoin():
                self._set_aside = False
                self._arrive(self._oracle(self._whole(), False, False), self.signs)
                self._strengths = [_strength(self.state)]
                continue
            if self.stage == "fixed point":
                self._iterate()
            else:
                self._descend()

    def _promised(self) -> float:
        """Return the expected gain of a Newton step for independent components, as a share of the contrast."""
        return float(np.sum(self._gradient**2 / self._curvature()) / 4 / max(_strength(self.state), TINY))

    def _curvature(self) -> Floats:
        return _curvature(self.state, self._n, self._seconds, self.signs)

    def checkpoint(self) -> Checkpoint:
        """Return the checkpoint from which the search can continue."""
        rotation, signs = self._aside.joined(self.state.rotation, self.signs)
        return Checkpoint(rotation, signs, list(self.gradients), self.stage, self.tried)

    def solution(self, tol: float) -> Solution:
        """Return the current solution."""
        return Solution(self.state, self.signs, self.gradients, self.gradients[-1] <= tol)

    def _begin(self, stage: Stage) -> None:
        self.stage, self._settled, self._strengths = stage, 0, [_strength(self.state)]
        self._seconds = None
        self._join_groups()

    def _join_groups(self) -> None:
        """Allow rotations of every pair of components."""
        self._pairs, self._group = None, len(self._rested)
        self._memory.clear()
        self._gradient = self.state.gradient(self.signs)

    def _whole(self) -> Floats:
        """Return the rotation of all components, including those that were set aside."""
        rotation, self.signs = self._aside.joined(self.state.rotation, self.signs)
        self._aside, self._rested = _Aside(), np.zeros(len(rotation))
        return rotation

    def _should_rejoin(self) -> bool:
        """Return whether few components are active, or only one pass is left, which must include all components."""
        few = len(self.signs) < LEAST_IN_MOTION * (len(self.signs) + len(self._aside))
        return few or bool((self._rested >= 2).all()) or len(self.gradients) == self._max_passes - 1

    def _arrive(self, state: State, signs: Floats, accepted: bool = True) -> None:
        """Store the results of a pass. Second derivatives are stored only if the step is accepted."""
        self.state, self.signs, self._gradient = state, signs, state.gradient(signs)
        if accepted and state.seconds is not None:
            self._seconds, self._age = state.seconds, 0
        # The gradient over all pairs, even if only pairs within groups are rotated, so that the search does not end.
        self.gradients.append(_size(self._gradient) / ROOT_2 / _size(state.products))
        if self._pairs is not None:
            self._gradient *= self._pairs
        if self.keep:
            self.keep(self.checkpoint())

    def _has_climbed(self) -> bool:
        """Return whether two consecutive gradients are well below the peak, and components are above noise.

        Within groups only the second condition counts, because the gradient is only a part of the whole gradient.
        """
        fallen = self._pairs is not None or max(self.gradients[-2:]) < CLIMB_ENDS_AT * max(self.gradients)
        return fallen and stands_out(self.state, self._n, self._group)

    def _has_stalled(self) -> bool:
        """Return whether the fixed point makes no more progress."""
        back = -1 - STEPS_WITHOUT_FLIP
        return (
            self._settled >= STEPS_WITHOUT_FLIP
            and len(self._strengths) > STEPS_WITHOUT_FLIP
            and self.gradients[-1] > SLOW_DESCENT * self.gradients[back]
            and self._strengths[-1] < (1 + GAIN) * self._strengths[back]
        )

    def _iterate(self) -> None:
        """Make one step of the fixed point."""
        # The step may reverse a component, so signs are restored.
        turned = polar(self.state.products - np.diag(self.state.slopes))
        turned *= _signs(np.diag(turned))[:, None]
        rotation, before = turned @ self.state.rotation, self.signs
        # The last pass must include all components.
        if self._set_aside and len(self.gradients) < self._max_passes - 1:
            moved = np.sqrt(np.maximum(2 - 2 * np.diag(turned), 0.0))
            self._rested = np.where(moved < AT_REST, self._rested + 1, 0)
            rest = self._rested >= 2
            if SHARE_AT_REST * len(rest) <= rest.sum() < len(rest):
                self._aside = _Aside(*self._aside.joined(rotation[rest], before[rest]))
                rotation, before, self._rested = rotation[~rest], before[~rest], self._rested[~rest]
                self._strengths.clear()
        state = self._oracle(rotation, False, False)
        signs = _flipped(before, state.kappa, self._n)
        self._settled = self._settled + 1 if np.array_equal(signs, before) else 0
        self._arrive(state, signs)
        self._strengths.append(_strength(state))

    def _descend(self) -> None:
        """Make one step of L-BFGS with the pairwise preconditioner, the Cayley retraction and Armijo's rule."""
        before, gradient, signs = self.state, self._gradient, self.signs
        curvature = self._curvature()
        self._age += 1
        direction = -_two_loops(gradient, self._memory, curvature)
        slope = float(np.vdot(gradient, direction))
        if slope >= 0:
            self._memory.clear()
            direction = -gradient / curvature
            slope = float(np.vdot(gradient, direction))
        value, length = float(signs @ before.measured()), 1.0
        again = self.stage == "descend" and self._age >= STEPS_OF_CURVATURE
        while True:
            state = self._oracle(_cayley(length * direction) @ before.rotation, True, again)
            # Rounding errors of the mean contrast must not reject the last steps. Matrices count each pair twice.
            allowed = value + 1e-4 * length * slope / 2 + 1e-7 * abs(value)
            accepted = float(signs @ state.measured()) <= allowed or length < 1e-3
            self._arrive(state, signs, accepted)
            if accepted:
                break
            if len(self.gradients) >= self._max_passes:
                # The passes are used up, and the last step was rejected: the search ends at the previous state.
                self.state, self._gradient = before, gradient
                self.gradients[-1] = before.relative_gradient(signs)
                return
            length /= 2
        step, change = length * direction, self._gradient - gradient
        bend = float(np.vdot(step, change))
        if bend > 0:
            self._memory.append((step, change, bend))
        flipped = _flipped(signs, self.state.kappa, self._n)
        if not np.array_equal(flipped, signs):
            self._memory.clear()
            self.signs, self._gradient = flipped, self.state.gradient(flipped)
            if self._pairs is not None:
                self._gradient *= self._pairs
            self.gradients[-1] = self.state.relative_gradient(flipped)


@dataclass(frozen=True)
class _Aside:
    """Components that are set aside, in rows, and their signs."""

    rotation: Floats | None = None
    signs: Floats | None = None

    def __len__(self) -> int:
        return 0 if self.signs is None else len(self.signs)

    def joined(self, rotation: Floats, signs: Floats) -> tuple[Floats, Floats]:
        """Return these components together with others, and their signs."""
        if self.rotation is None or self.signs is None:
            return rotation, signs
        return np.concatenate([self.rotation, rotation]), np.concatenate([self.signs, signs])


def _size(matrix: Floats) -> float:
    """Return the Frobenius norm."""
    return float(np.sqrt(np.vdot(matrix, matrix)))


def stands_out(state: State, n: int, group: int | None = None) -> bool:
    """Return whether the components are above the noise of n rows.

    Parameters
    ----------
    group : int, optional
        Number of components in the group within which each was rotated. Default: all.
    """
    noise = ABOVE_NOISE * np.sqrt((group or len(state.rotation)) / n)
    return bool(_strength(state) > noise * np.trace(state.products))


def _strength(state: State) -> float:
    return float(np.abs(state.kappa).sum())


def _signs(values: Floats) -> Floats:
    return np.where(values < 0, -1.0, 1.0)


def _flipped(signs: Floats, kappa: Floats, n: int) -> Floats:
    return np.where(np.abs(kappa) > 2 / np.sqrt(n), _signs(kappa), signs)


def _curvature(state: State, n: int, seconds: Floats | None, signs: Floats) -> Floats:
    """Return the second derivative along the rotation of each pair, bounded below by the noise.

    If it was not measured or is negative, the value for independent components is used.
    """
    size = np.abs(state.kappa)
    pairs = size[:, None] + size
    if seconds is not None:
        signed = signs[:, None] * seconds
        both, share = signed + signed.T, min(FAR_SHARE, NEAR_SHARE * state.relative_gradient(signs))
        pairs = np.where(both > 0, np.maximum(both, share * pairs), pairs)
    least = max(NOISE * np.sqrt(len(size) / n), LEAST_CURVATURE * 2 * _middle(size), TINY)
    return np.asarray(np.maximum(pairs, least))


def _middle(values: Floats) -> float:
    # Ten times faster than np.median, which matters if a pass takes less than a millisecond.
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _two_loops(gradient: Floats, memory: deque[tuple[Floats, Floats, float]], curvature: Floats) -> Floats:
    """Return the L-BFGS product of the inverse Hessian and the gradient. `memory` holds steps, changes and products."""
    q, factors = gradient.copy(), []
    for step, change, bend in reversed(memory):
        factor = float(np.vdot(step, q)) / bend
        factors.append(factor)
        q -= factor * change
    q /= curvature
    for (step, change, bend), factor in zip(memory, reversed(factors), strict=True):
        q += (factor - float(np.vdot(change, q)) / bend) * step
    return q


def _cayley(skew: Floats) -> Floats:
    """Return the rotation (I - A/2)^-1 (I + A/2)."""
    eye = np.eye(len(skew))
    rotation: Floats = np.linalg.solve(eye - skew / 2, eye + skew / 2)
    return rotation
