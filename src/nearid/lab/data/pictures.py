"""Images that are pictures (PNG), each in a file of its own."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN
from nearid.lab.data.images import Images


class PictureImages(Images):
    """Images in files of their own, all of one size, decoded when they are read."""

    # Pictures between two that are wanted would be decoded in vain.
    window = 1

    def __init__(self, name: str, n: int, where: Callable[[int], Path], channels: int) -> None:
        first = decode(_bytes(where(0)), where(0).name, channels)
        super().__init__(name, (n, *first.shape), first.dtype)
        # Asked for when it is needed: a list of some hundred thousand paths takes as much memory as their pictures.
        self._where = where

    def _read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        for at in range(start, stop):
            path = self._where(at)
            out[at - start] = decode(_bytes(path), path.name, self.shape[3], self.shape[1:3])
        return out


def decode(data: bytes, name: str, channels: int, size: tuple[int | None, int] | None = None) -> np.ndarray:
    """A picture as an array of shape (height, width, channels) in uint8; alpha is dropped.

    `size` is the height (None for any) and width that it must have: it is compared with what the header declares,
    before the pixels are decoded.
    """
    image_module = _pillow()
    # No format but the one that is expected: some are programs for others to run.
    with damage_told(name, "picture", AGAIN), image_module.open(io.BytesIO(data), formats=("PNG",)) as picture:
        declared = (picture.height, picture.width)
        if size is not None and declared != (expected := (size[0] or picture.height, size[1])):
            raise InputError(f"{name} is a picture of {declared} pixels, but {expected} are expected.")
        if picture.mode.startswith("I"):
            # Its conversion would cut off whatever is above 255.
            raise InputError(f"{name} is a picture of 16 bits, but 8 bits are expected. Is it the canonical file?")
        return np.array(picture.convert("L" if channels == 1 else "RGB")).reshape(*declared, channels)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} could not be read: {error.strerror or error}. {AGAIN}") from None


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InputError(
            "Pictures (.png) are read with Pillow, which is not installed: pip install 'nearid[lab]'."
        ) from None
    return Image
