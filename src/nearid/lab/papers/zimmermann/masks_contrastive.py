"""Contrastive learning on masks that move (Zimmermann et al. 2021, KITTI Masks): place and size from pairs of frames.

Frames of a film that are close in time are positives. As in a box of latents, a loss with an exponent other than 2, or
outputs in a box, should recover the factors one by one: the centre of mass (y, x) and the area of the mask.

By default the masks are drawn: outlines whose latents take Laplace steps, so that one step is the theorem's own pair.
`--set data=kitti-masks` takes the real film frames, where they are here; factors are then as measured by their source.
The cpu preset has frames of 48 x 48, shows one outline and has ten outputs, as the paper; the preset quick has as many
outputs as there are factors and fewer seeds, and the stored result is of it until the longer one has been run. A row
with many outlines is nearer to the real films, where the outline is shared by the frames of a pair, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.base import LabelledImages
from nearid.lab.framework.claims import Claim, at_least, exceeds
from nearid.lab.framework.experiment import ZIMMERMANN, CellData, Column, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import SCHEDULES, Checked, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.images import as_planes, encoded
from nearid.lab.papers.common.recovery import first_views
from nearid.lab.papers.zimmermann import sections
from nearid.lab.papers.zimmermann.contrastive import CURVES
from nearid.lab.processes.images.masks import MaskProcess, draw_mask_process
from nearid.lab.processes.noise import Laplace
from nearid.moments import Floats
from nearid.show.figures import Figure, scatter_matrix

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.objectives import Contrastive

DATA = ("masks", "kitti-masks")
FACTORS = ("y", "x", "area")
# Channels of the encoder's convolutions and units of its dense layer, as published.
WIDTHS, DENSE = (32, 32, 64, 64), 256
# Rows in the scatter plots.
SHOWN = 300
# MCC (%) that counts as high, and what squared L2 in R^n loses of it.
HIGH, LOST = 80.0, 5.0


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on masks; rows of the table set output, exponent, walkers and latents."""

    data: str = parameter(
        "masks", "masks are drawn, kitti-masks are read from a file", choices=DATA, paper="kitti-masks"
    )
    walkers: int = parameter(1, "outlines of drawn masks", least=1)
    step: float = parameter(0.05, "scale of a Laplace step of drawn masks, in units of their box", positive=True)
    gap: int = parameter(1, "frames of a pair are 1 to so many steps apart", least=1, paper=5)
    side: int = parameter(48, "height and width of the masks", multiple=2 ** len(WIDTHS), paper=64)
    latents: int = parameter(10, "coordinates of a representation", least=1, quick=3)
    output: str = parameter("box", "where representations live: box or unbounded", choices=("box", "unbounded"))
    exponent: float = parameter(1.0, "p of the distance L_p^p in the loss", least=1)
    unit: float = parameter(0.2, "unit of distances: the temperature is unit^p", positive=True, paper=1.0)
    steps: int = parameter(1000, "steps of Adam", least=1, smoke=4, paper=300_000)
    batch: int = parameter(64, "pairs in each step", least=2, smoke=8, paper=32)
    rate: float = parameter(1e-3, "learning rate", positive=True, paper=1e-4)
    schedule: str = parameter("cosine", "course of the learning rate", choices=SCHEDULES, paper="constant")
    held_out: int = parameter(4000, "fresh frames for the scores, by five folds", least=50, smoke=100, paper=10_000)
    looks: int = parameter(10, "times that the scores are taken during training", least=1, smoke=2)
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one", paper="auto")


class Films(Protocol):
    """Where pairs of frames come from."""

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Frames and later ones of the same films, each of shape (size, 1, side, side)."""

    def frames(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Frames and their factors (y, x, area)."""


