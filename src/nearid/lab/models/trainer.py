"""One trainer for all objectives: seeded, resumable to the bit, and open about how it goes.

A model is a module whose call on a batch gives the loss. The batch of a step is drawn with a generator that depends on
the seed and the step alone, and checkpoints hold all other state, so that a run that was killed and resumed equals one
that was not disturbed.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nearid.base.errors import InputError, NearidError
from nearid.base.files import check_parent
from nearid.base.progress import Reporting, reporting
from nearid.lab.models.checkpoint import State, load, save
from nearid.lab.models.log import Record, append_log, restart_log
from nearid.lab.models.observers import Observer
from nearid.lab.models.options import Training
from nearid.questions.extract.network import torch_device

Batches = Callable[[np.random.Generator], Sequence[np.ndarray[Any, np.dtype[Any]]]]
Score = Callable[[nn.Module], Mapping[str, float]]

# What every record holds; the rest are scores.
OWN = {"step", "loss", "seconds"}


@dataclass(frozen=True)
class Trained:
    """How a run went.

    Attributes
    ----------
    steps : int
        Steps done.
    seconds : float
        Time they took, scores included, those before an interruption too.
    records : list of dict
        step, loss (mean since the last record), seconds and, at some of them, scores.
    stopped : {"steps", "plateau", "seconds"}
        What ended the run.
    """

    steps: int
    seconds: float
    records: list[Record]
    stopped: str


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch for what is inside, such as making a model; what is outside goes on undisturbed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def train(
    model: nn.Module,
    batches: Batches,
    options: Training,
    *,
    folder: str | os.PathLike[str] | None = None,
    score: Score | None = None,
    observers: Sequence[Observer] = (),
    progress: Reporting = False,
) -> Trained:
    """Minimise the loss of a model over batches; the model is changed in place and left in evaluation mode.

    Parameters
    ----------
    model : nn.Module
        model(*batch) is the loss.
    batches : callable
        Given a numpy generator, the arrays of a batch, with as many rows each. Floats reach the model in the dtype of
        its parameters.
    options : Training
    folder : path, optional
        Where the checkpoint and the log (log.jsonl) are kept; made where missing. A run that finds a checkpoint there
        goes on from it.
    score : callable, optional
        Numbers by name for the model as it is, which is in evaluation mode meanwhile.
    observers : sequence of callable
        Given each record.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of the stage and its number of steps.

    Returns
    -------
    Trained
    """
    device = torch_device(options.device)
    model.to(device)
    optimiser = options.torch_optimiser(model)
    place = _prepared(folder)
    # What a model says of itself: another loss on the same parameters is another run.
    identity = options.identity() | {"parameters": [list(p.shape) for p in model.parameters()], "model": repr(model)}
    with seeded(options.seed), reporting(progress) as report:
        state = load(place, model, optimiser, identity) if place else State()
        if place:
            restart_log(place, state.records)
        if state.stopped == "seconds" and (options.seconds is None or state.seconds < options.seconds):
            # There is more time now.
            state.stopped = ""
        run = _Run(model, batches, options, device, optimiser, state)
        tick = report("training", math.ceil(options.steps / options.log_every))
        for _ in state.records:
            tick()
        saved = time.monotonic()
        while not state.stopped:
            record = run.interval(score)
            if place:
                append_log(place, record)
                if state.stopped or time.monotonic() - saved >= options.checkpoint_seconds:
                    save(place, state, model, optimiser, identity)
                    saved = time.monotonic()
            for observe in observers:
                observe(record)
            tick(_note(state.records))
    model.eval()
    return Trained(state.step, state.seconds, state.records, state.stopped)


@dataclass
class _Run:
    """A run under way."""

    model: nn.Module
    batches: Batches
    options: Training
    device: torch.device
    optimiser: torch.optim.Optimizer
    state: State

    def interval(self, score: Score | None) -> Record:
        """The steps up to the next record."""
        began, state, options = time.monotonic(), self.state, self.options
        self.model.train()
        end = min(state.step + options.log_every, options.steps)
        count, total = end - state.step, torch.zeros((), dtype=torch.float64, device=self.device)
        for step in range(state.step, end):
            total += self.step(step)
        state.step, loss = end, float(total) / count
        if not (math.isfinite(loss) and self.finite()):
            what = "Weights are not finite" if math.isfinite(loss) else f"The loss is {loss}"
            raise NearidError(
                f"{what} by step {end}: training has diverged. Lower the learning rate (now "
                f"{options.learning_rate:g}), lengthen its warmup, or look for infinities in the batches."
            )
        now = time.monotonic()
        state.seconds += now - began
        self.judge(loss)
        record: Record = {"step": end, "loss": loss}
        if score and (end % options.score_every == 0 or state.stopped):
            record |= self.scores(score)
            state.seconds += time.monotonic() - now
        record["seconds"] = round(state.seconds, 3)
        state.records.append(record)
        return record

    def finite(self) -> bool:
        """Whether the model is: its last step may have been the one that diverged."""
        return all(bool(torch.isfinite(p).all()) for p in self.model.parameters())

    def scores(self, score: Score) -> dict[str, float]:
        """Scores of the model as it is; they leave no trace in the run."""
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng():
            return {name: float(value) for name, value in score(self.model).items()}

    def step(self, step: int) -> Tensor:
        """One step of the optimiser; gives the loss before it."""
        options = self.options
        batch = self.tensors(self.batches(np.random.default_rng([options.seed, step])))
        for group in self.optimiser.param_groups:
            group["lr"] = options.rate(step)
        mixed = options.mixed_precision and self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            loss: Tensor = self.model(*batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        self.optimiser.step()
        return loss.detach()

    def tensors(self, batch: Sequence[np.ndarray[Any, np.dtype[Any]]]) -> list[Tensor]:
        """A batch on the device."""
        if not isinstance(batch, tuple | list) or len({len(array) for array in batch}) != 1:
            raise InputError(
                "A batch must be a tuple of arrays with one row for each sample, as many in all of them; got "
                f"{[np.shape(array) for array in batch] if isinstance(batch, tuple | list) else type(batch).__name__}."
            )
        dtype = next(self.model.parameters()).dtype
        found = [torch.as_tensor(array) for array in batch]
        return [t.to(self.device, dtype if t.is_floating_point() else torch.int64) for t in found]

    def judge(self, loss: float) -> None:
        """Whether the run is over, and why."""
        state, options = self.state, self.options
        gained = loss < state.best - options.least_gain
        state.best, state.waited = (loss, 0) if gained else (state.best, state.waited + 1)
        if state.step >= options.steps:
            state.stopped = "steps"
        elif options.patience is not None and state.waited >= options.patience:
            state.stopped = "plateau"
        elif options.seconds is not None and state.seconds >= options.seconds:
            state.stopped = "seconds"


def _prepared(folder: str | os.PathLike[str] | None) -> Path | None:
    if folder is None:
        return None
    place = Path(folder)
    if place.exists() and not place.is_dir():
        raise InputError(f"{place} is a file; give the name of a folder for the checkpoint and the log.")
    check_parent(place)
    place.mkdir(exist_ok=True)
    return place


def _note(records: list[Record]) -> str:
    """The last loss and the last scores."""
    scores = next((r for r in reversed(records) if r.keys() > OWN), {})
    shown = "".join(f"  {name} {value:.4f}" for name, value in scores.items() if name not in OWN)
    return f"loss {records[-1]['loss']:.4f}{shown}"
