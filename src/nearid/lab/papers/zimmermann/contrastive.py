"""What the contrastive experiments share (Zimmermann et al. 2021): process, objective, training and scores of a cell.

Latents are drawn in a space, a positive about each of them, and both are observed through an invertible mixing. An
encoder is trained on the observations with InfoNCE alone; its representations are then compared with the latents. The
supervised baseline is told the latents; the scores of the observations themselves stand in every cell.

A loss with distances |a - b|^p / unit^p is the one with temperature unit^p, and its minimisers are those of unit 1 but
for their scale. The published unit is 1: positives at distances of 0.05 ask for a box of sides near 20, to which
learnable sides that start at 1 do not grow in a few thousand steps. The unit of the cpu preset was chosen by trials
with normal positives and squared L2 in a box (n = 4, 1500 to 2000 steps), in which a box that starts too wide leaves
rotations free for long: MCC 90% with a unit of 0.05, 96% with 0.1 and 99% with 0.2.

The preset cpu has the paper's ten latents; the preset quick has four, a smaller encoder and fewer steps, for a first
answer in minutes. How both train was chosen by trials with 10 latents, vMF(10) positives and batches of 1024 (one
mixing, R2 held out). After 2000 steps: 83% with LeakyReLU units and Adam on the observations as they are, 90% with
whitened ones, 90% with Muon instead of Adam, 95% with both. After 1500 steps: 94% with both, and 97% with GELU units
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from nearid.lab.framework.experiment import Axes, CellData, Row
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import SCHEDULES, Checked, changed, parameter
from nearid.lab.framework.training import curves
from nearid.lab.papers.common.recovery import recovery_figures
from nearid.lab.processes.mixing import draw_mixing
from nearid.lab.processes.noise import GeneralisedNormal, Laplace, Noise, Normal, VonMisesFisher
from nearid.lab.processes.pairs import PairProcess
from nearid.lab.processes.spaces import Box, Sphere, Unbounded, violated
from nearid.moments import Floats
from nearid.show.figures import Figure

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.objectives import Contrastive, Regression
    from nearid.lab.models.trainer import Training


# Held-out rows and coordinates in the figures.
SHOWN, PANELS = 300, 5

CURVES = (
    Axes("r2", "R2 during training", "steps", "R2 (%), held out"),
    Axes("mcc", "MCC during training", "steps", "MCC (%), held out"),
    Axes("loss", "Loss during training", "steps", "loss of the objective"),
)

SPACES = {"sphere": Sphere, "box": Box, "unbounded": Unbounded}
OBJECTIVES = ("contrastive", "supervised")
NOISES = ("laplace", "normal", "generalised normal")
# Shape of the generalised normal noise.
BETA = 3.0
# Slope of the mixing's LeakyReLU.
SLOPE = 0.2
# Latents of the paper.
PUBLISHED_LATENTS = 10
# Rows of which the covariance is brought to the identity.
WHITENED = 20_000
# Steps between records: a run that is killed loses little.
RECORD = 50


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the contrastive experiments; rows of the tables set those of process and objective."""

    n: int = parameter(PUBLISHED_LATENTS, "latents, observed and recovered coordinates", least=2, smoke=2, quick=4)
    space: str = parameter("sphere", "where latents live; the box is [0, 1]^n", choices=tuple(SPACES))
    marginal: str = parameter("uniform", "law of the latents", choices=("uniform", *NOISES))
    marginal_scale: float = parameter(1.0, "scale of a marginal that is not uniform", positive=True)
    conditional: str = parameter("vmf", "law of positives", choices=("vmf", *NOISES))
    kappa: float = parameter(1.0, "concentration of a vMF conditional", positive=True)
    scale: float = parameter(0.05, "scale of any other conditional", positive=True)
    objective: str = parameter("contrastive", "supervised is regression onto the latents", choices=OBJECTIVES)
    output: str = parameter(
        "sphere", "where representations live", choices=("sphere", "scaled sphere", "box", "unbounded")
    )
    exponent: float = parameter(
        0.0, "p of the distance L_p^p; 0 for the dot product", least=lambda p: 1 if p.exponent else 0
    )
    unit: float = parameter(0.2, "unit of distances: the temperature is unit^p", positive=True, paper=1.0)
    layers: int = parameter(3, "layers of the mixing; with 0 the latents themselves are observed", least=0)
    width: int = parameter(
        128, "units of each hidden layer; 0 for 10n, four of 50n, 10n", least=0, smoke=16, quick=64, paper=0
    )
    depth: int = parameter(4, "hidden layers; without meaning for the published widths", least=1, smoke=2, quick=3)
    activation: str = parameter("gelu", "hidden units", choices=("gelu", "leaky_relu"), paper="leaky_relu")
    residual: bool = parameter(True, "whether hidden layers add to their inputs", paper=False)
    whiten: bool = parameter(True, "whether observations are first whitened", paper=False)
    optimiser: str = parameter("muon", "muon or adam", choices=("muon", "adam"), paper="adam")
    steps: int = parameter(4000, "steps of the optimiser", least=1, smoke=20, quick=3000, paper=300_000)
    batch: int = parameter(1024, "fresh pairs in each step", least=2, smoke=64, paper=6144)
    rate: float = parameter(2e-3, "learning rate", positive=True, smoke=1e-2, paper=1e-4)
    schedule: str = parameter("cosine", "course of the learning rate", choices=SCHEDULES, paper="constant")
    warmup: int = parameter(100, "steps over which the learning rate rises", least=0, smoke=5, paper=0)
    held_out: int = parameter(4000, "fresh rows for the scores, by five folds", least=50, smoke=200)
    looks: int = parameter(20, "times that the scores are taken during training", least=1, smoke=2)
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one", paper="auto")


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Train an encoder on a process of its own and compare its representations with the latents.

    Rows of a table share the mixing, and all else that chance decides, at a seed.
    """
    import torch

    from nearid.lab.models.trainer import seeded, train

    mixing, held, start, order, whitened = (int(s) for s in np.random.SeedSequence(seed).generate_state(5))
    generating = process(p, np.random.default_rng(mixing))
    z = generating.sample(p.held_out, np.random.default_rng(held))
    x = generating.observe(z, np.float32)
    sample = generating.observe(generating.sample(WHITENED, np.random.default_rng(whitened))) if p.whiten else None
    with seeded(start):
        model = objective(p, sample)

    def batches(rng: np.random.Generator) -> tuple[Floats, Floats]:
        latents, positives = generating.pairs(p.batch, rng)
        observed = generating.observe(latents, np.float32)
        return observed, latents if p.objective == "supervised" else generating.observe(positives, np.float32)

    def recovered(trained: nn.Module) -> Floats:
        assert isinstance(trained, type(model))
        device = next(trained.parameters()).device
        with torch.no_grad():
            return np.asarray(trained.encode(torch.as_tensor(x, device=device)).cpu().double().numpy())

    done = train(model, batches, options(p, order), folder=folder, score=lambda m: scores(recovered(m), z))
    representations = recovered(model)
    observed = {f"identity_{name}": value for name, value in scores(x, z).items()}
    reference = {f"{name}_in_sample": value for name, value in scores(representations, z, folds=1).items()}
    told = scores(representations, z) | reference | observed
    return {"scores": told, "curves": curves(done.records), "views": views(representations, z, x)}


def described(p: Parameters, rows: Sequence[Row], *, apart: Sequence[str] = ()) -> list[Row]:
    """The rows with the assumptions that they violate, some of them apart; published values with what they are for.

    They are left out where the process is not the paper's; the number of latents may be another, which is said.
    """
    kept = {name: getattr(p, name) for name in ("kappa", "scale", "marginal_scale", "layers")}
    published = kept == {name: getattr(Parameters, name) for name in kept}
    note = "" if p.n == PUBLISHED_LATENTS else f"Published for {PUBLISHED_LATENTS} latents, not {p.n}."
    described_rows = []
    for row in rows:
        q = changed(p, row.changes)
        values = {key: replace(v, note=v.note or note) for key, v in row.published.items()}
        names: list[str] = []
        if q.objective == "contrastive":
            unmixed = process(changed(q, {"layers": 0}), np.random.default_rng(0))
            names = [a.name for a in violated(unmixed.assumptions(q.exponent or "dot")) if a.name not in apart]
        described_rows.append(replace(row, published=values if published else {}, violated=names))
    return described_rows


def process(p: Parameters, rng: np.random.Generator) -> PairProcess:
    """The process of the parameters, with a mixing drawn by the condition-number rule."""
    marginal: Literal["uniform"] | Noise = "uniform"
    if p.marginal != "uniform":
        marginal = _noise(p.marginal, p.marginal_scale)
    conditional = VonMisesFisher(p.kappa) if p.conditional == "vmf" else _noise(p.conditional, p.scale)
    mixing = draw_mixing(p.n, p.layers, rng, slope=SLOPE) if p.layers else None
    return PairProcess(SPACES[p.space](p.n), marginal, conditional, mixing)


def objective(p: Parameters, sample: Floats | None = None) -> Contrastive | Regression:
    """An encoder that is not trained yet, with its loss; it whitens observations like those of the sample."""
    from nearid.lab.models.encoders import mlp
    from nearid.lab.models.objectives import Contrastive, Regression

    widths = [p.width] * p.depth if p.width else None
    encoder = mlp(p.n, p.n, widths, residual=p.residual, activation=p.activation, whiten=sample)
    if p.objective == "supervised":
        return Regression(encoder, p.n, space=p.output)
    # To the power 0, that of the dot product, the temperature is 1.
    return Contrastive(encoder, p.n, space=p.output, p=p.exponent or None, temperature=p.unit**p.exponent)


def options(p: Parameters, seed: int) -> Training:
    """How the encoder is trained."""
    from nearid.lab.models.trainer import Training

    every = min(RECORD, max(1, p.steps // p.looks))
    return Training(
        p.steps,
        p.rate,
        optimiser=p.optimiser,
        schedule=p.schedule,
        warmup=p.warmup,
        seed=seed,
        device=p.device,
        log_every=every,
        score_every=max(1, p.steps // p.looks // every) * every,
    )


def scores(recovered: Floats, z: Floats, folds: int = 5) -> dict[str, float]:
    """R2 and MCC in percent; held out, or in sample with one fold."""
    from nearid.measures.mcc import mcc
    from nearid.measures.r2 import r2

    return {"r2": 100 * r2(recovered, z, ridge=0, folds=folds).value, "mcc": 100 * mcc(recovered, z, folds=folds).value}


def _noise(name: str, scale: float) -> Noise:
    if name == "generalised normal":
        return GeneralisedNormal(scale, BETA)
    return Laplace(scale) if name == "laplace" else Normal(scale)


def views(recovered: Floats, z: Floats, observed: Floats | None = None) -> dict[str, Any]:
    """Latents, the representations matched to them, and correlations before and after."""
    from nearid.measures.mcc import mcc

    matched = recovered[:, mcc(recovered, z, folds=1).matched]
    design = np.column_stack([recovered, np.ones(len(recovered))])
    mapped = design @ np.linalg.lstsq(design, z, rcond=None)[0]

    def correlation(u: Floats) -> list[list[float]]:
        matrix: list[list[float]] = mcc(u, z, folds=1).matrix.round(4).tolist()
        return matrix

    return {
        "true": z[:SHOWN, :PANELS].round(4).tolist(),
        "recovered": matched[:SHOWN, :PANELS].round(4).tolist(),
        **({} if observed is None else {"observed": correlation(observed)}),
        "matched": correlation(matched),
        "mapped": correlation(mapped),
    }


def figures(result: ExperimentResult, names: Sequence[str] = ()) -> list[Figure]:
    """The first seed of each row: latents against representations, and correlations before and after.

    Latents without names are counted.
    """
    return recovery_figures(
        result,
        scatter=(
            "true against recovered",
            "{n} held-out rows: latents (across) and the representations matched to them (down). Thin lines on the "
            "diagonal and nothing but clouds beside it mean recovery latent by latent; where all panels are clouds, "
            "what is left may still be a linear map.",
        ),
        across=("true", "true {}"),
        down=("recovered", "recovered {}"),
        heat=(
            "correlation with the latents",
            "Absolute correlation of coordinates (rows) with latents (columns): of observations that are vectors, of "
            "the representations in the order of their latents, and of these after a linear map.",
        ),
        panels={"observed": "observed", "matched": "recovered", "mapped": "and mapped linearly"},
        rows="coordinate {}",
        columns="{}" if names else "latent {}",
        names=names,
    )