@dataclass(frozen=True)
class DrawnFilms:
    """Films of a mask process."""

    process: MaskProcess

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        z, later, walkers = self.process.pairs(size, rng)
        return self.process.observe(z, walkers), self.process.observe(later, walkers)

    def frames(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        z, walkers = self.process.sequences(size, 1, rng)
        return self.process.observe(z[:, 0], walkers), self.process.factors(z[:, 0])


@dataclass(frozen=True)
class StoredFilms:
    """Films of a data set, one after the other."""

    held: LabelledImages
    gap: int

    @cached_property
    def _left(self) -> np.ndarray:
        """Frames that follow each frame in its film."""
        assert self.held.sequence is not None
        last = np.searchsorted(self.held.sequence, self.held.sequence, side="right") - 1
        return np.asarray(last - np.arange(len(last)))

    @cached_property
    def _followed(self) -> np.ndarray:
        """Frames that have a later one in their film."""
        followed = np.flatnonzero(self._left > 0)
        if not len(followed):
            raise InputError(f"All films of {self.held.name} have one frame: there are no pairs.")
        return followed

    def pairs(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        first = self._followed[rng.integers(0, len(self._followed), size)]
        later = first + np.minimum(rng.integers(1, self.gap + 1, size), self._left[first])
        return self._at(first), self._at(later)

    def frames(self, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        index = rng.integers(0, len(self.held), size)
        return self._at(index), self.held.table[index]

    def _at(self, index: np.ndarray) -> Floats:
        return as_planes(self.held.images.take(index))


def films(p: Parameters, rng: np.random.Generator) -> Films:
    """The films of the parameters; outlines are drawn."""
    if p.data == "masks":
        return DrawnFilms(draw_mask_process(p.walkers, rng, step=Laplace(p.step), gap=p.gap, side=p.side))
    from nearid.lab.data.load import load

    return StoredFilms(load(p.data, size=p.side), p.gap)


def objective(p: Parameters) -> Contrastive:
    """An encoder that is not trained yet, with its loss."""
    from torch import nn

    from nearid.lab.models.encoders import small_features
    from nearid.lab.models.objectives import Contrastive

    features = small_features(1, p.side, DENSE, widths=WIDTHS, batch_norm=False)
    encoder = nn.Sequential(features, nn.Linear(DENSE, p.latents))
    return Contrastive(encoder, p.latents, space=p.output, p=p.exponent, temperature=p.unit**p.exponent)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Train an encoder on pairs of frames and compare its outputs with the factors of other frames."""
    from nearid.lab.models.trainer import seeded
    from nearid.measures.mcc import mcc
    from nearid.measures.r2 import r2

    drawn, held, start, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(4))
    source = films(p, np.random.default_rng(drawn))
    images, table = source.frames(p.held_out, np.random.default_rng(held))
    factors = dict(zip(FACTORS, table.T, strict=True))
    with seeded(start):
        model = objective(p)

    def recovered() -> np.ndarray:
        return encoded(model.encode, images, next(model.parameters()).device)

    def score(_: nn.Module) -> dict[str, float]:
        z = recovered()
        return {"r2": 100 * r2(z, factors, ridge=0).value, "mcc": 100 * mcc(z, factors, method="spearman").value}

    def batches(rng: np.random.Generator) -> tuple[Floats, Floats]:
        return source.pairs(p.batch, rng)

    curves = trained(model, batches, p, order, folder, score=score)
    z = recovered()
    match = mcc(z, factors, method="spearman")
    shown = {
        name: z[:SHOWN, at].round(4).tolist() for name, at in zip(match.factors, match.matched, strict=True) if at >= 0
    }
    return {
        "scores": {
            "mcc": 100 * match.value,
            "r2": 100 * r2(z, factors, ridge=0).value,
            **{name: 100 * float(v) for name, v in zip(match.factors, match.per_factor, strict=True)},
        },
        "curves": curves,
        "views": {"true": {n: v[:SHOWN].round(4).tolist() for n, v in factors.items()}, "recovered": shown},
    }


def rows(p: Parameters) -> list[Row]:
    """Both losses with a box and without, and many outlines."""
    note = "Published: KITTI Masks, mean time between frames 0.15 s; for drawn masks for orientation alone."
    published = {"l1-box": {"mcc": Published(80.9, note=note)}, "l2-unbounded": {"mcc": Published(60.2, note=note)}}
    made = [
        Row(key, title, {"exponent": exponent, "output": output}, published.get(key, {}))
        for key, title, exponent, output in (
            ("l1-box", "L1, box", 1.0, "box"),
            ("l1-unbounded", "L1, unbounded", 1.0, "unbounded"),
            ("l2-box", "squared L2, box", 2.0, "box"),
            ("l2-unbounded", "squared L2, unbounded", 2.0, "unbounded"),
        )
    ]
    if p.data == "masks":
        many = {"exponent": 1.0, "output": "box", "walkers": 20, "latents": 10}
        made.append(Row("l1-box-walkers", "L1, box, 20 outlines, 10 outputs", many))
    return made


def figures(result: ExperimentResult) -> list[Figure]:
    """The first seed of each row: factors against the outputs matched to them."""
    return [
        scatter_matrix(
            f"{row.title}: factors against outputs",
            "True factors (across) and the outputs that are matched to them (down).",
            views["true"],
            {f"output for {name}": v for name, v in views["recovered"].items()},
        )
        for row, views in first_views(result)
    ]


MASKS_CONTRASTIVE = Experiment(
    name="masks-contrastive",
    paper=ZIMMERMANN,
    shows="KITTI Masks",
    section=sections.MASKS_CONTRASTIVE,
    about="From pairs of frames that are close in time, place and size of a moving mask are recovered one by one, "
    "where the loss has an exponent other than 2 or the outputs live in a box.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about an hour of one core (estimated)", 8),
        paper=("days on a GPU (estimated)", 3),
        quick=("about 20 minutes of one core", 3),
    ),
    columns=(
        Column("mcc", "MCC, Spearman (%)", 1, least=-100, most=100),
        Column("r2", "R2 (%)", 1, most=100),
        *(Column(name, f"{name} (%)", 1, least=-100, most=100) for name in FACTORS),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"L1 and a box recover place and size (Spearman MCC, held out, at least {HIGH:g}%).",
            at_least("l1-box", "mcc", HIGH),
        ),
        Claim(
            f"Squared L2 in R^n recovers them less well (by at least {LOST:g} points).",
            exceeds(("l1-box", "mcc"), ("l2-unbounded", "mcc"), by=LOST),
        ),
    ),
    curves=CURVES,
    figures=figures,
    datasets=lambda p: () if p.data == "masks" else (p.data,),
)
