"""Images that are read block by block: from memory, a map of a file, an .npz archive, or a folder of pictures."""

import hashlib
import io
import threading
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from nearid.arrays.formats.npy import check_member, load_member, members_of
from nearid.arrays.names import not_found
from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.base.limits import check_memory
from nearid.base.progress import Progress, silent
from nearid.lab.data.base import AGAIN
from nearid.lab.data.unarchive import check_room

# Approximate size in bytes of a block of `blocks`.
BLOCK = 1 << 25


class Images(ABC):
    """Images of one size.

    Attributes
    ----------
    name : str
        Name in messages.
    shape : tuple of int
        (n, height, width, channels).
    dtype : numpy.dtype
        uint8 from 0 to 255, or float32 from 0 to 1.
    """

    # Whether reading returns a view, which takes no additional memory.
    views = False
    # Number of neighbouring images that `take` reads together. A subclass sets what its storage decodes together.
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
            raise IndexError(f"Images {start} to {stop} of {self.name} do not exist: it has {len(self)} images.")
        if not self.views:
            self._check_memory(stop - start)
        return self._read(start, stop)

    def take(self, indices: np.ndarray) -> np.ndarray:
        """Images at `indices` in the order given, reading each window of neighbours once."""
        indices = np.asarray(indices)
        if indices.ndim != 1 or (indices.size and indices.dtype.kind not in "iu"):
            raise IndexError(f"The indices of images of {self.name} must be a 1-D array of whole numbers.")
        if indices.size and not 0 <= indices.min() <= indices.max() < len(self):
            raise IndexError(
                f"Images {indices.min()} to {indices.max()} of {self.name} do not all exist: it has {len(self)} images."
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
            check_memory(f"{images} images of {self.name}", size, "Read fewer at a time, or choose a smaller size.")

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
            raise IndexError(f"There is no image {indices.min()} in {self.name}: images are counted from 0.")
        self._check_memory(len(indices))
        return np.asarray(self.array[indices])


class ResizedImages(Images):
    """Images scaled to another size; each pixel is the mean over its area (the nearest pixel if images are "
    "enlarged)."""

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
    """Weights of shape (new, old): each new pixel is the mean of the old ones, weighted by the part that it covers."""
    edges = np.linspace(0, old, new + 1)
    first, last = edges[:-1, None], edges[1:, None]
    cells = np.arange(old)
    covered = np.clip(np.minimum(last, cells + 1) - np.maximum(first, cells), 0, None)
    return np.asarray(covered / covered.sum(axis=1, keepdims=True), dtype=np.float32)


class NpzImages(Images):
    """Images of one member of an archive; other members are never read.

    A compressed member can only be read from its beginning: reading forward is cheap, going back starts again. For
    batches in random order, unpack the images first (`unpacked`).
    """

    def __init__(self, path: Path, key: str) -> None:
        name = f"{path.name}:{key}"
        with damage_told(path.name, ".npz archive", AGAIN):
            self._archive = zipfile.ZipFile(path)
            info = _find(self._archive, path, key)
            self._member = self._archive.open(info)
            header, _ = check_member(self._member, info, name)
            self._offset = self._member.tell()
        if header.fortran:
            raise InputError(f"{name} is stored by columns, but the canonical file is stored by rows.")
        # A picture without colours has one channel.
        shape = (*header.shape, 1) if len(header.shape) == 3 else header.shape
        super().__init__(name, shape, header.dtype)
        self._lock = threading.Lock()

    def _read(self, start: int, stop: int) -> np.ndarray:
        size = self.nbytes // len(self)
        with self._lock, damage_told(self.name, ".npz archive", AGAIN):
            self._member.seek(self._offset + start * size)
            data = self._member.read((stop - start) * size)
        if len(data) < (stop - start) * size:
            raise InputError(f"{self.name} is incomplete: it ends before its last image. {AGAIN}")
        return np.frombuffer(data, self.dtype).reshape(stop - start, *self.shape[1:])


def npz_array(path: Path, key: str) -> np.ndarray:
    """Load one array of an archive; other members are never read."""
    with damage_told(path.name, ".npz archive", AGAIN), zipfile.ZipFile(path) as archive:
        return load_member(archive, _find(archive, path, key), f"{path.name}:{key}")


def _find(archive: zipfile.ZipFile, path: Path, key: str) -> zipfile.ZipInfo:
    members = members_of(archive, path.name)
    if key not in members:
        raise not_found(path.name, "key", key, members)
    return members[key]


class PictureImages(Images):
    """Images in one file each, all of one size, decoded when they are read."""

    # Read one at a time: pictures between two wanted ones would be decoded for nothing.
    window = 1

    def __init__(self, name: str, n: int, where: Callable[[int], Path], channels: int) -> None:
        first = decode(_bytes(where(0)), where(0).name, channels)
        super().__init__(name, (n, *first.shape), first.dtype)
        # A function, not a list: some hundred thousand paths take as much memory as their pictures.
        self._where = where

    def _read(self, start: int, stop: int) -> np.ndarray:
        out = np.empty((stop - start, *self.shape[1:]), self.dtype)
        for at in range(start, stop):
            path = self._where(at)
            out[at - start] = decode(_bytes(path), path.name, self.shape[3], self.shape[1:3])
        return out


def decode(data: bytes, name: str, channels: int, size: tuple[int | None, int] | None = None) -> np.ndarray:
    """Decode a picture into an array of shape (height, width, channels) of uint8; alpha is dropped.

    `size` is the expected height (None for any) and width. It is compared with the header before the pixels are
    decoded.
    """
    image_module = _pillow()
    # Only the expected format: some formats start other programs.
    with damage_told(name, "picture", AGAIN), image_module.open(io.BytesIO(data), formats=("PNG",)) as picture:
        declared = (picture.height, picture.width)
        if size is not None and declared != (expected := (size[0] or picture.height, size[1])):
            raise InputError(f"{name} is a picture of {declared} pixels, but {expected} are expected.")
        if picture.mode.startswith("I"):
            # The conversion would clip all values above 255.
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


def unpacked(images: Images, folder: Path, origin: str, progress: Progress = silent) -> ArrayImages:
    """Return the same images, memory-mapped from an .npy file in `folder`, which is written if it does not exist.

    `origin` describes the source of the images. Images with another origin, shape or dtype get another file.
    """
    mark = hashlib.sha256(f"{origin} {images.shape} {images.dtype}".encode()).hexdigest()[:12]
    path = folder / f"unpacked-{'x'.join(map(str, images.shape))}-{mark}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        advice = "Free some space, load the images without unpacking, or choose a smaller size."
        check_room(f"{images.name} unpacked", images.nbytes, folder, advice)
        _write(images, path, progress)
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.shape != images.shape or array.dtype != images.dtype:
        raise InputError(
            f"{path} does not contain the images that its name describes. Delete the file and run the command again."
        )
    return ArrayImages(images.name, array)


def _write(images: Images, path: Path, progress: Progress) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(images.dtype), "fortran_order": False, "shape": images.shape}
    tick = progress(f"unpacking {images.name}", len(images.block_ranges()))
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in images.blocks():
            file.write(np.ascontiguousarray(block).data)
            tick()
