"""Pairs of MNIST autoencoders whose leak controls how nearly they agree (Nelson et al. 2026, Fig. 2 and A.3-A.6).

Encoder and decoder are three orthogonal layers each, with LeakyReLU(alpha) between them: at alpha = 1 the decoder is a
linear isometry, and the smaller alpha is, the less it preserves distances. Two autoencoders of the same images from
different starts are compared up to a rigid motion (Theorem 1 allows no scale) on test images.

The widths, the number of latents, the values of alpha, the learning rate, the size of a batch and the leak that is the
reference of the filter are not legible in the text of the paper that was at hand; those here are choices. Its gradients
are clipped to norm 1, which a mean squared error per pixel does not reach: nothing is clipped here.

At leak 1 the decoder is linear and orthogonal, so that its constant is 1 whatever is trained.

Six latents, as a linear autoencoder finds the leading eigenvectors of the images' second moments, and tells the last of
them from the next only after long training where their eigenvalues are close. With eight latents these are 1.2% apart:
pairs of runs then end in different subspaces, with rigid errors up to .08 at leak 1. With six they are 16% apart, and
11% or more for each of the digits 0 to 4. The number was chosen after a run with eight.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.framework.experiment import Axes, CellData, Column, Curve, Experiment, Preset, Row
from nearid.lab.framework.papers import NELSON
from nearid.lab.framework.settings import check, parameter
from nearid.lab.framework.training import trained
from nearid.lab.papers.nelson.mnist_agreement import CLAIMS, GROUPS, ONE, figures
from nearid.moments import Floats


@dataclass(frozen=True)
class Parameters:
    """Parameters of the experiment with MNIST autoencoders."""

    leaks: tuple[float, ...] = parameter((0.0, 0.2, 0.4, 0.6, 0.8, 1.0), "leaks alpha that are tried")
    leak: float = parameter(1.0, "leak alpha of a cell; rows set it")
    one_digit: bool = parameter(False, "whether a cell sees one digit alone, the last of its seed; rows set it")
    latents: int = parameter(6, "coordinates of a representation")
    widths: tuple[int, ...] = parameter((128, 32), "hidden widths of the encoder, which the decoder mirrors")
    steps: int = parameter(1500, "steps of Adam, at most")
    batch: int = parameter(128, "images in each step")
    rate: float = parameter(3e-3, "learning rate")
    schedule: str = parameter("cosine", "of the learning rate: cosine or constant")
    record: int = parameter(50, "steps between records of the loss")
    patience: int = parameter(0, "records without a gain after which training ends; 0 never ends it early")
    held_out: int = parameter(10_000, "test images on which the two runs are compared, at most; by five folds")
    points: int = parameter(1000, "test images at which the constants are measured")
    directions: int = parameter(10, "random directions at each of them")
    reference: float = parameter(1.0, "leak whose reconstruction errors decide which runs are dropped")
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one")

    def __post_init__(self) -> None:
        least = {"latents": 2, "steps": 1, "batch": 1, "record": 1, "patience": 0, "held_out": 50, "points": 2}
        check(self, least=least, positive=("rate",), choices={"schedule": ("cosine", "constant")})
        for leak in (*self.leaks, self.leak):
            if not 0 <= leak <= 1:
                raise InputError(f"A leak must be from 0 (ReLU) to 1 (linear), not {leak}.")
        if self.reference not in self.leaks or len(set(self.leaks)) < len(self.leaks):
            raise InputError(
                f"The leaks must be different and the reference must be one of them, not {self.reference} of "
                f"{list(self.leaks)}."
            )


@dataclass(frozen=True)
class Run:
    """A trained autoencoder: test representations, its constants, its error and how training went."""

    latents: Floats
    mean: float
    maximum: float
    exact: float
    quantiles: list[float]
    error: float
    curves: dict[str, Curve]


def images(split: str, digit: int | None) -> np.ndarray:
    """Images of MNIST as rows of bytes; of one digit, or of all."""
    from nearid.lab.data.load import load

    found = load("mnist", split=split)
    chosen = np.arange(len(found)) if digit is None else np.flatnonzero(found.codes[:, 0] == digit)
    if not len(chosen):
        raise InputError(f"There is no digit {digit} among the {split} images of MNIST.")
    return found.images.take(chosen).reshape(len(chosen), -1)


def scaled(rows: np.ndarray) -> np.ndarray:
    """Bytes as numbers from 0 to 1."""
    return np.asarray(rows / np.float32(255))


def run(p: Parameters, seen: np.ndarray, held: np.ndarray, seed: int, folder: Path) -> Run:
    """Train an autoencoder from a seed and look at test images through it."""
    import torch

    from nearid.lab.models.autoencoders.autoencoder import Autoencoder
    from nearid.lab.models.autoencoders.orthogonal import Orthogonal
    from nearid.lab.models.trainer import seeded
    from nearid.questions.lipschitz.run import bilipschitz

    with seeded(seed):
        model = Autoencoder(p.latents, Orthogonal(seen.shape[1], p.widths, p.leak), reconstruction="squared")
    looks = trained(
        model,
        lambda rng: (scaled(seen[rng.integers(0, len(seen), p.batch)]),),
        p,
        seed,
        folder,
        looks=max(1, p.steps // p.record),
        schedule=p.schedule,
        device=p.device,
        patience=p.patience or None,
    )
    model.to("cpu")
    with torch.no_grad():
        x = torch.as_tensor(scaled(held))
        z = model.encode(x)
        error = float(model.error(x, z))
    constants = bilipschitz(model.decode, z, directions=p.directions, points=p.points, random_state=seed)
    assert constants.exact is not None
    local = constants.sampled.local
    return Run(
        z.double().numpy(),
        local.mean,
        local.maximum.value,
        constants.exact.local.mean,
        [q.value for q in local.quantiles],
        error,
        looks,
    )


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Two runs from different starts and batches, compared on the same test images.

    Of the constants of both decoders the larger counts, as the theorem asks for a bound on both.
    """
    from nearid.questions.compare.run import compare

    digit = seed % 10 if p.one_digit else None
    chosen, *starts = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
    seen, held = images("train", digit), images("test", digit)
    if len(held) > p.held_out:
        held = held[np.random.default_rng(chosen).choice(len(held), p.held_out, replace=False)]
    first, second = (
        run(p, seen, held, start, folder / name) for name, start in zip(("first", "second"), starts, strict=True)
    )
    found = compare(
        first.latents, second.latents, groups=("rigid", "linear"), scale=False, permutations=1, random_state=seed
    )
    rigid = found.groups["rigid"]
    return {
        "scores": {
            "leak": p.leak,
            "lipschitz": max(first.mean, second.mean),
            "lipschitz_max": max(first.maximum, second.maximum),
            "lipschitz_exact": max(first.exact, second.exact),
            "rigid": rigid.epsilon.mean,
            "linear": found.groups["linear"].epsilon.mean,
            "chance": rigid.chance,
            "reconstruction": max(first.error, second.error),
        },
        "curves": first.curves,
        "views": {"errors": [first.error, second.error], "quantiles": first.quantiles},
    }


