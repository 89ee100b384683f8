"""3DIdent: a rendered object under a spotlight, ten continuous factors."""

import math
from pathlib import Path

import numpy as np

from nearid.arrays import open_rows
from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import PictureImages

SPLITS = ("train", "test")
POSITION = ("x", "y", "z")
ANGLES = ("rotation_alpha", "rotation_beta", "rotation_gamma", "spotlight", "object_hue", "spotlight_hue", "ground_hue")
FACTORS = tuple(FactorInfo(name, "continuous") for name in POSITION + ANGLES)
PERIODIC = (
    *(FactorInfo(name, "continuous") for name in POSITION),
    *(FactorInfo(name, "circular", period=2 * math.pi) for name in ANGLES),
)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Open the folders of pictures.

    Latents come from a box (raw_latents.npy has ten columns, from -1 to 1), or their angles come from a sphere (eleven
    columns). In the second case the angles are read from latents.npy.
    """
    homes = [folder / "3dident" / part for part in parts]
    raw = [_load(home / "raw_latents.npy") for home in homes]
    widths = {values.shape[1] for values in raw}
    if widths == {len(FACTORS)}:
        factors, tables = FACTORS, raw
    elif widths == {len(FACTORS) + 1}:
        factors, tables = PERIODIC, [_load(home / "latents.npy") for home in homes]
    else:
        raise InputError(f"raw_latents.npy of 3DIdent has {sorted(widths)} columns, but 10 or 11 are expected.")
    counts = [len(table) for table in tables]

    def where(at: int) -> Path:
        """The picture of a row; the names have as many digits as the largest number needs."""
        home, n = 0, counts[0]
        while at >= n:
            at, home = at - n, home + 1
            n = counts[home]
        return homes[home] / "images" / f"{at:0{math.ceil(math.log10(n))}}.png"

    images = PictureImages("3dident", sum(counts), where, channels=3)
    return LabelledImages("3dident", images, factors, np.concatenate(tables))


def _load(path: Path) -> np.ndarray:
    rows = open_rows(path)
    return rows.read(0, rows.shape[0]).astype(np.float64)


def _archive(split: str, md5: str) -> RemoteFile:
    return RemoteFile(
        f"3dident_{split}.tar",
        f"https://zenodo.org/record/4502485/files/3dident_{split}.tar",
        checksum=f"md5:{md5}",
        checked_by="the package disent",
        members=(f"3dident/{split}/",),
        holds=(f"3dident/{split}",),
    )


IDENT3D = Dataset(
    name="3dident",
    title="3DIdent",
    about="a teapot under a spotlight: position, rotation, light, hues",
    images=275_000,
    shape=(224, 224, 3),
    factors=FACTORS,
    files=(
        _archive("train", "df132b4dacf04fa28e1c8ca9d2168634"),
        _archive("test", "35020bca16c9faa80cf0c926d265d678"),
    ),
    licence="see the home page",
    citation="Zimmermann et al.: Contrastive Learning Inverts the Data Generating Process, ICML 2021",
    homepage="https://zenodo.org/record/4502485",
    read=read,
    splits=SPLITS,
)
