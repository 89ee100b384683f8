"""Near-identifiability in the log of a transformers Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from nearid.callbacks.probe import Look, Probe

if TYPE_CHECKING:
    TrainerCallback = object
else:
    from transformers import TrainerCallback


class IdentifiabilityCallback(TrainerCallback):
    """Callback of a transformers Trainer that logs how close the features are to those of a reference run.

    The values go through `trainer.log`, so they appear in `trainer.state.log_history` and in every logger.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer that the callback is added to.
    probe : Probe
        The inputs and the features of the reference run.
    every : int, default=500
        Number of optimiser steps between two measurements. nearid also measures before the first step and at the end.
    prefix : str, default="nearid"
        Beginning of the names in the log, as in "nearid/rigid_error".

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from torch import nn
    >>> from transformers import Trainer, TrainingArguments
    >>> from nearid.callbacks.hf import IdentifiabilityCallback
    >>> from nearid.callbacks.probe import Probe
    >>> inputs = np.random.default_rng(0).normal(size=(200, 3))
    >>> finished, model = (nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)) for _ in range(2))
    >>> probe = Probe(nearid.extract(finished, inputs), inputs, layer="2")
    >>> trainer = Trainer(model, TrainingArguments("out", report_to=[], use_cpu=True))
    >>> trainer.add_callback(IdentifiabilityCallback(trainer, probe, every=200))
    """

    def __init__(self, trainer: Any, probe: Probe, *, every: int = 500, prefix: str = "nearid") -> None:
        self._trainer, self._look = trainer, Look(probe, every, prefix)

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure before the first step."""
        self._log("start", state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure every few steps."""
        self._log("step", state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Measure at the end, unless the last step was measured."""
        self._log("end", state, control)

    def _log(self, when: Literal["start", "step", "end"], state: Any, control: Any) -> None:
        if not state.is_world_process_zero:
            return
        values = self._look(self._trainer.model, state.global_step, when)
        if values:
            # Logging resets flags of this step, such as the one that logs the loss.
            due = control.should_log
            self._trainer.log(values)
            control.should_log = due
