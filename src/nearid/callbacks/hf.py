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
    >>> probe = Probe("run1:hidden_states.6", tokens, layer="hidden_states.6", pool="last")  # doctest: +SKIP
    >>> trainer.add_callback(IdentifiabilityCallback(trainer, probe, every=200))  # doctest: +SKIP
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
