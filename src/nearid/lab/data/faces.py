"""Faces: 698 renderings of one face under changing pose and light, the data of Isomap."""

import tempfile
from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import ArrayImages
from nearid.lab.data.lzw import decompress
from nearid.lab.data.matlab import load_mat, mat_shapes

FILE = "face_data.mat.Z"
UNPACKED = "face_data.mat"
# A smaller copy in circulation: 32 x 32 pixels, factors standardised.
SMALL = "face_1024.mat"
# The original takes 25 MB uncompressed.
MOST = 200_000_000
FACTORS = (FactorInfo("light", "continuous"), FactorInfo("pan", "continuous"), FactorInfo("tilt", "continuous"))


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Load the images (from 0 to 1) and their factors, from the original or the smaller copy."""
    if (folder / UNPACKED).is_file():
        pixels, table = _original(folder / UNPACKED)
    elif (folder / FILE).is_file():
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary, UNPACKED)
            path.write_bytes(decompress((folder / FILE).read_bytes(), FILE, MOST))
            pixels, table = _original(path)
    else:
        held = load_mat(folder / SMALL, {"dataY": (-1, -1), "dataT": (3, -1)})
        pixels, table = held["dataY"], held["dataT"].T
    return LabelledImages("faces", ArrayImages("faces", _upright(pixels)), FACTORS, table.astype(np.float64))


def _original(path: Path) -> tuple[np.ndarray, np.ndarray]:
    n = mat_shapes(path).get("images", (0, -1))[-1]
    held = load_mat(path, {"images": (-1, n), "poses": (2, n), "lights": (1, n)})
    return held["images"], np.concatenate([held["lights"], held["poses"]]).T


def _upright(pixels: np.ndarray) -> np.ndarray:
    """Images from an array whose columns are images, each stored column by column."""
    side = round(len(pixels) ** 0.5)
    if side * side != len(pixels):
        raise InputError(f"The faces have {len(pixels)} pixels each, but square pictures are expected.")
    if not (pixels.min() >= 0 and pixels.max() <= 1):
        raise InputError(f"The faces have pixels from {pixels.min():g} to {pixels.max():g}, but 0 to 1 is expected.")
    return np.ascontiguousarray(pixels.T.reshape(-1, side, side).transpose(0, 2, 1), dtype=np.float32)


FACES = Dataset(
    name="faces",
    title="Isomap faces",
    about="one face rendered: light, pan, tilt",
    images=698,
    shape=(64, 64, 1),
    factors=FACTORS,
    files=(
        RemoteFile(
            FILE,
            "https://web.archive.org/web/20150922051706id_/http://isomap.stanford.edu/face_data.mat.Z",
            checksum="sha256:9c5bc75f204071bbd340aa3ff584757ec784b0630206e526d4cd3809f2650a8a",
            checked_by="a program that used the original address",
        ),
    ),
    licence="none stated",
    citation="Tenenbaum, de Silva, Langford: A Global Geometric Framework for Nonlinear Dimensionality Reduction, 2000",
    homepage="https://web.archive.org/web/2015/http://isomap.stanford.edu/datasets.html",
    read=read,
    folders=("isomap_faces",),
    layouts=((UNPACKED,), (SMALL,)),
)
