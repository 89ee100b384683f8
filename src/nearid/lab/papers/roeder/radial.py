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

The proof is constructive: the heads alone tell the map between the features. Labels are a function of x here, so that
the likelihood has no maximum at which this is exact; the table sets the map from the heads beside the one fitted to
features. Where the spare features of a doubled M differ, the two maps are far apart although both heads are diverse:
the likelihoods differ. R2 is the share of the summed variance. It says little of the control: there nearly all of it
lies in the direction that the loss drives to infinity, which any fit gets right. CCA counts all directions alike.

The theorem is about g as much as about f: the vectors of the classes in one run are a linear map of those in the other,
up to a constant, as the likelihoods see their differences alone. That map follows from the one of the features. And
M pairs of classes are enough to build the map of the features; where their differences are nearly dependent, the paper
advises to draw other pairs (Section 3.4). The claims on g, on pairs and on the diversity of trained heads, with their
thresholds, were written before the first run that had these scores.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.lab.framework.claims import Claim, Outcome, all_of, at_least, at_most, exceeds
from nearid.lab.framework.experiment import ROEDER, Axes, CellData, Column, Curve, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.common.correlation import plain_cca
from nearid.lab.papers.common.recovery import recovery_figures
from nearid.lab.papers.roeder import sections
from nearid.lab.processes.classes import Labels, RadialClasses
from nearid.moments import Floats
from nearid.show.figures import Figure

if TYPE_CHECKING:
    from nearid.lab.models.objectives import CrossEntropy
    from nearid.lab.models.trainer import Training

