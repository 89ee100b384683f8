"""The contrastive objective (InfoNCE) whose minimisers invert the data generating process (Zimmermann et al. 2021)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.lab.models.outputs import full_precision, output
from nearid.lab.models.partition import mean_log_partition
from nearid.lab.models.similarity import similarity


def infonce(anchors: Tensor, positives: Tensor, *, p: float | None = None, temperature: float = 1.0) -> Tensor:
    """Mean over i of d(a_i, b_i) / t + log(sum_j exp(-d(a_i, a_j) / t) + exp(-d(a_i, b_i) / t)).

    The negatives of every anchor are all anchors of the batch: in whatever order they come, as from a batch that is
    rolled by one, the sum is the same. Memory grows with the batch, not with its square.

    Parameters
    ----------
    anchors, positives : Tensor of shape (batch, n)
        Row i of one belongs to row i of the other.
    p : float or None
        d = sum_k |a_k - b_k|^p, or -<a, b> for None.
    temperature : float
        The t above.

    Returns
    -------
    Tensor
        A scalar; log(batch + 1) where all representations are equal.
    """
    if anchors.ndim != 2 or anchors.shape != positives.shape or not len(anchors):
        raise InputError(
            f"Anchors have shape {tuple(anchors.shape)} and positives {tuple(positives.shape)}, but both must be "
            "(batch, n): give one positive for each anchor."
        )
    how = similarity(p, temperature)
    matched = how.pairs(anchors, positives)
    return mean_log_partition(anchors, anchors, how, matched) - matched.mean()


class Contrastive(nn.Module):
    """An encoder, the space of its outputs and the contrastive objective.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Coordinates of a representation.
    space : {"unbounded", "sphere", "scaled sphere", "box"}
    p : float or None
        The distance sum_k |a_k - b_k|^p; None for the dot product, on spheres alone.
    temperature : float
    """

    def __init__(
        self, encoder: nn.Module, n: int, *, space: str = "sphere", p: float | None = None, temperature: float = 1.0
    ) -> None:
        super().__init__()
        self.encoder, self.output = encoder, output(space, n)
        if p is None and "sphere" not in space:
            raise InputError(
                f"The dot product needs representations on a sphere, but the space is {space!r}: lengths would grow "
                "without bound. Choose a sphere, or a p >= 1."
            )
        similarity(p, temperature)
        self.p, self.temperature = p, temperature

    def extra_repr(self) -> str:
        """What tells two objectives apart."""
        return f"p={self.p}, temperature={self.temperature}"

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        found: Tensor = self.output(full_precision(self.encoder(x)))
        return found

    def forward(self, x: Tensor, positive: Tensor) -> Tensor:
        """The loss of a batch of pairs."""
        anchors, positives = self.encode(torch.cat([x, positive])).chunk(2)
        return infonce(anchors, positives, p=self.p, temperature=self.temperature)
