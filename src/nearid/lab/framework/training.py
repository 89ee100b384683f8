"""Training of a model in a cell, with evenly spaced measurements that give its curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nearid.lab.framework.experiment import Curve

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.log import Record
    from nearid.lab.models.trainer import Batches, Score


def trained(
    model: nn.Module,
    batches: Batches,
    p: Any,
    seed: int,
    folder: Path,
    *,
    score: Score | None = None,
    looks: int | None = None,
    **options: Any,
) -> dict[str, Curve]:
    """Train a model in place; return its curves.

    Parameters
    ----------
    model, batches, folder, score
        As in `nearid.lab.models.trainer.train`.
    p : dataclass instance
        Parameters with steps and rate, and optionally the schedule (default: cosine) and the device.
    looks : int, optional
        Number of evenly spaced records of loss and scores. Default: that of the parameters.
    **options
        Further fields of `nearid.lab.models.trainer.Training`.
    """
    from nearid.lab.models.trainer import Training, train

    every = max(1, p.steps // (p.looks if looks is None else looks))
    options = {"schedule": getattr(p, "schedule", "cosine"), "device": getattr(p, "device", "cpu")} | options
    how = Training(p.steps, p.rate, seed=seed, log_every=every, score_every=every, **options)
    return curves(train(model, batches, how, folder=folder, score=score).records)


def curves(records: Sequence[Record]) -> dict[str, Curve]:
    """Loss and scores over the steps, from the records with all scores (the last record always has them)."""
    keys = records[-1].keys() - {"step", "seconds"}
    full = [r for r in records if keys <= r.keys()]
    steps = [float(r["step"]) for r in full]
    return {key: {"x": steps, "y": [float(r[key]) for r in full]} for key in sorted(keys)}
