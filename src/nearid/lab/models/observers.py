"""Sending the log of a training run elsewhere: to TensorBoard or to Weights & Biases, where they are installed.

An observer is a function that is given each record of the log.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from nearid.base.errors import InputError

Observer = Callable[[dict[str, Any]], object]


def tensorboard(folder: str | os.PathLike[str]) -> Observer:
    """An observer that writes numbers of the records for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise InputError("TensorBoard is not installed: pip install tensorboard.") from error
    writer = SummaryWriter(os.fspath(folder))

    def observe(record: dict[str, Any]) -> None:
        for name, value in _numbers(record).items():
            writer.add_scalar(name, value, record["step"])
        writer.flush()

    return observe


def wandb(**options: Any) -> Observer:
    """An observer that logs to a Weights & Biases run, begun with the given options (project, name, ...)."""
    try:
        client = import_module("wandb")
    except ImportError as error:
        raise InputError("Weights & Biases is not installed: pip install wandb.") from error
    run = client.init(**options)
    return lambda record: run.log(_numbers(record), step=record["step"])


def _numbers(record: dict[str, Any]) -> dict[str, float]:
    return {name: value for name, value in record.items() if name != "step"}
