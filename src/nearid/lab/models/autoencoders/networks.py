"""What an autoencoder is made of: a pair of encoder and decoder, of any shape."""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from nearid.base.errors import InputError


class Networks(Protocol):
    """What makes the two networks of an autoencoder for one kind of input."""

    def encoder(self, outputs: int) -> nn.Module:
        """From inputs to rows of so many numbers."""

    def decoder(self, inputs: int) -> nn.Module:
        """From rows of so many numbers to inputs, or their logits."""


def check_images(x: Tensor, channels: int, side: int) -> None:
    """Refuse what is no batch of square images, channels first, of the size that a network is made for."""
    if tuple(x.shape[1:]) != (channels, side, side):
        raise InputError(
            f"Images have shape {tuple(x.shape)}, but (rows, {channels}, {side}, {side}) is expected: channels come "
            "first, and a network is made for one size."
        )
