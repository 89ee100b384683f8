"""Near-identifiability in the log of a Lightning Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch

from nearid.callbacks.probe import Look, Probe

if TYPE_CHECKING:
    Callback = object
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:  # the same library under its older name
        from pytorch_lightning import Callback


class IdentifiabilityCallback(Callback):
    """Callback of a Lightning Trainer that logs how close the features are to those of a reference run.

    The values go to every logger of the trainer at their step. They also go to `trainer.callback_metrics`, where other
    callbacks (checkpoints, early stopping) find them.

    Parameters
    ----------
    probe : Probe
        The inputs and the features of the reference run. Its layer is a layer of the LightningModule, or of its
        `part`.
    every : int, default=500
        Number of optimiser steps between two measurements. nearid also measures before the first step and at the end.
    prefix : str, default="nearid"
        Beginning of the names in the log, as in "nearid/rigid_error".

    Examples
    --------
    >>> import lightning, nearid, numpy as np
    >>> from torch import nn
    >>> from nearid.callbacks.lightning import IdentifiabilityCallback
    >>> from nearid.callbacks.probe import Probe
    >>> inputs = np.random.default_rng(0).normal(size=(200, 3))
    >>> finished = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
    >>> probe = Probe(nearid.extract(finished, inputs), inputs, layer="2")
    >>> trainer = lightning.Trainer(callbacks=[IdentifiabilityCallback(probe, every=200)], accelerator="cpu")
    """

    def __init__(self, probe: Probe, *, every: int = 500, prefix: str = "nearid") -> None:
        super().__init__()
        self._look = Look(probe, every, prefix)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Measure before the first step."""
        self._log("start", trainer, pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Measure every few steps; with accumulated gradients a step takes several batches."""
        self._log("step", trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure at the end, unless the last step was measured."""
        self._log("end", trainer, pl_module)

    def _log(self, when: Literal["start", "step", "end"], trainer: Any, pl_module: Any) -> None:
        if not trainer.is_global_zero:
            return
        values = self._look(pl_module, trainer.global_step, when)
        if values:
            # Not pl_module.log, whose values reach the loggers only in the steps that the trainer logs anyway.
            for logger in trainer.loggers:
                logger.log_metrics(values, step=trainer.global_step)
            trainer.callback_metrics.update({name: torch.tensor(value) for name, value in values.items()})
