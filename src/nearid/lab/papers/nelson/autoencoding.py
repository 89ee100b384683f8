"""A cell of `disentanglement`: an autoencoder is trained on images, and its latents are judged with ICA and without.

The protocol is that of Hsu et al. (2023): twice as many latents as factors, AdamW, InfoMEC on images drawn anew, of
which training may have seen some, as there are finitely many. ICA does not whiten, as in Nelson et al. (2026): idle
latents would be blown up. It is nearid's own, whose contrast allows for latents of unequal variance, where the paper
takes FastICA; it is fitted, without factors, on the images that are judged. Every coordinate of the gradients is cut to
1, as in the protocol.

The protocol judges the step with the best mean InfoM on the way. So InfoM, with ICA and without, is measured at some
steps on the first of the judged images (the curves); which step counts is decided by the table, over seeds. The scores
of the table itself are those of the last step, on all judged images.

The decoder's Jacobian tells idle latents (A.7.3 of Nelson et al. 2026): its singular values, mean over images, fall
apart into those of active directions and those near 0 at the widest gap between neighbours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.experiment import CellData
from nearid.lab.framework.settings import SCHEDULES, Checked, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.images import (
    PLACES,
    ImageSource,
    Judge,
    components,
    encoded,
    explained,
    image_source,
    source_names,
    traversals,
)
from nearid.lab.papers.common.pictures import grid_picture
from nearid.moments import Floats

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.autoencoders.autoencoder import Autoencoder, Networks

MODELS = ("ae", "beta-vae", "beta-tcvae", "bioae", "vq-vae", "qlae")
DISCRETE = ("vq-vae", "qlae")
NETWORKS = ("light", "protocol")
# Images in the figure of reconstructions.
SHOWN = 8
# Images on which reconstruction is followed during training.
WATCHED = 512
# Images at which the decoder's Jacobian is taken.
POINTS = 32
# Size of the steps that stand for its derivatives, in deviations of the latent that varies most.
STEP = 0.05


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the disentanglement experiment; rows of the table set data, model, strength and decay."""

    data: str = parameter(
        "sprites,solids",
        "images, by comma: sprites, solids, or data sets that are here",
        smoke="solids",
        paper="shapes3d,mpi3d-complex,falcor3d,isaac3d",
    )
    model: str = parameter("ae", f"one of {', '.join(MODELS)}", choices=MODELS)
    strength: float = parameter(0.0, "beta of beta-VAE and beta-TCVAE, or the weight of BioAE's activity")
    decay: float = parameter(0.1, "weight decay")
    latents: int = parameter(2, "latents for each factor", least=1)
    side: int = parameter(32, "height and width of the images", multiple=16, paper=64)
    networks: str = parameter(
        "light", "light (for a CPU) or protocol (12 convolutions)", choices=NETWORKS, paper="protocol"
    )
    steps: int = parameter(3000, "steps of AdamW", least=1, smoke=4, paper=200_000)
    batch: int = parameter(64, "images in each step", least=2, smoke=16, paper=128)
    rate: float = parameter(1e-3, "learning rate", positive=True)
    schedule: str = parameter("cosine", "course of the learning rate", choices=SCHEDULES, paper="constant")
    judged: int = parameter(5000, "images drawn anew for the scores", least=100, smoke=100, paper=10_000)
    dci_rows: int = parameter(2000, "of which for DCI; 0 leaves it out", least=0, smoke=40, paper=10_000)
    admitted: float = parameter(
        0.9, "share of the pixels' variance that a selected setting explains", least=0, most=1, smoke=0.0
    )
    whiten: bool = parameter(False, "whether ICA whitens; the protocol does not")
    clip: float = parameter(1.0, "size that every coordinate of the gradients is cut to", positive=True)
    looks: int = parameter(10, "times that models are looked at during training", least=1, smoke=2)
    looked: int = parameter(1000, "images for InfoM at these times", least=50, smoke=100)
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one", paper="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        source_names(self.data)

    @property
    def sources(self) -> tuple[str, ...]:
        """Names of the images."""
        return source_names(self.data)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Train one model on one source of images, and judge its latents as they are and after ICA.

    All models of a seed see the same images in training and are judged on the same.
    """
    from nearid.lab.models.trainer import seeded

    judged, start, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
    source = image_source(p.data, p.side)
    sample = source.sample(p.judged, np.random.default_rng(judged))
    with seeded(start):
        model = autoencoder(p, source)

    some = Judge(source, sample.first(p.looked), 0)

    def look(_: nn.Module) -> dict[str, float]:
        watched = sample.images[:WATCHED]
        return {"explained": explained(watched, reconstructed(model, watched)), **modularity(p, model, some)}

    def batches(rng: np.random.Generator) -> tuple[Floats]:
        return (source.sample(p.batch, rng).images,)

    options: dict[str, Any] = {"optimiser": "adamw", "weight_decay": p.decay, "clip_each": p.clip}
    curves = trained(model, batches, p, order, folder, score=look, **options)
    scores, views = judged_model(p, model, Judge(source, sample, p.dci_rows))
    return {"scores": scores, "curves": curves, "views": views}


def autoencoder(p: Parameters, source: ImageSource) -> Autoencoder:
    """A model that is not trained yet."""
    from nearid.lab.models.autoencoders.autoencoder import Autoencoder, BetaTCVAE, BetaVAE, BioAE
    from nearid.lab.models.autoencoders.convolutional import Convolutional, Light
    from nearid.lab.models.autoencoders.quantised import QLAE, VQVAE

    networks = (Light if p.networks == "light" else Convolutional)(source.channels, source.side)
    latents = p.latents * len(source.names)
    if p.model == "beta-vae":
        return BetaVAE(latents, networks, beta=p.strength)
    if p.model == "beta-tcvae":
        return BetaTCVAE(latents, networks, beta=p.strength)
    if p.model == "bioae":
        return BioAE(latents, networks, activity=p.strength)
    plain: dict[str, Callable[[int, Networks], Autoencoder]] = {"ae": Autoencoder, "vq-vae": VQVAE, "qlae": QLAE}
    return plain[p.model](latents, networks)


def modularity(p: Parameters, model: Autoencoder, judge: Judge) -> dict[str, float]:
    """InfoM during training, without ICA and with it; 0 where it is not defined, and without ICA alone for codes."""
    images, discrete = judge.sample.images, p.model in DISCRETE
    z = _codes(model, images)
    raw, _ = judge.information(_codes(model, images, discrete=True) if discrete else z, discrete=discrete)
    found = {"look_infom": raw["infom"] or 0.0}
    if p.model == "vq-vae":
        return found
    after = judge.information(components(z, whiten=p.whiten).values)[0]["infom"] if np.ptp(z, axis=0).any() else None
    return found | {"look_infom_ica": after or 0.0}


def spectrum(model: Autoencoder, z: Floats) -> dict[str, float]:
    """Of the decoder's Jacobian: how many directions are active, the gap below them, and how unequal they are.

    Derivatives are differences, at a few images.
    """
    at = z[:POINTS]
    step = STEP * float(z.std(axis=0).max())
    moves = step * np.eye(z.shape[1])
    columns = [(decoded(model, at + move) - decoded(model, at - move)).reshape(len(at), -1) for move in moves]
    jacobians = np.stack(columns, axis=2) / (2 * step)
    values = np.linalg.svd(jacobians, compute_uv=False).mean(axis=0).clip(1e-12)
    active = int(np.argmax(values[:-1] / values[1:])) + 1
    condition = float(values[0] / values[active - 1])
    return {
        "directions": float(active),
        "gap": float(values[active - 1] / values[active]),
        "condition": condition,
        # Under the best scale, within the active directions.
        "lipschitz": float(np.sqrt(condition)),
    }


def judged_model(p: Parameters, model: Autoencoder, judge: Judge) -> tuple[dict[str, Any], dict[str, Any]]:
    """Scores and views of a trained model.

    Discrete latents are judged by their codes. Where a latent is a vector of a codebook, or none varies, there is
    nothing for ICA, MCC and DCI to work on, and these are left out.
    """
    images = judge.sample.images
    z = _codes(model, images)
    discrete = p.model in DISCRETE
    raw, matrix = judge.information(_codes(model, images, discrete=True) if discrete else z, discrete=discrete)
    scores: dict[str, Any] = {**raw, "explained": explained(images, reconstructed(model, images))}
    shown = images[:SHOWN]
    views: dict[str, Any] = {
        "factors": list(judge.source.names),
        "raw": matrix.clip(0, 1).round(4).tolist(),
        "shown": len(shown),
        "reconstructions": grid_picture(np.stack([shown, reconstructed(model, shown)])),
    }
    if p.model == "vq-vae" or not np.ptp(z, axis=0).any():
        return scores, views
    scores |= judge.recovery(z) | spectrum(model, z)
    turned = components(z, whiten=p.whiten)
    after, unmixed = judge.information(turned.values)
    scores |= {f"{key}_ica": value for key, value in (after | judge.recovery(turned.values)).items()}
    # The components that vary most come first in the figures.
    order = np.argsort(-turned.values.std(axis=0))[: len(judge.source.names)]
    # Components that do not exist, where latents depend on each other, inform of nothing.
    unmixed = np.pad(unmixed, ((0, len(matrix) - len(unmixed)), (0, 0)))
    views |= {
        "ica": unmixed.clip(0, 1).round(4).tolist(),
        "traversed": order.tolist(),
        "reach": list(PLACES),
        "traversals": grid_picture(traversals(lambda at: decoded(model, at), turned, order, z[0])),
    }
    return scores, views


def _codes(model: Autoencoder, images: Floats, *, discrete: bool = False) -> np.ndarray:
    from nearid.lab.models.autoencoders.quantised import QLAE, VQVAE

    encode = model.codes if discrete and isinstance(model, QLAE | VQVAE) else model.encode
    return encoded(encode, images, next(model.parameters()).device)


def reconstructed(model: Autoencoder, images: Floats) -> np.ndarray:
    """What a model makes of images."""
    return encoded(lambda x: model.decode(model.encode(x)), images, next(model.parameters()).device)


def decoded(model: Autoencoder, z: Floats) -> np.ndarray:
    """Images that latents stand for."""
    return encoded(model.decode, z.astype(np.float32), next(model.parameters()).device)
