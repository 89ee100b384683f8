"""Pairs of networks that were trained independently (Nelson et al. 2026, Table 1): up to which map do they agree?

Errors are means over examples of the distance between the target's representation and the mapped source's, over the
diameter of the target's. In sample, as published, maps are fitted on the examples that they are measured on; held out,
on the others of five folds. ICA is fitted to each network alone, and its components are matched by signed correlations.
Its efficiency is the share of what a rigid motion gains over a signed permutation.

The "penultimate" representation of the paper is the one that is mapped linearly to the loss (its Section 3.1): what the
classifier of a ResNet reads, and the last hidden state of a GPT, after the final norm, as its head reads it.

Rows whose networks are downloaded or trained here are no rows of the paper: other networks and data, far smaller. The
paper takes the examples that networks were trained on; here they are test images and test text. The published rows run
for whoever has the weights: features of the same examples, from both networks, are given as two files.

What seeds are differs. Downloaded networks and the test images are what they are: a seed draws the folds and the start
of ICA, so that an interval over seeds tells how much these choices matter, and is no interval over images or networks
(in sample, only ICA depends on them at all). What the choice of images matters is told by a bootstrap over images: the
column with the lower end of the efficiency, and the bars of the figure; it does not fit maps and ICA anew. Of networks
that are trained here a seed is a new pair, and the interval one over pairs. Tokens of one text are not independent,
though the bootstrap takes them as if they were.

ICA is no rigid motion: it whitens, and so follows directions that one run has in another size than the other. Its error
may be below that of the best rigid motion, as with the hidden states before the last of the GPTs that are trained here:
its efficiency is then 100% held out, and above that in sample. The whitening also blows up directions that hardly vary,
as those of the masked autoencoders' mean embeddings, and then ICA may do worse than matching the columns as they are.

ICA needs many rows: of the first pair its efficiency is a third with all 10,000 test images, and 27% with half of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.estimate import Estimate
from nearid.lab.framework.claims import Claim, Outcome, Status, Test, all_of, at_least, exceeds
from nearid.lab.framework.experiment import NELSON, Axes, CellData, Column, Curve, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.pair_features import (
    Budget,
    ImageModels,
    TextModels,
    files_of,
    held_out_pixels,
    resnet_features,
    stamped,
)
from nearid.moments import Floats
from nearid.show.figures import Dots, Figure, HeatMap

if TYPE_CHECKING:
    from nearid.questions.compare.result import Comparison


# Networks of ResNet-20 that are trained to the end, and one that is not (61% of test images).
TRAINED, HALF = ("akamaster-20", "dansun18-20", "qiyuehub-20", "zhengjiakun-20"), "chelcacs-20"
# Source and target of pairs: of one architecture, across depths, with the half-trained one; and rows trained here.
ALIKE = (*combinations(TRAINED, 2), ("akamaster-56", "zhengjiakun-56"))
DEPTHS = (
    ("akamaster-20", "akamaster-32"),
    ("akamaster-20", "akamaster-44"),
    ("akamaster-20", "akamaster-56"),
    ("zhengjiakun-20", "akamaster-56"),
)
HALVES = (*((HALF, target) for target in TRAINED[1:]), (TRAINED[0], HALF))
HERE = ("mae", "gpt")
# The published order of errors, the largest first.
ORDER = ("permutation", "ica", "rigid", "linear")
# A difference of errors that counts: several standard errors of a bootstrap over 10,000 images, as seeds do not draw
# these.
CLEARLY = 0.003

KINDS = ("resnet", "mae", "gpt", "given")
# Published errors: permutation, rigid, linear, ICA, and its efficiency (%).
PUBLISHED: Mapping[str, tuple[str, tuple[float, ...], str]] = {
    "pythia": (
        "Pythia-160M, seeds 0 and 1",
        (0.219, 0.150, 0.131, 0.202, 25),
        "the last hidden states, after the final norm, of EleutherAI/pythia-160m and EleutherAI/pythia-160m-seed1 "
        "(nearid extract with --layers hidden_states.12 --pool tokens)",
    ),
    "mae-vit": (
        "MAE, timm and original",
        (0.197, 0.109, 0.036, 0.145, 59),
        "mean patch embeddings of both sets of weights (nearid extract with --pool patches)",
    ),
    "chexpert": (
        "CheXpert MAE, small and base",
        (0.218, 0.104, 0.048, 0.175, 38),
        "mean patch embeddings of both sizes (nearid extract with --pool patches)",
    ),
    "resnet18": (
        "ResNet-18, runs 1 and 2",
        (0.382, 0.206, 0.175, 0.312, 40),
        "what the classifier reads in two runs (nearid extract with --layers avgpool or the like)",
    ),
}
SCORES = ("permutation_in", "rigid_in", "linear_in", "ica_in", "efficiency_in")
# Columns of the correlations that are drawn.
SHOWN = 32


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment with pairs; rows of the table set kind and pair."""

    kind: str = parameter("resnet", "resnet (downloaded), mae or gpt (trained here), given (as files)", choices=KINDS)
    pair: str = parameter("", "by comma: both networks, source and target; or both files and digests of them")
    every: bool = parameter(True, "all pairs of networks, or a pair of each kind alone", smoke=False)
    pythia: str = parameter("", "files FIRST,SECOND of features of the published pair of Pythia-160M")
    mae_vit: str = parameter("", "files FIRST,SECOND of features of the published pair of MAE")
    chexpert: str = parameter("", "files FIRST,SECOND of features of the published pair of CheXpert MAE")
    resnet18: str = parameter("", "files FIRST,SECOND of features of the published pair of ResNet-18")
    held_out: int = parameter(10_000, "test images, or tokens of test text, at most", least=100, smoke=320)
    columns: int = parameter(0, "columns of the features that are compared, for trials; 0 for all", least=0, smoke=6)
    mae_width: int = parameter(64, "coordinates of an embedding of masked autoencoders", multiple=4, smoke=8, paper=192)
    mae_depth: int = parameter(2, "blocks of their encoder", least=1, smoke=1, paper=12)
    mae_steps: int = parameter(1000, "steps of their training", least=1, smoke=3, paper=200_000)
    mae_batch: int = parameter(64, "images in each step", least=1, smoke=8, paper=256)
    mae_rate: float = parameter(1e-3, "learning rate, which falls to 0", positive=True)
    gpt_width: int = parameter(64, "coordinates of a hidden state of the GPTs", multiple=4, smoke=8, paper=256)
    gpt_depth: int = parameter(3, "blocks", least=1, smoke=2, paper=6)
    gpt_steps: int = parameter(500, "steps of their training", least=1, smoke=3, paper=20_000)
    gpt_batch: int = parameter(16, "rows of tokens in each step", least=1, smoke=4, paper=32)
    gpt_rate: float = parameter(3e-3, "learning rate, which falls to 0", positive=True, paper=1e-3)
    vocabulary: int = parameter(5000, "words that the GPTs know", least=3, smoke=100, paper=33_000)
    context: int = parameter(64, "tokens that they read", least=4, smoke=8, paper=256)
    device: str = parameter("cpu", "for training: cpu, cuda, or auto for a GPU where there is one", paper="auto")

    def __post_init__(self) -> None:
        super().__post_init__()
        for given in (self.pythia, self.mae_vit, self.chexpert, self.resnet18):
            if given:
                files_of(given)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Compare a pair; a row whose features were not given has no scores."""
    if p.kind == "given" and not p.pair:
        return {"scores": {}}
    first, second, curves = representations(p, seed, folder)
    if p.columns and p.kind != "given":
        first, second = first[:, : p.columns], second[:, : p.columns]
    from nearid.questions.compare.run import compare

    comparison = compare(
        first,
        second,
        groups="permutation,rigid,linear,ica",
        # As published: plain least squares, and rows that count as independent.
        ridge=0,
        blocks="none",
        in_sample=True,
        permutations=1,
        random_state=seed,
        names=("source", "target"),
    )
    views: dict[str, Any] = {
        "n": comparison.n,
        "held_out": {g: _with_ends(e.epsilon) for g, e in comparison.groups.items()},
        "alerts": [alert.message for alert in comparison.alerts],
    }
    # A picture of one seed is enough.
    if seed == 0 and p.kind != "given":
        views |= {"before": _strongest(comparison), "after": _strongest(_of_components(first, second))}
    return {"scores": scores(comparison), "curves": curves, "views": views}


def scores(comparison: Comparison) -> dict[str, float]:
    """Errors in sample and held out, and the efficiency of ICA in percent."""
    assert comparison.in_sample is not None and comparison.efficiency is not None
    told = {name: group.epsilon.value for name, group in comparison.groups.items()}
    told |= {f"{name}_in": group.epsilon.value for name, group in comparison.in_sample.items()}
    linear, efficiency = comparison.groups["linear"], comparison.efficiency
    told |= {"r2": linear.r2.value, "chance": linear.epsilon.chance}
    within = {"efficiency": efficiency.value, "efficiency_low": efficiency.low, "efficiency_in": efficiency.in_sample}
    return told | {name: 100 * value for name, value in within.items()}


def representations(p: Parameters, seed: int, folder: Path) -> tuple[Any, Any, dict[str, Curve]]:
    """What both networks of a row make of the same examples, and curves of the training where there was one."""
    if p.kind == "given":
        files = p.pair.split(",")
        return files[0], files[1], {}
    chosen, *starts = (int(s) for s in np.random.SeedSequence(seed).generate_state(3))
    if p.kind == "resnet":
        pixels = held_out_pixels(p.held_out, chosen)
        first, second = (resnet_features(network, pixels) for network in p.pair.split(","))
        return first, second, {}
    learner: ImageModels | TextModels
    if p.kind == "mae":
        budget = Budget(p.mae_steps, p.mae_rate, p.mae_batch, p.device)
        learner = ImageModels(held_out_pixels(p.held_out, chosen), p.mae_width, p.mae_depth, budget)
    else:
        budget = Budget(p.gpt_steps, p.gpt_rate, p.gpt_batch, p.device)
        learner = TextModels(p.held_out, chosen, p.vocabulary, p.context, p.gpt_width, p.gpt_depth, budget)
    one, other = (learner.learn(start, folder / name) for name, start in zip(("first", "second"), starts, strict=True))
    return one.features, other.features, {f"{p.kind}_{key}": curve for key, curve in one.curves.items()}


def _of_components(first: Floats, second: Floats) -> Comparison:
    """The components of both after ICA of each alone, compared as they are."""
    from nearid.lab.papers.common.images import components
    from nearid.questions.compare.run import compare

    one, other = (components(z.astype(np.float64), whiten=True).values for z in (first, second))
    return compare(one, other, groups="permutation", ridge=0, blocks="none", permutations=1)


def _strongest(comparison: Comparison) -> list[list[float]]:
    """Absolute correlations of the columns that match best."""
    strongest: list[list[float]] = np.asarray(comparison.views.correlation)[:SHOWN, :SHOWN].round(3).tolist()
    return strongest


def rows(p: Parameters) -> list[Row]:
    """Downloaded networks (one depth, across depths, the half-trained one), pairs trained here, the published pairs."""
    some = slice(None if p.every else 1)
    made = [_downloaded(*pair) for pair in ALIKE[some]]
    made += [_downloaded(*pair, across=True) for pair in DEPTHS if p.every]
    made += [_downloaded(*pair) for pair in HALVES[some]]
    made += [
        Row("mae", "MAE of CIFAR-10, trained here", {"kind": "mae", "pair": ""}),
        Row("gpt", "GPT of WikiText-2, trained here", {"kind": "gpt", "pair": ""}),
    ]
    return made + [_published(p, key) for key in PUBLISHED]


def _downloaded(source: str, target: str, *, across: bool = False) -> Row:
    (one, _, depth), (other, _, _) = (network.partition("-") for network in (source, target))
    title, note = f"ResNet-{depth}, {one} to {other}", ""
    if across:
        title = f"across depths, {source} to {target}"
        if one == other:
            note = "one person's networks of different depth: trained by one recipe, with no weights in common."
    if HALF in (source, target):
        title += " (half-trained: chelcacs)"
    [key] = keys([(source, target)])
    return Row(key, title, {"kind": "resnet", "pair": f"{source},{target}"}, note=note)


def _published(p: Parameters, key: str) -> Row:
    title, values, needed = PUBLISHED[key]
    name = key.replace("-", "_")
    given = getattr(p, name)
    note = f"not measured; needs {needed} on the same examples, then --row {key} --set {name}=FIRST.npy,SECOND.npy."
    told = {column: Published(value, verified=True) for column, value in zip(SCORES, values, strict=True)}
    changes = {"kind": "given", "pair": stamped(given) if given else ""}
    return Row(key, f"{title} (published pair)", changes, told, note="" if given else note)


def datasets(p: Parameters) -> tuple[str, ...]:
    """What a cell reads."""
    sets = {"resnet": ("cifar10", "cifar10-resnets"), "mae": ("cifar10",), "gpt": ("wikitext2",)}
    return sets.get(p.kind, ())


def keys(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Keys of the rows of pairs."""
    return ["-".join(pair) for pair in pairs]


