"""Where the marginal is not uniform, is the contrastive loss least at a linear map? (Zimmermann et al. 2021, Table 1)

Table 1 has rows in which latents are normal or Laplace in R^n, and reports R2 of 98.8 and 98.1. The theorem does not
cover them: it needs a uniform marginal. `contrastive-sphere` ends near 91 to 96 there, also with the latents themselves
as observations, so that an encoder has nothing to invert. This experiment asks why, with very little training.

The latents are observed. Two families of maps are compared on fresh pairs: linear maps c z, of which any is perfect (R2
100) and the best one is found by a search for c, and maps that stretch, which are trained. For normal latents these are
radial, f(z) = s(|z|) z; for Laplace latents they act on each coordinate, f(z)_i = s(|z_i|) z_i. Their stretch s is a
small network, constant at the start, so that training begins at a linear map. If the loss on fresh pairs is lower at a
map that is not linear, then the minimum of the loss is not linear, and more training cannot bring R2 to the published
figure.

The width of the marginal decides how much that matters. Near a latent a wide marginal is nearly uniform, so the last
rows have marginals of 2 and 4 times the width.

The negatives are those of a batch, as in the paper, which has batches of 6144. This is not an experiment of the paper:
the claims are ours, written after trials in which R2 was 90.8 with four latents and 92.3 with ten (normal marginal).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, at_most, exceeds
from nearid.lab.framework.experiment import ZIMMERMANN, Axes, CellData, Column, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import SCHEDULES, Checked, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.zimmermann import sections
from nearid.lab.processes.noise import Laplace, Normal
from nearid.lab.processes.pairs import PairProcess
from nearid.lab.processes.spaces import Unbounded
from nearid.moments import Floats
from nearid.show.figures import CHANCE, Curve, Figure, Lines, Scatter

if TYPE_CHECKING:
    from torch import Tensor, nn

MARGINALS = {"normal": Normal, "laplace": Laplace}
# Latents of a picture that runs in minutes, and those of the paper.
FEW, PUBLISHED_LATENTS = 4, 10
# Widths of the marginal, over that of the conditional.
WIDTHS = (1.0, 2.0, 4.0)
# R2 (%) that is clearly below the published 98.1 and 98.8.
BELOW = 95.0
# Lengths at which the stretch is drawn, up to this share of the lengths in the data.
DRAWN, SHARE = 40, 0.99
# Batches on which the best linear map is searched for, and the ends of the search for the logarithm of its factor.
SEARCHED, WITHIN = 8, (-4.0, 3.0)


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on marginals; rows of the table set n, marginal and width."""

    n: int = parameter(FEW, "latents; rows set it", least=1)
    marginal: str = parameter("normal", "law of the latents; rows set it", choices=tuple(MARGINALS))
    width: float = parameter(
        1.0, "scale of the latents over that of the positives about them; rows set it", positive=True
    )
    units: int = parameter(32, "units of both hidden layers of the stretch", least=1, smoke=8)
    steps: int = parameter(200, "steps of Adam", least=1, smoke=4, paper=4000)
    batch: int = parameter(1024, "fresh pairs in each step", least=2, smoke=64, paper=6144)
    rate: float = parameter(1e-2, "learning rate", positive=True)
    schedule: str = parameter("cosine", "course of the learning rate", choices=SCHEDULES)
    held_out: int = parameter(20_000, "fresh pairs for the scores", least=100, smoke=300)
    looks: int = parameter(10, "times that the scores are taken during training", least=1, smoke=2)


def process(p: Parameters) -> PairProcess:
    """Latents in R^n, and normal positives of scale 1 about them."""
    return PairProcess(Unbounded(p.n), MARGINALS[p.marginal](p.width), Normal(1.0))


def best_factor(p: Parameters, rng: np.random.Generator) -> float:
    """The c at which the loss of the map c z is least on some fresh batches, found by a search along the line."""
    import torch
    from scipy.optimize import minimize_scalar

    from nearid.lab.models.objectives import infonce

    pairs = [
        tuple(torch.as_tensor(side, dtype=torch.float32) for side in process(p).pairs(p.batch, rng))
        for _ in range(SEARCHED)
    ]

    @torch.no_grad()
    def loss(log_factor: float) -> float:
        c = float(np.exp(log_factor))
        return float(np.mean([float(infonce(c * z, c * positive, p=2.0)) for z, positive in pairs]))

    return float(np.exp(minimize_scalar(loss, bounds=WITHIN, method="bounded").x))


