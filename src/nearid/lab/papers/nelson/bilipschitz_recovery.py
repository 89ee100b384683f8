"""Autoencoder and ICA on processes of known bi-Lipschitz constant: error against L (Nelson et al. 2026, Theorem 3).

Independent sources of unit variance are observed through orthogonal layers that widen, LeakyReLU between them: with
leak 1 an isometry, with smaller leaks the less. The decoder has the same form and leak as the process, and more units,
so that the truth is among the models and both are bi-Lipschitz; the encoder is a free network, as its form is no part
of the theorem. Representations are compared with the sources up to a rigid motion and, after whitening and ICA, up to a
signed permutation (one scale is free in both, as latents have no unit; so constants are those under the best scale).

The paper proves this and shows no table or figure of it: rows, sizes and thresholds are choices made here.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearid.lab.framework.cells import Finished
from nearid.lab.framework.claims import Claim, all_of, at_least, at_most, exceeds, for_parameters
from nearid.lab.framework.experiment import NELSON, Axes, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.recovery import first_views
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.near_isometry import ORDERED, error_plot, ordered
from nearid.lab.processes.mixing import OrthogonalMixing, draw_orthogonal
from nearid.moments import Floats
from nearid.show.figures import Figure, HeatMap

if TYPE_CHECKING:
    from torch import nn


SOURCES = ("uniform", "laplace", "normal")
# Widths of process and decoder, from latents to observations, as multiples of the number of sources.
PROCESS, DECODER = (1, 2, 4, 8), (1, 4, 8, 8)
# What counts as recovery source by source (MCC), how much of it ICA brings at least where the process is an isometry,
# and what normal sources may reach at most.
RECOVERED, BROUGHT, CONTROL = 0.95, 0.1, 0.9
# Rows of the sweep begin with this.
LEAK = "leak"
MEAN = ("lipschitz", "bi-Lipschitz constant, mean over samples, best scale")
MAXIMUM = ("lipschitz_max", "bi-Lipschitz constant, maximum over samples, best scale")
RIGID = ("rigid", "rigid error / diameter, held out")
MATCHED = ("matched", "error of a signed permutation after ICA / diameter, held out")


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the recovery experiment."""

    leaks: tuple[float, ...] = parameter(
        (0.2, 0.3, 0.45, 0.6, 0.8, 1.0), "leaks that are tried", positive=True, most=1, smoke=(0.3, 0.6, 1.0)
    )
    leak: float = parameter(1.0, "leak of process and decoder; rows set it", positive=True, most=1)
    sources: str = parameter("uniform", "law of the sources: uniform, laplace or normal; rows set it", choices=SOURCES)
    n: int = parameter(4, "sources, as many as latents", least=2, smoke=2, paper=10)
    width: int = parameter(64, "units of each of the three hidden layers of the encoder", least=1, smoke=16, paper=256)
    steps: int = parameter(4000, "steps of Adam", least=1, smoke=20, paper=50_000)
    batch: int = parameter(256, "fresh rows in each step", least=1, smoke=64, paper=512)
    rate: float = parameter(3e-3, "learning rate, which falls to 0", positive=True, smoke=1e-2)
    held_out: int = parameter(4000, "fresh rows for the scores, by five folds; as many for ICA", least=50, smoke=300)
    points: int = parameter(1000, "rows at which the constants are measured", least=2, smoke=100)
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one")


@dataclass(frozen=True)
class Networks:
    """A free encoder, and a decoder of orthogonal layers."""

    p: Parameters

    def encoder(self, outputs: int) -> nn.Module:
        from nearid.lab.models.encoders import mlp

        return mlp(PROCESS[-1] * self.p.n, outputs, (self.p.width,) * 3, residual=True, activation="gelu")

    def decoder(self, inputs: int) -> nn.Module:
        from nearid.lab.models.autoencoders.orthogonal import Orthogonal

        *hidden, outputs = (k * self.p.n for k in DECODER[1:])
        return Orthogonal(outputs, tuple(hidden[::-1]), self.p.leak).decoder(inputs)


