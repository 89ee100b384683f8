"""Probes of ImageNet-X (Reizinger et al. 2025): what an image has beside its class, decoded from features of networks.

People said of each validation image of ImageNet what sets it apart from its class: pose, background, pattern and so on.
A logistic regression on z-scored features tells each of the sixteen factors, and whether the class is in the first or
the second half of the thousand; 70% of the images to fit on, 30% to judge on, both balanced by leaving images out.
Seeds are splits. Images and weights must be the user's, so features are files that the user names: any that nearid
opens, whose rows are named after their images.

The published test of ten accuracies against one half takes splits for independent, though they share their images: of
features that are noise it passes 3% (200 sets of 400 rows and 5 features) where 0.03% are allowed. The claims
are decided by a test that allows for what splits share, and tell what the published one says.

The penalty of the regression is not given in the text at hand; it is that of scikit-learn's defaults here. Nor is which
annotations were taken: those of the one factor that sets an image apart most are the package's default.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nearid.arrays import Rows, open_rows
from nearid.arrays.paths import name_of, split_key
from nearid.arrays.rows import digest
from nearid.base.errors import InputError
from nearid.lab.data.imagenet_x import FACTORS, SELECTIONS, Annotations, image_name, load_annotations
from nearid.lab.framework.claims import Claim, Outcome, Status, Test, all_of
from nearid.lab.framework.experiment import REIZINGER, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.reizinger import sections
from nearid.lab.papers.reizinger.probing import FEWEST, AboveChance, judged_on, probe, told
from nearid.moments import Floats
from nearid.show.figures import Figure, HeatMap

TARGETS = (*FACTORS, "class")
# Classes from this one on are the second half.
HALF = 500
# Level of each test, by Bonferroni: the paper makes 85 (five networks, 17 targets), of which more are allowed for.
LEVEL, TESTS = 0.05, 85
EASY = ("darker", "brighter")
HOW = (
    "The experiment imagenet-x needs features of the validation images of ImageNet, of which neither images nor "
    "networks can be brought along. Make them with nearid extract (rows named after their images: --ids), then: nearid "
    "reproduce imagenet-x --set features=resnet50=FOLDER:LAYER,vit=FILE.npy. Any file that nearid opens will do whose "
    "rows have ids such as ILSVRC2012_val_00000293."
)


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on ImageNet-X; rows of the table set the features."""

    features: str = parameter("", "files of features, by comma: FILE, FILE:KEY, or NAME=FILE:KEY")
    baselines: str = parameter("", "files of features of untrained networks or of pixels, likewise")
    annotations: str = parameter("", "file of annotations (.jsonl or .csv); those of the package imagenet-x if empty")
    factors: str = parameter("top", "annotations of the package: top (one for each image) or multi", choices=SELECTIONS)
    ids: str = parameter("", "column or entry of the files that names the images, where they do not say so themselves")
    source: str = parameter("", "the features of a cell; rows set it")
    contents: str = parameter("", "digest of features, their ids and annotations; rows set it")


@dataclass(frozen=True)
class Source:
    """Features as the user names them."""

    name: str
    path: str
    key: str | None

    @classmethod
    def of(cls, text: str) -> Source:
        """From NAME=FILE:KEY, of which name and key may be left out."""
        name, equals, rest = text.partition("=")
        if not equals or "/" in name or os.path.exists(text):
            name, rest = "", text
        path, key = split_key(rest.strip())
        given = name.strip() or Path(name_of(path)).stem + (f"-{key}" if key else "")
        return cls(re.sub(r"[^\w.-]+", "_", given), str(path), key)


def sources(p: Parameters) -> list[Source]:
    """All features, each under a name of its own, baselines last."""
    given = [*named(p.features), *named(p.baselines)]
    names = [source.name for source in given]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"Two files of features are named {name!r}: name them, as in NAME=FILE.")
    return given


def named(text: str) -> list[Source]:
    """Features, by comma."""
    return [Source.of(part.strip()) for part in text.split(",") if part.strip()]


