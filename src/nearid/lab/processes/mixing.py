"""Mixings: networks without bias, LeakyReLU between their layers.

Invertible mixings are square, with weights of small condition numbers. Mixings with a known bi-Lipschitz constant have
orthogonal layers of increasing width. A layer with orthonormal columns keeps all lengths, and the activation multiplies
coordinates by its slope or by 1. With k activations all stretches lie between slope^k and 1. Under the best global
scale the mixing is locally bi-Lipschitz with constant slope^(-k / 2); at slope 1 it is an isometry. It is smooth except
at the folds of the activations.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nearid.base.errors import InputError
from nearid.base.options import at_least
from nearid.lab.processes.spaces import Assumption
from nearid.moments import Floats

# Draws of the usual condition-number rule.
DRAWS = 25_000
# Weights drawn at a time: many enough for a small overhead of numpy, few enough for the cache.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class Mixing:
    """x = W_L a(W_(L-1) ... a(W_1 z)), with a the LeakyReLU.

    Parameters
    ----------
    weights : tuple of ndarray of shape (n, n)
        Weights from the first layer to the last; each acts on columns, like the weight of a linear layer.
    slope : float
        Slope of the LeakyReLU below zero, in (0, 1].
    """

    weights: tuple[Floats, ...]
    slope: float = 0.2

    def __post_init__(self) -> None:
        if not self.weights:
            raise InputError("A mixing has at least one layer, but no weights were given.")
        shape = self.weights[0].shape
        if len(shape) != 2 or shape[0] != shape[1] or any(w.shape != shape for w in self.weights):
            shapes = [w.shape for w in self.weights]
            raise InputError(f"The weights have shapes {shapes}, but square matrices of one size are expected.")
        if not 0 < self.slope <= 1:
            raise InputError(f"slope is {self.slope}, but a number in (0, 1] is expected: 0 would not be invertible.")
        if not max(self.conditions) < 1 / np.finfo(np.float64).eps:
            raise InputError("A layer of the mixing is singular, so it has no inverse. Draw other weights.")

    @property
    def n(self) -> int:
        """Width of latents and observations."""
        return len(self.weights[0])

    @property
    def conditions(self) -> tuple[float, ...]:
        """Condition number of each layer's weights."""
        return tuple(float(np.linalg.cond(w)) for w in self.weights)

    @property
    def assumption(self) -> Assumption:
        """The assumption that the mixing is injective; it always holds."""
        note = f"{len(self.weights)} invertible layers, condition numbers up to {max(self.conditions):.3g}"
        return Assumption("injective mixing", "observations determine the latents", True, note)

    def __call__(self, z: Floats) -> Floats:
        """Observations of latents of shape (size, n)."""
        return network(self.weights, self.slope, z)

    def inverse(self, x: Floats) -> Floats:
        """Latents of observations of shape (size, n), exact up to rounding."""
        z = np.linalg.solve(self.weights[-1], x.T)
        for w in self.weights[-2::-1]:
            z = np.linalg.solve(w, np.minimum(z, z / self.slope))
        return np.asarray(z.T)

    def jacobian(self, z: Floats) -> Floats:
        """Derivatives dx_i / dz_j at each of the latents, of shape (size, n, n)."""
        return network_jacobian(self.weights, self.slope, z)


def network(weights: Sequence[Floats], slope: float, z: Floats) -> Floats:
    """Layers without bias, LeakyReLU between them, of inputs of shape (size, n)."""
    x = z @ weights[0].T
    for w in weights[1:]:
        x = np.maximum(x, slope * x) @ w.T
    return x


def network_jacobian(weights: Sequence[Floats], slope: float, z: Floats) -> Floats:
    """Derivatives of shape (size, outputs, inputs) of `network`."""
    x = z @ weights[0].T
    jacobian = np.broadcast_to(weights[0], (len(z), *weights[0].shape))
    for w in weights[1:]:
        slopes = np.where(x > 0, 1.0, slope)
        x = (slopes * x) @ w.T
        jacobian = w @ (slopes[:, :, None] * jacobian)
    return np.array(jacobian)


def draw_mixing(n: int, layers: int, rng: np.random.Generator, *, slope: float = 0.2, draws: int = DRAWS) -> Mixing:
    """Draw a mixing by the condition-number rule.

    Weights are uniform in [-1, 1], with columns scaled to unit length. They are drawn again until their condition
    number is at most the smallest of `draws` such draws.
    """
    at_least("n of the mixing", n, 1)
    at_least("layers", layers, 1)
    threshold = least_condition(n, rng, draws=draws)
    return Mixing(tuple(_draw_below(n, threshold, rng) for _ in range(layers)), slope)