def _ordered(rows: Sequence[str], columns: Sequence[str]) -> Test:
    """Whether each error is larger than the next, in each row."""
    return all_of(*(exceeds((row, more), (row, less), by=CLEARLY) for row in rows for more, less in pairwise(columns)))


def _in_sample(rows: Sequence[str]) -> Test:
    return _ordered(rows, [f"{name}_in" for name in ORDER])


def _gains(row: str) -> Test:
    """Whether ICA gains, by the lower end of each bootstrap; where a rigid motion gains nothing there is no answer."""

    def test(result: ExperimentResult) -> Outcome:
        known, ran = result.scores(row, "efficiency_low"), len(result.of_row(row))
        if len(known) < ran:
            label = result.label(row, "efficiency")
            return Outcome(Status.NOT_TESTABLE, f"{label} has no value at {ran - len(known)} of {ran} seeds.")
        return at_least(row, "efficiency_low", 0.0)(result)

    return test


# Rows of which correlations are drawn.
DRAWN = (*keys((ALIKE[0], ALIKE[-1], HALVES[0])), *HERE)
PUBLISHED_ORDER = f"permutation > ICA > rigid > linear, each by {CLEARLY:g} or more"
CLAIMS = (
    Claim(
        f"Fully trained ResNets of one architecture have the published order of errors, in sample: {PUBLISHED_ORDER}.",
        _in_sample(keys(ALIKE)),
    ),
    Claim("ResNets of different depth have the published order of errors, in sample.", _in_sample(keys(DEPTHS))),
    Claim(
        "Masked autoencoders and GPTs that are trained here have the published order of errors, in sample.",
        _in_sample(HERE),
    ),
    Claim(
        "Held out, permutation > rigid > linear holds of all these pairs.",
        _ordered((*keys((*ALIKE, *DEPTHS)), *HERE), [name for name in ORDER if name != "ica"]),
    ),
    Claim(
        "For fully trained ResNets of one architecture ICA gains over a signed permutation, held out: the interval of "
        "its efficiency is above 0.",
        all_of(*map(_gains, keys(ALIKE))),
    ),
    Claim(
        "For masked autoencoders and GPTs that are trained here ICA gains over a signed permutation, held out.",
        all_of(*map(_gains, HERE)),
    ),
    Claim(
        "A half-trained ResNet-20 agrees less: to each target its linear error is larger than a fully trained one's.",
        # In the space of one target: with another target, another diameter divides the errors.
        all_of(
            *(
                exceeds((half, "linear"), (row, "linear"), by=CLEARLY)
                for row, half in (
                    keys(((source, target), (HALF, target))) for source, target in combinations(TRAINED, 2)
                )
            )
        ),
    ),
)


