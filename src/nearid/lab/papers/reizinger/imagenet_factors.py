"""Factors of images in classifiers of ImageNet (Reizinger et al. 2025, the claim behind ImageNet-X).

The paper's last claim is that networks that were trained on the classes of ImageNet encode other factors of an image
linearly. Its annotated images cannot be brought along (`imagenet-x` is for whoever has them). Here are other images
whose factors are known: the 698 faces of Isomap (light, pan, tilt) and COIL-20 (20 objects, each turned by 0 to 355
degrees). Both are far from what the networks were trained on, and no network was told these factors.

What is compared is held-out R2 of a ridge regression from penultimate features: of two trained networks, of one of them
without training, and of pixels at 32 x 32. The penalty is chosen inside the training folds, for each factor. Pose is an
angle, so R2 is that of its cosine and sine together. The object is a category, so R2 is that of its indicators.

COIL-20 has two kinds of rows. If images are held out at random, the poses 5 degrees before and after a held-out one are
usually seen. If whole objects are held out, a network must place the zero of an angle on objects that were never seen.
COIL-20 fixes that zero for each object by how it was put on the turntable, so nothing in an image may tell it.

Features come from a file with arrays faces_NAME and coil_NAME for each network, and coil_object (1 to 20) and
coil_degrees, which name the rows. The faces have the order of their source. Features of networks of one's own, in the
same layout, are given with --set features=FILE.npz.

A seed draws the folds. Images and networks are what they are, so the intervals say how much the folds matter, and are
not over images or networks. Differences must therefore exceed a margin to count. Claims and margin were written after a
first look at single splits, which the request for this experiment reported: COIL pose (cosine, sine) .82 .81 and .86
.82 from the two trained networks, .12 .11 untrained and .55 .31 from pixels; faces' tilt .97 .95, .57 untrained, pan
.90 .74 and .83, light .79 .83 and .79, and .95, .99, .94 from pixels. That the linear map between trained networks is
also better if whole objects are held out was added to the last claim after seed 0 had been seen.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.base.files import local_path
from nearid.lab.data.registry import VARIABLE, dataset, locate
from nearid.lab.framework.claims import Claim, Test, all_of, at_least, exceeds, for_parameters
from nearid.lab.framework.experiment import REIZINGER, CellData, Column, Experiment, Row, presets
from nearid.lab.framework.result import ExperimentResult
from nearid.lab.framework.scoreboard import NAME
from nearid.lab.framework.settings import Checked, parameter
from nearid.lab.papers.reizinger import sections
from nearid.moments import Floats
from nearid.show.figures import Dots, Figure, HeatMap
from nearid.show.view import counted

# Where the features are, below the folder of the data sets.
PLACE = Path("ensembles", "imagenet_factors.npz")
PIXELS = "pixels"
# Data sets under the names of their arrays.
STORED = {"faces": "faces", "coil": "coil20"}
# Kinds of rows: their images, what they decode, and whether whole objects are held out.
KINDS: Mapping[str, tuple[str, tuple[str, ...], bool]] = {
    "faces": ("faces", ("light", "pan", "tilt"), False),
    "coil": ("coil", ("object", "pose"), False),
    "coil-objects": ("coil", ("pose",), True),
}
TITLES = {"faces": "faces", "coil": "COIL-20", "coil-objects": "COIL-20, whole objects held out"}
# A difference of R2 that counts, and one up to which two networks agree.
CLEARLY, AGREES = 0.02, 0.1
# Poses of an object in COIL-20, and degrees from one to the next.
POSES, DEGREES = 72, 5


@dataclass(frozen=True)
class Parameters(Checked):
    """Parameters of the experiment on factors in classifiers of ImageNet; rows set kind, network and contents."""

    features: str = parameter("", f"file of features (.npz); if empty, {PLACE} below the folder that {VARIABLE} names")
    trained: str = parameter("lite0,lite1", "names of the trained networks in the file, by comma")
    untrained: str = parameter("untrained", "name of the network without training in the file")
    kind: str = parameter("faces", "images, and what is held out; rows set it", choices=tuple(KINDS))
    network: str = parameter("lite0", f"whose features are decoded; {PIXELS} for the images; rows set it")
    contents: str = parameter("", "digest of the file of features; rows set it")
    side: int = parameter(32, "height and width at which images are taken as pixels", least=4, smoke=8)
    folds: int = parameter(5, "folds that are held out in turn", least=3, most=20, smoke=3)

    @property
    def networks(self) -> tuple[str, ...]:
        """Names of the trained networks."""
        return tuple(name.strip() for name in self.trained.split(",") if name.strip())


def file_of(p: Parameters) -> Path:
    """The file of features."""
    if p.features:
        return local_path(p.features)
    return Path(local_path(os.environ[VARIABLE]), PLACE) if os.environ.get(VARIABLE) else PLACE


def ready(p: Parameters) -> None:
    """Refuse to begin without features of trained networks, or without the images."""
    path = file_of(p)
    if not path.is_file():
        raise InputError(
            f"The experiment imagenet-factors needs features of the faces and of COIL-20, but {path} is not a file. "
            f"Set {VARIABLE} to the folder that holds {PLACE}, or name a file with --set features=FILE.npz."
        )
    if len(p.networks) < 2:
        raise InputError(f"The parameter trained must name at least 2 networks, by comma, not {p.trained!r}.")
    for kind, (images, *_) in KINDS.items():
        locate(dataset(STORED[images]))
        for name in (*p.networks, p.untrained):
            features_of(p, kind, name)


def array(p: Parameters, key: str) -> np.ndarray:
    """An array of the file, with one row for each image."""
    try:
        with np.load(file_of(p), allow_pickle=False) as held:
            if key in held:
                return np.asarray(held[key])
            names = ", ".join(held)
    except (OSError, ValueError, BadZipFile) as error:
        raise InputError(f"{file_of(p)} cannot be read as a file of arrays (.npz): {error}") from error
    raise InputError(f"{file_of(p)} has no array {key}. Its arrays are {names}.")


def features_of(p: Parameters, kind: str, network: str) -> Floats:
    """Features of the images of a kind of rows, in the order of the file."""
    from nearid.lab.data.load import load

    images = KINDS[kind][0]
    if network != PIXELS:
        return array(p, f"{images}_{network}").astype(np.float64)
    held = load(STORED[images], size=p.side).images
    pixels = held.take(np.arange(len(held))).reshape(len(held), -1).astype(np.float64)
    return pixels[_places(p)] if images == "coil" else pixels


def _places(p: Parameters) -> np.ndarray:
    """Places of the file's rows in COIL-20, which is sorted by object and pose."""
    objects, degrees = (array(p, f"coil_{name}").ravel().astype(int) for name in ("object", "degrees"))
    return np.asarray((objects - 1) * POSES + degrees // DEGREES)


def truth_of(p: Parameters, kind: str) -> tuple[Any, np.ndarray | None]:
    """The factors of a kind of rows, and the objects where these are held out whole."""
    from nearid.lab.data.load import load
    from nearid.measures.factors import open_factors

    images, names, whole = KINDS[kind]
    if images == "faces":
        return open_factors(load("faces").columns), None
    objects, degrees = (array(p, f"coil_{name}").ravel().astype(int) for name in ("object", "degrees"))
    columns = {"object": objects, "pose": degrees}
    kinds = {"object": "categorical", "pose": "circular"}
    factors = open_factors(
        {name: columns[name] for name in names}, kinds={name: kinds[name] for name in names}, periods={"pose": 360.0}
    )
    return factors, objects.astype(str) if whole else None


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """Decode the factors from one set of features, and map these to those of another trained network."""
    from nearid.measures.r2 import r2
    from nearid.questions.compare.run import compare

    features = features_of(p, p.kind, p.network)
    factors, objects = truth_of(p, p.kind)
    blocks = "none" if objects is None else objects
    decoded = r2(features, factors, folds=p.folds, random_state=seed, blocks=blocks)
    scores = {name: float(value) for name, value in zip(decoded.factors, decoded.per_factor, strict=True)}
    other = next(name for name in reversed(p.networks) if name != p.network)
    target = features_of(p, p.kind, other)
    options: dict[str, Any] = {"groups": ("linear",), "folds": p.folds, "permutations": 1, "random_state": seed}
    comparison = compare(features, target, blocks=blocks, **options)
    return {"scores": scores | {"linear": float(comparison.groups["linear"].r2.value)}}


def rows(p: Parameters) -> list[Row]:
    """For each kind: trained networks, the one without training, and pixels."""
    path = file_of(p)
    contents = hashlib.sha256(path.read_bytes()).hexdigest()[:16] if path.is_file() else ""
    # Where the file lies is no business of a cell as long as it holds the same.
    return [
        Row(
            f"{kind}-{network}",
            f"{TITLES[kind]}: {_title(p, network)}",
            {"kind": kind, "network": network, "contents": contents},
        )
        for kind in KINDS
        for network in (*p.networks, p.untrained, PIXELS)
    ]


def _title(p: Parameters, network: str) -> str:
    return network if network in (PIXELS, p.untrained) else f"trained ({network})"


def _above(kind: str, baseline: str) -> Test:
    """Whether every trained network decodes every factor better than a baseline does."""

    def made(p: Parameters) -> Test:
        name = p.untrained if baseline == "untrained" else baseline
        pairs = [(network, factor) for network in p.networks for factor in KINDS[kind][1]]
        return all_of(*(exceeds((f"{kind}-{network}", f), (f"{kind}-{name}", f), by=CLEARLY) for network, f in pairs))

    return for_parameters(made)


def _known(features: Sequence[str], factors: Mapping[str, Sequence[str]]) -> Test:
    """Whether factors, by the kind of images, decode from features better than their mean would."""
    return all_of(
        *(at_least(f"{kind}-{one}", f, 0.0) for one in features for kind, names in factors.items() for f in names)
    )


def _agree(p: Parameters) -> Test:
    """Whether the first two trained networks decode each factor about equally well."""
    first, second = p.networks[:2]
    pairs = [(kind, factor) for kind in ("faces", "coil") for factor in KINDS[kind][1]]
    sides = [((first, second), pair) for pair in pairs] + [((second, first), pair) for pair in pairs]
    return all_of(*(exceeds((f"{kind}-{a}", f), (f"{kind}-{b}", f), by=-AGREES) for (a, b), (kind, f) in sides))


def _mapped(p: Parameters) -> Test:
    """Whether a trained network is mapped to another one better than the baselines are."""
    return all_of(
        *(
            exceeds((f"{kind}-{p.networks[0]}", "linear"), (f"{kind}-{baseline}", "linear"), by=CLEARLY)
            for kind in KINDS
            for baseline in (p.untrained, PIXELS)
        )
    )


def figures(result: ExperimentResult) -> list[Figure]:
    """For each kind of rows, what is decoded from which features."""
    drawn: list[Figure] = []
    for kind, (_, names, _) in KINDS.items():
        ran = [row for row in result.rows if row.changes["kind"] == kind and result.of_row(row.key)]
        if ran:
            drawn.append(
                HeatMap(
                    f"{TITLES[kind]}: factors that are linear in the features",
                    "Held-out R2 of a ridge regression from features (rows) to factors (columns), mean over seeds. "
                    "Values below 0 are drawn as 0.",
                    {kind: [[max(0.0, float(result.estimate(row.key, name))) for name in names] for row in ran]},
                    [row.title.rpartition(": ")[2] for row in ran],
                    names,
                )
            )
    return drawn


def factor_figure(result: ExperimentResult) -> Figure | None:
    """What is decoded of each factor from each kind of features, as far as it was run."""
    p, ran = result.parameters, {row.key for row in result.rows if result.of_row(row.key)}
    factors = [(kind, name) for kind, (_, names, _) in KINDS.items() for name in names]
    factors = [(kind, name) for kind, name in factors if any(key.startswith(f"{kind}-") for key in ran)]
    groups: dict[str, list[Estimate | None]] = {
        _title(p, network): [
            result.estimate(f"{kind}-{network}", name) if f"{kind}-{network}" in ran else None for kind, name in factors
        ]
        for network in (*p.networks, p.untrained, PIXELS)
    }
    if not factors:
        return None
    return Dots(
        "imagenet-factors: factors that are linear in the features",
        f"Held-out R2 of a ridge regression, mean over {counted(len(result.seeds), 'seed')} that draw folds.",
        "R2, held out",
        [f"{TITLES[kind]}: {name}" for kind, name in factors],
        groups,
        name_width=NAME,
    )


def _claims() -> Sequence[Claim]:
    margin = f"R2 higher by more than {CLEARLY:g}"
    return (
        Claim(
            f"Faces: light, pan and tilt decode better from trained networks than from the untrained one ({margin}).",
            _above("faces", "untrained"),
        ),
        Claim(f"Faces: they decode better than from pixels ({margin}).", _above("faces", PIXELS)),
        Claim(
            f"COIL-20: object and pose decode better from trained networks than from the untrained one ({margin}).",
            _above("coil", "untrained"),
        ),
        Claim(f"COIL-20: they decode better than from pixels ({margin}).", _above("coil", PIXELS)),
        Claim(
            "Factors decode above chance from trained networks (faces and COIL-20, R2 above 0).",
            for_parameters(lambda p: _known(p.networks, {kind: KINDS[kind][1] for kind in ("faces", "coil")})),
            late=True,
        ),
        Claim(
            "The light decodes even from pixels and from the untrained network (faces, R2 above 0; in the paper "
            "the factors brighter and darker do).",
            for_parameters(lambda p: _known((p.untrained, PIXELS), {"faces": ("light",)})),
            late=True,
        ),
        Claim(
            f"COIL-20, whole objects held out: pose decodes better than from the untrained network ({margin}).",
            _above("coil-objects", "untrained"),
            added=True,
        ),
        Claim(
            f"COIL-20, whole objects held out: pose decodes better than from pixels ({margin}).",
            _above("coil-objects", PIXELS),
            added=True,
        ),
        Claim(
            f"The two trained networks agree: R2 of each factor differs by less than {AGREES:g}.",
            for_parameters(_agree),
            added=True,
        ),
        Claim(
            "A linear map carries more of one trained network to the other than of the untrained network or of pixels "
            f"({margin}, held out).",
            for_parameters(_mapped),
            added=True,
        ),
    )


IMAGENET_FACTORS = Experiment(
    name="imagenet-factors",
    paper=REIZINGER,
    shows="Like ImageNet-X",
    section=replace(sections.IMAGENET_FACTORS, figure=factor_figure),
    seeds_draw="folds",
    about="Features of networks that were trained on the classes of ImageNet decode pose, light and object of other "
    "images linearly. Needs a file of features, and the data sets faces and coil20.",
    defaults=Parameters(),
    presets=presets(
        cpu=("about 5 minutes of one core", 3), paper=("the same", 3), smoke=("a minute: the features are as many", 2)
    ),
    columns=(
        *(Column(name, name, 3, most=1) for name in ("light", "pan", "tilt", "object", "pose")),
        Column("linear", "R2 of a linear map to the other trained network", 3, most=1),
    ),
    rows=rows,
    cell=cell,
    claims=_claims(),
    figures=figures,
    requires={},
    ready=ready,
)
