"""Profiles of wells by Cell Painting with their perturbations and batches; found on disk, never downloaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nearid.arrays import Columns, open_columns
from nearid.base.errors import InputError, unknown
from nearid.base.files import local_path
from nearid.lab.data.places import VARIABLE, cache_folder
from nearid.moments import Floats


class Profiles(NamedTuple):
    """Rows of shape (n, d), the label and the batches of each (by kind of batch), and the label of the controls."""

    values: Floats
    labels: np.ndarray
    batches: dict[str, np.ndarray]
    control: str | None


@dataclass(frozen=True)
class Source:
    """Where a set comes from: its folder, its files, its home, and how it is read."""

    folder: str
    files: tuple[str, ...]
    home: str
    read: Callable[[Path], Profiles]


def load_profiles(name: str) -> Profiles:
    """Profiles by name: "bbbc021", "cell-health" or "lincs"."""
    if name not in SOURCES:
        raise InputError(unknown("set of profiles", name, SOURCES))
    source = SOURCES[name]
    roots = [local_path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    places = [root / source.folder for root in (*roots, cache_folder())]
    for place in places:
        if all((place / file).is_file() for file in source.files):
            return source.read(place)
    raise InputError(
        f"The profiles {name} are not here: {', '.join(source.files)} were looked for in "
        f"{', '.join(map(str, places))}. Get them from {source.home}, put them into {source.folder}/ below a folder, "
        f"and set {VARIABLE} to that folder."
    )


def _bbbc021(folder: Path) -> Profiles:
    """Means over the cells of a well; mechanisms of action against DMSO, wells of other compounds left out."""
    wells = open_columns(folder / "ljosa_jbiomolscreen_2013_per_well_mean.csv.gz")
    images = open_columns(folder / "BBBC021_v1_image.csv.gz").values
    known = open_columns(folder / "BBBC021_v1_moa.csv").values
    mechanism = {
        (c, float(dose)): m for c, dose, m in zip(known["compound"], known["concentration"], known["moa"], strict=True)
    }
    names = ("Plate_DAPI", "Well_DAPI", "Compound", "Concentration")
    treated = {
        (plate, well): (compound, float(dose))
        for plate, well, compound, dose in zip(*(images[f"Image_Metadata_{n}"] for n in names), strict=True)
    }
    plates, places = wells.values["Image_Metadata_Plate"], wells.values["Image_Metadata_Well"]
    given = [treated[plate, well] for plate, well in zip(plates, places, strict=True)]
    labels = np.array(["DMSO" if c == "DMSO" else mechanism.get((c, dose)) for c, dose in given], dtype=object)
    kept = labels != None  # noqa: E711
    weeks = np.array([plate.partition("_")[0] for plate in plates], dtype=object)
    x = _numbers(wells, "Image_Metadata_")
    return Profiles(x[kept], labels[kept], {"plate": plates[kept], "week": weeks[kept]}, "DMSO")


def _cell_health(folder: Path) -> Profiles:
    """Guides in three cell lines; genes against guides that cut nothing (in human cells)."""
    table = open_columns(folder / "median_agg_cell_painting_median.tsv.gz")
    genes = [guide.rpartition("-")[0] or guide for guide in table.values["Metadata_pert_name"]]
    idle = {"EMPTY", "LacZ", "Luc", "Chr2"}
    labels = np.array(["control" if gene in idle else gene for gene in genes], dtype=object)
    return Profiles(_numbers(table), labels, {"line": table.values["Metadata_cell_line"]}, "control")


def _lincs(folder: Path) -> Profiles:
    """Five principal components of each well; compounds, each against all others, as the controls are not given.

    Some wells are listed more than once with the same numbers: they count once, as the first line has it.
    """
    table = open_columns(folder / "cell_painting_pca.tsv.gz").values
    x = np.column_stack([table[f"pca_{k}"] for k in range(1, 6)])
    wells = zip(table["Metadata_Plate"], table["Metadata_Well"], map(tuple, x.tolist()), strict=True)
    first = {well: at for at, well in reversed(list(enumerate(wells)))}
    kept = np.sort(np.fromiter(first.values(), np.intp, len(first)))
    return Profiles(x[kept], table["pert_iname"][kept], {"plate": table["Metadata_Plate"][kept]}, None)


def _numbers(table: Columns, about: str = "Metadata_") -> Floats:
    """The columns that are measured, without those that miss values."""
    measured = [v for name, v in table.values.items() if not name.startswith(about) and v.dtype.kind == "f"]
    return np.column_stack([v for v in measured if np.isfinite(v).all()])


SOURCES = {
    "bbbc021": Source(
        "bbbc021",
        ("ljosa_jbiomolscreen_2013_per_well_mean.csv.gz", "BBBC021_v1_image.csv.gz", "BBBC021_v1_moa.csv"),
        "https://bbbc.broadinstitute.org/BBBC021 (and the well means from github.com/cytomining/cytominergallery)",
        _bbbc021,
    ),
    "cell-health": Source(
        "cell_health",
        ("median_agg_cell_painting_median.tsv.gz",),
        "https://github.com/broadinstitute/cell-health",
        _cell_health,
    ),
    "lincs": Source(
        "lincs_wells",
        ("cell_painting_pca.tsv.gz",),
        "https://github.com/broadinstitute/lincs-profiling-complementarity",
        _lincs,
    ),
}
