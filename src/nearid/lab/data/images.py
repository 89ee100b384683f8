"""Images that are read block by block, from memory, a map of a file, or whatever a data set keeps them in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from nearid.base.errors import InputError
from nearid.base.limits import check_memory

# Bytes that a block of `blocks` takes, about.
BLOCK = 1 << 25


class Images(ABC):
    """Images of one size.

    Attributes
    ----------
    name : str
        What people are shown.
    shape : tuple of int
        (n, height, width, channels).
    dtype : numpy.dtype
        uint8 from 0 to 255, or float32 from 0 to 1.
    """

    # Whether reading gives a view of what is held, which takes no memory.
    views = False
    # Images that are read at once to take some of them: a subclass sets what its storage decodes together.
    window = 256

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        if len(shape) != 4 or min(shape) < 1:
            raise InputError(f"{name} has shape {shape}, but (images, height, width, channels) is expected.")
        if dtype not in (np.uint8, np.float32):
            raise InputError(f"{name} has dtype {dtype}, but uint8 or float32 is expected of images.")
        self.name = name
        self.shape: tuple[int, int, int, int] = (int(shape[0]), int(shape[1]), int(shape[2]), int(shape[3]))
        self.dtype = dtype

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def nbytes(self) -> int:
        """Bytes that all images take in memory."""
        return int(np.prod(self.shape, dtype=np.int64)) * self.dtype.itemsize

    @abstractmethod
    def _read(self, start: int, stop: int) -> np.ndarray:
        """Images `start` to `stop`."""

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Images `start` to `stop` as an array of shape (stop - start, height, width, channels); maybe read-only."""
        stop = len(self) if stop is None else stop
        if not 0 <= start <= stop <= len(self):
            raise IndexError(f"Images {start} to {stop} were asked of {self.name}, which has {len(self)}.")
        if not self.views:
            self._check_memory(stop - start)
        return self._read(start, stop)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Images at `indices` in the order given, reading each window of neighbours once."""
        indices = np.asarray(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(f"Images of {self.name} are taken by a 1-D array of whole numbers.")
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self):
            raise IndexError(
                f"Images {indices.min()} to {indices.max()} were asked of {self.name}: it has {len(self)}."
            )
        self._check_memory(len(indices))
        order = np.argsort(indices, kind="stable")
        ordered = indices[order]
        out = np.empty((len(indices), *self.shape[1:]), self.dtype)
        cuts = np.flatnonzero(np.diff(ordered // self.window)) + 1
        for places, rows in zip(np.split(order, cuts), np.split(ordered, cuts), strict=True):
            if len(rows):
                first, last = int(rows[0]), int(rows[-1])
                out[places] = self._read(first, last + 1)[rows - first]
        return out

    def _check_memory(self, images: int) -> None:
        size = images * (self.nbytes // len(self))
        if size > BLOCK:
            check_memory(f"{images} images of {self.name}", size, "Read fewer at a time, or ask for a smaller size.")

    def block_ranges(self) -> list[tuple[int, int]]:
        """First and last image (excluded) of each block."""
        rows = max(1, BLOCK * len(self) // self.nbytes)
        return [(start, min(start + rows, len(self))) for start in range(0, len(self), rows)]

    def blocks(self) -> Iterator[np.ndarray]:
        """All images in order, some at a time."""
        for start, stop in self.block_ranges():
            yield self._read(start, stop)


class ArrayImages(Images):
    """Images in an array, which may be a map of a file."""

    views = True

    def __init__(self, name: str, array: np.ndarray) -> None:
        # A picture without colours has one channel.
        array = array[..., None] if array.ndim == 3 else array
        super().__init__(name, array.shape, array.dtype)
        self.array = array

    def _read(self, start: int, stop: int) -> np.ndarray:
        return self.array[start:stop]

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Images at `indices` in the order given."""
        indices = np.asarray(indices)
        if indices.size and indices.min() < 0:
            raise IndexError(f"Image {indices.min()} was asked of {self.name}: they are counted from 0.")
        self._check_memory(len(indices))
        return np.asarray(self.array[indices])


class ResizedImages(Images):
    """Images scaled to another size: each pixel is the mean over the area that it covers (of smaller ones, nearest)."""

    def __init__(self, images: Images, size: int) -> None:
        if size < 1:
            raise InputError(f"The size of images must be at least 1 pixel, not {size}.")
        n, height, width, channels = images.shape
        super().__init__(images.name, (n, size, size, channels), images.dtype)
        self.window = images.window
        self._images = images
        self._rows, self._columns = area_weights(height, size), area_weights(width, size)

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = self._images.read(start, stop).astype(np.float32)
        scaled = np.einsum("ih,nhwc,jw->nijc", self._rows, block, self._columns, optimize=True)
        return np.asarray(scaled if self.dtype == np.float32 else np.rint(scaled), dtype=self.dtype)


def area_weights(old: int, new: int) -> np.ndarray:
    """Weights of shape (new, old) that give each new pixel the mean of the old ones, by the part that it covers."""
    edges = np.linspace(0, old, new + 1)
    first, last = edges[:-1, None], edges[1:, None]
    cells = np.arange(old)
    covered = np.clip(np.minimum(last, cells + 1) - np.maximum(first, cells), 0, None)
    return np.asarray(covered / covered.sum(axis=1, keepdims=True), dtype=np.float32)
