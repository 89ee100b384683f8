"""One trainer for all objectives: seeded, exactly resumable, with a log of its progress.

A model is a module that returns the loss of a batch. The random generator of a batch depends only on the seed and the
step, and checkpoints store all other state. So a run that was killed and resumed gives the same result as an
undisturbed run.
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
        Largest learning rate; `schedule` and `warmup` lower it.
    optimiser : {"adam", "adamw", "muon", "sgd"}
        muon updates hidden matrices by orthogonalised momentum and all other parameters by adam; sgd has a momentum of
        0.9.
    weight_decay : float
        For adamw and sgd. It does not apply to parameters that the model's method `undecayed` returns.
    schedule : {"constant", "cosine"}
        cosine falls to 0 over `steps`.
    warmup : int
        Steps over which the learning rate rises linearly.
    seed : int
        The batch of step t depends only on the seed and on t.
    device : str
        Name of a torch device, or "auto" for a GPU if there is one.
    mixed_precision : bool
        bfloat16 products on a GPU. On the CPU this changes nothing.
    log_every : int
        Steps between records. A record has the mean loss since the previous one.
    score_every : int
        Steps between scores: a multiple of `log_every`.
    patience : int, optional
        Stop after this number of records in a row in which the mean loss did not fall by more than `least_gain` below
        its best value.
    seconds : float, optional
        Stop at the first record after this training time, which includes the time before an interruption.
    checkpoint_seconds : float
        Least time between two checkpoints.
    """

    steps: int
    learning_rate: float = 1e-4
    optimiser: str = "adam"
    weight_decay: float = 0.0
    schedule: str = "constant"
    warmup: int = 0
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
            raise InputError(f"{self.optimiser} has no weight_decay. Choose adamw or sgd, or set weight_decay to 0.")
        if self.score_every % self.log_every:
            raise InputError(
                f"score_every is {self.score_every}, but scores are part of records, which are written every "
                f"{self.log_every} steps. Choose a multiple of log_every."
            )
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}, but at least 1 record is expected; None never stops early.")

    def identity(self) -> dict[str, Any]:
        """Options that a run must share with its checkpoint: all except device, duration and checkpoint interval."""
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
        # One fused pass over the parameters is several times faster than separate operations.
        if self.optimiser == "adam":
            return torch.optim.Adam(parameters, self.learning_rate, fused=True)
        return torch.optim.AdamW(parameters, self.learning_rate, weight_decay=self.weight_decay, fused=True)


FORMAT = 1


@dataclass
class State:
    """State of a run, besides model and optimiser.

    Attributes
    ----------
    step : int
        Steps done.
    seconds : float
        Time they took.
    records : list of dict
        The log up to here.
    best : float
        Smallest mean loss of a record that counted as an improvement.
    waited : int
        Records since then.
    stopped : str
        Why the run ended; empty while it is running.
    """

    step: int = 0
    seconds: float = 0.0
    records: list[Record] = field(default_factory=list)
    best: float = float("inf")
    waited: int = 0
    stopped: str = ""


def save(folder: Path, state: State, model: nn.Module, optimiser: torch.optim.Optimizer, identity: Any) -> None:
    """Write the checkpoint atomically."""
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
    """Restore model, optimiser and random states from the checkpoint; return a new State if there is none."""
    path = folder / CHECKPOINT
    if not path.exists():
        return State()
    try:
        saved = torch.load(path, map_location=next(model.parameters()).device, weights_only=True)
        kind, theirs = saved["format"], json.loads(saved["identity"])
    except Exception as error:  # what torch raises for a damaged file is not documented
        raise InputError(f"{path} is damaged or not a checkpoint of a training run. Delete it.") from error
    if kind != FORMAT:
        raise InputError(f"{path} has format {kind}, but {FORMAT} is expected. Delete it, or use another folder.")
    mine = json.loads(json.dumps(identity))
    if theirs != mine:
        changed = sorted(name for name in {*theirs, *mine} if theirs.get(name) != mine.get(name))
        raise InputError(
            f"{path} belongs to another run: {', '.join(changed)} differ. Use another folder, delete the checkpoint, "
            f"or give the same options."
        )
    model.load_state_dict(saved["model"])
    optimiser.load_state_dict(saved["optimiser"])
    torch.set_rng_state(saved["rng"].cpu())
    if torch.cuda.is_available() and len(saved["gpu_rng"]) == torch.cuda.device_count():
        torch.cuda.set_rng_state_all([state.cpu() for state in saved["gpu_rng"]])
    return State(**json.loads(saved["state"]))


