"""Predictive coding of image patches (Roeder, Metz and Kingma, Fig. 3): do two runs learn the same representations?

A patch of the top half of a CIFAR-10 image (f) must tell the patch of the bottom half that belongs to it (g) from those
of the other images of the batch. Two models from different starts and batches are compared by the mean CCA of their f,
and of their g, on patches of test images, with directions fitted on other patches than those that are judged.

The paper prints curves and no numbers: that CCA rises over training, with the number of images and with the width. Its
patch size, batch, optimiser and number of steps are not in the text at hand; those here are choices. Untrained
networks agree too, as random functions of the same patches: they are the baseline, and stand beside every row.

"Artificially limited data" can be read in two ways. Where both runs see the same few images they overfit to the same
ones, which brings them nearer to each other; where each has images of its own they differ by what these happen to
tell. Both are run. In trials that came before, the same few images gave more agreement than many, the opposite of
the paper's figure; the rows with images of their own were added then. With 800 steps (preset quick) runs on many
images had not converged, and few images gave more agreement in both readings.

Mean CCA counts all 64 directions alike, also those in which a representation hardly varies, and which training leaves
to chance. Agreement by variance counts them by their variance: the share of the variance of one run that a linear map
of the other explains, held out, averaged over both directions. It stands beside every mean CCA. Its column and its
claims were added after the results by mean CCA had been seen.

The g of some patches are to f what the head is to a classifier's features: the proof builds the map between the f of
two runs from their g alone. It stands beside the map fitted to features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.images import Images
from nearid.lab.framework.claims import Claim, Outcome, Status, Test, all_of, at_least, exceeds, for_parameters
from nearid.lab.framework.experiment import ROEDER, Axes, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import SCHEDULES, Checked, parameter, shown
from nearid.lab.framework.training import trained
from nearid.lab.papers.common.correlation import plain_cca
from nearid.lab.papers.roeder import sections
from nearid.lab.papers.roeder.radial import CARRIED, transforms
from nearid.moments import Floats, PairMoments
from nearid.show.figures import Coordinates, Figure, Scatter

if TYPE_CHECKING:
    from torch import nn

    from nearid.lab.models.objectives import Predictive


# f and g, and the scores that compare two of each: all directions alike, and by their variance.
ENCODERS = {"f": "cca_f", "g": "cca_g"}
WEIGHTED = {"f": "weighted_f", "g": "weighted_g"}

SIDE, CHANNELS, HALF = 32, 3, 16
# Folds in which agreement by variance is held out.
FOLDS = 5
# About the mean and the spread of CIFAR's pixels, which are from 0 to 255.
MEAN, SPREAD = 120.0, 64.0


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on patches; rows of the table set images and width."""

    images: int = parameter(10_000, "images that are trained on", least=2, smoke=400, paper=50_000)
    apart: bool = parameter(False, "whether each of the two runs has images of its own; rows set it")
    sizes: tuple[int, ...] = parameter(
        (300, 3000),
        "smaller numbers of images that are tried",
        least=2,
        smoke=(100,),
        paper=(500, 2500, 10_000, 25_000),
    )
    width: int = parameter(256, "units of each hidden layer", least=1, smoke=32)
    widths: tuple[int, ...] = parameter(
        (64, 512), "other widths that are tried", least=2, smoke=(16,), paper=(64, 128, 512, 1024, 2048, 4096, 8192)
    )
    hidden: int = parameter(2, "hidden layers; the output is the third layer of the paper's three", least=1)
    outputs: int = parameter(64, "coordinates of f and g", least=2, smoke=8)
    patch: int = parameter(8, "height and width of a patch", least=1, most=HALF)
    steps: int = parameter(4000, "steps of Adam", least=1, smoke=6, quick=800, paper=50_000)
    batch: int = parameter(256, "images in each step, at most those there are", least=2, smoke=32)
    rate: float = parameter(1e-3, "learning rate", positive=True)
    schedule: str = parameter("cosine", "course of the learning rate", choices=SCHEDULES)
    held_out: int = parameter(
        5000,
        "test images on whose patches runs are compared, by five folds",
        least=lambda p: 2 * (p.outputs + 1),
        smoke=300,
        paper=10_000,
    )
    looks: int = parameter(10, "times that they are compared during training", least=1, smoke=2)
    device: str = parameter("cpu", "cpu, cuda, or auto for a GPU where there is one", paper="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sizes", "widths"):
            values = getattr(self, name)
            if not values or len(set(values)) < len(values):
                raise InputError(
                    f"The parameter {name} must name some numbers, each once, not {shown(values) or 'none'}."
                )


