"""Pairs of networks that were trained independently (Nelson et al. 2026, Table 1): up to which map do they agree?

The downloaded rows are no rows of the paper: other networks and data, far smaller. The paper takes the examples that
networks were trained on; here they are test images. The published rows run for whoever has the weights: features of the
same examples, from both networks, are given as two files. `trained-pairs` has networks that are trained here, and
`others-networks` more that others trained. `nearid.lab.papers.nelson.pair_errors` says how errors are measured.

The "penultimate" representation of the paper is the one that is mapped linearly to the loss (its Section 3.1): what the
classifier of a ResNet reads, and the last hidden state of a GPT, after the final norm, as its head reads it.

Networks and test images are what they are: a seed draws the folds and the start of ICA, so that an interval over seeds
tells how much these choices matter, and is no interval over images or networks (in sample, only ICA depends on them at
all). What the choice of images matters is told by a bootstrap over images: the column with the lower end of the
efficiency, and the bars of the figure; it does not fit maps and ICA anew.

ICA needs many rows: of the first pair its efficiency is a third with all 10,000 test images, and 27% with half of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from nearid.lab.framework.claims import Claim, all_of, at_most, exceeds
from nearid.lab.framework.experiment import NELSON, CellData, Experiment, Published, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.nelson import sections
from nearid.lab.papers.nelson.pair_errors import (
    CLEARLY,
    COLUMNS,
    LEAST,
    MOST,
    ORDER,
    PUBLISHED_ORDER,
    compared,
    correlation_views,
    error_figures,
    error_views,
    gains,
    in_order,
    published_efficiency,
    published_order,
    scores,
)
from nearid.lab.papers.nelson.pair_features import files_of, held_out_pixels, resnet_features, stamped
from nearid.show.figures import Figure

# Networks of ResNet-20 that are trained to the end, and one that is not (61% of test images).
TRAINED, HALF = ("akamaster-20", "dansun18-20", "qiyuehub-20", "zhengjiakun-20"), "chelcacs-20"
# Source and target of pairs: of one architecture, across depths, with the half-trained one.
ALIKE = (*combinations(TRAINED, 2), ("akamaster-56", "zhengjiakun-56"))
DEPTHS = (
    ("akamaster-20", "akamaster-32"),
    ("akamaster-20", "akamaster-44"),
    ("akamaster-20", "akamaster-56"),
    ("zhengjiakun-20", "akamaster-56"),
)
HALVES = (*((HALF, target) for target in TRAINED[1:]), (TRAINED[0], HALF))

KINDS = ("resnet", "given")
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
# Published errors of ResNets that claims compare with.
RESNET = {"rigid": PUBLISHED["resnet18"][1][1], "linear": PUBLISHED["resnet18"][1][2]}
SCORES = ("permutation_in", "rigid_in", "linear_in", "ica_in", "efficiency_in")


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment with pairs; rows of the table set kind and pair."""

    kind: str = parameter("resnet", "resnet (downloaded) or given (as files)", choices=KINDS)
    pair: str = parameter("", "by comma: both networks, source and target; or both files and digests of them")
    every: bool = parameter(True, "all pairs of networks, or a pair of each kind alone", smoke=False)
    pythia: str = parameter("", "files FIRST,SECOND of features of the published pair of Pythia-160M")
    mae_vit: str = parameter("", "files FIRST,SECOND of features of the published pair of MAE")
    chexpert: str = parameter("", "files FIRST,SECOND of features of the published pair of CheXpert MAE")
    resnet18: str = parameter("", "files FIRST,SECOND of features of the published pair of ResNet-18")
    held_out: int = parameter(10_000, "test images, at most", least=100, smoke=320)
    columns: int = parameter(0, "columns of the features that are compared, for trials; 0 for all", least=0, smoke=6)

    def __post_init__(self) -> None:
        super().__post_init__()
        for given in (self.pythia, self.mae_vit, self.chexpert, self.resnet18):
            if given:
                files_of(given)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Compare a pair; a row whose features were not given has no scores."""
    if p.kind == "given" and not p.pair:
        return {"scores": {}}
    first, second = representations(p, seed)
    if p.columns and p.kind != "given":
        first, second = first[:, : p.columns], second[:, : p.columns]
    comparison = compared(first, second, seed)
    views = error_views(comparison)
    # A picture of one seed is enough.
    if seed == 0 and p.kind != "given":
        views |= correlation_views(comparison, first, second)
    return {"scores": scores(comparison), "views": views}


def representations(p: Parameters, seed: int) -> tuple[Any, Any]:
    """What both networks of a row make of the same examples."""
    if p.kind == "given":
        files = p.pair.split(",")
        return files[0], files[1]
    chosen = int(np.random.SeedSequence(seed).generate_state(3)[0])
    pixels = held_out_pixels(p.held_out, chosen)
    first, second = (resnet_features(network, pixels) for network in p.pair.split(","))
    return first, second


def rows(p: Parameters) -> list[Row]:
    """Downloaded networks (one depth, across depths, the half-trained one) and the published pairs."""
    some = slice(None if p.every else 1)
    made = [_downloaded(*pair) for pair in ALIKE[some]]
    made += [_downloaded(*pair, across=True) for pair in DEPTHS if p.every]
    made += [_downloaded(*pair) for pair in HALVES[some]]
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


def keys(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Keys of the rows of pairs."""
    return ["-".join(pair) for pair in pairs]