def rows(p: Parameters) -> list[Row]:
    """Every leak with all digits, then with one digit."""
    made = []
    for group, who in GROUPS.items():
        for leak in p.leaks:
            changes = {"leak": leak, "one_digit": group == ONE}
            made.append(Row(f"{group}-{leak:g}", f"{who}, leak {leak:g}", changes))
    return made


MNIST_AUTOENCODERS = Experiment(
    name="mnist-autoencoders",
    paper=NELSON,
    shows="Fig. 2 and A.3-A.6",
    about="Two autoencoders of MNIST agree the better up to a rigid motion, the nearer their decoders are to an "
    "isometry, which the leak of their activations controls.",
    defaults=Parameters(),
    presets={
        "smoke": Preset(
            "seconds",
            2,
            {
                "leaks": (0.0, 0.5, 1.0),
                "latents": 3,
                "widths": (24, 12),
                "steps": 10,
                "batch": 32,
                "record": 5,
                "held_out": 300,
                "points": 100,
            },
        ),
        "cpu": Preset("about 16 minutes on 2 idle cores", 5),
        "paper": Preset(
            "days on a CPU (estimated)",
            10,
            {"steps": 470_000, "batch": 256, "rate": 1e-3, "schedule": "constant", "record": 235, "patience": 50},
        ),
    },
    columns=(
        Column("lipschitz", "L, mean over samples", least=1),
        Column("lipschitz_max", "L, maximum", least=1),
        Column("lipschitz_exact", "L, all directions, mean", least=1),
        Column("rigid", "rigid error", 4, least=0),
        Column("linear", "linear error", 4, least=0),
        Column("chance", "rigid error by chance", least=0),
        Column("reconstruction", "worse reconstruction error", 4, least=0),
    ),
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    curves=(Axes("loss", "Loss during training", "steps", "mean squared error of a pixel"),),
    figures=figures,
    datasets=lambda p: ("mnist",),
)
