"""Encoders: perceptrons for rows, as in the papers or faster to train, and networks from images to features.

Networks for images take channels first and return rows of nonnegative features. A final linear layer maps them to
outputs.
"""

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.ica.whiten import fit_whitener
from nearid.moments import Floats, Moments

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "leaky_relu": partial(nn.LeakyReLU, 0.01),
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
}


def published_widths(n: int) -> tuple[int, ...]:
    """Hidden widths of both papers on inverting the process: 10n, 50n four times, 10n."""
    return (10 * n, 50 * n, 50 * n, 50 * n, 50 * n, 10 * n)


def mlp(
    inputs: int,
    outputs: int,
    widths: Sequence[int] | None = None,
    *,
    batch_norm: bool = False,
    residual: bool = False,
    activation: str = "leaky_relu",
    whiten: Floats | None = None,
) -> nn.Sequential:
    """A multilayer perceptron.

    Parameters
    ----------
    inputs, outputs : int
        Coordinates of an input and of a representation.
    widths : sequence of int, optional
        Hidden widths. Default: those of the papers for this number of inputs.
    batch_norm : bool
        Normalise before every activation, as the cross-entropy paper does and the contrastive one does not.
    residual : bool
        Add the input of a hidden layer to its output where both have the same width.
    activation : {"leaky_relu", "gelu", "tanh"}
        leaky_relu has a slope of 0.01, as in both papers.
    whiten : ndarray of shape (rows, inputs), optional
        Sample of inputs. The first layer, which is not trained, makes their covariance the identity.
    """
    hidden = published_widths(inputs) if widths is None else tuple(widths)
    if min((inputs, outputs, *hidden)) < 1:
        raise InputError(
            f"An encoder from {inputs} to {outputs} with hidden widths {list(hidden)} cannot be made: every width "
            f"must be at least 1."
        )
    if activation not in ACTIVATIONS:
        raise InputError(f"There is no activation {activation!r}; choose one of {', '.join(ACTIVATIONS)}.")
    layers: list[nn.Module] = [] if whiten is None else [Whiten(whiten)]
    before = inputs
    for width in hidden:
        layer: nn.Module = nn.Sequential(
            nn.Linear(before, width), *([nn.BatchNorm1d(width)] if batch_norm else []), ACTIVATIONS[activation]()
        )
        layers.append(Residual(layer) if residual and width == before else layer)
        before = width
    return nn.Sequential(*layers, nn.Linear(before, outputs))


class Residual(nn.Module):
    """A layer whose input is added to its output."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = x + self.layer(x)
        return output


class Whiten(nn.Module):
    """A fixed linear map that makes the covariance of given rows the identity with the smallest change (ZCA).

    Parameters
    ----------
    rows : ndarray of shape (rows, inputs)
    """

    def __init__(self, rows: Floats) -> None:
        super().__init__()
        whitener = fit_whitener(Moments.of(rows), form="zca")
        self.register_buffer("mean", torch.as_tensor(whitener.mean, dtype=torch.float32))
        self.register_buffer("matrix", torch.as_tensor(whitener.forward.T, dtype=torch.float32))
        self.mean: Tensor
        self.matrix: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.matrix


# Layers of the perceptron (Reizinger et al. 2025).
DEPTH = 3
# Channels of the small convolutions. Each convolution halves the side.
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
            f"Images of side {side} cannot be halved {len(widths)} times. Use a multiple of {2 ** len(widths)}."
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
        output: Tensor = (self.body(x) + self.skip(x)).relu()
        return output