# Held-out rows in the scatter plots.
SHOWN = 400
# A curve has reached its maximum when it is this near.
NEAR = 0.01
# K and M of the paper's figure.
PUBLISHED = (18, 2)
# What counts as a mean CCA near 1.
NEAR_ONE = 0.98
# The least R2 of a map that is taken for the right one: it leaves at most a tenth of the variance unexplained.
CARRIED = 0.9
# Random choices of M pairs of classes, the share of them that counts as well or as ill conditioned, and how much less
# R2 ill-conditioned pairs give at least.
CHOICES, SHARE, LESS = 200, 0.1, 0.1


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the radial experiment."""

    classes: int = parameter(18, "classes K, equal sectors around the origin", least=2)
    features: int = parameter(2, "dimension M of the features", least=2)
    spread: float = parameter(3.0, "standard deviation of x in each of its two dimensions", positive=True)
    width: int = parameter(64, "units of each of the three hidden layers", least=1, smoke=16, paper=128)
    activation: str = parameter("tanh", "hidden units: tanh or leaky_relu", choices=("tanh", "leaky_relu"))
    head: float = parameter(0.0, "scale of the head's start, times PyTorch's usual; 0 starts at zero", least=0)
    steps: int = parameter(4000, "iterations of Adam", least=1, smoke=20, paper=10_000)
    batch: int = parameter(256, "fresh rows in each iteration", least=1, paper=512)
    rate: float = parameter(1e-3, "learning rate", positive=True)
    held_out: int = parameter(
        4000,
        "rows on which the two runs are compared, by five folds",
        least=lambda p: max(50, 2 * (p.features + 1)),
        smoke=500,
    )
    looks: int = parameter(40, "times that the two runs are compared during training", least=1, smoke=2)


def draw(p: Parameters, size: int, rng: np.random.Generator) -> tuple[Floats, Labels]:
    """Fresh rows and their classes; rows in units of their spread, so that no unit is idle or saturated at first."""
    x, labels = RadialClasses(p.classes, p.spread).sample(size, rng)
    return x / p.spread, labels


def classifier(p: Parameters, seed: int) -> CrossEntropy:
    """A classifier that is not trained yet; its encoder starts from the seed alone, whatever the classes."""
    import torch

    from nearid.lab.models.encoders import mlp
    from nearid.lab.models.objectives import CrossEntropy
    from nearid.lab.models.trainer import seeded

    with seeded(seed), torch.no_grad():
        made = CrossEntropy(mlp(2, p.features, [p.width] * 3, activation=p.activation), p.features, p.classes)
        made.weights.mul_(p.head)
    return made


def options(p: Parameters, seed: int) -> Training:
    """How the two runs are trained. Checkpoints of such small models cost little: there is one at every look."""
    from nearid.lab.models.trainer import Training

    every = max(1, p.steps // p.looks)
    return Training(p.steps, p.rate, seed=seed, log_every=every, score_every=every, checkpoint_seconds=0)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Two runs from different starts and different rows, compared on the same held-out rows.

    Rows of the table share held-out points and starts at a seed.
    """
    import torch

    from nearid.lab.models.trainer import Together, train

    held, *starts, order = (int(s) for s in np.random.SeedSequence(seed).generate_state(4))
    points, labels = draw(p, p.held_out, np.random.default_rng(held))
    x, y = torch.as_tensor(points, dtype=torch.float32), torch.as_tensor(labels)
    first, second = (classifier(p, start) for start in starts)

    def batches(rng: np.random.Generator) -> tuple[Floats, Labels, Floats, Labels]:
        return *draw(p, p.batch, rng), *draw(p, p.batch, rng)

    @torch.no_grad()
    def features() -> tuple[Floats, Floats]:
        return first.encode(x).double().numpy(), second.encode(x).double().numpy()

    @torch.no_grad()
    def look(_: object = None) -> dict[str, float]:
        similarity = plain_cca(*features())
        loss = float(first(x, y) + second(x, y)) / 2
        return {"cca": similarity.value, "least": float(similarity.correlations.min()), "held_out": loss}

    start = {"step": 0, **look()}
    done = train(Together(first, second), batches, options(p, order), folder=folder, score=look)
    looks = [start, *done.records]
    best = max(r["cca"] for r in looks)
    a, b = features()
    g, h = (model.weights.detach().numpy() for model in (first, second))
    right = [np.mean(np.argmax(f @ w.T, axis=1) == labels) for f, w in ((a, g), (b, h))]

    def curve(key: str) -> Curve:
        return {"x": [float(r["step"]) for r in looks], "y": [r[key] for r in looks]}

    return {
        "scores": {
            "cca": looks[-1]["cca"],
            "least": looks[-1]["least"],
            "start": start["cca"],
            "iterations": float(next(r["step"] for r in looks if r["cca"] >= best - NEAR)),
            "accuracy": 100 * float(np.mean(right)),
            **transforms((g, h), (a, b)),
            **heads_agree((g, h), (a, b)),
            **pairs_of_classes((g, h), (a, b)),
        },
        "curves": {"cca": curve("cca"), "loss": curve("held_out")},
        "views": _views(a, b),
    }


def transforms(heads: tuple[Floats, Floats], features: tuple[Floats, Floats]) -> dict[str, float]:
    """Roeder's condition for the worse of two heads; the map built from them alone beside the one fitted to features.

    Where the condition fails there is no map from the heads, and its scores are left out.
    """
    from nearid.geometry.transforms import compare_transforms

    compared = compare_transforms(heads, features, ridge=0)
    scores: dict[str, float | None] = {
        "missing": float(max(d.needed - d.rank for d in compared.heads.diversity)),
        "r2_fitted": compared.r2_fitted,
        "r2_heads": compared.r2_heads,
        "disagreement": compared.disagreement,
    }
    if compared.heads.matrix is not None:
        scores["condition"] = max(d.condition for d in compared.heads.diversity)
    return {name: value for name, value in scores.items() if value is not None}


