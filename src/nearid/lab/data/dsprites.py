"""dSprites: white shapes on black, every combination of five factors."""

from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages, RemoteFile
from nearid.lab.data.images import NpzImages, npz_array

FILE = "dsprites_ndarray_co1sh3sc6or40x32y32_64x64.npz"
FACTORS = (
    FactorInfo("shape", "categorical", 3, levels=("square", "ellipse", "heart")),
    FactorInfo("scale", "integer", 6, levels=tuple(np.linspace(0.5, 1, 6).tolist())),
    # The last angle is the first again: 40 levels, 39 steps. A square looks the same after a quarter turn, an ellipse
    # after half a turn, so that only the heart shows the angle itself.
    FactorInfo("orientation", "circular", 40, 2 * np.pi, tuple(np.linspace(0, 2 * np.pi, 40).tolist())),
    FactorInfo("x", "integer", 32, levels=tuple(np.linspace(0, 1, 32).tolist())),
    FactorInfo("y", "integer", 32, levels=tuple(np.linspace(0, 1, 32).tolist())),
)


class _Scaled(NpzImages):
    """Images whose pixels are stored as 0 and 1; they are returned as 0 and 255."""

    def _read(self, start: int, stop: int) -> np.ndarray:
        return np.asarray(np.minimum(super()._read(start, stop), 1) * np.uint8(255))


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Open the .npz; its pickled member `metadata` is never read."""
    path = folder / FILE
    classes = npz_array(path, "latents_classes")
    if classes.ndim != 2 or classes.shape[1] != 6 or classes.dtype.kind not in "iu":
        raise InputError(
            f"{FILE} has latents_classes of shape {classes.shape}, but six whole numbers a row are expected."
        )
    # The first factor is the colour, which is always white.
    return LabelledImages("dsprites", _Scaled(path, "imgs"), FACTORS, classes[:, 1:].astype(np.int32))


DSPRITES = Dataset(
    name="dsprites",
    title="dSprites",
    about="2-D shapes: shape, scale, orientation, position",
    images=737_280,
    shape=(64, 64, 1),
    factors=FACTORS,
    files=(
        RemoteFile(
            FILE,
            f"https://github.com/google-deepmind/dsprites-dataset/raw/master/{FILE}",
            checksum="md5:7da33b31b13a06f4b04a70402ce90c2e",
            checked_by="the loader of the package latte-metrics; the source publishes none",
        ),
    ),
    licence="Apache-2.0 (of its repository, not confirmed)",
    citation="Matthey, Higgins, Hassabis, Lerchner: dSprites: Disentanglement testing Sprites dataset, 2017",
    homepage="https://github.com/google-deepmind/dsprites-dataset",
    read=read,
)
