"""Falcor3D and Isaac3D: a rendered living room and a kitchen with a robot, every combination of their factors."""

import math
from pathlib import Path

import numpy as np

from nearid.arrays.formats.npy import NpyContents
from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile, grid
from nearid.lab.data.images import PictureImages


def _ordered(**sizes: int) -> tuple[FactorInfo, ...]:
    return tuple(FactorInfo(name, "integer", size) for name, size in sizes.items())


LIVING_ROOM = _ordered(
    lighting_intensity=5, lighting_x=6, lighting_y=6, lighting_z=6, camera_x=6, camera_y=6, camera_z=6
)
# In this order the last factor varies fastest. The home page lists another order with the same steps, but the sizes
# contradict it. The source's program and the labels use this order.
KITCHEN = (
    FactorInfo("object_shape", "categorical", 3),
    *_ordered(robot_x=8, robot_y=5, camera_height=4, object_scale=4, lighting_intensity=4, lighting_y=6),
    FactorInfo("object_color", "categorical", 4),
    FactorInfo("wall_color", "categorical", 4),
)


def _check_labels(path: Path, codes: np.ndarray, factors: tuple[FactorInfo, ...]) -> None:
    """Refuse labels whose order of the factors disagrees with the numbers of the pictures."""
    values = _load(path)
    if values.shape != codes.shape:
        raise InputError(f"{path.name} has shape {values.shape}, but {codes.shape} is expected: one row per picture.")
    steps = np.array([(factor.size or 1) - 1 for factor in factors])
    # Labels go from 0 to 1 in equal steps. Round, because many multiples fall just below a whole number.
    levels = np.rint(values * steps).astype(np.int64)
    bad = np.flatnonzero((levels != codes).any(axis=1))
    if len(bad):
        raise InputError(
            f"{path.name} has the levels {levels[bad[0]].tolist()} for picture {bad[0]}, but {codes[bad[0]].tolist()} "
            "follow from its number. Is it the canonical file?"
        )


def _load(path: Path) -> np.ndarray:
    # Do not use the suffix: the labels of Falcor3D are an .npy file under another name.
    rows = NpyContents(str(path), path.name).open(None, None)
    return rows.read(0, rows.shape[0])


def _dataset(title: str, about: str, drive: str, factors: tuple[FactorInfo, ...], labels: str) -> Dataset:
    name, home = title.lower(), f"{title}_down128"

    def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
        """Open the folder of pictures, each named by its number; the labels must agree with the order."""
        codes = grid(factors)
        _check_labels(folder / home / labels, codes, factors)
        pictures = folder / home / "images"
        images = PictureImages(name, len(codes), lambda at: pictures / f"{at:06}.png", channels=3)
        return LabelledImages(name, images, factors, codes)

    archive = RemoteFile(
        f"{home}.zip",
        f"https://drive.google.com/uc?export=download&id={drive}",
        members=(f"{home}/images/", f"{home}/{labels}"),
        holds=(f"{home}/images", f"{home}/{labels}"),
        # Google Drive requires a confirmation in the browser for a file of this size.
        by_hand=True,
    )
    return Dataset(
        name=name,
        title=f"{title} (128 x 128)",
        about=about,
        images=math.prod(factor.size or 1 for factor in factors),
        shape=(128, 128, 3),
        factors=factors,
        files=(archive,),
        licence="CC BY 4.0",
        citation="Nie et al.: Semi-Supervised StyleGAN for Disentanglement Learning, ICML 2020",
        homepage="https://github.com/NVlabs/High-res-disentanglement-datasets",
        read=read,
    )


FALCOR3D = _dataset(
    "Falcor3D",
    "a living room: lighting and camera",
    "1XAQfFK1x6cpN1eiovbP0hVfLTm5SsSoJ",
    LIVING_ROOM,
    "train-rec.labels",
)
ISAAC3D = _dataset(
    "Isaac3D",
    "a kitchen with a robot: object, robot, camera, lighting, colours",
    "1OmQ1G2wnm6eTsSFGTKFZZAh5D3nQTW1B",
    KITCHEN,
    "labels.npy",
)
