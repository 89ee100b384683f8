"""Images written out once as plain numbers, so that batches in random order cost no decompression."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import numpy as np

from nearid.base.errors import InputError
from nearid.base.files import replacing
from nearid.base.limits import readable
from nearid.base.progress import Progress, silent
from nearid.lab.data.images import ArrayImages, Images


def unpacked(images: Images, folder: Path, origin: str, progress: Progress = silent) -> ArrayImages:
    """The same images as a map of an .npy file in `folder`, which is written unless it is there.

    `origin` says what the images were read from; images of another origin, shape or dtype get a file of their own.
    """
    mark = hashlib.sha256(f"{origin} {images.shape} {images.dtype}".encode()).hexdigest()[:12]
    path = folder / f"unpacked-{'x'.join(map(str, images.shape))}-{mark}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if images.nbytes > free:
            raise InputError(
                f"{images.name} takes {readable(images.nbytes)} unpacked, but {readable(free)} are free in {folder}. "
                "Make room, or load it without unpacking or at a smaller size."
            )
        _write(images, path, progress)
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    if array.shape != images.shape or array.dtype != images.dtype:
        raise InputError(f"{path} does not hold what its name says. Remove it.")
    return ArrayImages(images.name, array)


def _write(images: Images, path: Path, progress: Progress) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(images.dtype), "fortran_order": False, "shape": images.shape}
    tick = progress(f"unpacking {images.name}", len(images.block_ranges()))
    with replacing(path) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in images.blocks():
            file.write(np.ascontiguousarray(block).data)
            tick()