# Rows of which correlations are drawn.
DRAWN = keys((ALIKE[0], ALIKE[-1], HALVES[0]))
CLAIMS = (
    Claim(
        f"Fully trained ResNets of one architecture have the published order of errors, in sample: {PUBLISHED_ORDER}.",
        published_order(keys(ALIKE)),
    ),
    Claim("ResNets of different depth have the published order of errors, in sample.", published_order(keys(DEPTHS))),
    Claim(
        f"For fully trained ResNets of one architecture ICA's efficiency is in the published range, {LEAST:g} to "
        f"{MOST:g}%, in sample.",
        published_efficiency(keys(ALIKE)),
        late=True,
    ),
    Claim(
        f"So it is for ResNets of different depth ({LEAST:g} to {MOST:g}%, in sample).",
        published_efficiency(keys(DEPTHS)),
        late=True,
    ),
    Claim(
        "Rigid and linear errors of ResNets of one architecture are no larger than the published ones of ResNets (at "
        f"most {RESNET['rigid']:g} and {RESNET['linear']:g} of the diameter, in sample).",
        all_of(*(at_most(row, f"{name}_in", most) for row in keys(ALIKE) for name, most in RESNET.items())),
        added=True,
        late=True,
    ),
    Claim(
        "Held out, permutation > rigid > linear holds of all these pairs.",
        in_order(keys((*ALIKE, *DEPTHS)), [name for name in ORDER if name != "ica"]),
        added=True,
    ),
    Claim(
        "For fully trained ResNets of one architecture ICA gains over a signed permutation, held out: the interval of "
        "its efficiency is above 0.",
        all_of(*map(gains, keys(ALIKE))),
        added=True,
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
        added=True,
    ),
)


def figures(result: ExperimentResult) -> list[Figure]:
    """The four errors of each pair, in sample and held out, and correlations before and after ICA."""
    return error_figures(result, DRAWN)


PRETRAINED_PAIRS = Experiment(
    name="pretrained-pairs",
    paper=NELSON,
    shows="Table 1",
    section=sections.PRETRAINED_PAIRS,
    seeds_draw="folds and starts of ICA",
    about="Networks of one architecture, trained independently, agree nearly up to a rigid or linear map, and ICA of "
    "each alone removes a part of what a signed permutation leaves.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 6 minutes on 2 idle cores (estimated from the time of the processor)", 3),
        paper=("hours on a GPU (estimated)", 5),
    ),
    columns=COLUMNS,
    rows=rows,
    cell=cell,
    claims=CLAIMS,
    figures=figures,
    requires={"torch": "lab", "PIL": "lab"},
    datasets=lambda p: ("cifar10", "cifar10-resnets") if p.kind == "resnet" else (),
    # 3: pairs that are trained here have moved to trained-pairs.
    version=3,
)