Batches = Callable[[np.random.Generator], Sequence[np.ndarray[Any, np.dtype[Any]]]]
Score = Callable[[nn.Module], Mapping[str, float]]

# Keys of every record; all other keys are scores.
OWN = {"step", "loss", "seconds"}


@dataclass(frozen=True)
class Trained:
    """How a run went.

    Attributes
    ----------
    steps : int
        Steps done.
    seconds : float
        Time of these steps, including scores and the time before an interruption.
    records : list of dict
        step, loss (mean since the previous record), seconds and, in some records, scores.
    stopped : {"steps", "plateau", "seconds"}
        Reason for the end of the run.
    """

    steps: int
    seconds: float
    records: list[Record]
    stopped: str


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch inside a `with` block, such as for making a model; restore the random state afterwards."""
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
        Function of a numpy generator that returns the arrays of a batch, all with the same number of rows. Floats are
        converted to the dtype of the model's parameters.
    options : Training
    folder : path, optional
        Folder of the checkpoint and the log (log.jsonl); created if missing. If it has a checkpoint, the run continues
        from there.
    score : callable, optional
        Function that returns numbers by name. The model is in evaluation mode while it runs.
    progress : bool, default=False
        Whether to draw a progress bar on stderr; or a function that takes the name of the stage and its number of
        steps.

    Returns
    -------
    Trained
    """
    device = torch_device(options.device)
    model.to(device)
    optimiser = options.torch_optimiser(model)
    place = _prepared(folder)
    # The model's repr is part of the identity: another loss on the same parameters is another run.
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
                # run.interval may have stopped it.
                if state.stopped or time.monotonic() - saved >= options.checkpoint_seconds:  # type: ignore[redundant-expr]
                    save(place, state, model, optimiser, identity)
                    saved = time.monotonic()
            tick(_note(state.records))
    model.eval()
    return Trained(state.step, state.seconds, state.records, state.stopped)


@dataclass
class _Run:
    """A run in progress."""

    model: nn.Module
    batches: Batches
    options: Training
    device: torch.device
    optimiser: torch.optim.Optimizer
    state: State

    def interval(self, score: Score | None) -> Record:
        """Do the steps up to the next record and return the record."""
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
        """Whether all weights are finite: the last step may have diverged."""
        return all(bool(torch.isfinite(p).all()) for p in self.model.parameters())

    def scores(self, score: Score) -> dict[str, float]:
        """Scores of the current model; computing them does not change the run."""
        self.model.eval()
        with torch.no_grad(), torch.random.fork_rng():
            return {name: float(value) for name, value in score(self.model).items()}

    def step(self, step: int) -> Tensor:
        """Do one step of the optimiser; return the loss before it."""
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
                "A batch must be a tuple of arrays with the same number of rows, one row per sample, but it is "
                f"{[np.shape(array) for array in batch] if isinstance(batch, tuple | list) else type(batch).__name__}."
            )
        dtype = next(self.model.parameters()).dtype
        tensors = [torch.as_tensor(array) for array in batch]
        return [t.to(self.device, dtype if t.is_floating_point() else torch.int64) for t in tensors]

    def judge(self, loss: float) -> None:
        """Set the reason in the state if the run is over."""
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
        raise InputError(f"{place} is a file, but a folder for the checkpoint and the log is expected.")
    check_parent(place)
    place.mkdir(exist_ok=True)
    return place


def _note(records: list[Record]) -> str:
    """The last loss and the last scores."""
    scores = next((r for r in reversed(records) if r.keys() > OWN), {})
    shown = "".join(f"  {name} {value:.4f}" for name, value in scores.items() if name not in OWN)
    return f"loss {records[-1]['loss']:.4f}{shown}"


class Together(nn.Module):
    """Models trained together, each as if it were alone: the loss is the sum of their losses.

    They share no parameters, so each gets the gradient of its own loss, and optimisers treat every parameter
    separately. One checkpoint stores all of them at the same step.

    Parameters
    ----------
    *models : nn.Module
        Each returns the loss of a batch; all take the same number of arrays.
    """

    def __init__(self, *models: nn.Module) -> None:
        super().__init__()
        self.models = nn.ModuleList(models)

    def forward(self, *batch: Tensor) -> Tensor:
        """The sum of the losses; the arrays of the first model's batch come first, then those of the second's."""
        count = len(self.models)
        share, rest = divmod(len(batch), count)
        if rest or not share:
            raise InputError(f"{len(batch)} arrays cannot be divided evenly among {count} models.")
        return torch.stack([model(*batch[k * share :][:share]) for k, model in enumerate(self.models)]).sum()