def patches(images: np.ndarray, size: int, rng: np.random.Generator, *, bottom: bool) -> Floats:
    """One patch of each image, anywhere in its top or bottom half, as rows in units of the pixels' spread.

    Returns
    -------
    ndarray of float32, shape (n, size * size * 3)
    """
    n, within = len(images), np.arange(size)
    top = rng.integers(0, HALF - size + 1, n) + HALF * bottom
    left = rng.integers(0, SIDE - size + 1, n)
    rows, columns = top[:, None, None] + within[:, None], left[:, None, None] + within
    pixels = images[np.arange(n)[:, None, None], rows, columns].reshape(n, -1)
    return np.asarray((pixels - np.float32(MEAN)) / np.float32(SPREAD))


def pairs(images: np.ndarray, size: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A patch of the top and one of the bottom half of each image."""
    return patches(images, size, rng, bottom=False), patches(images, size, rng, bottom=True)


def model(p: Parameters, seed: int) -> Predictive:
    """A model that is not trained yet."""
    from nearid.lab.models.encoders import mlp
    from nearid.lab.models.objectives import Predictive
    from nearid.lab.models.trainer import seeded

    inputs, widths = p.patch**2 * CHANNELS, [p.width] * p.hidden
    with seeded(seed):
        return Predictive(mlp(inputs, p.outputs, widths), mlp(inputs, p.outputs, widths))


@lru_cache(maxsize=2)
def images_of(split: str) -> Images:
    """Images of CIFAR-10, decoded once for all cells of a process."""
    from nearid.lab.data.load import load

    return load("cifar10", split=split).images


def chosen_images(p: Parameters, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Training images of the first and of the second run: the same, or images of their own."""
    held = images_of("train")
    needed = 2 * p.images if p.apart else p.images
    if needed > len(held):
        raise InputError(
            f"{needed} training images are needed, but {len(held)} of CIFAR-10 are here: lower --set images and sizes, "
            "or get all with nearid data fetch cifar10."
        )
    order = rng.permutation(len(held))[:needed]
    return held.take(order[: p.images]), held.take(order[-p.images :])


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Two runs from different starts and batches, compared on the same patches of test images."""
    import torch

    from nearid.lab.models.trainer import Together

    choice, held, *starts, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(5))
    seen = chosen_images(p, np.random.default_rng(choice))
    rng = np.random.default_rng(held)
    unseen = images_of("test")
    shown = unseen.take(rng.permutation(len(unseen))[: p.held_out])
    x, y = (torch.as_tensor(half) for half in pairs(shown, p.patch, rng))
    runs = [model(p, start) for start in starts]

    def batches(rng: np.random.Generator) -> tuple[Floats, ...]:
        drawn = [images[rng.choice(len(images), min(p.batch, len(images)), replace=False)] for images in seen]
        return tuple(half for images in drawn for half in pairs(images, p.patch, rng))

    @torch.no_grad()
    def encoded() -> dict[str, list[Floats]]:
        device = next(runs[0].parameters()).device
        return {
            "f": [run.f(x.to(device)).cpu().double().numpy() for run in runs],
            "g": [run.g(y.to(device)).cpu().double().numpy() for run in runs],
        }

    def correlations() -> dict[str, Floats]:
        return {name: plain_cca(*both).correlations for name, both in encoded().items()}

    def weighted() -> dict[str, float]:
        return {
            WEIGHTED[name]: agreement_by_variance(first, second, seed) for name, (first, second) in encoded().items()
        }

    @torch.no_grad()
    def look(_: nn.Module | None = None) -> dict[str, float]:
        device = next(runs[0].parameters()).device
        parts = zip(x.to(device).split(p.batch), y.to(device).split(p.batch), strict=True)
        losses = [float(run(a, b)) for a, b in parts if len(a) == p.batch for run in runs]
        agreement = {ENCODERS[name]: float(np.mean(values)) for name, values in correlations().items()}
        return agreement | ({"held_out": float(np.mean(losses))} if losses else {})

    before, start, weighted_start = correlations(), look(), weighted()
    curves = trained(Together(*runs), batches, p, order, folder, score=look)
    for name, value in start.items():
        curves[name] = {"x": [0.0, *curves[name]["x"]], "y": [value, *curves[name]["y"]]}
    after, end, made = correlations(), look(), encoded()
    scores = end | weighted() | {f"{key}_start": value for key, value in weighted_start.items()}
    scores |= {f"{key}_start": start[key] for key in ENCODERS.values()}
    maps = transforms((made["g"][0], made["g"][1]), (made["f"][0], made["f"][1]))
    views = {
        name: {"untrained": before[name].round(4).tolist(), "trained": after[name].round(4).tolist()}
        for name in ENCODERS
    }
    return {"scores": scores | maps, "curves": curves, "views": views}


def agreement_by_variance(first: Floats, second: Floats, seed: int) -> float:
    """Share of the variance of one run that a linear map of the other explains, held out; the mean of both ways."""
    from nearid.folds import assign
    from nearid.groups.fits import fit_linear, squared_errors

    fold = assign(len(first), FOLDS, seed)
    shares = []
    for source, target in ((first, second), (second, first)):
        parts = [PairMoments.of(source[fold == k], target[fold == k]) for k in range(FOLDS)]
        fitted = [fit_linear(PairMoments.of(source[fold != k], target[fold != k])) for k in range(FOLDS)]
        left = sum(float(squared_errors(made, part).sum()) for made, part in zip(fitted, parts, strict=True))
        centres = np.array([target[fold != k].mean(axis=0) for k in range(FOLDS)])
        shares.append(1 - left / float(np.sum((target - centres[fold]) ** 2)))
    return float(np.mean(shares))


def rows(p: Parameters) -> list[Row]:
    """The setting of the paper, fewer images (the same for both runs, or their own), and other widths."""
    # Of the run: the cells of these rows have images and a width of their own.
    if max(p.sizes) >= p.images:
        raise InputError(
            f"The parameter sizes must name smaller numbers of images than images={p.images}, not {shown(p.sizes)}."
        )
    if p.width in p.widths:
        raise InputError(f"The parameter widths must name other widths than width={p.width}, not {shown(p.widths)}.")
    made = [Row("base", f"{p.images} images, width {p.width}")]
    made += [Row(f"images-{n}", f"{n} images", {"images": n}) for n in p.sizes]
    made += [Row(f"own-{n}", f"{n} images for each run", {"images": n, "apart": True}) for n in p.sizes]
    made += [Row(f"width-{w}", f"width {w}", {"width": w}) for w in p.widths]
    return made


def _rises(more: tuple[str, str], less: tuple[str, str], scores: Mapping[str, str] = ENCODERS) -> Test:
    """Whether one agreement is above another, for f and g; both are a row and the end of a column's key."""
    return all_of(*(exceeds((more[0], key + more[1]), (less[0], key + less[1])) for key in scores.values()))


def _with_own_images(result: ExperimentResult) -> Outcome:
    sizes = result.parameters.sizes
    if len(sizes) < 2:
        return Outcome(Status.NOT_TESTABLE, "Needs two numbers of images to compare (--set sizes=300,3000).")
    return _rises((f"own-{max(sizes)}", ""), (f"own-{min(sizes)}", ""))(result)


def _with_width(p: Parameters, scores: Mapping[str, str] = ENCODERS) -> Test:
    by_width = sorted(_widths(p).items())
    return _rises((by_width[-1][1], ""), (by_width[0][1], ""), scores)


def _widths(p: Parameters) -> dict[int, str]:
    """Keys of the rows by their width."""
    return {w: f"width-{w}" for w in p.widths} | {p.width: "base"}


def figures(result: ExperimentResult) -> list[Figure]:
    """Canonical correlations before and after training, and their mean by the number of images and by width."""
    p = result.parameters
    slots: list[Figure] = []
    for finished in result.of_row("base")[:1]:
        curves = {
            f"{name}, {when}": (list(range(1, len(values) + 1)), values)
            for name in ENCODERS
            for when, values in finished.data["views"][name].items()
        }
        slots.append(
            Scatter(
                "Canonical correlations of two runs",
                "Fig. 3b: held out, in the order of the fitted ones, of the first pair of the first row.",
                "direction",
                "correlation",
                {},
                curves,
            )
        )
    same = {n: f"images-{n}" for n in p.sizes} | {p.images: "base"}
    own = {n: f"own-{n}" for n in p.sizes}
    by_images = {
        f"{name}, {who}": (key, rows)
        for name, key in ENCODERS.items()
        for who, rows in (("the same images", same), ("images of their own", own))
    }
    by_width = {
        f"{name}, {when}": (key + end, _widths(p))
        for name, key in ENCODERS.items()
        for when, end in (("trained", ""), ("untrained", "_start"))
    }
    if any(result.of_row(row) for row in same.values()):
        slots.append(
            _means(
                "Agreement by the number of images",
                "Fig. 3c: a point for each pair of runs, and their means.",
                "images",
                result,
                by_images,
            )
        )
    if any(result.of_row(row) for row in _widths(p).values()):
        slots.append(
            _means(
                "Agreement by width",
                "Fig. 3d: a point for each pair of runs, and their means, beside those of the same networks untrained.",
                "width",
                result,
                by_width,
            )
        )
    return slots


def _means(
    title: str, caption: str, x: str, result: ExperimentResult, groups: Mapping[str, tuple[str, Mapping[int, str]]]
) -> Scatter:
    """Scores of rows over their number of images or their width, on a scale of powers of two."""
    points: dict[str, Coordinates] = {}
    curves: dict[str, Coordinates] = {}
    for name, (key, rows) in groups.items():
        values = {n: list(result.scores(row, key).values()) for n, row in sorted(rows.items())}
        values = {n: known for n, known in values.items() if known}
        if values:
            pairs = [(math.log2(n), value) for n, known in values.items() for value in known]
            points[name] = [n for n, _ in pairs], [value for _, value in pairs]
            curves[f"{name}, mean"] = [math.log2(n) for n in values], [float(np.mean(k)) for k in values.values()]
    return Scatter(title, caption, f"log2 of the {x}", "mean CCA, held out", points, curves)


CLAIMS = (
    Claim(
        "CCA rises with training, for f and g: above that of untrained networks.",
        _rises(("base", ""), ("base", "_start")),
    ),
    Claim(
        "CCA rises with the number of images, the same ones for both runs.",
        for_parameters(lambda p: _rises(("base", ""), (f"images-{min(p.sizes)}", ""))),
    ),
    Claim("CCA rises with the number of images where each run has images of its own.", _with_own_images, added=True),
    Claim("CCA rises with width.", for_parameters(_with_width)),
    Claim(
        "The linear map that the proof builds from the g of two runs alone carries the f of one to the other's "
        f"(held out, R2 at least {CARRIED}).",
        at_least("base", "r2_heads", CARRIED),
    ),
    Claim(
        "Agreement by variance rises with training, for f and g.",
        _rises(("base", ""), ("base", "_start"), WEIGHTED),
        added=True,
    ),
    Claim(
        "Agreement by variance rises with the number of images, the same ones for both runs.",
        for_parameters(lambda p: _rises(("base", ""), (f"images-{min(p.sizes)}", ""), WEIGHTED)),
        added=True,
    ),
    Claim("Agreement by variance rises with width.", for_parameters(lambda p: _with_width(p, WEIGHTED)), added=True),
)


CPC = Experiment(
    name="cpc",
    paper=ROEDER,
    shows="Fig. 3",
    section=sections.CPC,
    about="Two models that tell which bottom patch of an image belongs to a top patch agree up to a linear map, the "
    "better the longer they are trained, the more images they see and the wider they are. Needs the data set cifar10.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 35 minutes of one core", 5),
        paper=("a day on a GPU (estimated), with all 50,000 training images", 5),
        quick=("about 10 minutes of one core", 5),
    ),
    columns=(
        Column("cca_f", "mean CCA of f", least=-1, most=1),
        Column("cca_f_start", "mean CCA of f, untrained", least=-1, most=1),
        Column("cca_g", "mean CCA of g", least=-1, most=1),
        Column("cca_g_start", "mean CCA of g, untrained", least=-1, most=1),
        *(
            Column(f"{key}{end}", f"agreement of {name} by variance{told}", most=1)
            for name, key in WEIGHTED.items()
            for end, told in (("", ""), ("_start", ", untrained"))
        ),
        Column("held_out", "loss, held out", 2, least=0),
        Column("condition", "condition number of g", 0, least=1),
        Column("r2_heads", "R2 of f under the map from g", most=1),
        Column("r2_fitted", "R2 of f under the fitted map", most=1),
        Column("disagreement", "relative distance of these maps", least=0),
    ),
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    curves=(
        Axes("cca_f", "Mean CCA of f during training", "steps", "mean CCA, held out"),
        Axes("cca_g", "Mean CCA of g during training", "steps", "mean CCA, held out"),
        Axes("held_out", "Loss during training", "steps", "loss of a batch of test images"),
    ),
    figures=figures,
    requires={"torch": "lab", "PIL": "lab"},
    datasets=lambda p: ("cifar10",),
)
