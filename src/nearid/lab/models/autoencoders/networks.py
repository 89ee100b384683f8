"""What an autoencoder is made of: a pair of encoder and decoder, of any shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.lab.models.encoders import mlp


class Networks(Protocol):
    """What makes the two networks of an autoencoder for one kind of input."""

    def encoder(self, outputs: int) -> nn.Module:
        """From inputs to rows of so many numbers."""

    def decoder(self, inputs: int) -> nn.Module:
        """From rows of so many numbers to inputs, or their logits."""


@dataclass(frozen=True)
class Dense:
    """Multilayer perceptrons for inputs that are rows; the decoder mirrors the encoder.

    Parameters
    ----------
    features : int
        Coordinates of an input.
    widths : tuple of int
        Hidden widths of the encoder, from inputs to latents.
    """

    features: int
    widths: tuple[int, ...] = (256, 256)

    def encoder(self, outputs: int) -> nn.Module:
        return mlp(self.features, outputs, self.widths)

    def decoder(self, inputs: int) -> nn.Module:
        return mlp(inputs, self.features, self.widths[::-1])


def check_images(x: Tensor, channels: int, side: int) -> None:
    """Refuse what is no batch of square images, channels first, of the size that a network is made for."""
    if tuple(x.shape[1:]) != (channels, side, side):
        raise InputError(
            f"Images have shape {tuple(x.shape)}, but (rows, {channels}, {side}, {side}) is expected: channels come "
            "first, and a network is made for one size."
        )
