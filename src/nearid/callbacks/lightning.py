"""Near-identifiability in the log of a Lightning Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from nearid.base.options import at_least
from nearid.callbacks.probe import Probe, named

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
        self._probe, self._prefix = probe, prefix
        self._every = at_least("every", every, 1)
        self._last = -1

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Look before the first step; what is wrong with the probe is an error here."""
        if trainer.is_global_zero:
            self._log(self._probe.measure(pl_module), trainer)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """Look every few steps; where gradients are accumulated, a step takes several batches."""
        step = trainer.global_step
        if trainer.is_global_zero and step % self._every == 0 and step != self._last:
            self._log(self._probe.try_measure(pl_module), trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Look at the end, unless that step was looked at."""
        if trainer.is_global_zero and trainer.global_step != self._last:
            self._log(self._probe.try_measure(pl_module), trainer)

    def _log(self, values: dict[str, float], trainer: Any) -> None:
        self._last = trainer.global_step
        if not values:
            return
        shown = named(values, self._prefix)
        # Not pl_module.log, whose values reach the loggers only in the steps that the trainer logs anyway.
        for logger in trainer.loggers:
            logger.log_metrics(shown, step=trainer.global_step)
        trainer.callback_metrics.update({name: torch.tensor(value) for name, value in shown.items()})
