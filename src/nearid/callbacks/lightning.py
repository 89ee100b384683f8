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
    """Log, every few steps, how near the features are to those of a reference run.

    The figures go to every logger of the trainer at the step they belong to, and to `trainer.callback_metrics`, where
    other callbacks (checkpoints, early stopping) find them.

    Parameters
    ----------
    probe : Probe
        Its layer is that of the LightningModule, or of the `part` of it that is run.
    every : int, default=500
        Optimiser steps between two looks; there is one before the first step and one at the end, too.
    prefix : str, default="nearid"
    """

    def __init__(self, probe: Probe, *, every: int = 500, prefix: str = "nearid") -> None:
        super().__init__()
        self._look = Look(probe, every, prefix)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Look before the first step."""
        self._log("start", trainer, pl_module)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look every few steps; where gradients are accumulated, a step takes several batches."""
        self._log("step", trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Look at the end, unless that step was looked at."""
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