def heads_agree(heads: tuple[Floats, Floats], features: tuple[Floats, Floats]) -> dict[str, float]:
    """R2 of the class vectors of the second run under two maps of those of the first.

    One is affine, fitted to all other classes. The other is built from the features alone: if f' = f A in rows, equal
    likelihoods make the differences of g' those of g times A^-T. Both are left out where there are too few classes.
    """
    first, second = (np.asarray(g, dtype=np.float64) - np.mean(g, axis=0, dtype=np.float64) for g in heads)
    classes, width = first.shape
    if classes < width + 2:
        return {}
    design = np.column_stack([first, np.ones(classes)])
    hat = design @ np.linalg.pinv(design)
    # The error of a class by the fit to all other classes.
    left_out = (second - hat @ second) / (1 - np.diag(hat))[:, None]
    fitted = np.linalg.lstsq(*features)[0]
    built = first @ np.linalg.inv(fitted).T
    return {"r2_g": _explained(left_out, second), "r2_g_features": _explained(second - built, second)}


def pairs_of_classes(heads: tuple[Floats, Floats], features: tuple[Floats, Floats]) -> dict[str, float]:
    """R2 of the map built from M pairs of classes: median over the best and the worst conditioned random choices."""
    from nearid.geometry.diversity import choose_pairs
    from nearid.geometry.transforms import head_transform

    a, b = features
    found = []
    for k in range(CHOICES):
        chosen = choose_pairs(*heads, draws=1, random_state=k)
        if chosen.pairs is None:
            return {}
        built = head_transform(*heads, pairs=chosen.pairs)
        if built.matrix is not None:
            found.append((chosen.condition, _explained(b - a @ built.matrix, b - b.mean(axis=0))))
    if not found:
        return {}
    ordered = [r2 for _, r2 in sorted(found)]
    tenth = max(1, round(SHARE * len(ordered)))
    return {"r2_well": float(np.median(ordered[:tenth])), "r2_ill": float(np.median(ordered[-tenth:]))}


def _explained(errors: Floats, centred: Floats) -> float:
    """Share of the summed variance without these errors."""
    return 1 - float(np.sum(errors**2) / np.sum(centred**2))


def _views(a: Floats, b: Floats) -> dict[str, Any]:
    """Some held-out features of both runs, and those of the first mapped linearly to the second."""
    from nearid.groups.fits import apply, correlation, fit_linear
    from nearid.moments import PairMoments

    moments = PairMoments.of(a, b)
    mapped = apply(fit_linear(moments), a)
    return {
        "first": a[:SHOWN].round(4).tolist(),
        "mapped": mapped[:SHOWN].round(4).tolist(),
        "second": b[:SHOWN].round(4).tolist(),
        "before": np.abs(correlation(moments)).round(4).tolist(),
        "after": np.abs(correlation(PairMoments.of(mapped, b))).round(4).tolist(),
    }


def rows(p: Parameters) -> list[Row]:
    """The published setting, the control, and what the choices of the network and of M do to them."""
    note = "Fig. 2 is a curve without a table: it reaches its maximum after about 4000 iterations."
    published = {"iterations": Published(4000, verified=False, note=note)}
    few = {"classes": p.features}
    return [
        Row(
            "published",
            f"K = {p.classes}, M = {p.features}",
            published=published if (p.classes, p.features) == PUBLISHED else {},
        ),
        Row("control", f"K = {p.features} < M + 1 (control)", few),
        Row("random-head", f"K = {p.classes}, head started at random", {"head": 1.0}),
        Row("more-features", f"K = {p.classes}, M = {2 * p.features}", {"features": 2 * p.features}),
        Row("unbounded-control", f"K = {p.features} < M + 1, LeakyReLU units", {**few, "activation": "leaky_relu"}),
    ]


def _rises(result: ExperimentResult) -> Outcome:
    decided = at_least("published", "cca", NEAR_ONE)(result)
    if decided.needs:
        return decided
    began = float(result.estimate("published", "start"))
    return replace(decided, sentence=f"{decided.sentence} It began at {began:.3g}.")


