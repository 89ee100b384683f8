"""Where representations live: all of R^n, a sphere, or a box."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError

SPACES = ("unbounded", "sphere", "scaled sphere", "box")


class Sphere(nn.Module):
    """Project rows onto a sphere around 0, of radius 1 or of a radius that is learnt.

    Parameters
    ----------
    learnable : bool
        Whether the radius is a parameter, which starts at 1.
    """

    def __init__(self, learnable: bool = False) -> None:
        super().__init__()
        # The logarithm keeps the radius above 0.
        self.log_radius = nn.Parameter(torch.zeros(())) if learnable else None

    def forward(self, x: Tensor) -> Tensor:
        unit = functional.normalize(x, dim=1)
        return unit if self.log_radius is None else unit * self.log_radius.exp()


class Box(nn.Module):
    """Squash coordinate i into (0, b_i) with a sigmoid; the b_i are learnt and start at 1.

    Parameters
    ----------
    n : int
        Coordinates.
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.sides = nn.Parameter(torch.ones(n))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(x) * self.sides


def full_precision(x: Tensor) -> Tensor:
    """Rows in float32 at least: half precision is for the products inside an encoder, not for distances."""
    return x.float() if x.dtype.itemsize < 4 else x


def output(space: str, n: int) -> nn.Module:
    """The module that puts n coordinates into one of SPACES."""
    if space not in SPACES:
        raise InputError(f"There is no output space {space!r}; choose one of {', '.join(SPACES)}.")
    if space == "unbounded":
        return nn.Identity()
    return Box(n) if space == "box" else Sphere(learnable=space == "scaled sphere")
