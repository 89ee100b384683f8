"""CIFAR-10: small photographs of ten classes of things."""

import json
from itertools import takewhile
from pathlib import Path

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.lab.data.base import AGAIN, Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import ArrayImages, decode

HOME = "cifar-10-batches-bin"
BATCHES = {"train": tuple(f"data_batch_{k}" for k in range(1, 6)), "test": ("test_batch",)}
# The same pictures as sheets: each row of a sheet is one picture. The source spells the names of the label files so.
SHEETS = ("data_batch_1.png", "test_batch.png", "train_lables.json", "test_lables.json")
SIDE, CHANNELS = 32, 3
PIXELS = SIDE * SIDE * CHANNELS
TRAIN = 50_000
# The labels take far fewer bytes than this.
MOST = 10_000_000
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
FACTORS = (FactorInfo("class", "categorical", len(CLASSES), levels=CLASSES),)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Load images and classes from the binary files, or from sheets with all or some of the training images."""
    one = read_binary if (folder / HOME).is_dir() else read_sheets
    splits = [one(folder, part) for part in parts]
    images, labels = (np.concatenate(arrays) for arrays in zip(*splits, strict=True))
    seen = dict(zip(parts, (len(each) for each, _ in splits), strict=True)).get("train", TRAIN)
    # The name says so if only a part of the set is here.
    name = "cifar10" if seen == TRAIN else f"cifar10 ({seen} of the {TRAIN} training images)"
    return LabelledImages(name, ArrayImages(name, images), FACTORS, labels[:, None].astype(np.int32))


def read_binary(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and classes of a split; each row has one byte for the class, then all red, green and blue values."""
    rows = []
    for batch in BATCHES[part]:
        path = folder / HOME / f"{batch}.bin"
        size = path.stat().st_size if path.is_file() else 0
        if size == 0 or size % (1 + PIXELS):
            raise InputError(
                f"{path} has {size} bytes, but a multiple of {1 + PIXELS} is expected (class and pixels of each "
                f"image). {AGAIN}"
            )
        check_memory(path.name, 2 * size, "Close other programs.")
        rows.append(np.fromfile(path, np.uint8).reshape(-1, 1 + PIXELS))
    held = np.concatenate(rows)
    planes = held[:, 1:].reshape(-1, CHANNELS, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(0, 2, 3, 1)), held[:, 0]


def read_sheets(folder: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Images and classes of a split from its sheets, one batch per sheet, starting with the first batch."""
    paths = list(takewhile(Path.is_file, (folder / f"{batch}.png" for batch in BATCHES[part])))
    # A row of a sheet is a picture.
    sheets = [decode(path.read_bytes(), path.name, CHANNELS, (None, SIDE * SIDE)) for path in paths]
    images = np.concatenate(sheets).reshape(-1, SIDE, SIDE, CHANNELS)
    name = f"{part}_lables.json"
    if (folder / name).stat().st_size > MOST:
        raise InputError(f"{folder / name} is too large: it cannot be the label file of CIFAR-10.")
    with damage_told(name, "JSON file of labels"):
        labels = np.asarray(json.loads((folder / name).read_text()))
    if labels.dtype.kind != "i" or labels.ndim != 1:
        raise InputError(f"{name} must be a list of whole numbers: the class of each picture.")
    # The label file has all training images, even if only the first sheets are here.
    if len(labels) < len(images) or (part == "test" and len(labels) != len(images)):
        raise InputError(
            f"{name} has {len(labels)} labels, but there are {len(images)} pictures: the files do not belong together."
        )
    return images, labels[: len(images)]


CIFAR10 = Dataset(
    name="cifar10",
    title="CIFAR-10",
    about="small photographs of ten classes",
    images=TRAIN + 10_000,
    shape=(SIDE, SIDE, CHANNELS),
    factors=FACTORS,
    files=(
        # The binary version: the Python version is a pickle, which could run code.
        RemoteFile(
            "cifar-10-binary.tar.gz",
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            size=170_052_171,
            checksum="md5:c32a1d4ab5d03f1284b67883e8d87530",
            checked_by="the source's own page",
            members=(f"{HOME}/",),
            holds=tuple(f"{HOME}/{batch}.bin" for part in BATCHES.values() for batch in part),
        ),
    ),
    licence="none stated",
    citation="Krizhevsky: Learning Multiple Layers of Features from Tiny Images, 2009",
    homepage="https://www.cs.toronto.edu/~kriz/cifar.html",
    read=read,
    splits=tuple(BATCHES),
    layouts=(SHEETS,),
)
