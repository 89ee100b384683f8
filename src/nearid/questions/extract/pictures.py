"""Folders and lists of pictures: find them, check their headers, decode and resize them; without torch."""

from __future__ import annotations

import hashlib
import operator
import os
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import numpy as np

from nearid.arrays.names import few
from nearid.arrays.rows import row_ids
from nearid.base.alerts import Alert
from nearid.base.errors import InputError, brief
from nearid.base.files import local_path
from nearid.show.view import counted

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")
# Other formats are not tried: some start other programs.
FORMATS = ("PNG", "JPEG", "WEBP")
# Largest number of pixels. Above it Pillow suspects a decompression bomb.
MOST = 89_478_485
# With a smaller side, channels and pixels could be confused.
LEAST = 5
# Kinds of pixels with 8 bits or fewer for each channel.
MODES = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
# Longest side after resizing.
LONGEST = 1 << 14
# How Pillow numbers its filters.
BILINEAR, BICUBIC = 2, 3
# Pictures that a message lists.
SHOWN = 10

Size = tuple[int, int]


class Unreadable(Exception):
    """Why a picture cannot be used."""


class Decoded(NamedTuple):
    """Pixels for the model, of shape (height, width, channels), and the hash of the original picture."""

    pixels: np.ndarray
    given: bytes


@dataclass(frozen=True)
class Shaping:
    """How pictures are resized.

    Attributes
    ----------
    resize : int, (height, width) or None
        Length of the shorter side, or of both.
    crop : (height, width) or None
        Size of the centre that is kept.
    resample : int
        Pillow's filter for resizing.
    grey : bool
        One channel instead of three.
    """

    resize: int | Size | None = None
    crop: Size | None = None
    resample: int = BILINEAR
    grey: bool = False

    @property
    def channels(self) -> int:
        """Numbers for each pixel."""
        return 1 if self.grey else 3

    def resized(self, size: Size) -> Size:
        """Height and width after resizing."""
        if not isinstance(self.resize, int):
            return self.resize or size
        long = int(self.resize * max(size) / min(size))
        return (self.resize, long) if size[0] == min(size) else (long, self.resize)

    def shape(self, size: Size) -> Size:
        """Height and width after resizing and cropping."""
        height, width = self.resized(size)
        # Enlarging a long, thin picture may take any amount of memory.
        if (height, width) != size and (height * width > MOST or max(height, width) > LONGEST):
            raise Unreadable(f"{_by(*size)} pixels, which resizing would make {_by(height, width)}: too many")
        if self.crop is None:
            return height, width
        if height < self.crop[0] or width < self.crop[1]:
            raise Unreadable(f"{_by(height, width)} pixels, smaller than the crop of {_by(*self.crop)}")
        return self.crop

    def __call__(self, image: Any) -> np.ndarray:
        """Pixels of an image, of shape (height, width, channels)."""
        image = image.convert("L" if self.grey else "RGB")
        size = image.height, image.width
        height, width = self.resized(size)
        if (height, width) != size:
            image = image.resize((width, height), self.resample)
        if self.crop is not None:
            top, left = (height - self.crop[0]) // 2, (width - self.crop[1]) // 2
            image = image.crop((left, top, left + self.crop[1], top + self.crop[0]))
        pixels = np.asarray(image)
        return pixels[:, :, None] if self.grey else pixels

    def to_dict(self) -> dict[str, Any]:
        """What was chosen, for the provenance."""
        choices = {"resize": self.resize, "crop": self.crop, "grey": self.grey or None}
        choices["resample"] = None if self.resize is None else self.resample
        return {name: value for name, value in choices.items() if value is not None}


