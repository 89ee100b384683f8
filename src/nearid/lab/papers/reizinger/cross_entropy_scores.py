"""Scores of a trained cross-entropy model beside the process that made its data."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nearid.lab.processes.classes import ClusterProcess, Labels
from nearid.lab.processes.noise import Noise, VonMisesFisher
from nearid.lab.processes.spaces import Sphere
from nearid.moments import Floats

# Draws from which the spread of projected noise is computed, the same in every call.
SPREAD_DRAWS = 20_000


@dataclass(frozen=True, eq=False)
class LinearFit:
    """A linear map from learned to true vectors, fitted on some of the rows and judged on the others.

    Attributes
    ----------
    r2 : float
        Mean over the true coordinates, in percent, on the rows that are judged.
    singular : ndarray
        Singular values of the map.
    mapped : ndarray of shape (rows, d)
        The map of all rows.
    """

    r2: float
    singular: Floats
    mapped: Floats


def linear_fit(
    learned: Floats, true: Floats, *, intercept: bool, first: NDArray[np.bool_] | None = None
) -> LinearFit | None:
    """Least squares from learned to true; None where the vectors to fit do not determine the map.

    Parameters
    ----------
    first : ndarray of shape (rows,), optional
        The rows to fit, the others being judged; the first half by default.
    """
    if first is None:
        first = np.arange(len(learned)) < len(learned) // 2
    width = learned.shape[1]
    # Rows that are the same again determine nothing more.
    if len(np.unique(true[first], axis=0)) <= width + intercept:
        return None
    design = np.column_stack([learned, np.ones(len(learned))]) if intercept else learned
    matrix = np.linalg.lstsq(design[first], true[first], rcond=None)[0]
    mapped = design @ matrix
    judged = true[~first]
    errors = np.sum((judged - mapped[~first]) ** 2, axis=0)
    spreads = np.sum((judged - judged.mean(axis=0)) ** 2, axis=0)
    singular = np.linalg.svd(matrix[:width], compute_uv=False)
    return LinearFit(float(100 * np.mean(1 - errors / spreads)), np.asarray(singular), np.asarray(mapped))


def largest_within(weights: Floats, labels: Labels) -> float | None:
    """Largest distance of two rows with the same label, over the root mean square length of all rows.

    None where every label occurs once.
    """
    from scipy.spatial.distance import pdist

    order = np.argsort(labels, kind="stable")
    groups = np.split(weights[order], np.flatnonzero(np.diff(labels[order])) + 1)
    widest = [float(pdist(g).max()) for g in groups if len(g) > 1]
    return max(widest) / float(np.sqrt(np.mean(np.sum(weights**2, axis=1)))) if widest else None


def least_loss(process: ClusterProcess, z: Floats, labels: Labels, *, instances: bool) -> float | None:
    """Cross-entropy of the true probabilities of labels given latents: no model does better in the mean.

    None where the conditional is not vMF, whose posterior alone is known in closed form.

    Parameters
    ----------
    labels : ndarray of shape (rows,)
        Instances or classes.
    instances : bool
        Whether labels are instances.
    """
    from scipy.special import log_softmax

    if not isinstance(process.conditional, VonMisesFisher):
        return None
    counts = np.bincount(process.class_of(np.arange(process.instances)))
    posterior = log_softmax(process.conditional.kappa * z @ process.vectors.T + np.log(counts), axis=1)
    classes = process.class_of(labels) if instances else labels
    right = posterior[np.arange(len(z)), classes] - (np.log(counts[classes]) if instances else 0.0)
    return float(-np.mean(right))


def matched_scale(family: type[Noise], d: int, kappa: float) -> float:
    """The scale at which noise about a vector in R^d, projected to the sphere, has the spread of vMF(kappa).

    The spread is the mean cosine to the vector, which is I_(d/2)(kappa) / I_(d/2 - 1)(kappa) for vMF. Laplace noise
    favours the axes, so its spread depends on the vector: vectors are uniform on the sphere.
    """
    from scipy.optimize import brentq
    from scipy.special import ive

    rng = np.random.default_rng(0)
    centres = Sphere(d).uniform(SPREAD_DRAWS, rng)
    unit = family(1.0).draw(centres.shape, rng)
    wanted = ive(d / 2, kappa) / ive(d / 2 - 1, kappa)

    def excess(log_scale: float) -> float:
        moved = centres + np.exp(log_scale) * unit
        cosines = np.einsum("ij,ij->i", centres, moved) / np.linalg.norm(moved, axis=1)
        return float(cosines.mean() - wanted)

    return float(np.exp(brentq(excess, -12.0, 5.0)))
