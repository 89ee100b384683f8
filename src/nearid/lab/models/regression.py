"""Supervised regression onto the true latents: what an encoder can reach when it is told the answer."""

from __future__ import annotations

from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.lab.models.outputs import full_precision, output


class Regression(nn.Module):
    """An encoder that is fitted to the latents by least squares.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Latents.
    space : {"unbounded", "sphere", "scaled sphere", "box"}
    """

    def __init__(self, encoder: nn.Module, n: int, *, space: str = "unbounded") -> None:
        super().__init__()
        self.encoder, self.output = encoder, output(space, n)

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        found: Tensor = self.output(full_precision(self.encoder(x)))
        return found

    def forward(self, x: Tensor, latents: Tensor) -> Tensor:
        """Mean squared error of a batch, over rows and latents."""
        found = self.encode(x)
        if found.shape != latents.shape:
            raise InputError(
                f"Representations have shape {tuple(found.shape)} and latents {tuple(latents.shape)}; make the encoder "
                "with as many outputs as there are latents."
            )
        return (found - latents).square().mean()