class Pictures:
    """Readable pictures in the natural order of their paths.

    Parameters
    ----------
    folder : Path
        What ids are relative to.
    paths : list of Path
    drop : bool
        Whether to leave out pictures that cannot be read; an alert lists them. Otherwise they are an error.

    Attributes
    ----------
    ids : ndarray of shape (n,)
        By default paths relative to the folder, with slashes.
    labels : ndarray of shape (n,)
        Folder of each picture, relative to the given folder; "." for the given folder itself.
    shape : (int, int)
        Height and width of all pictures after resizing.
    alerts : tuple of Alert
    """

    def __init__(
        self,
        folder: Path,
        paths: list[Path],
        shaping: Shaping,
        *,
        ids: Any = None,
        drop: bool = False,
        others: list[str] | None = None,
    ) -> None:
        self._others = others or []
        self.name, self.shaping, self.drop = folder.name or str(folder.resolve()), shaping, drop
        names = [path.relative_to(folder).as_posix() for path in paths]
        every = row_ids(self.name, names if ids is None else ids, len(names))
        if len(np.unique(every)) < len(names):
            raise InputError(f"Some ids of {self.name} occur more than once. Give each picture its own id.")
        self.unreadable: list[str] = []
        kept, headers = [], []
        with warnings.catch_warnings():
            # Errors about sizes are raised below.
            warnings.simplefilter("ignore")
            for at, path in enumerate(paths):
                try:
                    headers.append(_header(path))
                    kept.append(at)
                except Unreadable as error:
                    self.unreadable.append(f"{names[at]} ({error})")
        if self.unreadable and not drop:
            raise self.refusal()
        if len(kept) < 2:
            raise InputError(f"{self.name} has {len(kept)} readable pictures, but at least 2 are needed.")
        self.paths, self.ids = [paths[at] for at in kept], every[kept]
        self.names = [names[at] for at in kept]
        self.labels = np.array([PurePath(name).parent.as_posix() for name in self.names])
        self.shape = self._shape(self.names, headers)
        self._inks = sum(header.mode == "CMYK" for header in headers)

    def _shape(self, names: list[str], headers: list[_Header]) -> Size:
        first = self._after(names[0], headers[0])
        for name, header in zip(names, headers, strict=True):
            if self._after(name, header) != first:
                raise InputError(
                    f"The pictures of {self.name} have different sizes: {names[0]} has {_by(*first)} pixels, {name} "
                    f"{_by(*self._after(name, header))}. Make them equal with resize and crop (--resize 256 --crop "
                    f"224)."
                )
        if min(first) < LEAST:
            raise InputError(
                f"The pictures of {self.name} have {_by(*first)} pixels, but each side needs at least {LEAST}."
            )
        return first

    def _after(self, name: str, header: _Header) -> Size:
        try:
            return self.shaping.shape(header.size)
        except Unreadable as error:
            raise InputError(
                f"{name} of {self.name} has {error}. Remove it, or choose other sizes: resize to a height and a width "
                "(--resize 224,224), or a smaller crop (--crop)."
            ) from None

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """Files and pictures that were left out, and pictures of inks."""
        alerts: tuple[Alert, ...] = ()
        if self._others:
            sentence = (
                f"nearid left out {counted(len(self._others), 'file')} of {self.name}: {few(self._others, SHOWN)}."
            )
            alerts += (Alert("other_files", f"{sentence} It reads {', '.join(SUFFIXES)}."),)
        if self.unreadable:
            count = counted(len(self.unreadable), "picture")
            sentence = f"nearid left out {count} of {self.name} that cannot be read: {few(self.unreadable, SHOWN)}."
            alerts += (Alert("unreadable_pictures", sentence),)
        if self._inks:
            count = counted(self._inks, "picture")
            sentence = f"nearid converted {count} of {self.name} from CMYK to RGB without a colour profile."
            alerts += (Alert("cmyk_pictures", sentence),)
        return alerts

    def refusal(self) -> InputError:
        """Error that lists the pictures that cannot be read."""
        count = len(self.unreadable)
        return InputError(
            f"{counted(count, 'picture')} of {self.name} cannot be read: {few(self.unreadable, SHOWN)}. Repair or "
            f"remove these files, or leave them out with drop_unreadable=True (--drop-unreadable)."
        )

    def leave_out(self, at: int, why: str) -> None:
        """Record a damaged picture, or raise an error."""
        entry = f"{self.names[at]} ({why})"
        if not self.drop:
            self.unreadable = [entry]
            raise self.refusal()
        if entry not in self.unreadable:
            self.unreadable.append(entry)

    def decode(self, at: int) -> Decoded:
        """Decode the picture at an index; called from several threads."""
        from PIL import Image, ImageOps

        try:
            with Image.open(self.paths[at], formats=FORMATS) as image:
                _turns(image)
                image.load()
                palette = bytes(image.getpalette() or ()) if image.mode in ("P", "PA") else b""
                hashed = hashlib.sha256(f"{image.mode} {image.size} ".encode() + palette)
                hashed.update(image.tobytes())
                # Apply the orientation that the camera stored.
                pixels = self.shaping(ImageOps.exif_transpose(image))
        except Exception as error:  # the libraries of the formats raise many things
            raise Unreadable(brief(error)) from None
        if pixels.shape[:2] != self.shape:
            raise Unreadable(f"{_by(*pixels.shape[:2])} pixels, not {_by(*self.shape)} as the others")
        return Decoded(pixels, hashed.digest())


class _Header(NamedTuple):
    """Header of a file: height and width as displayed, and the type of its pixels."""

    size: Size
    mode: str


