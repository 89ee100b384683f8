"""Radial classification (Roeder, Metz and Kingma, Fig. 2): two classifiers of the same data, linearly related features.

A classifier p(y|x) = softmax(g(y) . f(x)) with K classes and features of dimension M determines f up to a linear map
only if the K - 1 differences of the g(y) span R^M: K >= M + 1. The paper's text leaves the network open. Here it is an
MLP of three hidden layers, with two choices that matter:

- The head g starts at zero. With a head that starts at random, the classes take places around the origin of the feature
  plane in an order that depends on the start, and training does not get out of it: both runs classify well, but the
  order of their classes, and so their features, differ. The row with a random head shows this.
- The units are bounded (tanh). With two classes the loss drives one direction of f to infinity, and unbounded units
  grow with it: the other direction, of which the loss says nothing, is then made of the same grown units in every run,
  so that most runs agree although nothing asks them to. The control with LeakyReLU units shows this.

Both were chosen after trials in which PyTorch's usual start of the head and LeakyReLU units gave the opposite of the
paper's figure. And K >= M + 1 is not enough by itself: sectors of the plane need two feature dimensions, and with more
of them the spare ones differ between runs. The row with M doubled shows this.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.errors import InputError
from nearid.experiments.base import Axes, CellData, Column, Experiment, Paper, Preset, Published, Row
from nearid.experiments.claims import Claim, Outcome, at_least, at_most
from nearid.experiments.figures import HeatMaps, ScatterMatrix, Slot
from nearid.experiments.settings import parameter
from nearid.moments import Floats

if TYPE_CHECKING:
    import torch

    from nearid.experiments.result import Result

# Held-out rows in the scatter plots.
SHOWN = 400
# A curve has reached its maximum when it is this near.
NEAR = 0.01
# What counts as a mean CCA near 1.
NEAR_ONE = 0.98


@dataclass(frozen=True)
class Parameters:
    """Parameters of the radial experiment."""

    classes: int = parameter(18, "classes K, equal sectors around the origin")
    features: int = parameter(2, "dimension M of the features")
    spread: float = parameter(3.0, "standard deviation of x in each of its two dimensions")
    width: int = parameter(64, "units of each of the three hidden layers")
    activation: str = parameter("tanh", "hidden units: tanh or leaky_relu")
    head: float = parameter(0.0, "scale of the head's start, times PyTorch's usual; 0 starts at zero")
    steps: int = parameter(4000, "iterations of Adam")
    batch: int = parameter(256, "fresh rows in each iteration")
    rate: float = parameter(1e-3, "learning rate")
    held_out: int = parameter(4000, "rows on which the two runs are compared, by five folds")
    looks: int = parameter(40, "times that the two runs are compared during training")

    def __post_init__(self) -> None:
        least = {"classes": 2, "features": 2, "width": 1, "steps": 1, "batch": 1, "held_out": 50, "looks": 1}
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(f"The parameter {name} must be at least {bound}, not {getattr(self, name)}.")
        for name in ("spread", "rate"):
            if getattr(self, name) <= 0:
                raise InputError(f"The parameter {name} must be positive, not {getattr(self, name)}.")
        if self.activation not in ("tanh", "leaky_relu"):
            raise InputError(f"The activation must be tanh or leaky_relu, not {self.activation!r}.")


@dataclass(frozen=True)
class Run:
    """A trained classifier: features of the held-out rows at each look, and how well it does on them in the end."""

    features: list[Floats]
    losses: list[float]
    accuracy: float


def draw(p: Parameters, n: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows from N(0, spread^2 I) in the plane and their sectors."""
    import torch

    x = p.spread * torch.randn(n, 2, generator=generator)
    turn = torch.atan2(x[:, 1], x[:, 0]) / (2 * math.pi) % 1
    # A turn just below 1 may be rounded to it.
    return x, (turn * p.classes).long().clamp_max(p.classes - 1)


def look_steps(p: Parameters) -> list[int]:
    """Iterations after which the runs are compared, the start and the end among them."""
    return sorted({round(s) for s in np.linspace(0, p.steps, p.looks + 1)})


