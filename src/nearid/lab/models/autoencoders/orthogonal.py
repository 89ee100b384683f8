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
from torch.nn.utils import parametrizations, parametrize

from nearid.base.errors import InputError

MAPS = ("cholesky", "cayley", "matrix_exp", "householder")


class Cholesky(nn.Module):
    """The orthogonal factor of any matrix of full rank: L^-1 X for wide X with X X^T = L L^T, its transpose for tall.

    It costs products of n x k with k x k matrices alone. torch's own maps make and solve n x n systems (cayley,
    matrix_exp), or go through the columns one by one (householder).
    """

    def forward(self, weight: Tensor) -> Tensor:
        tall = weight.shape[0] > weight.shape[1]
        wide = weight.T if tall else weight
        factor, failed = torch.linalg.cholesky_ex(wide @ wide.T)
        # A failure becomes NaN, and the trainer reports it.
        factor = torch.where(failed == 0, factor, math.nan)
        orthogonal: Tensor = torch.linalg.solve_triangular(factor, wide, upper=False)
        return orthogonal.T if tall else orthogonal

    def right_inverse(self, weight: Tensor) -> Tensor:
        """Return a matrix whose factor is `weight`: `weight` itself."""
        return weight


def orthogonal_linear(inputs: int, outputs: int, orthogonal_map: str = "cholesky") -> nn.Linear:
    """A linear layer without bias whose rows (columns if there are more rows) stay orthonormal.

    Parameters
    ----------
    orthogonal_map : {"cholesky", "cayley", "matrix_exp", "householder"}
        Map from free parameters to orthogonal weights, computed at every call. All except cholesky are those of
        `torch.nn.utils.parametrizations.orthogonal`. All can represent the same networks; they differ in speed.
    """
    layer = nn.Linear(inputs, outputs, bias=False)
    nn.init.orthogonal_(layer.weight)
    if orthogonal_map == "cholesky":
        parametrize.register_parametrization(layer, "weight", Cholesky())
    else:
        parametrizations.orthogonal(layer, orthogonal_map=orthogonal_map)
    return layer


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
    orthogonal_map : {"cholesky", "cayley", "matrix_exp", "householder"}
        See `orthogonal_linear`.
    """

    features: int = 784
    widths: tuple[int, ...] = (128, 32)
    leak: float = 0.5
    orthogonal_map: str = "cholesky"

    def __post_init__(self) -> None:
        if not 0 <= self.leak <= 1:
            raise InputError(f"leak is {self.leak}, but a number from 0 (ReLU) to 1 (linear) is expected.")
        if self.orthogonal_map not in MAPS:
            raise InputError(f"There is no orthogonal_map {self.orthogonal_map!r}; choose one of {', '.join(MAPS)}.")

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
            layers += [orthogonal_linear(before, after, self.orthogonal_map), nn.LeakyReLU(self.leak)]
        return nn.Sequential(*layers[:-1])
