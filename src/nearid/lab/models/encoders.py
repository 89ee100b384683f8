"""Encoders: multilayer perceptrons as in the papers, and shapes that train quicker on a CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

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
        Hidden widths; those of the papers for `inputs` where not given.
    batch_norm : bool
        Normalise before every activation, as the cross-entropy paper does and the contrastive one does not.
    residual : bool
        Add the input of a hidden layer to its output where both have the same width.
    activation : {"leaky_relu", "gelu", "tanh"}
        leaky_relu has a slope of 0.01, as in both papers.
    whiten : ndarray of shape (rows, inputs), optional
        Rows like the inputs: the first layer, which is not trained, brings their covariance to the identity.
    """
    hidden = published_widths(inputs) if widths is None else tuple(widths)
    if min((inputs, outputs, *hidden)) < 1:
        raise InputError(
            f"An encoder from {inputs} to {outputs} with hidden widths {list(hidden)} cannot be: "
            "every width must be at least 1."
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
        found: Tensor = x + self.layer(x)
        return found


class Whiten(nn.Module):
    """A fixed linear map that makes the covariance of given rows the identity and moves them least (ZCA).

    Parameters
    ----------
    rows : ndarray of shape (rows, inputs)
    """

    def __init__(self, rows: Floats) -> None:
        super().__init__()
        found = fit_whitener(Moments.of(rows), form="zca")
        self.register_buffer("mean", torch.as_tensor(found.mean, dtype=torch.float32))
        self.register_buffer("matrix", torch.as_tensor(found.forward.T, dtype=torch.float32))
        self.mean: Tensor
        self.matrix: Tensor

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.mean) @ self.matrix
