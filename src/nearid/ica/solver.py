"""Finding the rotation: L-BFGS on the orthogonal group out of the noise, FastICA's fixed point, L-BFGS to the end.

For whitened z and a rotation W, y = W z. Stationary points of sum_i s_i E[G(y_i)] are the components: s_i tells whether
E[G] of component i is to be made small or large (super- or sub-Gaussian). With M = E[g(y) y^T] the gradient along
rotations is S M - M^T S, and its size relative to M is what `tol` bounds.

Three stages, each for what it does best:

1. *Climb.* At the start every component is a mixture of many, and its contrast is no larger than sampling noise. The
   fixed point leaps about there; L-BFGS, whose steps are bounded by the noise, climbs. It ends once the gradient is
   well below its peak. Where a start parts sources by their kurtosis, the climb first turns components only within
   groups of alike ones: there is less noise in fewer dimensions, and it leaves it sooner.
2. *Fixed point.* A Newton step for well-separated sources, soon done where the model holds. Components that sit in
   noise it throws about until they find a source, also one of the other sign, which a descent cannot. Where passes are
   what costs, components that no longer move are set aside meanwhile: a pass for a third of the components costs two
   ninths of one for all.
3. *Descend.* On real embeddings the fixed point creeps or circles. L-BFGS takes over once signs have settled. Its steps
   are scaled by second derivatives along the rotations of pairs, which every few passes measure on the way: components
   of real rows depend on each other, and theirs are a fraction of what independent ones have.
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

# The climb ends when the gradient is below this share of its peak, and has been for a step, and components stand out of
# the noise: the sum of |kappa| is above this many times sqrt(k / n) E[g(y) y], twice what Gaussian rows give.
CLIMB_ENDS_AT, ABOVE_NOISE = 0.5, 1.2
# The fixed point hands over when for so many steps no sign has flipped, the gradient has not fallen to the one share of
# what it was, nor has the sum of |kappa| grown by the other: components on their way to a source show in one of these.
STEPS_WITHOUT_FLIP, SLOW_DESCENT, GAIN = 3, 0.7, 0.006
# A climb within groups ends after so many passes, or sooner where components stand out of the noise of their group.
PASSES_IN_GROUPS = 12
# A component is set aside when in two steps in turn the fixed point moved it by less than this, as soon as so large a
# share of those in motion is at rest; when less than the last share of all is in motion, all take part again.
AT_REST, SHARE_AT_REST, LEAST_IN_MOTION = 0.1, 0.1, 0.08
MEMORY = 20
# Steps of the descent for which measured second derivatives are good.
STEPS_OF_CURVATURE = 5
# Far from an optimum they mislead: there they count as no less than this share of those of independent components, and
# near it as no less than so many times the relative gradient.
FAR_SHARE, NEAR_SHARE = 0.25, 2.0
# A search that creeps over a saddle promises little for a pass or two.
PASSES_IN_TURN = 3
# Curvature below this share of the sampling noise of a whole component's gradient, sqrt(k / n), tells nothing: dividing
# by it would leap. And none below this share of a typical one, where rows are so many that there is no noise.
NOISE, LEAST_CURVATURE = 0.3, 1e-2
TINY = float(np.finfo(float).tiny)
ROOT_2 = float(np.sqrt(2))


@dataclass(frozen=True)
class State:
    """A rotation and what a pass found there.

    Attributes
    ----------
    rotation : ndarray of shape (k, k)
    products : ndarray of shape (k, k)
        M = E[g(y) y^T].
    slopes : ndarray of shape (k,)
        E[g'(y)].
    values : ndarray of shape (k,) or None
        E[G(y)]; on request.
    seconds : ndarray of shape (k, k) or None
        E[g'(y_i) y_j^2] - E[g(y_i) y_i], the second derivative of E[G(y_i)] as i is turned into j; on request.
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
        """E[G(y)], which the pass was asked for."""
        assert self.values is not None
        return self.values

    def gradient(self, signs: Floats) -> Floats:
        """Derivative along rotations, antisymmetric."""
        signed = signs[:, None] * self.products
        return signed - signed.T

    def relative_gradient(self, signs: Floats) -> float:
        """Size of the gradient relative to M."""
        return _size(self.gradient(signs)) / ROOT_2 / _size(self.products)


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
    tried : Tried or None
        What several starts came to, of which this search is the best.
    race : tuple of Checkpoint
        Where the searches from several starts stand, as long as it is open which of them goes on.
    """

    rotation: Floats
    signs: Floats
    gradients: list[float]
    stage: str
    tried: Tried | None = None
    race: tuple[Checkpoint, ...] = ()


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
    """Search from a rotation, or go on from a checkpoint, until the relative gradient is at most `tol`.

    Other parameters are those of `Search`.
    """
    search = Search(oracle, start, max_passes=max_passes, n=n, gaussian=gaussian, keep=keep)
    search.advance(tol)
    return search.solution(tol)


class Search:
    """A search for a rotation that can be taken up again with a smaller tolerance.

    Parameters
    ----------
    oracle : callable
        (rotation, with_values, with_seconds) -> State; one pass over the rows.
    start : ndarray of shape (k, k) or Checkpoint
    max_passes : int
        Passes after which it ends.
    n : int
        Rows behind each mean: signs of kappa within 2 / sqrt(n) of zero are noise and do not flip.
    gaussian : float
        E[G] of a Gaussian component: the first signs tell on which side of it each component is.
    keep : callable, optional
        Given a Checkpoint after every pass.
    stage : {"climb", "fixed point"}
        Where a search from a rotation begins.
    groups : int
        Groups of neighbouring components that the climb from a rotation first stays within, if this is in the noise.
    set_aside : bool
        Whether the fixed point sets components at rest aside. The oracle is then given some rows of a rotation too.

    Attributes
    ----------
    tried : Tried or None
        What several starts came to, of which this is the best; goes into every Checkpoint.
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
        # Steps of the fixed point since a sign flipped.
        self._settled = 0
        # Pairs of components that may be turned, where not all may, and how many components a group has.
        self._pairs: Floats | None = None
        self._group = len(start.rotation if isinstance(start, Checkpoint) else start)
        # Components that are set aside and their signs, and for how many steps each of the others has been at rest.
        self._set_aside, self._aside, self._rested = set_aside, _Aside(), np.zeros(self._group)
        # Second derivatives of the rows, and the steps since they were measured.
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
        # The sum of |kappa| where the fixed point began and after each of its steps.
        self._strengths = [_strength(self.state)]

    def advance(self, tol: float, gain: float = 0.0) -> None:
        """Go on until the relative gradient is at most `tol`, or passes are used up.

        Parameters
        ----------
        gain : float
            End also where the last passes, each in turn, promised to add no more than this share of the contrast.
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
        """What a Newton step would gain, were the components independent, as a share of the contrast."""
        return float(np.sum(self._gradient**2 / self._curvature()) / 4 / max(_strength(self.state), TINY))

    def _curvature(self) -> Floats:
        return _curvature(self.state, self._n, self._seconds, self.signs)

    def checkpoint(self) -> Checkpoint:
        """Where it can be taken up."""
        rotation, signs = self._aside.joined(self.state.rotation, self.signs)
        return Checkpoint(rotation, signs, list(self.gradients), self.stage, self.tried)

    def solution(self, tol: float) -> Solution:
        """Where it stands."""
        return Solution(self.state, self.signs, self.gradients, self.gradients[-1] <= tol)

    def _begin(self, stage: Stage) -> None:
        self.stage, self._settled, self._strengths = stage, 0, [_strength(self.state)]
        self._seconds = None
        self._join_groups()

    def _join_groups(self) -> None:
        """Let every pair of components be turned."""
        self._pairs, self._group = None, len(self._rested)
        self._memory.clear()
        self._gradient = self.state.gradient(self.signs)

    def _whole(self) -> Floats:
        """The rotation of all components, none of which is set aside any longer."""
        rotation, self.signs = self._aside.joined(self.state.rotation, self.signs)
        self._aside, self._rested = _Aside(), np.zeros(len(rotation))
        return rotation

    def _should_rejoin(self) -> bool:
        """Whether few components are in motion, or one pass is left, which must be of all."""
        few = len(self.signs) < LEAST_IN_MOTION * (len(self.signs) + len(self._aside))
        return few or bool((self._rested >= 2).all()) or len(self.gradients) == self._max_passes - 1

    def _arrive(self, state: State, signs: Floats, accepted: bool = True) -> None:
        """Take what a pass found, second derivatives only where the search stays."""
        self.state, self.signs, self._gradient = state, signs, state.gradient(signs)
        if accepted and state.seconds is not None:
            self._seconds, self._age = state.seconds, 0
        # Of all pairs, also while only those within groups are turned: the search must not end there.
        self.gradients.append(_size(self._gradient) / ROOT_2 / _size(state.products))
        if self._pairs is not None:
            self._gradient *= self._pairs
        if self.keep:
            self.keep(self.checkpoint())

    def _has_climbed(self) -> bool:
        """Whether two gradients in a row are well below the peak, and components stand out of the noise.

        Within groups the gradient is only a part of the whole one, and may fall or not.
        """
        fallen = self._pairs is not None or max(self.gradients[-2:]) < CLIMB_ENDS_AT * max(self.gradients)
        return fallen and stands_out(self.state, self._n, self._group)

    def _has_stalled(self) -> bool:
        """Whether the fixed point gains nothing more."""
        back = -1 - STEPS_WITHOUT_FLIP
        return (
            self._settled >= STEPS_WITHOUT_FLIP
            and len(self._strengths) > STEPS_WITHOUT_FLIP
            and self.gradients[-1] > SLOW_DESCENT * self.gradients[back]
            and self._strengths[-1] < (1 + GAIN) * self._strengths[back]
        )

    def _iterate(self) -> None:
        """A step of the fixed point."""
        # It may turn a component over; components keep their direction here.
        turned = polar(self.state.products - np.diag(self.state.slopes))
        turned *= _signs(np.diag(turned))[:, None]
        rotation, before = turned @ self.state.rotation, self.signs
        # The last pass must be of all components.
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
        """A step of L-BFGS with the pairwise preconditioner, the Cayley retraction and Armijo's rule."""
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
            # Rounding of the mean contrast must not reject the last steps. Matrices count each pair twice.
            allowed = value + 1e-4 * length * slope / 2 + 1e-7 * abs(value)
            accepted = float(signs @ state.measured()) <= allowed or length < 1e-3
            self._arrive(state, signs, accepted)
            if accepted:
                break
            if len(self.gradients) >= self._max_passes:
                # The search is over, and its last step was refused: it ends where it was.
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
        """These and other components."""
        if self.rotation is None or self.signs is None:
            return rotation, signs
        return np.concatenate([self.rotation, rotation]), np.concatenate([self.signs, signs])


def _size(matrix: Floats) -> float:
    """The Frobenius norm."""
    return float(np.sqrt(np.vdot(matrix, matrix)))


def stands_out(state: State, n: int, group: int | None = None) -> bool:
    """Whether components stand out of the noise of n rows.

    Parameters
    ----------
    group : int, optional
        Components among which each was turned; all by default.
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
    """Second derivative along each pair's rotation, not below the noise.

    Where it was not measured, or the pair is on a ridge, the one that independent components would have.
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
    # A tenth of the time of np.median, which counts where a pass takes less than a millisecond.
    return float(np.partition(values, len(values) // 2)[len(values) // 2])


def _two_loops(gradient: Floats, memory: deque[tuple[Floats, Floats, float]], curvature: Floats) -> Floats:
    """The L-BFGS product of the inverse Hessian with the gradient; memory of steps, changes and their products."""
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
    """The rotation (I - A/2)^-1 (I + A/2)."""
    eye = np.eye(len(skew))
    rotation: Floats = np.linalg.solve(eye - skew / 2, eye + skew / 2)
    return rotation
