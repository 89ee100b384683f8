"""Training a model in a cell: looks at even steps, and the curves that they give."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from nearid.lab.framework.experiment import Curve

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.log import Record
    from nearid.lab.models.trainer import Batches, Score


class Trainable(Protocol):
    """Parameters that say how long and how fast to train."""

    @property
    def steps(self) -> int: ...

    @property
    def rate(self) -> float: ...


def trained(
    model: nn.Module,
    batches: Batches,
    p: Trainable,
    seed: int,
    folder: Path,
    *,
    looks: int,
    score: Score | None = None,
    **options: Any,
) -> dict[str, Curve]:
    """Train a model in place; gives its curves.

    Parameters
    ----------
    model, batches, folder, score
        As `nearid.lab.models.trainer.train` takes them.
    p : Trainable
    seed : int
    looks : int
        Times that loss and scores are recorded, evenly.
    **options
        Further fields of `nearid.lab.models.trainer.Training`.
    """
    from nearid.lab.models.trainer import Training, train

    every = max(1, p.steps // looks)
    how = Training(p.steps, p.rate, seed=seed, log_every=every, score_every=every, **options)
    return curves(train(model, batches, how, folder=folder, score=score).records)


def curves(records: Sequence[Record]) -> dict[str, Curve]:
    """Loss and scores over the steps, from the records that have all of them, as the last one always has."""
    keys = records[-1].keys() - {"step", "seconds"}
    full = [r for r in records if keys <= r.keys()]
    steps = [float(r["step"]) for r in full]
    return {key: {"x": steps, "y": [float(r[key]) for r in full]} for key in sorted(keys)}
