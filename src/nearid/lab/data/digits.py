"""Digits: the small handwritten digits that come with scikit-learn."""

from pathlib import Path

import numpy as np

from nearid.lab.data.base import Dataset, FactorInfo, LabelledImages
from nearid.lab.data.images import ArrayImages

FACTORS = (FactorInfo("digit", "categorical", 10),)


def read(folder: Path, parts: tuple[str, ...]) -> LabelledImages:
    """Return the images, scaled from values of 0 to 16 to values of 0 to 1."""
    from sklearn.datasets import load_digits

    held = load_digits()
    images = (held.images / 16).astype(np.float32)
    return LabelledImages("digits", ArrayImages("digits", images), FACTORS, held.target[:, None].astype(np.int32))


DIGITS = Dataset(
    name="digits",
    title="Digits",
    about="small handwritten digits, part of scikit-learn",
    images=1797,
    shape=(8, 8, 1),
    factors=FACTORS,
    files=(),
    licence="CC BY 4.0 (UCI)",
    citation="Alpaydin, Kaynak: Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998",
    homepage="https://archive.ics.uci.edu/dataset/80",
    read=read,
)
