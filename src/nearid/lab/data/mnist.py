"""MNIST: handwritten digits."""

import gzip
import math
import struct
from pathlib import Path

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import ArrayImages

STEMS = {"train": "train", "test": "t10k"}
FACTORS = (FactorInfo("digit", "categorical", 10),)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Load images and labels from the four idx files."""
    images = np.concatenate([read_idx(folder / f"{STEMS[part]}-images-idx3-ubyte.gz", 3) for part in parts])
    labels = np.concatenate([read_idx(folder / f"{STEMS[part]}-labels-idx1-ubyte.gz", 1) for part in parts])
    return LabelledImages("mnist", ArrayImages("mnist", images), FACTORS, labels[:, None].astype(np.int32))


def read_idx(path: Path, dimensions: int) -> np.ndarray:
    """Return the array of a gzipped idx file: a magic number with type and dimensions, then the sizes and the bytes."""
    with damage_told(path.name, "idx file", AGAIN), gzip.open(path) as file:
        zero, kind, axes = struct.unpack(">HBB", file.read(4))
        if zero or kind != 8 or axes != dimensions:
            raise InputError(f"{path.name} does not begin like an idx file of bytes with {dimensions} dimensions.")
        shape = struct.unpack(f">{dimensions}I", file.read(4 * dimensions))
        size = math.prod(shape)
        check_memory(path.name, size, "Get the file again: its header may be damaged.")
        # Read one byte more: at the end of the file gzip also compares its checksum.
        data = file.read(size + 1)
        if len(data) != size:
            raise InputError(
                f"{path.name} declares {size} bytes, but holds {'more' if len(data) > size else len(data)}."
            )
    return np.frombuffer(data, np.uint8).reshape(shape)


def _file(name: str, size: int, checksum: str) -> RemoteFile:
    return RemoteFile(
        name,
        f"https://ossci-datasets.s3.amazonaws.com/mnist/{name}",
        size=size,
        checksum=f"sha256:{checksum}",
        checked_by="TensorFlow Datasets",
    )


MNIST = Dataset(
    name="mnist",
    title="MNIST",
    about="handwritten digits",
    images=70_000,
    shape=(28, 28, 1),
    factors=FACTORS,
    files=(
        _file(
            "train-images-idx3-ubyte.gz", 9_912_422, "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"
        ),
        _file("train-labels-idx1-ubyte.gz", 28_881, "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
        _file(
            "t10k-images-idx3-ubyte.gz", 1_648_877, "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"
        ),
        _file("t10k-labels-idx1-ubyte.gz", 4_542, "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
    ),
    licence="CC BY-SA 3.0",
    citation="LeCun, Cortes, Burges: The MNIST database of handwritten digits, 1998",
    homepage="http://yann.lecun.com/exdb/mnist/",
    read=read,
    splits=tuple(STEMS),
)