@dataclass(frozen=True)
class Paired:
    """Features and annotations of the same images: rows of one, and places in the other."""

    rows: Rows
    index: np.ndarray
    annotations: Annotations
    place: np.ndarray

    def target(self, name: str) -> np.ndarray:
        """Answers for each image."""
        a = self.annotations
        return np.asarray((a.classes >= HALF if name == "class" else a.factors[name])[self.place])

    def features(self) -> Floats:
        """Of each image."""
        return self.rows.take(self.index)

    @property
    def contents(self) -> str:
        """Follows from all that is probed: features, the images that they are of, and annotations."""
        return f"{digest(self.rows, self.index)}-{self.annotations.digest}"


def paired(p: Parameters, source: Source, annotations: Annotations) -> Paired:
    """Bring features and annotations together by the names of the images."""
    rows = open_rows(source.path, key=source.key, ids=p.ids or None)
    if rows.ids is None:
        raise InputError(
            f"The rows of {rows.name} have no ids, so nothing says which image each is of. Give the names of the "
            "images to nearid extract (--ids), keep an array of them in the same file, or name a column (--set ids=)."
        )
    names = [image_name(i) for i in rows.ids.tolist()]
    if len(set(names)) < len(names):
        raise InputError(f"Some image has more than one row in {rows.name}: every image must have one.")
    places = {name: k for k, name in enumerate(annotations.images.tolist())}
    index = np.array([k for k, name in enumerate(names) if name in places], dtype=np.intp)
    if len(index) < 2 * FEWEST:
        raise InputError(
            f"{len(index)} of the {len(names)} rows of {rows.name} (such as {names[0]!r}) are images that ImageNet-X "
            f"annotates (such as {annotations.images[0]!r}), but at least {2 * FEWEST} are needed: the ids must be the "
            "file names of the validation images."
        )
    return Paired(rows, index, annotations, np.array([places[names[k]] for k in index]))