def figures(result: ExperimentResult) -> list[Figure]:
    """The first seed of each row: features against features, and correlations before and after a linear map."""
    return recovery_figures(
        result,
        scatter=(
            "one run against the other",
            "Features of {n} held-out rows, the first run (across) mapped linearly to the second (down). A thin "
            "diagonal means that the runs differ by a linear map alone.",
        ),
        across=("mapped", "first run, mapped: feature {}"),
        down=("second", "second run: feature {}"),
        heat=(
            "correlation of the features",
            "Absolute correlation of the first run's features (rows) with the second's (columns).",
        ),
        panels={"before": "before the linear map", "after": "after"},
        rows="feature {}",
        columns="feature {}",
    )


RADIAL = Experiment(
    name="radial",
    paper=ROEDER,
    shows="Fig. 2",
    section=sections.RADIAL,
    about="Two classifiers of equal sectors of the plane, from different starts, learn the same features up to a "
    "linear map; with fewer classes than feature dimensions plus one nothing says that they should.",
    defaults=Parameters(),
    presets=presets(cpu=("about 6 minutes on 2 idle cores", 8), paper=("up to an hour on 2 cores (estimated)", 8)),
    columns=(
        Column("cca", "mean CCA", least=0, most=1),
        Column("least", "least CCA", least=0, most=1),
        Column("start", "mean CCA at the start", least=0, most=1),
        Column("iterations", "iterations to within 0.01 of the maximum", 0, least=0),
        Column("accuracy", "accuracy (%)", 1, least=0, most=100),
        Column("missing", "dimensions that diversity lacks", 0, least=0),
        Column("condition", "condition number of the heads", 1, least=1),
        Column("r2_heads", "R2 under the map from heads", most=1),
        Column("r2_fitted", "R2 under the fitted map", most=1),
        Column("disagreement", "relative distance of these maps", least=0),
        Column("r2_g", "R2 of g under a fitted map", most=1),
        Column("r2_g_features", "R2 of g under the map from features", most=1),
        Column("r2_well", "R2, M well-conditioned pairs", most=1),
        Column("r2_ill", "R2, M ill-conditioned pairs", most=1),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(f"During training the mean CCA of two runs rises to near 1 (held out, at least {NEAR_ONE}).", _rises),
        Claim(
            "After the best linear map the features of two runs have a nearly linear relationship (Fig. 2c; held out, "
            f"R2 at least {CARRIED}).",
            at_least("published", "r2_fitted", CARRIED),
            late=True,
        ),
        Claim(f"With K < M + 1 it does not (at most {NEAR_ONE}).", at_most("control", "cca", NEAR_ONE), added=True),
        Claim(
            "The linear map that the proof builds from the two heads alone, without a look at features, carries the "
            f"features of one run to those of the other (held out, R2 at least {CARRIED}).",
            at_least("published", "r2_heads", CARRIED),
        ),
        Claim(
            "Trained heads meet the diversity condition wherever there are more classes than features, and do not with "
            "fewer (Section 3.4).",
            all_of(
                *(at_most(row, "missing", 0) for row in ("published", "random-head", "more-features")),
                at_least("control", "missing", 1),
            ),
        ),
        Claim(
            "The class vectors g of one run are a linear map of those of the other, up to a constant (each class by a "
            f"fit to the others, R2 at least {CARRIED}).",
            at_least("published", "r2_g", CARRIED),
        ),
        Claim(
            f"That map follows from the one of the features: its inverse transposed (R2 at least {CARRIED}).",
            at_least("published", "r2_g_features", CARRIED),
            added=True,
        ),
        Claim(
            "Where the differences of M pairs of classes are nearly dependent, drawing other pairs helps: of "
            f"{CHOICES} choices, the best conditioned {SHARE:.0%} carry the features (median R2 at least {CARRIED}), "
            f"and the worst conditioned {SHARE:.0%} do so less (by at least {LESS}).",
            all_of(
                at_least("published", "r2_well", CARRIED),
                exceeds(("published", "r2_well"), ("published", "r2_ill"), by=LESS),
            ),
        ),
    ),
    curves=(
        Axes("cca", "Mean CCA of two runs during training", "iterations", "mean CCA, held out"),
        Axes("loss", "Loss during training", "iterations", "cross-entropy, held out"),
    ),
    figures=figures,
    version=3,
)
