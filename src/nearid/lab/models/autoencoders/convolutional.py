"""Convolutional encoders and decoders of images: those of the disentanglement protocol, and small ones for a CPU."""

from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import check_images

SLOPE, EPSILON = 0.2, 1e-6
# Blocks of the protocol: three of each width; the third one halves (or doubles) the side of the image.
WIDTHS, KERNELS, STRIDES = (32, 64, 128, 256), (3, 3, 4), (1, 1, 2)
DENSE = 256
# The small networks: side of a patch, and channels after the patches and after each halving down to a side of 4.
PATCH, LIGHT_WIDTHS, LEAST = 4, (32, 64), 4


@dataclass(frozen=True)
class Convolutional:
    """Networks of the protocol (Hsu et al. 2023): twelve convolutions, and a decoder that the latents modulate.

    Parameters
    ----------
    side : int
        Height and width of an image: 64 in the protocol, a multiple of 16 from 32 on.
    """

    channels: int = 3
    side: int = 64

    def __post_init__(self) -> None:
        if self.side < 32 or self.side % 2 ** len(WIDTHS):
            raise InputError(
                f"Images of side {self.side} do not fit these networks, which halve the side four times. Use a "
                f"multiple of 16, at least 32, such as 64."
            )

    def encoder(self, outputs: int) -> nn.Module:
        layers: list[nn.Module] = [_Checked(self.channels, self.side)]
        before = self.channels
        for width in WIDTHS:
            for kernel, stride in zip(KERNELS, STRIDES, strict=True):
                layers += [
                    nn.Conv2d(before, width, kernel, stride, padding=1, bias=False),
                    nn.InstanceNorm2d(width, eps=EPSILON, affine=True),
                    nn.LeakyReLU(SLOPE),
                ]
                before = width
        flat = before * (self.side // 2 ** len(WIDTHS)) ** 2
        return nn.Sequential(*layers, nn.Flatten(), *_dense(flat), nn.Linear(DENSE, outputs))

    def decoder(self, inputs: int) -> nn.Module:
        return Modulated(inputs, self.channels, self.side)


class Modulated(nn.Module):
    """A decoder that starts from a learnt map; the latents set scale and bias of every channel of every block.

    Parameters
    ----------
    inputs : int
        Numbers per row of the input.
    channels, side : int
        Of the images that it gives.
    """

    def __init__(self, inputs: int, channels: int, side: int) -> None:
        super().__init__()
        start = side // 2 ** len(WIDTHS)
        self.start = nn.Parameter(torch.full((WIDTHS[-1], start, start), 0.1))
        self.style = nn.Sequential(*_dense(inputs))
        convolutions, modulations, before = [], [], WIDTHS[-1]
        for width in WIDTHS[::-1]:
            for kernel, stride in zip(KERNELS, STRIDES, strict=True):
                convolutions.append(nn.ConvTranspose2d(before, width, kernel, stride, padding=1, bias=False))
                modulations.append(nn.Linear(DENSE, 2 * width))
                before = width
        self.convolutions, self.modulations = nn.ModuleList(convolutions), nn.ModuleList(modulations)
        self.last = nn.Conv2d(before, channels, 3, padding=1)

    def forward(self, z: Tensor) -> Tensor:
        style = self.style(z)
        x = self.start.expand(len(z), -1, -1, -1)
        for convolution, modulation in zip(self.convolutions, self.modulations, strict=True):
            x = functional.leaky_relu(convolution(x), SLOPE)
            # In the protocol ReLU follows every dense layer except the last one of the encoder. It also follows these.
            scale, bias = functional.relu(modulation(style))[:, :, None, None].chunk(2, dim=1)
            x = functional.instance_norm(x, eps=EPSILON) * scale + bias
        images: Tensor = self.last(x)
        return images


@dataclass(frozen=True)
class Light:
    """Networks that a CPU trains in minutes: patches of 4 x 4, then halvings by convolutions of 4 x 4.

    A first layer of patches is almost as good as convolutions at full size and takes a third of the time.

    Parameters
    ----------
    side : int
        Height and width of an image: 16 times a power of 2, such as 32 or 64.
    """

    channels: int = 3
    side: int = 32

    def __post_init__(self) -> None:
        if self.side < PATCH * LEAST or (self.side // (PATCH * LEAST)).bit_count() != 1 or self.side % (PATCH * LEAST):
            raise InputError(f"Images of side {self.side} do not fit these networks. Use a side of 16, 32, 64 or 128.")

    @property
    def _widths(self) -> list[int]:
        halvings = (self.side // (PATCH * LEAST)).bit_length() - 1
        return [LIGHT_WIDTHS[0]] + [LIGHT_WIDTHS[1]] * halvings

    def encoder(self, outputs: int) -> nn.Module:
        widths = self._widths
        layers: list[nn.Module] = [_Checked(self.channels, self.side)]
        layers += [nn.Conv2d(self.channels, widths[0], PATCH, stride=PATCH), nn.LeakyReLU(SLOPE)]
        for before, width in pairwise(widths):
            layers += [nn.Conv2d(before, width, 4, stride=2, padding=1), nn.LeakyReLU(SLOPE)]
        flat = widths[-1] * LEAST**2
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(flat, DENSE), nn.ReLU(), nn.Linear(DENSE, outputs))

    def decoder(self, inputs: int) -> nn.Module:
        widths = self._widths[::-1]
        layers: list[nn.Module] = [nn.Linear(inputs, DENSE), nn.ReLU(), nn.Linear(DENSE, widths[0] * LEAST**2)]
        layers += [nn.Unflatten(1, (widths[0], LEAST, LEAST)), nn.LeakyReLU(SLOPE)]
        for before, width in pairwise(widths):
            layers += [nn.ConvTranspose2d(before, width, 4, stride=2, padding=1), nn.LeakyReLU(SLOPE)]
        return nn.Sequential(*layers, nn.Conv2d(widths[-1], self.channels * PATCH**2, 1), nn.PixelShuffle(PATCH))


class _Checked(nn.Module):
    """Returns batches of images unchanged and raises an error for other input."""

    def __init__(self, channels: int, side: int) -> None:
        super().__init__()
        self.channels, self.side = channels, side

    def forward(self, x: Tensor) -> Tensor:
        check_images(x, self.channels, self.side)
        return x


def _dense(inputs: int) -> list[nn.Module]:
    return [nn.Linear(inputs, DENSE), nn.ReLU(), nn.Linear(DENSE, DENSE), nn.ReLU()]
