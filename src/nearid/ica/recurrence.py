"""Which components several starts have found: those that the data determine, and neither the start nor the sample.

Starts that search the same rows also find the same directions of a Gaussian subspace, where these rows happen to be a
little less Gaussian. So each start goes on for some steps on its own random half of the rows before it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats

# |Correlation| from which on a start has found a component: 1 - SAMPLING (k - 1) / n, as near as k sources come to one
# another in a half of n rows and in all of them, within these bounds. A random direction of a Gaussian plane comes as
# near to one of two others as 0.95 in 40% of all cases, as 0.985 in 22%.
SAMPLING, LEAST_ALIKE, MOST_ALIKE = 4, 0.95, 0.985
# Steps of the fixed point on a half.
STEPS_ON_HALF = 5
# Starts whose contrasts differ by less than this share have found the same optimum.
SAME_OPTIMUM = 1e-3


def alike_from(k: int, n: int) -> float:
    """|Correlation| from which on a start has found one of k components in n rows."""
    return min(max(1 - SAMPLING * (k - 1) / n, LEAST_ALIKE), MOST_ALIKE)


def majority(starts: int) -> int:
    """Starts that must have found a component that is to be interpreted on its own: more than half of them."""
    return starts // 2 + 1


def chosen_by_start(recurrence: np.ndarray, starts: int, gaussian: np.ndarray) -> np.ndarray:
    """Which components few starts found, without those that look Gaussian: these have an alert of their own."""
    return np.asarray((recurrence < majority(starts)) & ~gaussian)


@dataclass(frozen=True)
class Tried:
    """What the starts of a fit have come to.

    Attributes
    ----------
    rotations : ndarray of shape (starts, k, k)
        Components of each on a half of the rows, in rows of unit length.
    contrasts : ndarray of shape (starts,)
        J = sum |E[G(y)] - E[G(Gaussian)]| there.
    """

    rotations: Floats
    contrasts: Floats

    def same_optimum(self) -> int:
        """How many starts reached the optimum of the best one, as far as their contrast tells."""
        return int(np.sum(self.contrasts >= (1 - SAME_OPTIMUM) * self.contrasts.max()))

    def recurrence(self, rotation: Floats, n: int) -> np.ndarray:
        """For each component of a rotation (k, k) of n whitened rows, the number of starts that found it."""
        return np.asarray((self._nearest(rotation) >= alike_from(len(rotation), n)).sum(axis=0))

    def agreement(self, rotation: Floats) -> Floats:
        """For each component, the mean over the starts of |correlation| with the nearest one that the start found."""
        return np.asarray(np.minimum(self._nearest(rotation), 1.0).mean(axis=0))

    def _nearest(self, rotation: Floats) -> Floats:
        # Components of whitened rows correlate as the rows of their rotations.
        return np.asarray(np.abs(self.rotations @ rotation.T).max(axis=1))
