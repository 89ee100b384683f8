"""Mixings of known bi-Lipschitz constant: orthogonal layers that widen, LeakyReLU between them.

A layer with orthonormal columns keeps all lengths, and the activation multiplies coordinates by its slope or by 1. With
k activations all stretches lie between slope^k and 1: under the best global scale the mixing is locally bi-Lipschitz
with slope^(-k / 2), and at slope 1 it is an isometry. It is smooth but for the folds of the activations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.processes.assumptions import Assumption
from nearid.lab.processes.mixing import network, network_jacobian
from nearid.moments import Floats

# Departure from orthonormal columns that rounding explains.
ROUNDING = 1e-8


@dataclass(frozen=True, eq=False)
class OrthogonalMixing:
    """x = W_L a(W_(L-1) ... a(W_1 z)), a the LeakyReLU, all W with orthonormal columns.

    Parameters
    ----------
    weights : tuple of ndarray
        From the first layer to the last, (outputs, inputs) each, with no fewer outputs than inputs.
    slope : float
        Slope of the LeakyReLU below zero, in (0, 1].
    """

    weights: tuple[Floats, ...]
    slope: float

    def __post_init__(self) -> None:
        if not self.weights:
            raise InputError("A mixing has at least one layer, but no weights were given.")
        if not 0 < self.slope <= 1:
            raise InputError(f"slope is {self.slope}, but a number in (0, 1] is expected: 0 would not be injective.")
        for w in self.weights:
            if w.ndim != 2 or np.abs(w.T @ w - np.eye(w.shape[1])).max() > ROUNDING:
                raise InputError(f"Weights of shape {w.shape} have no orthonormal columns.")
        for before, after in pairwise(self.weights):
            if before.shape[0] != after.shape[1]:
                shapes = [w.shape for w in self.weights]
                raise InputError(f"Layers of shapes {shapes} do not follow one another.")

    @property
    def bound(self) -> float:
        """No local bi-Lipschitz constant is larger, under the best global scale."""
        return float(self.slope ** (-(len(self.weights) - 1) / 2))

    @property
    def assumption(self) -> Assumption:
        """That the mixing is bi-Lipschitz, which it is."""
        note = f"constant of at most {self.bound:.3g} under the best scale; smooth but for the folds of LeakyReLU"
        return Assumption("bi-Lipschitz mixing", "the mixing is locally bi-Lipschitz", True, note)

    def __call__(self, z: Floats) -> Floats:
        """Observations of latents of shape (size, n)."""
        return network(self.weights, self.slope, z)

    def jacobian(self, z: Floats) -> Floats:
        """Derivatives at each of the latents, of shape (size, outputs, n)."""
        return network_jacobian(self.weights, self.slope, z)


def draw_orthogonal(widths: Sequence[int], rng: np.random.Generator, *, slope: float) -> OrthogonalMixing:
    """Draw a mixing whose layers are uniform among those with orthonormal columns.

    Parameters
    ----------
    widths : sequence of int
        Latents, hidden widths and observed coordinates; they must not fall.
    rng : Generator
    slope : float
    """
    if len(widths) < 2 or min(widths) < 1 or list(widths) != sorted(widths):
        raise InputError(f"The widths are {list(widths)}, but at least two are expected, none below the one before.")
    return OrthogonalMixing(tuple(_orthonormal(after, before, rng) for before, after in pairwise(widths)), slope)


def _orthonormal(rows: int, columns: int, rng: np.random.Generator) -> Floats:
    q, r = np.linalg.qr(rng.standard_normal((rows, columns)))
    # The factor with a positive diagonal alone is uniform.
    return np.asarray(q * np.sign(np.diagonal(r)))
