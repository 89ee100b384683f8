"""Several models in one run of the trainer, so that a score may compare them as they learn."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError


class Together(nn.Module):
    """Models trained side by side, each as it would be alone: the loss is the sum of theirs.

    They share no parameter, so that each has the gradient of its own loss, and optimisers treat every parameter by
    itself. One checkpoint holds them all at the same step.

    Parameters
    ----------
    *models : nn.Module
        Each gives the loss of a batch; all take equally many arrays.
    """

    def __init__(self, *models: nn.Module) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, *batch: Tensor) -> Tensor:
        """The sum of the losses; the arrays of the first model's batch come first, then those of the second's."""
        count = len(self.models)
        share, rest = divmod(len(batch), count)
        if rest or not share:
            raise InputError(f"{len(batch)} arrays cannot be shared out evenly among {count} models.")
        return torch.stack([model(*batch[k * share :][:share]) for k, model in enumerate(self.models)]).sum()
