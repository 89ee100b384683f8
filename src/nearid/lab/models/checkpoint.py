"""A training run on disk: the state after some step."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.lab.models.log import CHECKPOINT, Record

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
