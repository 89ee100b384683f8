"""Muon (Jordan et al. 2024): orthogonalised momentum for the hidden layers of a network.

A few directions dominate the gradient of a hidden matrix. A step along the nearest orthogonal matrix moves all
directions equally. Adam updates all other parameters (first and last layers, biases, weights of labels). Products use
the precision of the parameters. The Muon of PyTorch uses bfloat16, which some processors do not support, and needs a
second optimiser for parameters that are not matrices.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

# Steps of hidden matrices, in units of the learning rate of the other parameters.
MATRIX_RATE = 10.0
# Momentum of the matrices, and the betas of Adam for all other parameters.
MOMENTUM, BETAS, EPSILON = 0.95, (0.9, 0.999), 1e-8
# Odd polynomial that brings singular values near 1: five rounds leave those above a hundredth between 0.7 and 1.2, and
# make smaller ones about 450 times as large.
COEFFICIENTS, ROUNDS = (3.4445, -4.7750, 2.0315), 5


def orthogonalised(matrix: Tensor) -> Tensor:
    """A matrix with the singular vectors of the given one and singular values near 1, by Newton-Schulz rounds."""
    a, b, c = COEFFICIENTS
    wide = matrix.shape[0] <= matrix.shape[1]
    x: Tensor = matrix if wide else matrix.T
    x = x / (x.norm() + 1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.T
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x if wide else x.mT


def hidden_matrices(model: nn.Module) -> list[Tensor]:
    """Weights of the linear layers of a model, without the first and the last."""
    return [layer.weight for layer in model.modules() if isinstance(layer, nn.Linear)][1:-1]


class Muon(torch.optim.Optimizer):
    """Orthogonalised momentum for the hidden matrices of a model, Adam for its other parameters.

    Parameters
    ----------
    lr : float
        Learning rate of Adam. The steps of hidden matrices are MATRIX_RATE times as large in each singular direction.
    """

    def __init__(self, model: nn.Module, lr: float) -> None:
        matrices = hidden_matrices(model)
        chosen = {id(matrix) for matrix in matrices}
        others = [p for p in model.parameters() if id(p) not in chosen]
        groups = [{"params": others, "hidden": False}]
        if matrices:
            groups.append({"params": matrices, "hidden": True})
        super().__init__(groups, {"lr": lr})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move all parameters that have a gradient."""
        for group in self.param_groups:
            move = _orthogonal_step if group["hidden"] else _adam_step
            for p in group["params"]:
                if p.grad is not None:
                    move(p, p.grad, self.state[p], group["lr"])


def _orthogonal_step(p: Tensor, grad: Tensor, state: dict[str, Any], lr: float) -> None:
    if not state:
        state["momentum"] = torch.zeros_like(p)
    state["momentum"].lerp_(grad, 1 - MOMENTUM)
    # Look ahead along the momentum (Nesterov).
    ahead = torch.lerp(grad, state["momentum"], MOMENTUM)
    tall = max(1.0, p.shape[0] / p.shape[1])
    p.add_(orthogonalised(ahead), alpha=-MATRIX_RATE * lr * math.sqrt(tall))


def _adam_step(p: Tensor, grad: Tensor, state: dict[str, Any], lr: float) -> None:
    if not state:
        state |= {"step": 0, "mean": torch.zeros_like(p), "square": torch.zeros_like(p)}
    state["step"] += 1
    state["mean"].lerp_(grad, 1 - BETAS[0])
    state["square"].lerp_(grad * grad, 1 - BETAS[1])
    mean = state["mean"] / (1 - BETAS[0] ** state["step"])
    square = state["square"] / (1 - BETAS[1] ** state["step"])
    p.addcdiv_(mean, square.sqrt_().add_(EPSILON), value=-lr)