def ready(p: Parameters) -> None:
    """Refuse to begin without features and annotations that belong together."""
    given = sources(p)
    if not given:
        raise InputError(HOW)
    annotations = load_annotations(p.annotations, p.factors)
    for source in given:
        paired(p, source, annotations)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Probe one file of features for all targets, on one split for each."""
    probed = paired(p, Source.of(p.source), load_annotations(p.annotations, p.factors))
    if probed.contents != p.contents:
        raise InputError(
            f"{probed.rows.name} or its annotations have changed since the run began: run the same command again."
        )
    features = probed.features()
    if not np.isfinite(features).all():
        raise InputError(f"{probed.rows.name} holds a NaN or an infinity.")
    scores: dict[str, float] = {"images": float(len(probed.index))}
    judged: dict[str, int] = {}
    for k, name in enumerate(TARGETS):
        answers = probed.target(name)
        accuracy = probe(features, answers, np.random.default_rng([seed, k]))
        if accuracy is not None:
            scores[name], judged[name] = 100 * accuracy, judged_on(answers)
    return {"scores": scores, "views": {"judged": judged}}


def rows(p: Parameters) -> list[Row]:
    """The files of features."""
    given = sources(p)
    if not given:
        return []
    made, annotations = [], load_annotations(p.annotations, p.factors)
    for source in given:
        probed = paired(p, source, annotations)
        where = os.path.abspath(os.path.expanduser(source.path))
        text = f"{source.name}={where}" + (f":{source.key}" if source.key else "")
        # The others are no business of a cell, which stays what it is when more are given.
        changes = {"features": "", "baselines": "", "source": text, "contents": probed.contents}
        made.append(Row(source.name, source.name, changes))
    return made


def tests(result: ExperimentResult, row: str) -> dict[str, AboveChance]:
    """Every target of a file of features against chance."""
    # The same for all splits.
    judged = {name: n for finished in result.of_row(row) for name, n in finished.data["views"]["judged"].items()}
    tried = {
        name: AboveChance.over([value / 100 for value in result.scores(row, name).values()], n)
        for name, n in judged.items()
    }
    return {name: test for name, test in tried.items() if test is not None}


def level(result: ExperimentResult) -> float:
    """Level of each test, so that the whole table has one false positive with a probability of at most 0.05."""
    return LEVEL / max(TESTS, len(TARGETS) * len(result.every_row))


def _decodes(row: str, wanted: Sequence[str], least: int) -> Test:
    """Whether at least so many of the wanted targets decode above chance."""

    def test(result: ExperimentResult) -> Outcome:
        if row not in result.ran:
            return Outcome(Status.NOT_TESTABLE, f"Needs the row {row}, which was not run.", needs=(row,))
        judged = {name: test for name, test in tests(result, row).items() if name in wanted}
        if result.failed_seeds(row) or len(judged) < least:
            return Outcome(Status.NOT_TESTABLE, f"{row}: there are too few results, or too few images of some factors.")
        at = level(result)
        yes = [name for name, test in judged.items() if test.decodes(at)]
        published = sum(test.decodes_as_published(at) for test in judged.values())
        sentence = (
            f"{row}: {len(yes)} of {len(judged)} decode above chance (p < {at:.2g}; {published} by the published test, "
            "which takes splits for independent). Accuracies in percent, with standard errors over splits: "
            f"{told(judged)}."
        )
        status = Status.REPRODUCED if len(yes) >= least else Status.NOT_REPRODUCED
        return Outcome(status, sentence, (len(yes) - least) / len(wanted))

    return test


def _most(result: ExperimentResult) -> Outcome:
    trained = named(result.parameters.features)
    if not trained:
        return Outcome(Status.NOT_TESTABLE, "No features of a trained network are given (--set features=FILE).")
    return all_of(*(_decodes(source.name, TARGETS, len(TARGETS) // 2 + 1) for source in trained))(result)


def _easy(result: ExperimentResult) -> Outcome:
    untrained = named(result.parameters.baselines)
    if not untrained:
        told = "No features of untrained networks or pixels are given (--set baselines=FILE)."
        return Outcome(Status.NOT_TESTABLE, told)
    return all_of(*(_decodes(source.name, EASY, len(EASY)) for source in untrained))(result)


def figures(result: ExperimentResult) -> list[Figure]:
    """Accuracies of all targets from all files of features."""
    ran = [row for row in result.rows if result.of_row(row.key)]
    if not ran:
        return []

    def shown(row: str, name: str) -> float:
        values = result.scores(row, name)
        return float(np.mean(list(values.values()))) / 100 if values else 0.0

    return [
        HeatMap(
            "What is decoded from which features",
            "Accuracy of a logistic probe on held-out images, as many with the factor as without: 0.5 is chance. A "
            "factor of too few images is drawn as 0.",
            {"accuracy": [[shown(row.key, name) for name in TARGETS] for row in ran]},
            [row.title for row in ran],
            TARGETS,
        )
    ]


IMAGENET_X = Experiment(
    name="imagenet-x",
    paper=REIZINGER,
    shows="ImageNet-X",
    section=sections.IMAGENET_X,
    about="Features of networks that were trained on classes decode pose, background, pattern and other factors of an "
    "image linearly. Needs features of ImageNet's validation images, which the user makes.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 8 minutes of one core for each file of 2048 features (estimated from single probes)", 10),
        paper=("the same: the published protocol", 10),
        smoke=("seconds to minutes, by the features", 2),
    ),
    columns=(
        *(Column(name, name.replace("_", " "), 1, least=0, most=100) for name in TARGETS),
        Column("images", "images", 0, least=0),
    ),
    rows=rows,
    cell=cell,
    claims=(
        Claim(
            f"Most factors decode above chance from features of trained networks (at least {len(TARGETS) // 2 + 1} of "
            f"the {len(TARGETS)} targets, t-tests with Bonferroni's correction).",
            _most,
        ),
        Claim(f"{EASY[0]} and {EASY[1]} decode even from untrained networks and from pixels.", _easy),
    ),
    figures=figures,
    requires={},
    ready=ready,
    version=2,
)
