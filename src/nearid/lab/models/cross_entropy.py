"""Softmax cross-entropy without bias: of instances (DIET) or of classes (supervised) (Reizinger et al. 2025)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.outputs import full_precision
from nearid.lab.models.partition import mean_log_partition
from nearid.lab.models.similarity import Dot


class CrossEntropy(nn.Module):
    """An encoder and one weight vector for each label: p(i | x) proportional to exp(beta <w_i, f(x)>).

    Labels are instances in parametric instance discrimination (DIET), and classes in supervised classification.
    The matrix of logits is never held: with 100,000 instances it would take most of the time and memory.

    Parameters
    ----------
    encoder : nn.Module
        From inputs to n coordinates.
    n : int
        Coordinates of a representation.
    labels : int
        Number of instances or classes.
    beta : float
        Inverse temperature.
    normalise_features : bool
        Project representations onto the unit sphere.
    normalise_weights : bool
        Rescale every weight vector to length 1 before each forward pass.
    label_smoothing : float
        Share of the target that is spread evenly over all labels.
    """

    def __init__(
        self,
        encoder: nn.Module,
        n: int,
        labels: int,
        *,
        beta: float = 1.0,
        normalise_features: bool = False,
        normalise_weights: bool = False,
        label_smoothing: float = 0.0,
    ) -> None:
        super().__init__()
        if labels < 2:
            raise InputError(f"There is nothing to tell apart among {labels} labels; give at least 2.")
        if not 0 < beta < float("inf"):
            raise InputError(f"beta is {beta}, but a number above 0 is expected; 1 is usual.")
        if not 0 <= label_smoothing < 1:
            raise InputError(f"label_smoothing is {label_smoothing}, but a share from 0 to below 1 is expected.")
        self.encoder = encoder
        self.weights = nn.Parameter(torch.empty(labels, n))
        # As in a linear layer.
        nn.init.uniform_(self.weights, -(n**-0.5), n**-0.5)
        self.beta, self.label_smoothing = beta, label_smoothing
        self.normalise_features, self.normalise_weights = normalise_features, normalise_weights
        self._rescale()

    @torch.no_grad()
    def _rescale(self) -> None:
        if self.normalise_weights:
            functional.normalize(self.weights, dim=1, out=self.weights)

    def extra_repr(self) -> str:
        """What tells two objectives apart."""
        normalised = f"features={self.normalise_features}, weights={self.normalise_weights}"
        return f"beta={self.beta}, label_smoothing={self.label_smoothing}, normalised {normalised}"

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, shape (rows, n)."""
        found = full_precision(self.encoder(x))
        return functional.normalize(found, dim=1) if self.normalise_features else found

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        """The loss of a batch with one label, from 0 on, for each row."""
        if labels.shape != x.shape[:1] or labels.is_floating_point():
            raise InputError(
                f"Labels have shape {tuple(labels.shape)} and dtype {labels.dtype}, but {len(x)} whole numbers are "
                "expected, one for each row."
            )
        least, most = (int(end) for end in labels.aminmax())
        if least < 0 or most >= len(self.weights):
            raise InputError(
                f"Labels run from {least} to {most}, but there are {len(self.weights)} of them, from 0 to "
                f"{len(self.weights) - 1}: give the number of labels when making the model."
            )
        self._rescale()
        features, how, smooth = self.encode(x), Dot(self.beta), self.label_smoothing
        found = mean_log_partition(features, self.weights, how)
        found = found - (1 - smooth) * how.pairs(features, self.weights[labels]).mean()
        if smooth:
            # The mean of all logits of a row is the logit of the mean weight.
            found = found - smooth * how.pairs(features, self.weights.mean(dim=0, keepdim=True)).mean()
        return found
