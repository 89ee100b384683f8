"""Predictive coding (CPC): tell which of some candidates belongs to an input (Roeder et al. 2021, eq. 1)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.outputs import full_precision


class Predictive(nn.Module):
    """Two encoders with p(y | x, S) = exp(f(x) . g(y)) / sum over y' in S of exp(f(x) . g(y')).

    S are the y of a batch: those that belong to other x are the distractors. Nothing is normalised.

    Parameters
    ----------
    f, g : nn.Module
        From inputs and from candidates to equally many coordinates.
    """

    def __init__(self, f: nn.Module, g: nn.Module) -> None:
        super().__init__()
        self.f, self.g = f, g

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Mean of -log p(y_i | x_i, all y) over a batch; log(batch) where all scores are equal."""
        if len(x) != len(y):
            raise InputError(f"There are {len(x)} inputs and {len(y)} candidates, but one candidate belongs to each.")
        scores = full_precision(self.f(x)) @ full_precision(self.g(y)).T
        return functional.cross_entropy(scores, torch.arange(len(x), device=scores.device))
