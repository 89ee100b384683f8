"""Parametric instance discrimination, DIET (Reizinger et al. 2025, Table 2): classifying instances inverts the process.

The process, the training and the scores are those of `cross_entropy.py`; labels are instances here.
Rows of W are compared with class vectors in two ways: as in the paper on half of the instances, of which every class is
also in the other half, and on classes of which no instance was fitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from nearid.lab.framework.claims import Claim, all_of, at_most
from nearid.lab.framework.experiment import CellData, Experiment, Row
from nearid.lab.framework.papers import REIZINGER
from nearid.lab.framework.settings import parameter
from nearid.lab.papers.reizinger import cross_entropy
from nearid.lab.papers.reizinger.cross_entropy import run
from nearid.lab.papers.reizinger.cross_entropy_claims import NEAR_EQUAL, near_published, robustness
from nearid.lab.papers.reizinger.cross_entropy_table import (
    CURVES,
    Setting,
    columns,
    figures,
    presets,
    rows_of,
    shared_settings,
)

# R2 z~->z and w->v in percent, normalised W first, then free W.
PUBLISHED: Mapping[str, tuple[tuple[float, float], tuple[float, float]]] = {
    "base": ((98.6, 99.9), (99.0, 99.9)),
    "many-instances": ((98.2, 99.5), (99.7, 99.8)),
    "double-d": ((92.5, 99.6), (93.0, 99.6)),
    "quadruple-d": ((70.8, 97.1), (81.9, 99.7)),
    "few-classes": ((88.6, 85.7), (90.0, 99.0)),
    "many-classes": ((99.3, 99.9), (99.2, 99.9)),
    "low-kappa": ((98.6, 99.9), (99.0, 99.8)),
    "high-kappa": ((45.0, 49.7), (72.5, 75.5)),
    "laplace": ((85.2, 99.7), (85.4, 99.5)),
    "normal": ((98.7, 99.8), (98.6, 99.6)),
}
NOTE = "Published: Table 2, normalised W with R2o and free W with R2a."
PUBLISHED_INSTANCES = 100_000


@dataclass(frozen=True)
class Parameters(cross_entropy.Parameters):
    """Parameters of the DIET experiment."""

    many_instances: int = parameter(10_000, "instances in the row with many of them")


def rows(p: Parameters) -> list[Row]:
    """Table 2, the label noise and the classes that are too few of which the text tells."""
    many = p.many_instances
    base, *others = shared_settings(p)
    settings = [base, Setting("many-instances", f"N = {many:,}", {"instances": many}), *others]
    known = {k: v for k, v in PUBLISHED.items() if k != "many-instances" or many == PUBLISHED_INSTANCES}
    return rows_of(
        [replace(s, unit=known[s.key][0], free=known[s.key][1]) if s.key in known else s for s in settings], p, NOTE
    )


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """One training on instances."""
    return run(p, seed, folder, instances=True)


DIET = Experiment(
    name="diet",
    paper=REIZINGER,
    shows="Table 2",
    about="A classifier of instances, trained by cross-entropy, recovers the latents and the class vectors up to a "
    "rotation (normalised W) or a linear map (free W), unless the classes are too few.",
    defaults=Parameters(),
    presets=presets(smoke={"many_instances": 200}, paper={"many_instances": PUBLISHED_INSTANCES}),
    columns=columns(instances=True),
    rows=rows,
    cell=cell,
    claims=(
        near_published(PUBLISHED["base"]),
        Claim(
            f"With normalised W the maps are scaled rotations (base; singular values within {100 * NEAR_EQUAL:g}% of "
            "their value in the mean).",
            lambda found: all_of(
                at_most(found, "base-unit", "rotation_z", NEAR_EQUAL),
                at_most(found, "base-unit", "singular_w", NEAR_EQUAL),
            ),
        ),
        *robustness(),
    ),
    curves=CURVES,
    figures=figures,
)
