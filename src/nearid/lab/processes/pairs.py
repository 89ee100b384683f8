"""Positive pairs of contrastive learning: z from a marginal, its positive from a conditional distribution around z.

The theorems (Zimmermann et al. 2021): a contrastive loss whose similarity matches the conditional is minimal if the
encoder inverts the mixing up to a scaled rotation (sphere, dot product), an affine map (convex body, squared L2), or a
permutation with signs and scales (convex body, L_p^p with p >= 1 other than 2).

If observations are stored and no new ones can be made (3DIdent), the stored latent nearest to a positive replaces it.
The fewer stored latents there are, the farther they are from the drawn positives.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import DTypeLike

from nearid.base.errors import InputError
from nearid.base.options import at_least, positive
from nearid.lab.processes.mixing import Mixing
from nearid.lab.processes.noise import Noise, VonMisesFisher
from nearid.lab.processes.spaces import Assumption, Box, Space, Sphere, Unbounded, as_noise
from nearid.moments import Floats

if TYPE_CHECKING:
    from scipy.spatial import cKDTree

# Similarity of a loss: the dot product of outputs on the sphere, or minus L_p^p for an exponent p.
Similarity = float | Literal["dot"]


@dataclass(frozen=True)
class PairProcess:
    """Latents in a space, positive pairs, and observations.

    Parameters
    ----------
    space : Sphere, Box or Unbounded
    marginal : "uniform" or Noise
        Noise is centred in the space. It is truncated at the walls of a box, or projected to the sphere.
    conditional : VonMisesFisher or Noise
        Distribution of a positive around its latent: noise as for the marginal, or vMF (only on the sphere).
    mixing : Mixing or None
        Map from latents to observations. With None the latents are observed.
    """

    space: Space
    marginal: Literal["uniform"] | Noise
    conditional: VonMisesFisher | Noise
    mixing: Mixing | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.marginal, Noise) and self.marginal != "uniform":
            raise InputError(f"The marginal is {self.marginal!r}, but 'uniform' or noise is expected.")
        if self.marginal == "uniform" and isinstance(self.space, Unbounded):
            raise InputError(f"{self.space.label} has no uniform distribution: give noise as the marginal.")
        if not isinstance(self.space, Sphere):
            as_noise(self.conditional, self.space)
        if self.mixing is not None and self.mixing.n != self.space.n:
            raise InputError(f"The mixing takes {self.mixing.n} latents, but the space has {self.space.n}.")

    def sample(self, size: int, rng: np.random.Generator) -> Floats:
        """Latents of shape (size, n) from the marginal."""
        at_least("size", size, 1)
        if isinstance(self.marginal, Noise):
            return self.space.around(np.tile(self.space.centre, (size, 1)), self.marginal, rng)
        assert not isinstance(self.space, Unbounded)  # refused when the process was made
        return self.space.uniform(size, rng)

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """(latents, positives), each of shape (size, n)."""
        z = self.sample(size, rng)
        return z, self.space.around(z, self.conditional, rng)

    def observe(self, z: Floats, dtype: DTypeLike = np.float64) -> Floats:
        """Observations of latents of shape (size, n)."""
        return observe(self.mixing, z, dtype)

    @property
    def similarity(self) -> Similarity | None:
        """The similarity that matches the conditional, or None if no loss does (noise projected to the sphere)."""
        if isinstance(self.conditional, VonMisesFisher):
            return "dot"
        return None if isinstance(self.space, Sphere) else self.conditional.exponent

    def assumptions(self, similarity: Similarity | None = None, *, temperature: float = 1.0) -> tuple[Assumption, ...]:
        """Conditions of the theorem for a loss with this similarity (default: the one that matches, if any).

        The dot product of unit vectors over a temperature corresponds to vMF(1 / temperature). The scale of distances
        is learnt, so their temperature does not matter.
        """
        if similarity is None:
            similarity = self.similarity or "dot"
        elif similarity != "dot":
            positive("The exponent of the similarity", similarity)
        on_sphere = similarity == "dot"
        return (
            self._space_assumption(on_sphere),
            self._marginal_assumption(),
            self._conditional_assumption(similarity, temperature),
            *(() if similarity == "dot" else (_exponent_assumption(similarity),)),
            injective(self.mixing),
        )

    def _space_assumption(self, on_sphere: bool) -> Assumption:
        if on_sphere:
            return Assumption("sphere", "latents on a sphere", isinstance(self.space, Sphere), self.space.label)
        holds = not isinstance(self.space, Sphere | Unbounded)
        return Assumption("bounded convex body", "latents in a bounded convex body", holds, self.space.label)

    def _marginal_assumption(self) -> Assumption:
        noise = isinstance(self.marginal, Noise)
        note = f"{self.marginal.label} about the centre" if isinstance(self.marginal, Noise) else "uniform"
        return Assumption("uniform marginal", "latents uniform in their space", not noise, note)

    def _conditional_assumption(self, similarity: Similarity, temperature: float) -> Assumption:
        loss = f"{1 / temperature:g} times the dot product" if similarity == "dot" else f"L_p^p with p = {similarity:g}"
        scale = "constants" if similarity == "dot" else "scale and constants"
        needed = f"log density of positives = {loss}, up to {scale}"
        note = self.conditional.label
        holds = similarity == self.similarity
        if isinstance(self.conditional, VonMisesFisher):
            holds = holds and bool(np.isclose(self.conditional.kappa * temperature, 1))
            if self.conditional.kappa == 0:
                note += ": positives are independent of their latents"
        elif isinstance(self.space, Sphere) and isinstance(self.conditional, Noise):
            note += " in the space around, projected to the sphere"
        return Assumption("matching conditional", needed, holds, note)


def observe(mixing: Mixing | None, z: Floats, dtype: DTypeLike) -> Floats:
    """Latents through a mixing, if there is one."""
    return np.asarray(z if mixing is None else mixing(z), dtype=dtype)


def injective(mixing: Mixing | None) -> Assumption:
    """The assumption that observations determine the latents."""
    if mixing is not None:
        return mixing.assumption
    return Assumption("injective mixing", "observations determine the latents", True, "the latents are observed")


def _exponent_assumption(exponent: float) -> Assumption:
    needed = "p >= 1 and p != 2, to recover latents up to permutations, signs and scales"
    note = f"p = {exponent:g}" + (": latents up to an affine map" if exponent == 2 else "")
    return Assumption("exponent other than 2", needed, exponent >= 1 and exponent != 2, note)


@dataclass(frozen=True, eq=False)
class StoredPairs:
    """Pairs of rows of a table of latents.

    Parameters
    ----------
    latents : ndarray of shape (rows, n)
        At least two rows, all in the box.
    space : Box
    conditional : Noise
        Distribution of a positive around its latent, truncated at the walls of the box.
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
        """Draw row numbers of latents, uniformly, and row numbers of their positives, which always differ."""
        at_least("size", size, 1)
        first = rng.integers(0, len(self.latents), size)
        wanted = self.space.around(self.latents[first], self.conditional, rng)
        nearest, next_nearest = self._tree.query(wanted, k=2)[1].T
        return first, np.where(nearest == first, next_nearest, nearest)