def figures(result: ExperimentResult) -> list[Figure]:
    """The four errors of each pair, in sample and held out, and correlations before and after ICA."""
    titles = {row.key: row.title for row in result.rows}
    measured = {
        key: [f.data["views"] for f in result.of_row(key) if "held_out" in f.data.get("views", {})] for key in titles
    }
    there = [key for key in titles if measured[key]]
    slots: list[Figure] = []
    if there:
        names = [titles[key] for key in there]
        apart = {name: [_mean(measured[key], name) for key in there] for name in ORDER}
        within = {name: [Estimate(float(result.estimate(key, f"{name}_in"))) for key in there] for name in ORDER}
        axis = "mean error / diameter of the target"
        slots = [
            Dots(
                "Errors held out",
                "Bars: 95% interval of a bootstrap over examples, of which ends and dots are means over seeds. "
                "ICA has none.",
                axis,
                names,
                apart,
            ),
            Dots("Errors in sample", "As the paper has them; means over seeds.", axis, names, within),
        ]
    for key in DRAWN:
        for v in measured.get(key, [])[:1]:
            if "before" in v:
                numbers = [str(k + 1) for k in range(len(v["before"]))]
                panels = {"columns as they are": v["before"], "components after ICA": v["after"]}
                slots.append(
                    HeatMap(
                        f"{titles[key]}: correlations of matched columns",
                        "Absolute correlations of the source (rows) with the target (columns), on all examples; those "
                        "that match best, in the order of their matches. ICA saw each side alone.",
                        panels,
                        numbers,
                        numbers,
                    )
                )
    return slots


