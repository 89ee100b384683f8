"""Cars3D: 183 models of cars, rendered from 24 sides and 4 heights."""

import re
from functools import lru_cache
from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import Images
from nearid.lab.data.matlab import load_mat, mat_shapes

HOME = "data/cars"
ELEVATIONS, AZIMUTHS, CARS = 4, 24, 183
VIEWS = ELEVATIONS * AZIMUTHS
FACTORS = (
    FactorInfo("elevation", "integer", ELEVATIONS),
    FactorInfo("azimuth", "circular", AZIMUTHS, 360.0, tuple((np.arange(AZIMUTHS) * 15.0).tolist())),
    FactorInfo("object_type", "categorical", CARS),
)


class _CarImages(Images):
    """Images in one file per car; in each file azimuths vary faster than elevations."""

    # All images of a car are loaded together.
    window = VIEWS

    def __init__(self, paths: list[Path]) -> None:
        shape = mat_shapes(paths[0]).get("im", ())
        if len(shape) != 5 or shape[2:] != (3, AZIMUTHS, ELEVATIONS):
            raise InputError(
                f"{paths[0].name} has 'im' of shape {shape}, but (height, width, 3, {AZIMUTHS}, {ELEVATIONS}) is "
                "expected."
            )
        super().__init__("cars3d", (VIEWS * len(paths), *shape[:3]), np.dtype(np.uint8))
        self._paths, self._stored = paths, shape
        # Neighbours are often read one after the other.
        self._car = lru_cache(maxsize=2)(self._load)

    def _load(self, car: int) -> np.ndarray:
        stored = load_mat(self._paths[car], {"im": self._stored})["im"]
        if stored.dtype != np.uint8:
            raise InputError(f"{self._paths[car].name} has 'im' of dtype {stored.dtype}, but uint8 is expected.")
        return stored.transpose(4, 3, 0, 1, 2).reshape(VIEWS, *self.shape[1:])

    def _read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, *self.shape[1:]), np.uint8)
        for car in range(start // VIEWS, -(-stop // VIEWS)):
            first, last = max(start, car * VIEWS), min(stop, (car + 1) * VIEWS)
            out[first - start : last - start] = self._car(car)[first - car * VIEWS : last - car * VIEWS]
        return out


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Open the files of all cars; cars are numbered in the order of list.txt."""
    home = folder / HOME
    names = _names(home)
    absent = [name for name in names if not (home / f"{name}.mat").is_file()]
    if absent or not names:
        raise InputError(f"{home} lacks {absent[0] if absent else 'files'}.mat. {AGAIN}")
    views = np.stack(np.unravel_index(np.arange(VIEWS), (ELEVATIONS, AZIMUTHS)), axis=1)
    # Use whole numbers throughout: truncating a fraction would merge a class with its neighbour.
    cars = np.repeat(np.arange(len(names)), VIEWS)
    codes = np.column_stack([np.tile(views, (len(names), 1)), cars]).astype(np.int32)
    return LabelledImages("cars3d", _CarImages([home / f"{name}.mat" for name in names]), FACTORS, codes)


def _names(home: Path) -> list[str]:
    listing = home / "list.txt"
    if listing.is_file():
        names = listing.read_text().split()
        unsafe = [name for name in names if not re.fullmatch(r"[\w.-]+", name)]
        if unsafe:
            raise InputError(f"{listing} lists {unsafe[0]!r}, which is not a file name in this folder. {AGAIN}")
        return names
    stems = [path.stem for path in home.glob("*.mat")]
    return sorted(
        stems, key=lambda name: [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", name)]
    )


CARS3D = Dataset(
    name="cars3d",
    title="Cars3D",
    about="rendered cars: elevation, azimuth, model",
    images=VIEWS * CARS,
    shape=(128, 128, 3),
    factors=FACTORS,
    files=(
        RemoteFile(
            "nips2015-analogy-data.tar.gz",
            "http://www.scottreed.info/files/nips2015-analogy-data.tar.gz",
            checksum="md5:4e866a7919c1beedf53964e6f7a23686",
            checked_by="the package disent; the source publishes none",
            members=("data/cars/",),
            holds=(HOME,),
        ),
    ),
    licence="none stated",
    citation="Reed, Zhang, Zhang, Lee: Deep Visual Analogy-Making, NeurIPS 2015",
    homepage="http://www.scottreed.info",
    read=read,
)
