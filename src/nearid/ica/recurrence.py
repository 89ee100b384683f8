"""Which components several starts have found: these are determined by the data, not by the start or the sample.

Starts on the same rows also find the same directions of a Gaussian subspace, in which these rows are by chance a little
less Gaussian. So each start is continued for some steps on its own random half of the rows before the comparison.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats

# A start has found a component if the |correlation| is at least 1 - SAMPLING (k - 1) / n, within these bounds. It is
# the agreement of k sources between a half of n rows and all of them. In a Gaussian plane, a random direction has a
# |correlation| of 0.95 with one of two others in 40% of all cases, and of 0.985 in 22%.
SAMPLING, LEAST_ALIKE, MOST_ALIKE = 4, 0.95, 0.985
# Number of fixed-point steps on a half.
STEPS_ON_HALF = 5
# Starts whose contrasts differ by less than this share have found the same optimum.
SAME_OPTIMUM = 1e-3


def alike_from(k: int, n: int) -> float:
    """Return the |correlation| from which a start has found one of k components in n rows."""
    return min(max(1 - SAMPLING * (k - 1) / n, LEAST_ALIKE), MOST_ALIKE)


def majority(starts: int) -> int:
    """Return the number of starts that must find a component before it can be interpreted: more than half."""
    return starts // 2 + 1


def chosen_by_start(recurrence: np.ndarray, starts: int, gaussian: np.ndarray) -> np.ndarray:
    """Return which components few starts found, except those that look Gaussian, which have their own alert."""
    return np.asarray((recurrence < majority(starts)) & ~gaussian)


@dataclass(frozen=True)
class Tried:
    """Results of the starts of a fit.

    Attributes
    ----------
    rotations : ndarray of shape (starts, k, k)
        Components of each start on a half of the rows, in rows of unit length.
    contrasts : ndarray of shape (starts,)
        J = sum |E[G(y)] - E[G(Gaussian)]| there.
    """

    rotations: Floats
    contrasts: Floats

    def same_optimum(self) -> int:
        """Return the number of starts with the same contrast as the best one."""
        return int(np.sum(self.contrasts >= (1 - SAME_OPTIMUM) * self.contrasts.max()))

    def recurrence(self, rotation: Floats, n: int) -> np.ndarray:
        """Return the number of starts that found each component of a rotation (k, k) of n whitened rows."""
        return np.asarray((self._nearest(rotation) >= alike_from(len(rotation), n)).sum(axis=0))

    def agreement(self, rotation: Floats) -> Floats:
        """Return the mean over starts of the |correlation| of each component with the nearest one of a start."""
        return np.asarray(np.minimum(self._nearest(rotation), 1.0).mean(axis=0))

    def _nearest(self, rotation: Floats) -> Floats:
        # Correlations of components of whitened rows are the inner products of the rows of their rotations.
        return np.asarray(np.abs(self.rotations @ rotation.T).max(axis=1))