def least_condition(n: int, rng: np.random.Generator, *, draws: int = DRAWS) -> float:
    """Least condition number among `draws` matrices of uniform weights with columns of unit length."""
    at_least("draws", draws, 1)
    best = np.inf
    for start in range(0, draws, CHUNK):
        for _, condition in _conditions(_uniform(min(CHUNK, draws - start), n, rng), best):
            best = min(best, condition)
    return float(best)


def _draw_below(n: int, threshold: float, rng: np.random.Generator) -> Floats:
    """The first draw with at most this condition number, columns of unit length."""
    while True:
        weights = _uniform(CHUNK, n, rng)
        for at, condition in _conditions(weights, threshold):
            if condition <= threshold:
                return np.asarray(weights[at] / np.linalg.norm(weights[at], axis=0))


def _uniform(size: int, n: int, rng: np.random.Generator) -> Floats:
    return rng.uniform(-1, 1, (size, n, n))


def _conditions(weights: Floats, limit: float) -> Iterator[tuple[int, float]]:
    """Yield (index, condition number) of the matrices, with columns of unit length, that may be at or below the limit.

    Eigenvalues are expensive. A Cholesky factor is cheap and excludes most matrices. With unit columns the eigenvalues
    of the Gram matrix G sum to n, so the largest is at least |G|^2 / n. Each squared diagonal entry of the Cholesky
    factor (the distance of a column from the span of the previous columns) is at least the smallest eigenvalue.
    """
    gram = weights.transpose(0, 2, 1) @ weights
    lengths = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    gram /= lengths[:, :, None] * lengths[:, None, :]
    n = gram.shape[1]
    largest = np.einsum("kij,kij->k", gram, gram) / n
    # The added term makes singular draws factorable. It raises the pivots, so it never excludes a matrix.
    factors = np.linalg.cholesky(gram + 1e-12 * np.eye(n))
    smallest = np.diagonal(factors, axis1=1, axis2=2).min(axis=1) ** 2
    kept = np.flatnonzero(largest <= limit**2 * smallest)
    values = np.linalg.eigvalsh(gram[kept])
    # By rounding, the smallest eigenvalue of a singular draw may be below zero.
    ratios = values[:, -1] / np.clip(values[:, 0], np.finfo(np.float64).tiny, None)
    yield from zip(kept.tolist(), np.sqrt(ratios).tolist(), strict=True)


# Deviation from orthonormal columns that rounding explains.
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
        """Upper bound of the local bi-Lipschitz constant under the best global scale."""
        return float(self.slope ** (-(len(self.weights) - 1) / 2))

    @property
    def assumption(self) -> Assumption:
        """The assumption that the mixing is bi-Lipschitz; it always holds."""
        note = f"constant of at most {self.bound:.3g} under the best scale; smooth but for the folds of LeakyReLU"
        return Assumption("bi-Lipschitz mixing", "the mixing is locally bi-Lipschitz", True, note)

    def __call__(self, z: Floats) -> Floats:
        """Observations of latents of shape (size, n)."""
        return network(self.weights, self.slope, z)

    def jacobian(self, z: Floats) -> Floats:
        """Derivatives at each of the latents, of shape (size, outputs, n)."""
        return network_jacobian(self.weights, self.slope, z)


def draw_orthogonal(widths: Sequence[int], rng: np.random.Generator, *, slope: float) -> OrthogonalMixing:
    """Draw a mixing with layers that are uniform among matrices with orthonormal columns.

    Parameters
    ----------
    widths : sequence of int
        Latents, hidden widths and observed coordinates; they must not decrease.
    """
    if len(widths) < 2 or min(widths) < 1 or list(widths) != sorted(widths):
        raise InputError(f"The widths are {list(widths)}, but at least two are expected, and they must not decrease.")
    return OrthogonalMixing(tuple(_orthonormal(after, before, rng) for before, after in pairwise(widths)), slope)


def _orthonormal(rows: int, columns: int, rng: np.random.Generator) -> Floats:
    q, r = np.linalg.qr(rng.standard_normal((rows, columns)))
    # Only the factor with a positive diagonal is uniform.
    return np.asarray(q * np.sign(np.diagonal(r)))
