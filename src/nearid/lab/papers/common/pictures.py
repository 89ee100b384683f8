"""Pictures as text: a grid of images in one PNG that a page can hold, written without a library of pictures."""

import base64
import struct
import zlib

import numpy as np

from nearid.base.errors import InputError
from nearid.moments import Floats

# Pixels between images, and how bright they are.
GAP, GREY = 1, 0.5
# Kinds of PNG by channels.
KINDS = {1: 0, 3: 2}


def grid_picture(images: Floats) -> str:
    """A PNG, as an address that holds its own data, of images side by side.

    Parameters
    ----------
    images : ndarray of shape (rows, columns, channels, height, width)
        From 0 (black) to 1; what is beyond is cut off. One channel or three.
    """
    if images.ndim != 5 or images.shape[2] not in KINDS or images.size == 0:
        raise InputError(
            f"A grid of images has shape {images.shape}, but (rows, columns, channels, height, width) with 1 or 3 "
            "channels is expected."
        )
    rows, columns, channels, height, width = images.shape
    canvas = np.full((rows * (height + GAP) - GAP, columns * (width + GAP) - GAP, channels), GREY)
    for i in range(rows):
        for j in range(columns):
            top, left = i * (height + GAP), j * (width + GAP)
            canvas[top : top + height, left : left + width] = images[i, j].transpose(1, 2, 0)
    data = _png(np.rint(np.clip(canvas, 0, 1) * 255).astype(np.uint8))
    return "data:image/png;base64," + base64.b64encode(data).decode("ascii")


def _png(pixels: np.ndarray) -> bytes:
    """Bytes of a PNG of shape (height, width, channels)."""
    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, KINDS[channels], 0, 0, 0)
    # Every line begins with its filter: none.
    lines = np.hstack([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)])
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in parts
    )
