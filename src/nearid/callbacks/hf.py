"""Near-identifiability in the log of a transformers Trainer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nearid.base.options import at_least
from nearid.callbacks.probe import Probe, named

if TYPE_CHECKING:
    TrainerCallback = object
else:
    from transformers import TrainerCallback


class IdentifiabilityCallback(TrainerCallback):
    """Log, every few steps, how near the features are to those of a reference run.

    The figures go through `trainer.log`: to the history of its state and to every logger that it reports to.

    Parameters
    ----------
    trainer : transformers.Trainer
    probe : Probe
    every : int, default=500
        Optimiser steps between two looks; there is one before the first step and one at the end, too.
    prefix : str, default="nearid"

    Examples
    --------
    >>> probe = Probe("run1:hidden_states.6", tokens, layer="hidden_states.6", pool="last")  # doctest: +SKIP
    >>> trainer.add_callback(IdentifiabilityCallback(trainer, probe, every=200))  # doctest: +SKIP
    """

    def __init__(self, trainer: Any, probe: Probe, *, every: int = 500, prefix: str = "nearid") -> None:
        self._trainer, self._probe, self._prefix = trainer, probe, prefix
        self._every = at_least("every", every, 1)
        self._last = -1

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look before the first step; what is wrong with the probe is an error here."""
        if state.is_world_process_zero:
            self._log(self._probe.measure(self._trainer.model), state, control)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look every few steps."""
        if state.is_world_process_zero and state.global_step % self._every == 0:
            self._log(self._probe.try_measure(self._trainer.model), state, control)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Look at the end, unless that step was looked at."""
        if state.is_world_process_zero and state.global_step != self._last:
            self._log(self._probe.try_measure(self._trainer.model), state, control)

    def _log(self, values: dict[str, float], state: Any, control: Any) -> None:
        self._last = state.global_step
        if not values:
            return
        # Logging resets what was asked for in this step, such as the loss.
        asked = control.should_log
        self._trainer.log(named(values, self._prefix))
        control.should_log = asked
