"""Positive pairs among latents that are stored, where observations were made beforehand and not one more can be.

A positive is drawn about a latent as in any process of pairs, and the stored latent that is nearest to it takes its
place (Zimmermann et al. 2021, 3DIdent). The fewer there are, the farther positives lie from where they were drawn.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.lab.processes.noise import Noise
from nearid.lab.processes.spaces import Box
from nearid.moments import Floats

if TYPE_CHECKING:
    from scipy.spatial import cKDTree


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Pairs of rows of a table of latents.

    Parameters
    ----------
    latents : ndarray of shape (rows, n)
        At least two, all in the box.
    space : Box
    conditional : Noise
        Law of a positive about its latent, cut off at the walls of the box.
    """

    latents: Floats
    space: Box
    conditional: Noise

    def __post_init__(self) -> None:
        if self.latents.ndim != 2 or self.latents.shape[1] != self.space.n or len(self.latents) < 2:
            raise InputError(
                f"The stored latents have shape {self.latents.shape}, but at least two rows of {self.space.n} are "
                "expected."
            )

    @cached_property
    def _tree(self) -> cKDTree:
        from scipy.spatial import cKDTree

        return cKDTree(self.latents)

    def draw(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Rows of latents, drawn uniformly, and rows of their positives, which are always others."""
        at_least("size", size, 1)
        first = rng.integers(0, len(self.latents), size)
        wanted = self.space.around(self.latents[first], self.conditional, rng)
        nearest, next_nearest = self._tree.query(wanted, k=2)[1].T
        return first, np.where(nearest == first, next_nearest, nearest)
