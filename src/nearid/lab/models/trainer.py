"""One trainer for all objectives: seeded, resumable to the bit, and open about how it goes.

A model is a module whose call on a batch gives the loss. The batch of a step is drawn with a generator that depends on
the seed and the step alone, and checkpoints hold all other state, so that a run that was killed and resumed equals one
that was not disturbed.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nearid.base.errors import InputError, NearidError
from nearid.base.files import check_parent, replacing
from nearid.base.progress import Reporting, reporting
from nearid.lab.models.log import CHECKPOINT, Record, append_log, restart_log
from nearid.lab.models.muon import Muon
from nearid.questions.extract.network import torch_device

OPTIMISERS = ("adam", "adamw", "muon", "sgd")
SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True)
class Training:
    """Options of `train`.

    Attributes
    ----------
    learning_rate : float
        The largest; `schedule` and `warmup` lower it.
    optimiser : {"adam", "adamw", "muon", "sgd"}
        muon moves hidden matrices by orthogonalised momentum and all else by adam; sgd has a momentum of 0.9.
    weight_decay : float
        For adamw and sgd. Parameters that a model names with a method `undecayed` are spared.
    schedule : {"constant", "cosine"}
        cosine falls to 0 over `steps`.
    warmup : int
        Steps over which the learning rate rises linearly.
    clip : float, optional
        Gradients longer than this, over all parameters together, are shortened to it.
    clip_each : float, optional
        Every coordinate of the gradients is cut to at most this size.
    seed : int
        The batch of step t depends on the seed and on t alone.
    device : str
        As torch names it, or "auto" for a GPU where there is one.
    mixed_precision : bool
        bfloat16 products on a GPU. On the CPU this changes nothing.
    log_every : int
        Steps between records, each with the mean loss since the last.
    score_every : int
        Steps between scores: a multiple of `log_every`.
    patience : int, optional
        Stop when for so many records in a row the mean loss has not fallen by more than `least_gain` below its best.
    seconds : float, optional
        Stop at the first record after so many seconds of training, those before an interruption included.
    checkpoint_seconds : float
        Least time between two checkpoints.
    """

    steps: int
    learning_rate: float = 1e-4
    optimiser: str = "adam"
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: int = 0
    clip: float | None = None
    clip_each: float | None = None
    seed: int = 0
    device: str = "cpu"
    mixed_precision: bool = False
    log_every: int = 100
    score_every: int = 1000
    patience: int | None = None
    least_gain: float = 0.0
    seconds: float | None = None
    checkpoint_seconds: float = 30.0

    def __post_init__(self) -> None:
        for name, least in (("steps", 1), ("log_every", 1), ("score_every", 1), ("warmup", 0), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"{name} is {getattr(self, name)}, but at least {least} is expected.")
        if not 0 < self.learning_rate < math.inf:
            raise InputError(f"learning_rate is {self.learning_rate}, but a number above 0 is expected, such as 1e-4.")
        for name, known in (("optimiser", OPTIMISERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in known:
                raise InputError(f"There is no {name} {getattr(self, name)!r}; choose one of {', '.join(known)}.")
        if self.optimiser in ("adam", "muon") and self.weight_decay:
            raise InputError(f"{self.optimiser} takes no weight_decay; choose adamw or sgd, or leave it at 0.")
        if self.score_every % self.log_every:
            raise InputError(
                f"score_every is {self.score_every}, but scores stand in records, which come every {self.log_every} "
                "steps: choose a multiple of log_every."
            )
        if self.clip is not None and not 0 < self.clip < math.inf:
            raise InputError(
                f"clip is {self.clip}, but a number above 0 is expected; None leaves gradients as they are."
            )
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}, but at least 1 record is expected; None never stops early.")

    def identity(self) -> dict[str, Any]:
        """What a run must share with the checkpoint it goes on from: all but where, how long and how often saved."""
        free = ("device", "seconds", "checkpoint_seconds")
        return {name: value for name, value in asdict(self).items() if name not in free}

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        rate = self.learning_rate
        if self.warmup:
            rate *= min(1.0, (step + 1) / self.warmup)
        if self.schedule == "cosine":
            rate *= (1 + math.cos(math.pi * step / self.steps)) / 2
        return rate

    def torch_optimiser(self, model: torch.nn.Module) -> torch.optim.Optimizer:
        """The optimiser of a model's parameters."""
        if self.optimiser == "muon":
            return Muon(model, self.learning_rate)
        spared: list[torch.nn.Parameter] = getattr(model, "undecayed", list)()
        known = {id(p) for p in spared}
        parameters: list[dict[str, Any]] = [{"params": [p for p in model.parameters() if id(p) not in known]}]
        if spared:
            parameters.append({"params": spared, "weight_decay": 0.0})
        if self.optimiser == "sgd":
            return torch.optim.SGD(parameters, self.learning_rate, momentum=0.9, weight_decay=self.weight_decay)
        # One fused pass over the parameters is several times quicker than one operation after the other.
        if self.optimiser == "adam":
            return torch.optim.Adam(parameters, self.learning_rate, fused=True)
        return torch.optim.AdamW(parameters, self.learning_rate, weight_decay=self.weight_decay, fused=True)