def train(p: Parameters, x: torch.Tensor, y: torch.Tensor, seed: int) -> Run:
    """Train a classifier from a seed, looking at held-out rows as it goes."""
    import torch
    from torch import nn
    from torch.nn.functional import cross_entropy

    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    sizes = [2, p.width, p.width, p.width, p.features]
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.Tanh() if p.activation == "tanh" else nn.LeakyReLU(0.01)]
    encoder, head = nn.Sequential(*layers[:-1]), nn.Linear(p.features, p.classes, bias=False)
    with torch.no_grad():
        head.weight.mul_(p.head)
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=p.rate)
    looks, features, losses = set(look_steps(p)), [], []

    def logits(rows: torch.Tensor) -> torch.Tensor:
        # Units of the data's own spread: the first layer is neither idle nor saturated.
        found: torch.Tensor = head(encoder(rows / p.spread))
        return found

    for step in range(p.steps + 1):
        if step in looks:
            with torch.no_grad():
                features.append(encoder(x / p.spread).double().numpy())
                losses.append(float(cross_entropy(logits(x), y)))
        if step == p.steps:
            break
        rows, labels = draw(p, p.batch, generator)
        loss = cross_entropy(logits(rows), labels)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        accuracy = float((logits(x).argmax(dim=1) == y).double().mean())
    return Run(features, losses, accuracy)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Two runs from different starts and different rows, compared on the same held-out rows."""
    import torch

    from nearid.measures.similarity import cca

    held, *starts = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
    x, y = draw(p, p.held_out, torch.Generator().manual_seed(held))
    first, second = (train(p, x, y, start) for start in starts)
    correlations = [cca(a, b) for a, b in zip(first.features, second.features, strict=True)]
    means = [float(np.mean(c)) for c in correlations]
    steps = [float(s) for s in look_steps(p)]
    there = next(s for s, m in zip(steps, means, strict=True) if m >= max(means) - NEAR)
    a, b = first.features[-1], second.features[-1]
    return {
        "scores": {
            "cca": means[-1],
            "least": float(np.min(correlations[-1])),
            "start": means[0],
            "iterations": there,
            "accuracy": 100 * (first.accuracy + second.accuracy) / 2,
        },
        "curves": {
            "cca": {"x": steps, "y": means},
            "loss": {"x": steps, "y": [(u + v) / 2 for u, v in zip(first.losses, second.losses, strict=True)]},
        },
        "views": _views(a, b),
    }


def _views(a: Floats, b: Floats) -> dict[str, Any]:
    """Some held-out features of both runs, and those of the first mapped linearly to the second."""
    design = np.column_stack([a, np.ones(len(a))])
    mapped = design @ np.linalg.lstsq(design, b, rcond=None)[0]

    def correlation(u: Floats) -> list[list[float]]:
        size = u.shape[1]
        return np.abs(np.corrcoef(u.T, b.T)[:size, size:]).round(4).tolist()  # type: ignore[no-any-return]

    return {
        "first": a[:SHOWN].round(4).tolist(),
        "mapped": mapped[:SHOWN].round(4).tolist(),
        "second": b[:SHOWN].round(4).tolist(),
        "before": correlation(a),
        "after": correlation(mapped),
    }


def rows(p: Parameters) -> list[Row]:
    """The published setting, the control, and what the choices of the network and of M do to them."""
    note = "Fig. 2 is a curve without a table: it reaches its maximum after about 4000 iterations."
    few = {"classes": p.features}
    return [
        Row(
            "published",
            f"K = {p.classes}, M = {p.features}",
            published={"iterations": Published(4000, verified=False, note=note)},
        ),
        Row("control", f"K = {p.features} < M + 1 (control)", few),
        Row("random-head", f"K = {p.classes}, head started at random", {"head": 1.0}),
        Row("more-features", f"K = {p.classes}, M = {2 * p.features}", {"features": 2 * p.features}),
        Row("unbounded-control", f"K = {p.features} < M + 1, LeakyReLU units", {**few, "activation": "leaky_relu"}),
    ]


def _rises(found: Result) -> Outcome:
    decided = at_least(found, "published", "cca", NEAR_ONE)
    return replace(decided, sentence=f"{decided.sentence} It began at {found.estimate('published', 'start').mean:.3g}.")


def _control(found: Result) -> Outcome:
    return at_most(found, "control", "cca", NEAR_ONE)


def figures(found: Result) -> Sequence[Slot]:
    """The first seed of each row: features against features, and correlations before and after a linear map."""
    slots: list[Slot] = []
    for row in found.rows:
        for finished in found.of_row(row.key)[:1]:
            v = finished.data["views"]
            across, down = np.asarray(v["mapped"]), np.asarray(v["second"])
            names = [f"feature {k + 1}" for k in range(down.shape[1])]
            slots.append(
                ScatterMatrix(
                    f"{row.title}: one run against the other",
                    f"Features of {SHOWN} held-out rows, the first run (across) mapped linearly to the second (down). "
                    "A thin diagonal means that the runs differ by a linear map alone.",
                    {f"first run, mapped: {n}": across[:, k].tolist() for k, n in enumerate(names)},
                    {f"second run: {n}": down[:, k].tolist() for k, n in enumerate(names)},
                )
            )
            slots.append(
                HeatMaps(
                    f"{row.title}: correlation of the features",
                    "Absolute correlation of the first run's features (rows) with the second's (columns).",
                    {"before the linear map": v["before"], "after": v["after"]},
                    names,
                    names,
                )
            )
    return slots


RADIAL = Experiment(
    name="radial",
    paper=Paper(
        "Roeder, Metz and Kingma",
        "On Linear Identifiability of Learned Representations",
        "ICML 2021",
        "https://arxiv.org/abs/2007.00810",
    ),
    shows="Fig. 2",
    about="Two classifiers of 18 sectors of the plane, from different starts, learn the same features up to a linear "
    "map; with fewer classes than feature dimensions plus one nothing says that they should.",
    defaults=Parameters(),
    presets={
        "smoke": Preset("seconds", 2, {"steps": 60, "width": 16, "held_out": 500, "looks": 6}),
        "cpu": Preset("about 5 minutes on 2 idle cores", 8),
        "paper": Preset("up to an hour on 2 cores (estimated)", 8, {"steps": 10_000, "width": 128, "batch": 512}),
    },
    columns=(
        Column("cca", "mean CCA"),
        Column("least", "least CCA"),
        Column("start", "mean CCA at the start"),
        Column("iterations", "iterations to within 0.01 of the maximum", 0),
        Column("accuracy", "accuracy (%)", 1),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(f"During training the mean CCA of two runs rises to near 1 (held out, at least {NEAR_ONE}).", _rises),
        Claim(f"With K < M + 1 it does not (at most {NEAR_ONE}).", _control),
    ),
    curves=(
        Axes("cca", "Mean CCA of two runs during training", "iterations", "mean CCA, held out"),
        Axes("loss", "Loss during training", "iterations", "cross-entropy, held out"),
    ),
    figures=figures,
)