def _mean(views: Sequence[dict[str, Any]], name: str) -> Estimate:
    """Value and ends of an interval, as means over seeds; without ends where a seed has none."""
    values = [v["held_out"][name] for v in views]
    known = min(map(len, values))
    return Estimate(*(sum(value[k] for value in values) / len(values) for k in range(known)))


def _with_ends(value: Estimate) -> list[float]:
    """The value, and the ends of its interval where there is one: ICA has none."""
    return [value.value, value.low, value.high] if value.has_interval else [value.value]


PRETRAINED_PAIRS = Experiment(
    name="pretrained-pairs",
    paper=NELSON,
    shows="Table 1",
    section=sections.PRETRAINED_PAIRS,
    about="Networks of one architecture, trained independently, agree nearly up to a rigid or linear map, and ICA of "
    "each alone removes a part of what a signed permutation leaves.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 12 minutes on 2 idle cores (estimated from the time of the processor)", 3),
        paper=("hours on a GPU (estimated)", 5),
    ),
    columns=(
        Column("permutation_in", "permutation, in sample", least=0),
        Column("ica_in", "ICA, in sample", least=0),
        Column("rigid_in", "rigid, in sample", least=0),
        Column("linear_in", "linear, in sample", least=0),
        Column("efficiency_in", "ICA efficiency, in sample (%)", 1),
        Column("permutation", "permutation, held out", least=0),
        Column("ica", "ICA, held out", least=0),
        Column("rigid", "rigid, held out", least=0),
        Column("linear", "linear, held out", least=0),
        Column("chance", "linear, by chance", least=0),
        Column("efficiency", "ICA efficiency, held out (%)", 1),
        Column("efficiency_low", "its lower end over examples (%)", 1),
        Column("r2", "R2 of the linear map", most=1),
    ),
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    curves=(
        Axes("mae_loss", "Training of the masked autoencoders", "steps", "squared error of hidden patches"),
        Axes("gpt_loss", "Training of the GPTs", "steps", "cross-entropy of the next word"),
    ),
    figures=figures,
    requires={"torch": "lab", "PIL": "lab"},
    datasets=datasets,
    version=2,
)
