"""The convolutional decoder of Burgess et al. (2018), as published weights of disentanglement models have it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

HIDDEN, CHANNELS, KERNEL = 256, 32, 4
# Side of the first image, which every transposed convolution doubles.
SEED = 4


class BurgessDecoder(nn.Module):
    """Latents to images in (0, 1): three linear layers, then transposed convolutions that double the sides.

    Parameters
    ----------
    latents : int
    channels : int
        Of the images.
    size : {32, 64}
        Side of the images.
    """

    def __init__(self, latents: int, channels: int = 1, size: int = 32) -> None:
        super().__init__()
        self.lin1 = nn.Linear(latents, HIDDEN)
        self.lin2 = nn.Linear(HIDDEN, HIDDEN)
        self.lin3 = nn.Linear(HIDDEN, CHANNELS * SEED * SEED)
        self.convT_64 = _doubling(CHANNELS) if size == 64 else None
        self.convT1, self.convT2, self.convT3 = _doubling(CHANNELS), _doubling(CHANNELS), _doubling(channels)

    def forward(self, z: Tensor) -> Tensor:
        for linear in (self.lin1, self.lin2, self.lin3):
            z = torch.relu(linear(z))
        x = z.unflatten(1, (CHANNELS, SEED, SEED))
        for layer in (self.convT_64, self.convT1, self.convT2):
            if layer is not None:
                x = torch.relu(layer(x))
        return torch.sigmoid(self.convT3(x))

    @classmethod
    def of(cls, weights: Mapping[str, Tensor]) -> BurgessDecoder | None:
        """The decoder that such weights are of, by their names and shapes; None where they are of something else."""
        first, last = (weights[name].shape if name in weights else () for name in ("lin1.weight", "convT3.weight"))
        if len(first) != 2 or len(last) != 4:
            return None
        found = cls(first[1], last[1], 64 if "convT_64.weight" in weights else 32)
        expected = {name: own.shape for name, own in found.state_dict().items()}
        return found if expected == {n: w.shape for n, w in weights.items()} else None


def _doubling(channels: int) -> nn.ConvTranspose2d:
    return nn.ConvTranspose2d(CHANNELS, channels, KERNEL, stride=2, padding=1)