FORMAT = 1


@dataclass
class State:
    """Where a run stands, besides model and optimiser.

    Attributes
    ----------
    step : int
        Steps done.
    seconds : float
        Time they took.
    records : list of dict
        The log up to here.
    best : float
        Least mean loss of a record that was a gain.
    waited : int
        Records since then.
    stopped : str
        Why the run is over; empty while it is not.
    """

    step: int = 0
    seconds: float = 0.0
    records: list[Record] = field(default_factory=list)
    best: float = float("inf")
    waited: int = 0
    stopped: str = ""


def save(folder: Path, state: State, model: nn.Module, optimiser: torch.optim.Optimizer, identity: Any) -> None:
    """Write the checkpoint, whole or not at all."""
    saved = {
        "format": FORMAT,
        "identity": json.dumps(identity),
        "state": json.dumps(vars(state)),
        "model": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "rng": torch.get_rng_state(),
        "gpu_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }
    with replacing(folder / CHECKPOINT) as file:
        torch.save(saved, file)


def load(folder: Path, model: nn.Module, optimiser: torch.optim.Optimizer, identity: Any) -> State:
    """Bring model, optimiser and random states to those of the checkpoint; a new State where there is none."""
    path = folder / CHECKPOINT
    if not path.exists():
        return State()
    try:
        saved = torch.load(path, map_location=next(model.parameters()).device, weights_only=True)
        kind, theirs = saved["format"], json.loads(saved["identity"])
    except Exception as error:  # what torch raises for a damaged file is not documented
        raise InputError(f"{path} is not a checkpoint of a training run, or is damaged; remove it.") from error
    if kind != FORMAT:
        raise InputError(f"{path} has format {kind}, but {FORMAT} is expected; remove it, or use another folder.")
    mine = json.loads(json.dumps(identity))
    if theirs != mine:
        changed = sorted(name for name in {*theirs, *mine} if theirs.get(name) != mine.get(name))
        raise InputError(
            f"{path} is of another run: {', '.join(changed)} differ. Use another folder, remove the checkpoint, or "
            "give the same options."
        )
    model.load_state_dict(saved["model"])
    optimiser.load_state_dict(saved["optimiser"])
    torch.set_rng_state(saved["rng"].cpu())
    if torch.cuda.is_available() and len(saved["gpu_rng"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([state.cpu() for state in saved["gpu_rng"]])
    return State(**json.loads(saved["state"]))


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
    with seeded(options.seed), reporting(progress) as stages:
        state = load(place, model, optimiser, identity) if place else State()
        if place:
            restart_log(place, state.records)
        if state.stopped == "seconds" and (options.seconds is None or state.seconds < options.seconds):
            # There is more time now.
            state.stopped = ""
        run = _Run(model, batches, options, device, optimiser, state)
        tick = stages("training", math.ceil(options.steps / options.log_every))
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
        if options.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), options.clip)
        if options.clip_each is not None:
            nn.utils.clip_grad_value_(self.model.parameters(), options.clip_each)
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
        tensors = [torch.as_tensor(array) for array in batch]
        return [t.to(self.device, dtype if t.is_floating_point() else torch.int64) for t in tensors]

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
