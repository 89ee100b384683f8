"""Networks of orthogonal layers. Only the leak decides how far they are from an isometry.

Every layer is W x with orthonormal rows or columns and no bias; between layers stands LeakyReLU(alpha). In a decoder
that widens, W keeps all lengths and the activation shrinks some directions by alpha at most: with m activations every
singular value of the Jacobian lies in [alpha^m, 1], hence the local bi-Lipschitz constant is at most alpha^-m (Nelson
et al. 2026, Section 4.1). At alpha = 1 the decoder is a linear isometry.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError


class OrthogonalLinear(nn.Module):
    """A linear layer without bias whose weight always has orthonormal rows (columns if it widens).

    The parameter X is any matrix of full rank, with k rows if the smaller side is k. The weight is the orthogonal
    factor L^-1 X, where X X^T = L L^T, or its transpose. Every orthogonal matrix can be reached: it is its own factor.

    torch's `parametrizations.orthogonal` builds and solves n x n systems, or goes through the columns one by one. Here,
    inputs meet X first and L^-1 then (or the other way round where the layer widens), so that the weight is never
    built: a step of training makes half as many products of the size of X.

    Parameters
    ----------
    inputs, outputs : int
    """

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        # From a linear layer, whose random numbers seeds have always given.
        drawn = nn.Linear(inputs, outputs, bias=False).weight
        nn.init.orthogonal_(drawn)
        self.free = nn.Parameter(drawn.detach().T.contiguous() if outputs > inputs else drawn.detach())

    def extra_repr(self) -> str:
        return f"{self.inputs}, {self.outputs}"

    @property
    def weight(self) -> Tensor:
        """The orthogonal weight, shape (outputs, inputs)."""
        factor = self.inverse() @ self.free
        return factor.T if self.outputs > self.inputs else factor

    def inverse(self) -> Tensor:
        """L^-1, shape (k, k)."""
        # The gradient of X X^T is (G + G^T) X. As written here it costs one product of that size instead of two.
        half = self.free @ self.free.detach().T
        lower, failed = torch.linalg.cholesky_ex(half + half.T - half.detach())
        # A failure becomes NaN, and the trainer reports it.
        lower = torch.where(failed == 0, lower, math.nan)
        identity = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
        inverse: Tensor = torch.linalg.solve_triangular(lower, identity, upper=False)
        return inverse

    def forward(self, x: Tensor) -> Tensor:
        if self.outputs > self.inputs:
            return x @ self.inverse() @ self.free
        return x @ self.free.T @ self.inverse().T


@dataclass(frozen=True)
class Orthogonal:
    """Encoder and decoder of orthogonal layers with LeakyReLU between them, for inputs in rows.

    The paper does not give the widths of the MNIST experiment. These widths are fast on a CPU.

    Parameters
    ----------
    features : int
        Coordinates of an input.
    widths : tuple of int
        Hidden widths of the encoder, which the decoder mirrors. They must decrease from inputs to latents: a decoder
        with a narrower layer would lose directions.
    leak : float
        alpha: 0 for ReLU, 1 for linear networks.
    """

    features: int = 784
    widths: tuple[int, ...] = (128, 32)
    leak: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.leak <= 1:
            raise InputError(f"leak is {self.leak}, but a number from 0 (ReLU) to 1 (linear) is expected.")

    @property
    def bound(self) -> float:
        """Largest local bi-Lipschitz constant that the decoder can have: leak^-(number of activations)."""
        return math.inf if self.leak == 0 else self.leak ** -len(self.widths)

    def encoder(self, outputs: int) -> nn.Module:
        return self._network((self.features, *self.widths, outputs))

    def decoder(self, inputs: int) -> nn.Module:
        return self._network((inputs, *self.widths[::-1], self.features))

    def _network(self, widths: Sequence[int]) -> nn.Sequential:
        if min(widths) < 1 or (sorted(widths) != list(widths) and sorted(widths, reverse=True) != list(widths)):
            raise InputError(
                f"Orthogonal layers of widths {list(widths)} would lose directions. Widths must be at least 1 and "
                f"must not increase from inputs to latents."
            )
        layers: list[nn.Module] = []
        for before, after in pairwise(widths):
            layers += [OrthogonalLinear(before, after), nn.LeakyReLU(self.leak)]
        return nn.Sequential(*layers[:-1])
