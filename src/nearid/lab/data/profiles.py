"""Cell Painting profiles of wells with their perturbations and batches; the user downloads the files."""

from pathlib import Path

import numpy as np

from nearid.arrays import Columns, open_columns
from nearid.lab.data.base import Profiles, ProfileSet, RemoteFile
from nearid.moments import Floats


def _bbbc021(folder: Path, parts: tuple[str, ...]) -> Profiles:
    """Means over the cells of a well. Labels are mechanisms of action, the control is DMSO; other wells are left "
    "out."""
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


def _cell_health(folder: Path, parts: tuple[str, ...]) -> Profiles:
    """Guides in three cell lines. Labels are genes, the controls are guides that do not cut in human cells."""
    table = open_columns(folder / "median_agg_cell_painting_median.tsv.gz")
    genes = [guide.rpartition("-")[0] or guide for guide in table.values["Metadata_pert_name"]]
    idle = {"EMPTY", "LacZ", "Luc", "Chr2"}
    labels = np.array(["control" if gene in idle else gene for gene in genes], dtype=object)
    return Profiles(_numbers(table), labels, {"line": table.values["Metadata_cell_line"]}, "control")


def _lincs(folder: Path, parts: tuple[str, ...]) -> Profiles:
    """Five principal components of each well. Labels are compounds; the file does not name controls.

    Some wells are listed more than once with the same numbers: only the first line of each is used.
    """
    table = open_columns(folder / "cell_painting_pca.tsv.gz").values
    x = np.column_stack([table[f"pca_{k}"] for k in range(1, 6)])
    wells = zip(table["Metadata_Plate"], table["Metadata_Well"], map(tuple, x.tolist()), strict=True)
    first = {well: at for at, well in reversed(list(enumerate(wells)))}
    kept = np.sort(np.fromiter(first.values(), np.intp, len(first)))
    return Profiles(x[kept], table["pert_iname"][kept], {"plate": table["Metadata_Plate"][kept]}, None)


def _numbers(table: Columns, about: str = "Metadata_") -> Floats:
    """The measured columns, without columns that have missing values."""
    measured = [v for name, v in table.values.items() if not name.startswith(about) and v.dtype.kind == "f"]
    return np.column_stack([v for v in measured if np.isfinite(v).all()])


def _by_hand(page: str, *names: str) -> tuple[RemoteFile, ...]:
    return tuple(RemoteFile(name, page, by_hand=True) for name in names)


BBBC021 = ProfileSet(
    name="bbbc021",
    title="BBBC021",
    about="wells of a compound screen: mechanisms of action, plates, weeks",
    rows=632,
    files=(
        *_by_hand("https://github.com/cytomining/cytominergallery", "ljosa_jbiomolscreen_2013_per_well_mean.csv.gz"),
        *_by_hand("https://bbbc.broadinstitute.org/BBBC021", "BBBC021_v1_image.csv.gz", "BBBC021_v1_moa.csv"),
    ),
    licence="CC BY-NC-SA 3.0 (not confirmed)",
    citation="Ljosa et al.: Comparison of Methods for Image-Based Profiling of Cellular Morphological Responses to "
    "Small-Molecule Treatment, 2013",
    homepage="https://bbbc.broadinstitute.org/BBBC021",
    read=_bbbc021,
)
CELL_HEALTH = ProfileSet(
    name="cell-health",
    title="Cell Health",
    about="CRISPR guides in three cell lines",
    rows=357,
    files=_by_hand("https://github.com/broadinstitute/cell-health", "median_agg_cell_painting_median.tsv.gz"),
    licence="BSD-3-Clause (of its repository)",
    citation="Way et al.: Predicting cell health phenotypes using image-based morphology profiling, 2021",
    homepage="https://github.com/broadinstitute/cell-health",
    read=_cell_health,
    folders=("cell_health",),
)
LINCS = ProfileSet(
    name="lincs",
    title="LINCS wells",
    about="wells of a compound screen, five principal components: compounds, plates",
    rows=36_641,
    files=_by_hand("https://github.com/broadinstitute/lincs-profiling-complementarity", "cell_painting_pca.tsv.gz"),
    licence="BSD-3-Clause (of its repository)",
    citation="Way et al.: Morphology and gene expression profiling provide complementary information for mapping cell "
    "state, 2022",
    homepage="https://github.com/broadinstitute/lincs-profiling-complementarity",
    read=_lincs,
    folders=("lincs_wells",),
)
