"""Theorem 3 on pictures of a face (Nelson et al. 2026): pose and light from pixels, by an autoencoder and ICA.

698 renderings of one face, with three continuous factors: the light, and pan and tilt of the head. The paper has no
such table; this is its recipe on real images whose factors are known and few. Both maps to as few numbers as there are
factors, principal components and an autoencoder, see all pictures and no factor; ICA of what they give is then compared
with the factors, on rows that the matching has not seen. Seeds draw the folds, the network's start and its batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, exceeds
from nearid.lab.framework.experiment import NELSON, Axes, CellData, Column, Curve, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.images import PLACES, as_planes, components, encoded, explained, traversals
from nearid.lab.papers.common.pictures import grid_picture
from nearid.lab.papers.common.recovery import first_views
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.autoencoding import decoded, reconstructed
from nearid.moments import Floats, Moments
from nearid.show.figures import Figure, HeatMap, Pictures, scatter_matrix

if TYPE_CHECKING:
    from collections.abc import Callable


MODELS = ("pca", "ae")
# Pictures in the figure of reconstructions, and rows in the scatter plots.
PICTURES, SHOWN = 8, 300
# MCC that ICA must add to be a clear gain.
CLEARLY = 0.05


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on faces; rows of the table set model and latents."""

    model: str = parameter("ae", "ae, or pca: principal components", choices=MODELS)
    latents: int = parameter(3, "latents, by default as many as factors", least=1)
    side: int = parameter(32, "height and width of the pictures", multiple=16, smoke=16)
    decay: float = parameter(0.1, "weight decay", least=0)
    steps: int = parameter(3000, "steps of AdamW", least=1, smoke=6, paper=20_000)
    batch: int = parameter(64, "pictures in each step", least=2, smoke=16)
    rate: float = parameter(1e-3, "learning rate, which falls to 0", positive=True)
    whiten: bool = parameter(True, "whether ICA whitens")
    looks: int = parameter(10, "times that reconstruction is looked at during training", least=1, smoke=2)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Map all pictures to latents, and compare these and their ICA with the factors."""
    from nearid.lab.data.load import load
    from nearid.measures.mcc import mcc
    from nearid.measures.r2 import r2

    faces = load("faces", size=p.side)
    images = as_planes(faces.images.read())
    curves: dict[str, Curve] = {}
    if p.model == "pca":
        z, decode = _principal(images, p.latents)
        reconstructions = decode(z)
    else:
        z, decode, reconstructions, curves = _autoencoded(p, images, seed, folder)
    turned = components(z, whiten=p.whiten)
    raw, after = (mcc(u, faces.columns, random_state=seed) for u in (z, turned.values))
    scores = {
        "r2": r2(z, faces.columns, ridge=0, random_state=seed).value,
        "mcc": raw.value,
        "mcc_ica": after.value,
        "spearman_ica": mcc(turned.values, faces.columns, method="spearman", random_state=seed).value,
        **{name: float(value) for name, value in zip(after.factors, after.per_factor, strict=True)},
        "explained": explained(images, reconstructions),
    }
    matched = after.matched[after.matched >= 0]
    views: dict[str, Any] = {
        "factors": list(after.factors),
        "raw": np.abs(raw.matrix).round(4).tolist(),
        "ica": np.abs(after.matrix).round(4).tolist(),
        "true": np.column_stack(list(faces.columns.values()))[:SHOWN].round(4).tolist(),
        "recovered": turned.values[:SHOWN, matched].round(4).tolist(),
        "matched": matched.tolist(),
        "reconstructions": grid_picture(np.stack([images[:PICTURES], reconstructions[:PICTURES]])),
        "traversals": grid_picture(traversals(decode, turned, matched, z[0])),
    }
    return {"scores": scores, "curves": curves, "views": views}


def _principal(images: Floats, latents: int) -> tuple[Floats, Callable[[Floats], np.ndarray]]:
    """Leading principal components in units of their deviations, and the way back."""
    from nearid.ica.whiten import fit_whitener

    rows = images.reshape(len(images), -1).astype(np.float64)
    whitener = fit_whitener(Moments.of(rows), components=latents, stored=images.dtype)

    def decode(z: Floats) -> np.ndarray:
        return np.asarray(z @ whitener.backward.T + whitener.mean).reshape(-1, *images.shape[1:])

    return np.asarray((rows - whitener.mean) @ whitener.forward.T), decode


def _autoencoded(
    p: Parameters, images: Floats, seed: int, folder: Path
) -> tuple[Floats, Callable[[Floats], np.ndarray], np.ndarray, dict[str, Curve]]:
    """Latents of an autoencoder, the way back, reconstructions, and curves of its training."""
    from nearid.lab.models.autoencoders.autoencoder import Autoencoder
    from nearid.lab.models.autoencoders.convolutional import Light
    from nearid.lab.models.trainer import seeded

    start, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(2))
    with seeded(start):
        model = Autoencoder(p.latents, Light(images.shape[1], p.side))

    def batches(rng: np.random.Generator) -> tuple[Floats]:
        return (images[rng.integers(0, len(images), p.batch)],)

    def look(_: object) -> dict[str, float]:
        return {"explained": explained(images, reconstructed(model, images))}

    curves = trained(model, batches, p, order, folder, score=look, optimiser="adamw", weight_decay=p.decay)
    return encoded(model.encode, images), lambda z: decoded(model, z), reconstructed(model, images), curves


def rows(p: Parameters) -> list[Row]:
    """Both maps to as many latents as there are factors, and to twice as many."""
    return [
        Row(f"{model}{suffix}", f"{title}, {k} latents", {"model": model, "latents": k})
        for k, suffix in ((p.latents, ""), (2 * p.latents, "-wide"))
        for model, title in (("pca", "principal components"), ("ae", "autoencoder"))
    ]


def figures(result: ExperimentResult) -> list[Figure]:
    """The first seed of each row: factors against components, correlations, reconstructions and traversals."""
    drawn: list[Figure] = []
    for row, v in first_views(result):
        names = [f"component {k + 1}" for k in v["matched"]]
        drawn += [
            scatter_matrix(
                f"{row.title}: factors against components",
                "True factors (across) and the components after ICA that are matched to them (down).",
                dict(zip(v["factors"], zip(*v["true"], strict=True), strict=True)),
                dict(zip(names, zip(*v["recovered"], strict=True), strict=True)),
            ),
            HeatMap(
                f"{row.title}: correlation with the factors",
                "Absolute correlation of latents (rows) with factors (columns), held out.",
                {"latents as they are": v["raw"], "after ICA": v["ica"]},
                [f"latent {k + 1}" for k in range(len(v["raw"]))],
                v["factors"],
            ),
            Pictures(
                f"{row.title}: reconstructions",
                "Pictures, and what is left of them.",
                v["reconstructions"],
                ["picture", "found"],
                [""] * PICTURES,
            ),
            Pictures(
                f"{row.title}: along components",
                "Each row follows the component that is matched to a factor; the others stay as in the first picture.",
                v["traversals"],
                names,
                [f"{x:+.1f} sd" for x in PLACES],
            ),
        ]
    return drawn


FACES = Experiment(
    name="faces",
    paper=NELSON,
    shows="Theorem 3 on faces (not in the paper)",
    section=sections.FACES,
    about="An autoencoder and ICA, told nothing but pictures of a face, are asked for its pose and light.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 10 minutes on 2 idle cores (estimated)", 10), paper=("an hour on 2 cores (estimated)", 10)
    ),
    columns=(
        Column("r2", "R2 of a linear map", most=1),
        Column("mcc", "MCC", least=-1, most=1),
        Column("mcc_ica", "MCC + ICA", least=-1, most=1),
        Column("spearman_ica", "MCC + ICA, Spearman", least=-1, most=1),
        Column("light", "light + ICA", least=-1, most=1),
        Column("pan", "pan + ICA", least=-1, most=1),
        Column("tilt", "tilt + ICA", least=-1, most=1),
        Column("explained", "pixels explained", most=1),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            "The autoencoder's latents tell pose and light better than principal components do (R2).",
            exceeds(("ae", "r2"), ("pca", "r2")),
            added=True,
        ),
        Claim(
            f"ICA brings the autoencoder's latents nearer to single factors (MCC by {CLEARLY:g}).",
            all_of(*(exceeds((row, "mcc_ica"), (row, "mcc"), by=CLEARLY) for row in ("ae", "ae-wide"))),
            added=True,
        ),
    ),
    curves=(
        Axes("explained", "Reconstruction during training", "steps", "share of the pixels' variance explained"),
        Axes("loss", "Loss during training", "steps", "loss of the objective"),
    ),
    figures=figures,
    datasets=lambda p: ("faces",),
)