def _header(path: Path) -> _Header:
    from PIL import Image, UnidentifiedImageError

    if not path.is_file():
        raise Unreadable("no regular file")
    if not path.stat().st_size:
        raise Unreadable("0 bytes")
    try:
        with Image.open(path, formats=FORMATS) as image:
            frames = 1 if image.format == "MPO" else getattr(image, "n_frames", 1)
            size, mode = (image.height, image.width), image.mode
            turned = _turns(image)
    except Image.DecompressionBombError:
        raise Unreadable(f"more than {MOST // 10**6} million pixels") from None
    except Exception as error:  # the libraries of the formats raise many things
        known = not isinstance(error, UnidentifiedImageError)
        raise Unreadable(brief(error) if known else f"no {', '.join(FORMATS[:-1])} or {FORMATS[-1]}") from None
    if size[0] * size[1] > MOST:
        raise Unreadable(f"{_by(*size)} pixels, more than {MOST // 10**6} million")
    if frames > 1:
        raise Unreadable(f"{frames} frames: it is animated")
    if mode not in MODES:
        raise Unreadable(f"more than 8 bits a channel ({mode})")
    return _Header(size[::-1] if turned else size, mode)


def _turns(image: Any) -> bool:
    """Whether the stored orientation swaps height and width.

    Pillow remembers the tags that it reads here. Called before decoding, it lets `exif_transpose` see the same ones: a
    .png file may have more of them behind its pixels, and its own `getexif` decodes them first.
    """
    from PIL import Image

    # 5 to 8: the camera was rotated.
    return Image.Image.getexif(image).get(0x0112, 1) in (5, 6, 7, 8)


def open_pictures(data: Any, shaping: Shaping, *, ids: Any = None, drop: bool = False) -> Pictures | None:
    """The pictures of a folder, of all folders in it, or of a list; None for anything else."""
    others: list[str] = []
    if isinstance(data, str | os.PathLike):
        folder = local_path(data)
        if folder.is_file() and folder.suffix.lower() in SUFFIXES:
            raise InputError(f"{folder.name} is a single picture, but at least 2 are needed. Give their folder.")
        if not folder.is_dir():
            return None
        paths, others = _found(folder)
        if not paths:
            raise InputError(
                f"{folder} contains no pictures ({', '.join(SUFFIXES)}) and no data set of the library datasets."
            )
    elif are_pictures(data):
        paths = [local_path(each) for each in data]
        gone = next((path for path in paths if not path.exists()), None)
        if gone is not None:
            raise InputError(f"There is no picture {gone}.")
        folder, paths = common_folder(paths)
    else:
        return None
    try:
        import PIL  # noqa: F401
    except ImportError:
        raise InputError("Reading pictures needs Pillow, which is not installed: pip install 'nearid[hf]'") from None
    return Pictures(folder, paths, shaping, ids=ids, drop=drop, others=others)


def _found(folder: Path) -> tuple[list[Path], list[str]]:
    """Pictures below a folder in natural order, 2.png before 10.png; and the names of other files."""
    found = []
    # Links to folders may be circular.
    for place, folders, files in os.walk(folder, onerror=_unreached):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(place, name) for name in files if not name.startswith(".")]
    found.sort(key=lambda path: _natural(path.relative_to(folder).as_posix()))
    others = [path.relative_to(folder).as_posix() for path in found if path.suffix.lower() not in SUFFIXES]
    return [path for path in found if path.suffix.lower() in SUFFIXES], others


def _unreached(error: OSError) -> None:
    raise error


def _natural(name: str) -> tuple[list[tuple[str, int, str]], str]:
    """A sort key that orders numbers in names by value."""
    parts = re.split(r"([0-9]+)", name)
    pairs = zip(parts[::2], [*parts[1::2], "0"], strict=True)
    return [(text.casefold(), int(number), number) for text, number in pairs], name


def are_pictures(data: Any) -> bool:
    """Whether a list is of paths of pictures; strings must all have a suffix of pictures."""
    if not isinstance(data, Sequence) or isinstance(data, str | bytes) or not data:
        return False
    return all(isinstance(each, str | os.PathLike) and os.fspath(each).lower().endswith(SUFFIXES) for each in data)


def common_folder(paths: list[Path]) -> tuple[Path, list[Path]]:
    """The folder that ids of a list of pictures are relative to, and their paths (all absolute if some are)."""
    if len({path.is_absolute() for path in paths}) > 1:
        paths = [Path(os.path.abspath(path)) for path in paths]
    return Path(os.path.commonpath([path.parent for path in paths])), paths


def sides(name: str, given: Any) -> tuple[int, ...] | None:
    """One side or two, given as a number, a text with a comma or a sequence."""
    if given is None:
        return None
    each = given.split(",") if isinstance(given, str) else given if isinstance(given, Sequence) else [given]
    try:
        values = tuple(operator.index(int(side) if isinstance(side, str) else side) for side in each)
    except (TypeError, ValueError):
        values = ()
    if len(values) not in (1, 2) or not all(0 < side <= LONGEST for side in values):
        raise InputError(
            f"{name} is {given!r}, but one side, or height and width, in pixels is expected, such as 224 or 224,320."
        )
    return values


def _by(height: int, width: int) -> str:
    return f"{height} x {width}"