def draw(p: Parameters, size: int, rng: np.random.Generator) -> Floats:
    """Independent sources of mean 0 and variance 1, of shape (size, n)."""
    shape = (size, p.n)
    if p.sources == "uniform":
        return rng.uniform(-np.sqrt(3), np.sqrt(3), shape)
    return rng.laplace(0, np.sqrt(0.5), shape) if p.sources == "laplace" else rng.standard_normal(shape)


def process(p: Parameters, rng: np.random.Generator) -> OrthogonalMixing:
    """The mixing of the parameters; leaks share the weights of a seed."""
    return draw_orthogonal([k * p.n for k in PROCESS], rng, slope=p.leak)


def constants(mixing: OrthogonalMixing, z: Floats) -> tuple[float, float]:
    """Mean and maximum of the mixing's local bi-Lipschitz constants under the best global scale."""
    from nearid.geometry.constants import Constants

    stretches = np.linalg.svd(mixing.jacobian(z), compute_uv=False)
    local = Constants.of(stretches[:, -1], stretches[:, 0])
    return local.scaled.mean.value, local.scale_free


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Train an autoencoder on a process, and compare its latents and their independent components with the sources.

    Of the constants of process and decoder the larger counts, as in the theorem's proof.
    """
    import torch

    from nearid.lab.models.autoencoders.autoencoder import Autoencoder
    from nearid.lab.models.trainer import seeded
    from nearid.measures.mcc import mcc
    from nearid.questions.compare.run import compare
    from nearid.questions.lipschitz.run import lipschitz

    weights, held, start, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(4))
    mixing = process(p, np.random.default_rng(weights))
    with seeded(start):
        model = Autoencoder(p.n, Networks(p), reconstruction="squared")

    def batches(rng: np.random.Generator) -> tuple[Floats]:
        return (mixing(draw(p, p.batch, rng)).astype(np.float32),)

    curves = trained(model, batches, p, order, folder, looks=40, warmup=p.steps // 20)
    model.to("cpu")
    u = draw(p, 2 * p.held_out, np.random.default_rng(held))
    x = torch.as_tensor(mixing(u).astype(np.float32))
    with torch.no_grad():
        latents = model.encode(x)
        left = float(model.error(x, latents) / x.var(dim=0, correction=0).mean())
    decoder = lipschitz(model.decode, latents, points=p.points, random_state=seed).exact
    assert decoder is not None
    z = latents.double().numpy()
    # Components are fitted to rows that no score sees.
    components = unmix(z[p.held_out :], z[: p.held_out], seed)
    u, z = u[: p.held_out], z[: p.held_out]
    # Plain least squares of rows that were drawn one by one.
    rigid = compare(z, u, groups=("rigid", "linear"), ridge=0, blocks="none", permutations=1, random_state=seed)
    matched = compare(components, u, groups=("permutation",), blocks="none", permutations=1, random_state=seed)
    mean, maximum = constants(mixing, u[: p.points])
    before, after = mcc(z, u), mcc(components, u)
    return {
        "scores": {
            "leak": p.leak,
            "process": mean,
            "decoder": decoder.scaled.mean.value,
            "lipschitz": max(mean, decoder.scaled.mean.value),
            "lipschitz_max": max(maximum, decoder.scale_free),
            "rigid": rigid.groups["rigid"].epsilon.value,
            "linear": rigid.groups["linear"].epsilon.value,
            "matched": matched.groups["permutation"].epsilon.value,
            "mcc_before": before.value,
            "mcc": after.value,
            "unexplained": 100 * left,
        },
        "curves": curves,
        "views": {"before": before.matrix.round(4).tolist(), "after": after.matrix.round(4).tolist()},
    }


def unmix(rows: Floats, others: Floats, seed: int) -> Floats:
    """Independent components of some rows, fitted to other rows."""
    from nearid.ica.estimators import IdentifiabilityWarning
    from nearid.questions.unmix.result import ICA

    with warnings.catch_warnings():
        # Of normal sources, in the control: that they cannot be separated is what it shows.
        warnings.simplefilter("ignore", IdentifiabilityWarning)
        return ICA(random_state=seed).fit(rows).transform(others)


def rows(p: Parameters) -> list[Row]:
    """Every leak with the sources of the run; at the largest leak the other sources, too."""
    made = [Row(f"{LEAK}-{leak:g}", f"leak {leak:g}", {"leak": leak}) for leak in p.leaks]
    largest = max(p.leaks)
    for law, what in (("laplace", "Laplace sources"), ("normal", "normal sources (control)")):
        made.append(Row(law, f"leak {largest:g}, {what}", {"leak": largest, "sources": law}))
    return made


def swept(result: ExperimentResult) -> list[Finished]:
    """Cells of the sweep over leaks."""
    return [f for row in result.rows if row.key.startswith(f"{LEAK}-") for f in result.of_row(row.key)]


def _nearest(p: Parameters) -> str:
    return f"{LEAK}-{max(p.leaks):g}"


def figures(result: ExperimentResult) -> list[Figure]:
    """Errors against constants with the fitted curve, and correlations with the sources before and after ICA."""
    cells = swept(result)
    if not cells:
        return []
    groups = {row.title: result.of_row(row.key) for row in result.rows if row.key.startswith(f"{LEAK}-")}
    caption = "A point for each process and autoencoder; the larger constant of both. The curve is fitted."
    errors: list[Figure] = [
        error_plot(f"{error[1]} against the {constant[1]}", caption, groups, cells, constant, error)
        for error in (RIGID, MATCHED)
        for constant in (MEAN, MAXIMUM)
    ]
    return errors + [
        HeatMap(
            f"{row.title}: correlation with the sources",
            "Absolute correlation of latents (rows) with sources (columns), before and after whitening and ICA: one "
            "bright entry in each row and column means recovery source by source.",
            {"latents": v["before"], "independent components": v["after"]},
            [f"latent {k + 1}" for k in range(len(v["before"]))],
            [f"source {k + 1}" for k in range(len(v["before"]))],
        )
        for row, v in first_views(result)
    ]


BILIPSCHITZ_RECOVERY = Experiment(
    name="bilipschitz-recovery",
    paper=NELSON,
    shows="Theorem 3",
    section=sections.BILIPSCHITZ_RECOVERY,
    about="An autoencoder with a bi-Lipschitz decoder and ICA recover independent sources, the more nearly the nearer "
    "the process is to an isometry.",
    defaults=Parameters(),
    presets=presets(cpu=("about 5 minutes on 2 idle cores", 5), paper=("hours on 2 cores (estimated)", 10)),
    columns=(
        Column("process", "L of the process, mean", least=1),
        Column("decoder", "L of the decoder, mean", least=1),
        Column("rigid", "rigid error", 4, least=0),
        Column("linear", "linear error", 4, least=0),
        Column("matched", "error after ICA", 4, least=0),
        Column("mcc_before", "MCC of the latents", least=-1, most=1),
        Column("mcc", "MCC after ICA", least=-1, most=1),
        Column("unexplained", "not reconstructed (% of variance)", least=0),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"Where the process is an isometry, ICA recovers the sources (MCC of at least {RECOVERED:g}).",
            for_parameters(lambda p: all_of(*(at_least(row, "mcc", RECOVERED) for row in (_nearest(p), "laplace")))),
        ),
        Claim(
            f"There it is ICA that does so (MCC higher by at least {BROUGHT:g} than of the latents).",
            for_parameters(lambda p: exceeds((_nearest(p), "mcc"), (_nearest(p), "mcc_before"), by=BROUGHT)),
        ),
        Claim(
            f"Errors grow with √(L² - 1): rank correlation of at least {ORDERED:g}.",
            all_of(
                ordered(swept, LEAK, "lipschitz", "rigid", "√(L² - 1) and rigid error"),
                ordered(swept, LEAK, "lipschitz", "matched", "√(L² - 1) and error after ICA"),
            ),
        ),
        Claim(
            f"Normal sources are not recovered one by one (MCC of at most {CONTROL:g}).",
            at_most("normal", "mcc", CONTROL),
            added=True,
        ),
    ),
    curves=(Axes("loss", "Loss during training", "steps", "mean squared error of a coordinate"),),
    figures=figures,
)
