"""Experiments: a table or figure of a paper as data, a function that computes a cell, and the list of all."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Generic, NotRequired, TypedDict, TypeVar

from nearid.base.errors import InputError, unknown

if TYPE_CHECKING:
    from nearid.lab.framework.claims import Claim
    from nearid.lab.framework.result import ExperimentResult
    from nearid.show.figures import Figure

P = TypeVar("P")


@dataclass(frozen=True)
class Paper:
    """Where an experiment comes from."""

    authors: str
    title: str
    venue: str
    url: str

    @property
    def short(self) -> str:
        """First author and year, as "Roeder et al. 2021"."""
        return f"{self.authors.split(',')[0]} et al. {self.venue.split()[-1]}"


@dataclass(frozen=True)
class Published:
    """A published value.

    Attributes
    ----------
    value : float
        In the units of its column.
    verified : bool
        Whether the value was checked in the paper itself. Values from other texts or read off a figure are not
        verified.
    note : str
        Remark about the value.
    """

    value: float
    verified: bool = False
    note: str = ""


@dataclass(frozen=True)
class Column:
    """A score.

    Attributes
    ----------
    key : str
        Key of the score in the result of a cell.
    title : str
        Title in the table.
    digits : int
        Number of digits in the table.
    least, most : float
        Ends of its range. Shown intervals are cut to the range; claims use the full intervals.
    """

    key: str
    title: str
    digits: int = 3
    least: float = -math.inf
    most: float = math.inf


@dataclass(frozen=True)
class Row:
    """A setting of the table.

    Attributes
    ----------
    key : str
        Short and stable; part of file names.
    changes : mapping
        Parameters in which the row differs from those of the run.
    published : mapping
        Published values by the key of their column.
    violated : sequence of str
        Names of the theorem's assumptions that the row does not meet.
    note : str
        Remark about the row; printed below the table.
    """

    key: str
    title: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    published: Mapping[str, Published] = field(default_factory=dict)
    violated: Sequence[str] = ()
    note: str = ""


@dataclass(frozen=True)
class Preset:
    """A preset of parameters. Its values are given with each parameter, if they differ from the default.

    Attributes
    ----------
    time : str
        How long a run takes, and on what.
    seeds : int
        Default number of seeds.
    """

    time: str
    seeds: int


def presets(
    cpu: tuple[str, int],
    paper: tuple[str, int],
    smoke: tuple[str, int] = ("seconds", 2),
    quick: tuple[str, int] | None = None,
) -> dict[str, Preset]:
    """The presets of an experiment by name, from the time and the seeds of each; few have a quick version of cpu."""
    usual = {"smoke": Preset(*smoke), "cpu": Preset(*cpu), "paper": Preset(*paper)}
    return usual if quick is None else usual | {"quick": Preset(*quick)}


class Curve(TypedDict):
    """Values over the steps of a training."""

    x: list[float]
    y: list[float]


class CellData(TypedDict):
    """Result of a cell: plain numbers, strings, lists and dicts.

    The keys of scores and curves are those of the experiment's columns and axes. Views are the data of the experiment's
    figures, and anything else it stores.
    """

    scores: dict[str, float]
    curves: NotRequired[dict[str, Curve]]
    views: NotRequired[dict[str, Any]]


@dataclass(frozen=True)
class Axes:
    """A figure of training curves: the key of its curves, a title and the names of its axes."""

    key: str
    title: str
    x: str
    y: str


@dataclass(frozen=True)
class Section(Generic[P]):
    """What docs/reproduce.md tells about an experiment beside its table and its claims, and its figure.

    In a text, {row:column} stands for the mean of a stored score, so that a new run does not need new sentences, and
    {row:curve^} for the change of a training curve over the last fifth of the training.

    Attributes
    ----------
    paper : str
        What the paper claims; the sentence of the experiment by default.
    shown : str
        What the paper's figure or table shows, in words.
    measured : str
        What came out.
    different : str
        What was done differently from the paper, and why.
    figure : callable, optional
        A figure that shows the claim, from scores and curves alone; None where these do not give one. Published beside
        measured values by default.
    unlike : callable
        In what the rows that have published values differ from the paper's, in a few words; empty where in nothing.
    further : mapping
        Sentences on further stored runs, by the name of their file.
    brief : tuple of str
        The line of the scoreboard: a score in words, what the paper shows of it, and what was measured. By default the
        first score for which the paper gives a value in a row that was run.
    reasons : mapping
        Why claims are not reproduced, by the first words of the claim. They are shown only where this is the case.
    """

    paper: str = ""
    shown: str = ""
    measured: str = ""
    different: str = ""
    figure: Callable[[ExperimentResult], Figure | None] | None = None
    unlike: Callable[[P], str] = lambda parameters: ""
    further: Mapping[str, str] = field(default_factory=dict)
    brief: tuple[str, str, str] | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment(Generic[P]):
    """A table or figure of a paper, ready to be run.

    Attributes
    ----------
    name : str
        Name that the user types.
    shows : str
        The table or figure.
    about : str
        A sentence.
    defaults : dataclass instance
        The parameters, frozen; see `nearid.lab.framework.settings`.
    presets : mapping
        By name: "smoke" (seconds), "cpu" (the default), "paper" (the published protocol), and for some experiments
        "quick", a shorter version of "cpu" whose claims are judged, too.
    rows : callable
        The rows for given parameters.
    cell : callable
        cell(parameters, seed, folder) returns the `CellData` of a row at a seed. It depends only on its parameters and
        seed. In the folder, which is empty at first, it may store what it needs to continue after an interruption. The
        folder is removed when the cell is done. The cell runs in its own process with one thread. It must be a
        module-level function, because it is sent to the process by name.
    figures : callable, optional
        Figures drawn from the views of the cells.
    requires : mapping
        Modules that the cells import, and the extra of nearid that brings them.
    datasets : callable
        Names of the data sets that a cell with given parameters reads.
    ready : callable
        Raises an InputError if something that the user must provide, such as a file, is missing or unusable.
    section : Section
        Its section on the page of results.
    seeds_draw : str
        What seeds draw if they change neither data nor networks, such as folds. An interval over seeds then says
        nothing of other data. Empty if seeds draw data or train networks.
    kept : sequence of str
        Names of the views that claims need. They are small, and are stored with the result. Claims can then be tested
        again on a stored result, and its cells reused.
    version : int
        Increased when a cell would return a different result than before, so that older cells are not reused.
    """

    name: str
    paper: Paper
    shows: str
    about: str
    defaults: P
    presets: Mapping[str, Preset]
    columns: Sequence[Column]
    rows: Callable[[P], Sequence[Row]]
    cell: Callable[[P, int, Path], CellData]
    claims: Sequence[Claim]
    curves: Sequence[Axes] = ()
    figures: Callable[[ExperimentResult], Sequence[Figure]] | None = None
    requires: Mapping[str, str] = field(default_factory=lambda: {"torch": "lab"})
    datasets: Callable[[P], Sequence[str]] = lambda parameters: ()
    ready: Callable[[P], None] = lambda parameters: None
    section: Section[P] = field(default_factory=Section)
    seeds_draw: str = ""
    kept: Sequence[str] = ()
    version: int = 1


NELSON = Paper(
    "Nelson, Fumero, Karaletsos and Locatello",
    "Statistical and Structural Identifiability in Representation Learning",
    "2026",
    "https://arxiv.org/abs/2603.11970",
)
ROEDER = Paper(
    "Roeder, Metz and Kingma",
    "On Linear Identifiability of Learned Representations",
    "ICML 2021",
    "https://arxiv.org/abs/2007.00810",
)
REIZINGER = Paper(
    "Reizinger, Bizeul, Juhos, Vogt, Balestriero, Brendel and Klindt",
    "Cross-Entropy Is All You Need To Invert the Data Generating Process",
    "ICLR 2025",
    "https://arxiv.org/abs/2410.21869",
)
ZIMMERMANN = Paper(
    "Zimmermann, Sharma, Schneider, Bethge and Brendel",
    "Contrastive Learning Inverts the Data Generating Process",
    "ICML 2021",
    "https://arxiv.org/abs/2102.08850",
)


# Module of each experiment. It is imported when the experiment is first used.
HOMES = {
    "radial": "nearid.lab.papers.roeder.radial:RADIAL",
    "cpc": "nearid.lab.papers.roeder.cpc:CPC",
    "diet": "nearid.lab.papers.reizinger.cross_entropy_tables:DIET",
    "supervised": "nearid.lab.papers.reizinger.cross_entropy_tables:SUPERVISED",
    "cross-entropy-optimum": "nearid.lab.papers.reizinger.cross_entropy_optimum:CROSS_ENTROPY_OPTIMUM",
    "contrastive-sphere": "nearid.lab.papers.zimmermann.contrastive_tables:CONTRASTIVE_SPHERE",
    "contrastive-box": "nearid.lab.papers.zimmermann.contrastive_tables:CONTRASTIVE_BOX",
    "contrastive-marginals": "nearid.lab.papers.zimmermann.marginals:CONTRASTIVE_MARGINALS",
    "mnist-autoencoders": "nearid.lab.papers.nelson.mnist_autoencoders:MNIST_AUTOENCODERS",
    "square-manifolds": "nearid.lab.papers.nelson.square_manifolds:SQUARE_MANIFOLDS",
    "bilipschitz-recovery": "nearid.lab.papers.nelson.bilipschitz_recovery:BILIPSCHITZ_RECOVERY",
    "disentanglement": "nearid.lab.papers.nelson.disentanglement:DISENTANGLEMENT",
    "faces": "nearid.lab.papers.nelson.faces:FACES",
    "dislib": "nearid.lab.papers.reizinger.dislib:DISLIB",
    "deconfounding": "nearid.lab.papers.nelson.deconfounding:DECONFOUNDING",
    "masks-contrastive": "nearid.lab.papers.zimmermann.masks_contrastive:MASKS_CONTRASTIVE",
    "pretrained-pairs": "nearid.lab.papers.nelson.pretrained_pairs:PRETRAINED_PAIRS",
    "trained-pairs": "nearid.lab.papers.nelson.trained_pairs:TRAINED_PAIRS",
    "others-networks": "nearid.lab.papers.nelson.others_networks:OTHERS_NETWORKS",
    "theorem-bounds": "nearid.lab.papers.nelson.theorem_bounds:THEOREM_BOUNDS",
    "proof-steps": "nearid.lab.papers.nelson.proof_steps:PROOF_STEPS",
    "words": "nearid.lab.papers.roeder.words:WORDS",
    "gpt2-svcca": "nearid.lab.papers.roeder.gpt2_svcca:GPT2_SVCCA",
    "3dident": "nearid.lab.papers.zimmermann.ident3d:IDENT3D",
    "imagenet-factors": "nearid.lab.papers.reizinger.imagenet_factors:IMAGENET_FACTORS",
    "imagenet-x": "nearid.lab.papers.reizinger.imagenet_x:IMAGENET_X",
}


def experiment(name: str) -> Experiment[Any]:
    """An experiment by name."""
    if name not in HOMES:
        raise InputError(unknown("experiment", name, HOMES))
    chosen: Experiment[Any] = resolve_name(HOMES[name])
    return chosen


def experiments() -> list[Experiment[Any]]:
    """All experiments."""
    return [experiment(name) for name in HOMES]


def summary(e: Experiment[Any]) -> dict[str, Any]:
    """Entry of an experiment in the list of all, as JSON data."""
    return {
        "experiment": e.name,
        "shows": e.shows,
        "about": e.about,
        "paper": vars(e.paper),
        "presets": {name: {"time": p.time, "seeds": p.seeds} for name, p in e.presets.items()},
    }
