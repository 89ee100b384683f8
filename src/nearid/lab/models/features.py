"""Networks from images to features: a perceptron, small convolutions, ResNet-18.

All take images with channels first and give rows of nonnegative features, of which a linear layer makes the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from nearid.base.errors import InputError

# Layers of the perceptron (Reizinger et al. 2025).
DEPTH = 3
# Channels of the small convolutions, each of which halves the side.
SMALL = (32, 32, 64)
# Channels and first strides of the stages of ResNet-18, of two blocks each.
STAGES = ((64, 1), (128, 2), (256, 2), (512, 2))


def dense_features(channels: int, side: int, width: int) -> nn.Sequential:
    """Three layers of linear map, batch normalisation and ReLU."""
    widths = [channels * side**2] + [width] * DEPTH
    layers: list[nn.Module] = [nn.Flatten()]
    for before, after in pairwise(widths):
        layers += [nn.Linear(before, after), nn.BatchNorm1d(after), nn.ReLU()]
    return nn.Sequential(*layers)


def small_features(
    channels: int, side: int, width: int, *, widths: Sequence[int] = SMALL, batch_norm: bool = True
) -> nn.Sequential:
    """Convolutions of 4 x 4 that halve the side, and a linear map; ReLU after each.

    Parameters
    ----------
    channels, side : int
        Of the images.
    width : int
        Number of features.
    widths : sequence of int
        Channels of the convolutions.
    batch_norm : bool
        Normalise before every ReLU.
    """
    if side % 2 ** len(widths):
        raise InputError(
            f"Images of side {side} cannot be halved {len(widths)} times; give a multiple of {2 ** len(widths)}."
        )
    layers: list[nn.Module] = []
    for before, after in pairwise((channels, *widths)):
        layers.append(nn.Conv2d(before, after, 4, stride=2, padding=1, bias=not batch_norm))
        layers += [nn.BatchNorm2d(after), nn.ReLU()] if batch_norm else [nn.ReLU()]
    flat = widths[-1] * (side // 2 ** len(widths)) ** 2
    layers += [nn.Flatten(), nn.Linear(flat, width), *([nn.BatchNorm1d(width)] if batch_norm else []), nn.ReLU()]
    return nn.Sequential(*layers)


def resnet18_features(channels: int) -> nn.Sequential:
    """ResNet-18 (He et al. 2016) up to its 512 pooled features."""
    layers: list[nn.Module] = [
        nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    before = 64
    for width, stride in STAGES:
        layers += [BasicBlock(before, width, stride), BasicBlock(width, width, 1)]
        before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())


class BasicBlock(nn.Module):
    """Two convolutions of 3 x 3 whose output is added to the input, or to a projection of it.

    Parameters
    ----------
    before, after : int
        Channels.
    stride : int
        Of the first convolution.
    """

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            nn.Conv2d(after, after, 3, padding=1, bias=False),
            nn.BatchNorm2d(after),
        )
        self.skip: nn.Module = nn.Identity()
        if stride > 1 or before != after:
            self.skip = nn.Sequential(nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after))

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = (self.body(x) + self.skip(x)).relu()
        return found
