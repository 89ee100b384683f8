"""Small NORB: photographs of 50 toys from many sides, under six lights."""

import gzip
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import ArrayImages

STEMS = {"train": "smallnorb-5x46789x9x18x6x2x96x96-training", "test": "smallnorb-5x01235x9x18x6x2x96x96-testing"}
# The format's own magic numbers for a matrix of bytes and of whole numbers.
TYPES: dict[int, np.dtype[Any]] = {0x1E3D4C55: np.dtype("u1"), 0x1E3D4C54: np.dtype("<i4")}
BLOCK = 500
FACTORS = (
    FactorInfo("category", "categorical", 5, levels=("animal", "human", "plane", "truck", "car")),
    # Number of the toy in its category (0 to 9). Train and test use different toys.
    FactorInfo("instance", "categorical", 10),
    FactorInfo("elevation", "integer", 9, levels=tuple(range(30, 75, 5))),
    FactorInfo("azimuth", "circular", 18, 360.0, tuple((np.arange(18) * 20.0).tolist())),
    FactorInfo("lighting", "categorical", 6),
)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Load the pictures of the first of the two cameras, and their labels."""
    pictures = [_first_camera(folder / f"{STEMS[part]}-dat.mat.gz") for part in parts]
    labels = np.concatenate([_labels(folder, STEMS[part]) for part in parts])
    return LabelledImages("smallnorb", ArrayImages("smallnorb", np.concatenate(pictures)), FACTORS, labels)


def _labels(folder: Path, stem: str) -> np.ndarray:
    category = _matrix(folder / f"{stem}-cat.mat.gz", 1)
    info = _matrix(folder / f"{stem}-info.mat.gz", 2)
    if len(category) != len(info) or info.shape[1] != 4:
        raise InputError(
            f"{stem} has categories of shape {category.shape} and other labels of shape {info.shape}: "
            f"the numbers of rows differ."
        )
    # Azimuths are stored as 0, 2, ..., 34, in tens of degrees.
    return np.column_stack([category, info[:, 0], info[:, 1], info[:, 2] // 2, info[:, 3]]).astype(np.int32)


def _first_camera(path: Path) -> np.ndarray:
    with _opened(path) as (file, shape, dtype):
        if len(shape) != 4 or shape[1] != 2 or dtype != np.uint8:
            raise InputError(f"{path.name} has shape {shape} and dtype {dtype}, but pairs of pictures are expected.")
        check_memory(path.name, math.prod(shape) // 2, "Load one split at a time.")
        pictures = np.empty((shape[0], *shape[2:]), np.uint8)
        for start in range(0, shape[0], BLOCK):
            stop = min(start + BLOCK, shape[0])
            pictures[start:stop] = _numbers(file, (stop - start, *shape[1:]), dtype, path.name)[:, 0]
    return pictures


def _matrix(path: Path, dimensions: int) -> np.ndarray:
    with _opened(path) as (file, shape, dtype):
        if len(shape) != dimensions or dtype.kind != "i":
            raise InputError(f"{path.name} has shape {shape} and dtype {dtype}, but labels are expected.")
        check_memory(path.name, math.prod(shape) * dtype.itemsize, "Close other programs.")
        return _numbers(file, shape, dtype, path.name)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[gzip.GzipFile, tuple[int, ...], np.dtype[Any]]]:
    """Yield the file, its shape and its type; refuse the file if it has more numbers than it declares."""
    with damage_told(path.name, "smallNORB file", AGAIN), gzip.open(path) as file:
        yield file, *_header(file, path.name)
        # At the end of the file gzip also compares its checksum.
        if file.read(1):
            raise InputError(f"{path.name} contains more numbers than it declares. {AGAIN}")


def _header(file: gzip.GzipFile, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type. The header has a magic number, the number of dimensions, and at least three sizes."""
    magic, dimensions = struct.unpack("<ii", file.read(8))
    if magic not in TYPES or not 1 <= dimensions <= 8:
        raise InputError(f"{name} does not begin like a smallNORB file. {AGAIN}")
    stored = max(dimensions, 3)
    shape = struct.unpack(f"<{stored}i", file.read(4 * stored))[:dimensions]
    if min(shape) < 1:
        raise InputError(f"{name} is damaged: it declares the shape {shape}. {AGAIN}")
    return shape, TYPES[magic]


def _numbers(file: gzip.GzipFile, shape: tuple[int, ...], dtype: np.dtype[Any], name: str) -> np.ndarray:
    size = math.prod(shape) * dtype.itemsize
    data = file.read(size)
    if len(data) < size:
        raise InputError(f"{name} contains fewer numbers than it declares. {AGAIN}")
    return np.frombuffer(data, dtype).reshape(shape)


SIZES_AND_SUMS = {
    "training-dat": (131_896_188, "5ffd6272a07d32695ee1082a26a41a93a37aab8c28da047f8c34ed348d214873"),
    "training-cat": (348, "2784e542c1922060691090952b6cd6278879a216c90f81476f0f00256d42cdaa"),
    "training-info": (71_052, "de7eb932ebe7a4ee16217fead60660d0eb3d23632c2f4d1c51f88c501c17bf32"),
    "testing-dat": (130_799_817, "cf7104eed3e51174d2f65b66d1e5878b9da233b886f161b0d88f4510ba2c7474"),
    "testing-cat": (347, "ecaf6d5bb8c3bc5eab9cf0258f6d2198dd474e016e374836fc097f2e5ff509ff"),
    "testing-info": (10_428, "16adf314226327ee006d1a44db8cfef52773c06c829951d5653a9f6f310248a2"),
}


def _file(stem: str, kind: str) -> RemoteFile:
    name = f"{stem}-{kind}.mat.gz"
    size, checksum = SIZES_AND_SUMS[f"{stem.rpartition('-')[2]}-{kind}"]
    return RemoteFile(
        name,
        f"https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/{name}",
        size=size,
        checksum=f"sha256:{checksum}",
        checked_by="TensorFlow Datasets",
    )


SMALLNORB = Dataset(
    name="smallnorb",
    title="Small NORB",
    about="toys photographed: category, instance, elevation, azimuth, lighting",
    images=48_600,
    shape=(96, 96, 1),
    factors=FACTORS,
    files=tuple(_file(stem, kind) for stem in STEMS.values() for kind in ("dat", "cat", "info")),
    licence="for research; may not be sold",
    citation="LeCun, Huang, Bottou: Learning Methods for Generic Object Recognition, CVPR 2004",
    homepage="https://cs.nyu.edu/~ylclab/data/norb-v1.0-small/",
    read=read,
    splits=tuple(STEMS),
)
