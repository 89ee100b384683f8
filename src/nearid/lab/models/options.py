"""How a model is trained: one declaration, checked when it is made."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import torch

from nearid.base.errors import InputError
from nearid.lab.models.muon import Muon

OPTIMISERS = ("adam", "adamw", "muon", "sgd")
SCHEDULES = ("constant", "cosine")


@dataclass(frozen=True)
class Training:
    """Options of `train`.

    Attributes
    ----------
    steps : int
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
    least_gain : float
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
        if self.patience is not None and self.patience < 1:
            raise InputError(f"patience is {self.patience}, but at least 1 record is expected; None never stops early.")

    def identity(self) -> dict[str, Any]:
        """What a run must share with the checkpoint it goes on from: all but where, how long and how often saved."""
        free = ("device", "seconds", "checkpoint_seconds")
        return {name: value for name, value in asdict(self).items() if name not in free}

    def rate(self, step: int) -> float:
        """Learning rate of a step, counted from 0."""
        found = self.learning_rate
        if self.warmup:
            found *= min(1.0, (step + 1) / self.warmup)
        if self.schedule == "cosine":
            found *= (1 + math.cos(math.pi * step / self.steps)) / 2
        return found

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
