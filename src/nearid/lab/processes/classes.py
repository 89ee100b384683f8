"""Labelled latents: clusters around class vectors on the sphere, and classes by angle in the plane."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import DTypeLike, NDArray

from nearid.base.errors import InputError
from nearid.base.options import at_least, positive
from nearid.geometry.diversity import affine_generator, quadratic_generator, uniform_prior
from nearid.lab.processes.mixing import Mixing
from nearid.lab.processes.noise import Noise, VonMisesFisher
from nearid.lab.processes.pairs import injective, observe
from nearid.lab.processes.spaces import OFF_SPHERE, Assumption, Sphere, Unbounded
from nearid.moments import Floats

Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ClusterProcess:
    """Instances in clusters: instance i has class i mod C, and its latents lie around the vector of that class.

    Cross-entropy over instances or classes inverts the mixing up to a linear map (Reizinger et al. 2025).

    Parameters
    ----------
    vectors : ndarray of shape (C, d)
        Class vectors on the unit sphere.
    instances : int
        Number N of instances, at least C.
    conditional : VonMisesFisher or Noise
        Distribution of the latents around their class vector. Noise is projected to the sphere; the theorem does not
        cover this case.
    mixing : Mixing or None
        Map from latents to observations. With None the latents are observed.
    projected : bool
        Whether noise is projected to the sphere. Otherwise latents are in R^d, which the theorem does not cover either.
    """

    vectors: Floats
    instances: int
    conditional: VonMisesFisher | Noise
    mixing: Mixing | None = None
    projected: bool = True

    def __post_init__(self) -> None:
        v = self.vectors
        if v.ndim != 2 or len(v) < 2 or v.shape[1] < 2:
            raise InputError(f"The class vectors have shape {v.shape}, but (C, d) with C and d at least 2 is expected.")
        if not np.all(np.abs(np.linalg.norm(v, axis=1) - 1) <= OFF_SPHERE):
            raise InputError("Some class vectors are not on the unit sphere: divide each row by its norm.")
        at_least("The number of instances", self.instances, len(v))
        if self.mixing is not None and self.mixing.n != v.shape[1]:
            raise InputError(f"The mixing takes {self.mixing.n} latents, but the class vectors have {v.shape[1]}.")

    @property
    def classes(self) -> int:
        """Number C of classes."""
        return len(self.vectors)

    def class_of(self, instance: Labels) -> Labels:
        """Class of each instance."""
        return instance % self.classes

    def sample(self, size: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
        """Return (latents of shape (size, d), instances of shape (size,)): uniform instances with new latents each."""
        at_least("size", size, 1)
        instance = rng.integers(0, self.instances, size)
        d = self.vectors.shape[1]
        space = Sphere(d) if self.projected else Unbounded(d)
        return space.around(self.vectors[self.class_of(instance)], self.conditional, rng), instance

    def observe(self, z: Floats, dtype: DTypeLike = np.float64) -> Floats:
        """Observations of latents of shape (size, d)."""
        return observe(self.mixing, z, dtype)

    def assumptions(self, *, normalised_heads: bool = False) -> tuple[Assumption, ...]:
        """Conditions of the theorems; normalised heads with free features need more diverse class vectors."""
        d = self.vectors.shape[1]
        spanned, quadratic = affine_generator(self.vectors), quadratic_generator(self.vectors)
        prior = uniform_prior(np.bincount(np.arange(self.instances) % self.classes))
        is_vmf = isinstance(self.conditional, VonMisesFisher) and self.conditional.kappa > 0
        projected = self.projected and isinstance(self.conditional, Noise)
        note = self.conditional.label + (" projected to the sphere" if projected else "")
        assumptions = [
            Assumption("diversity", f"differences of class vectors span R^{d}", spanned.holds, spanned.note),
            Assumption("vMF conditional", "latents are vMF about their class vector, kappa > 0", is_vmf, note),
            Assumption(
                "uniform class prior",
                "equally many instances in each class (for supervised labels)",
                prior.largest_deviation == 0,
                prior.note,
            ),
            injective(self.mixing),
        ]
        if normalised_heads:
            needed = f"rows [v * v, v] of class vectors have rank {2 * d}"
            assumptions.insert(1, Assumption("quadratic diversity", needed, quadratic.holds, quadratic.note))
        return tuple(assumptions)


def draw_clusters(
    d: int,
    classes: int,
    instances: int,
    conditional: VonMisesFisher | Noise,
    rng: np.random.Generator,
    *,
    mixing: Mixing | None = None,
    projected: bool = True,
) -> ClusterProcess:
    """A cluster process with class vectors drawn uniformly on the unit sphere in R^d."""
    at_least("The number of classes", classes, 2)
    return ClusterProcess(Sphere(d).uniform(classes, rng), instances, conditional, mixing, projected)


@dataclass(frozen=True)
class RadialClasses:
    """Normal points in the plane around the origin, labelled by their angle in K equal sectors.

    Parameters
    ----------
    classes : int
        Number K of sectors.
    scale : float
        Standard deviation of each coordinate.
    """

    classes: int = 18
    scale: float = 3.0

    def __post_init__(self) -> None:
        at_least("The number of classes", self.classes, 2)
        positive("scale", self.scale)

    def sample(self, size: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
        """(points of shape (size, 2), labels of shape (size,))."""
        at_least("size", size, 1)
        x = self.scale * rng.standard_normal((size, 2))
        return x, self.label(x)

    def label(self, x: Floats) -> Labels:
        """Sector of each point, counted counterclockwise from the positive first axis."""
        turn = np.arctan2(x[:, 1], x[:, 0]) / (2 * np.pi) % 1.0
        # An angle just below 0 may be rounded to a full turn.
        return np.floor(turn * self.classes).astype(np.int64) % self.classes

    def assumptions(self, features: int = 2) -> tuple[Assumption, ...]:
        """Conditions for linear identifiability of two models with this number of features."""
        enough = self.classes >= features + 1
        return (
            Assumption("diversity", f"at least {features + 1} classes", enough, f"{self.classes} classes"),
            Assumption(
                "equal likelihoods",
                "both models reach the same likelihood of labels",
                False,
                "labels are a function of x: the likelihood has no maximum, models come near one another in training",
            ),
        )


def flip_labels(labels: Labels, classes: int, share: float, rng: np.random.Generator) -> Labels:
    """Return the labels; each was replaced with probability `share` by a uniform draw from all classes."""
    if not 0 <= share <= 1:
        raise InputError(f"share is {share}, but a number from 0 to 1 is expected.")
    drawn = rng.integers(0, at_least("The number of classes", classes, 1), labels.shape)
    return np.where(rng.random(labels.shape) < share, drawn, labels)