def stretched(p: Parameters) -> nn.Module:
    """The map s(|z|) z, or the same of each coordinate; s is constant at the start."""
    import torch
    from torch import nn

    by_coordinate = p.marginal == "laplace"
    typical = p.width * (1.0 if by_coordinate else float(np.sqrt(p.n)))

    class Stretched(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            last = nn.Linear(p.units, 1)
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)
            hidden = nn.Linear(p.units, p.units)
            self.log_stretch = nn.Sequential(nn.Linear(1, p.units), nn.GELU(), hidden, nn.GELU(), last)

        def stretch(self, lengths: torch.Tensor) -> torch.Tensor:
            made: torch.Tensor = self.log_stretch(lengths[..., None] / typical)[..., 0].exp()
            return made

        def forward(self, z: torch.Tensor) -> torch.Tensor:
            lengths = z.abs() if by_coordinate else z.norm(dim=1, keepdim=True)
            return z * self.stretch(lengths)

    return Stretched()


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Find the best linear map, train one that stretches, and compare their losses on fresh pairs."""
    import torch

    from nearid.lab.models.objectives import Contrastive, infonce
    from nearid.lab.models.trainer import seeded
    from nearid.measures.r2 import r2

    held, start, order, searched = (int(s) for s in np.random.SeedSequence(seed).generate_state(4))
    generating = process(p)
    fresh = generating.pairs(p.held_out, np.random.default_rng(held))
    z, positives = (torch.as_tensor(side, dtype=torch.float32) for side in fresh)
    with seeded(start):
        made = stretched(p)
    model = Contrastive(made, p.n, space="unbounded", p=2.0)

    def batches(rng: np.random.Generator) -> tuple[Floats, Floats]:
        first, second = (side.astype(np.float32) for side in generating.pairs(p.batch, rng))
        return first, second

    @torch.no_grad()
    def loss(encode: Callable[[Tensor], Tensor]) -> float:
        """Mean over batches of the size that is trained on, as the loss depends on it."""
        parts = zip(z.split(p.batch), positives.split(p.batch), strict=True)
        whole = [(a, b) for a, b in parts if len(a) == min(p.batch, len(z))]
        return float(np.mean([float(infonce(encode(a), encode(b), p=2.0)) for a, b in whole]))

    factor = best_factor(p, np.random.default_rng(searched))
    linear = loss(lambda x: factor * x)

    @torch.no_grad()
    def score(_: nn.Module) -> dict[str, float]:
        found, other = model.encode(z).double().numpy(), loss(model.encode)
        told = {"r2": 100 * r2(found, fresh[0], ridge=0).value, "loss_linear": linear, "loss_stretched": other}
        return told | {"gain": linear - other}

    curves = trained(model, batches, p, order, folder, score=score)
    lengths = np.abs(fresh[0]).ravel() if p.marginal == "laplace" else np.linalg.norm(fresh[0], axis=1)
    x = np.linspace(0, float(np.quantile(lengths, SHARE)), DRAWN)
    with torch.no_grad():
        stretch: Any = made.stretch
        y = x * stretch(torch.as_tensor(x, dtype=torch.float32)).numpy()
    # In units of the linear map, so that the diagonal is the linear map.
    curves["map"] = {"x": x.round(4).tolist(), "y": (y / factor).round(4).tolist()}
    return {"scores": score(model), "curves": curves}


def rows(p: Parameters) -> list[Row]:
    """Both marginals with few latents and those of the paper, and normal marginals that are wider."""
    published = {"normal": 98.76, "laplace": 98.13}
    note = "Published: Table 1, R^n, with a mixing and a full encoder."
    made = [
        Row(
            f"{marginal}-{n}",
            f"{marginal} marginal, {n} latents",
            {"marginal": marginal, "n": n, "width": 1.0},
            {"r2": Published(published[marginal], note=note)} if n == PUBLISHED_LATENTS else {},
            ("uniform marginal",),
        )
        for marginal in MARGINALS
        for n in (FEW, PUBLISHED_LATENTS)
    ]
    return made + [
        Row(
            f"normal-{n}-wide-{width:g}",
            f"normal marginal {width:g} times as wide, {n} latents",
            {"marginal": "normal", "n": n, "width": width},
            violated=("uniform marginal",),
        )
        for width in WIDTHS[1:]
        for n in (FEW, PUBLISHED_LATENTS)
    ]


def figures(result: ExperimentResult) -> list[Figure]:
    """R2 at the best map by the width of the marginal, and the map itself."""
    by_width: dict[str, tuple[list[float], list[float]]] = {}
    for n in (FEW, PUBLISHED_LATENTS):
        ran = [row for row in result.rows if row.changes["n"] == n and row.changes["marginal"] == "normal"]
        scores = [(row.changes["width"], result.estimate(row.key, "r2").value) for row in ran if result.of_row(row.key)]
        if scores:
            by_width[f"{n} latents"] = [w for w, _ in scores], [v for _, v in scores]
    if not by_width:
        return []
    return [
        Scatter(
            "The wider the marginal, the nearer the minimum is to a linear map",
            "R2 (%) of the map with the least loss, mean over seeds. The latents are normal; the width is that of the "
            "marginal over that of the conditional.",
            "width of the marginal",
            "R2 (%), held out",
            {},
            by_width,
        )
    ]


def map_figure(result: ExperimentResult) -> Figure | None:
    """The map with the least loss at the first seed of each row, over the length of a latent."""
    curves: dict[str, Curve] = {}
    for row in result.rows:
        for finished in result.of_row(row.key)[:1]:
            curve = finished.data.get("curves", {}).get("map")
            if curve is not None:
                curves[row.title] = Curve(curve["x"], curve["y"])
    if not curves:
        return None
    end = max(max(curve.x) for curve in curves.values())
    curves["the best linear map"] = Curve([0.0, end], [0.0, end], colour=CHANCE, dash="dash")
    return Lines(
        "The map with the least loss",
        "Length of a latent (of a coordinate for Laplace) and its length after the map, over the factor of the best "
        "linear map; the first seed.",
        "length of a latent",
        "length after the map",
        curves,
        wide=True,
    )


NORMAL = tuple(f"normal-{n}" for n in (FEW, PUBLISHED_LATENTS))
EVERY = (*NORMAL, *(f"laplace-{n}" for n in (FEW, PUBLISHED_LATENTS)))

CONTRASTIVE_MARGINALS = Experiment(
    name="contrastive-marginals",
    paper=ZIMMERMANN,
    shows="Table 1, marginals",
    section=replace(sections.CONTRASTIVE_MARGINALS, figure=map_figure),
    about="Where the marginal is not uniform, the contrastive loss is lower at a map of the latents that is not linear "
    "than at the best linear map, so that R2 stays below the published figure however long one trains.",
    defaults=Parameters(),
    presets=presets(cpu=("about 3 minutes of one core", 3), paper=("hours on a CPU (estimated)", 5)),
    columns=(
        Column("r2", "R2 of the map that stretches (%)", 2, most=100),
        Column("loss_linear", "loss of the best linear map", 4),
        Column("loss_stretched", "loss of the map that stretches", 4),
        Column("gain", "loss that stretching saves", 4),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            "The loss is lower at a map that is not linear than at the best linear map (both marginals, fresh pairs).",
            all_of(*(exceeds((row, "loss_linear"), (row, "loss_stretched")) for row in EVERY)),
            added=True,
        ),
        Claim(
            f"With a normal marginal, R2 at that map is below the published figure (at most {BELOW:g}%; 98.76 is "
            "published).",
            all_of(*(at_most(row, "r2", BELOW) for row in NORMAL)),
            added=True,
        ),
        Claim(
            "The wider the marginal, the nearer the map is to a linear one (normal marginal, R2 rises with the width).",
            all_of(
                *(
                    exceeds((f"normal-{n}-wide-{b:g}", "r2"), (f"normal-{n}{a}", "r2"))
                    for n in (FEW, PUBLISHED_LATENTS)
                    for a, b in (("", WIDTHS[1]), (f"-wide-{WIDTHS[1]:g}", WIDTHS[2]))
                )
            ),
            added=True,
        ),
    ),
    curves=(
        Axes(
            "map",
            "The map with the least loss",
            "length of a latent",
            "its length after the map, over the linear map's",
        ),
        Axes("r2", "R2 during training", "steps", "R2 (%), held out"),
        Axes(
            "gain",
            "Loss that stretching saves, during training",
            "steps",
            "loss of the linear map less that of the other",
        ),
    ),
    figures=figures,
)
