"""3D Shapes: an object in a room, every combination of six factors."""

from pathlib import Path

import numpy as np

from nearid.arrays.formats.hdf5 import check_complete, find_dataset, opened, read_values
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile, nearest_level
from nearid.lab.data.images import Images

FILE = "3dshapes.h5"
HUES = tuple((np.arange(10) / 10).tolist())
FACTORS = (
    FactorInfo("floor_hue", "circular", 10, 1.0, HUES),
    FactorInfo("wall_hue", "circular", 10, 1.0, HUES),
    FactorInfo("object_hue", "circular", 10, 1.0, HUES),
    FactorInfo("scale", "integer", 8, levels=tuple(np.linspace(0.75, 1.25, 8).tolist())),
    FactorInfo("shape", "categorical", 4, levels=(0.0, 1.0, 2.0, 3.0)),
    # From -30 to 30 degrees only, so the factor is not circular.
    FactorInfo("orientation", "integer", 15, levels=tuple(np.linspace(-30, 30, 15).tolist())),
)


class _Hdf5Images(Images):
    def __init__(self, path: Path, key: str) -> None:
        self._path, self._key = path, key
        with opened(str(path), path.name) as file:
            stored = find_dataset(file, path.name, key, "key")
            super().__init__(f"{path.name}:{key}", stored.shape, stored.dtype)
            check_complete(stored, self.name)
            if stored.chunks is not None:
                self.window = stored.chunks[0]

    def _read(self, start: int, stop: int) -> np.ndarray:
        with opened(str(self._path), self._path.name) as file:
            return read_values(find_dataset(file, self.name, self._key, "key"), self.name, slice(start, stop))


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Open the .h5; the level of a factor is the one nearest to the stored value."""
    path = folder / FILE
    with opened(str(path), FILE) as file:
        stored = find_dataset(file, FILE, "labels", "key")
        if len(stored.shape) != 2 or stored.shape[1] != len(FACTORS):
            raise InputError(f"{FILE} has labels of shape {stored.shape}, but (images, {len(FACTORS)}) is expected.")
        check_memory(f"{FILE}:labels", 8 * stored.size, "Close other programs.")
        check_complete(stored, f"{FILE}:labels")
        values = read_values(stored, f"{FILE}:labels", slice(None)).astype(np.float64)
    codes = [nearest_level(FILE, factor, values[:, at]) for at, factor in enumerate(FACTORS)]
    return LabelledImages("shapes3d", _Hdf5Images(path, "images"), FACTORS, np.stack(codes, axis=1).astype(np.int32))


SHAPES3D = Dataset(
    name="shapes3d",
    title="3D Shapes",
    about="an object in a room: three hues, scale, shape, orientation",
    images=480_000,
    shape=(64, 64, 3),
    factors=FACTORS,
    files=(
        RemoteFile(
            FILE,
            "https://storage.googleapis.com/3d-shapes/3dshapes.h5",
            size=267_573_662,
            checksum="sha256:0a0f6ed98baff276a50f3a081a7434d788da63cb135a98189b2a5b5769be1785",
            checked_by="TensorFlow Datasets",
        ),
    ),
    licence="Apache-2.0 (of its repository, not confirmed)",
    citation="Burgess, Kim: 3D Shapes Dataset, 2018",
    homepage="https://github.com/google-deepmind/3d-shapes",
    read=read,
)
