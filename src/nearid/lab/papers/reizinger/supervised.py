"""Supervised classification (Reizinger et al. 2025, Table 3): classifying classes inverts the process.

The process, the training and the scores are those of `cross_entropy.py`; labels are classes here. R2 of
w->v is fitted on the first half of the classes and judged on the second, and left out where half of them are too few.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from nearid.lab.framework.experiment import CellData, Experiment, Row
from nearid.lab.framework.papers import REIZINGER
from nearid.lab.papers.reizinger.cross_entropy import Parameters, run
from nearid.lab.papers.reizinger.cross_entropy_claims import near_published, robustness
from nearid.lab.papers.reizinger.cross_entropy_table import (
    CURVES,
    Setting,
    columns,
    figures,
    presets,
    rows_of,
    shared_settings,
)

# R2 z~->z in percent.
PUBLISHED: Mapping[str, float] = {
    "base": 99.8,
    "double-d": 97.2,
    "quadruple-d": 82.1,
    "few-classes": 97.5,
    "many-classes": 99.8,
    "most-classes": 99.8,
    "low-kappa": 99.7,
    "high-kappa": 65.5,
    "laplace": 85.4,
    "normal": 99.6,
}
NOTE = "Published: Table 3, taken to be of free W; the protocol at hand does not say."


def rows(p: Parameters) -> list[Row]:
    """Table 3, the label noise and the classes that are too few of which the text tells."""
    most = 100 * p.classes
    settings = shared_settings(p)
    after = next(k for k, s in enumerate(settings) if s.key == "many-classes") + 1
    changes = {"classes": most, "instances": max(most, p.instances)}
    settings.insert(after, Setting("most-classes", f"{most} classes", changes))
    return rows_of([replace(s, free=(PUBLISHED[s.key],)) if s.key in PUBLISHED else s for s in settings], p, NOTE)


def cell(p: Parameters, seed: int, folder: Path) -> CellData:
    """One training on classes."""
    return run(p, seed, folder, instances=False)


SUPERVISED = Experiment(
    name="supervised",
    paper=REIZINGER,
    shows="Table 3",
    about="A classifier of classes, trained by cross-entropy, recovers the latents up to a rotation (normalised W) or "
    "a linear map (free W), unless the classes are too few.",
    defaults=Parameters(),
    presets=presets(smoke={}, paper={}),
    columns=columns(instances=False),
    rows=rows,
    cell=cell,
    claims=(near_published(((), (PUBLISHED["base"],))), *robustness()),
    curves=CURVES,
    figures=figures,
)
