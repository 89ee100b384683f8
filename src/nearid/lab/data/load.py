"""Loading a data set by name."""

from __future__ import annotations

from pathlib import Path

from nearid.base.errors import InputError
from nearid.base.progress import Reporting, reporting
from nearid.lab.data.base import Corpus, Dataset, LabelledImages
from nearid.lab.data.images import ResizedImages
from nearid.lab.data.places import cache_folder, locate
from nearid.lab.data.registry import dataset
from nearid.lab.data.unpack import unpacked


def load(
    name: str,
    *,
    split: str | None = None,
    size: int | None = None,
    unpack: bool = False,
    progress: Reporting = False,
) -> LabelledImages:
    """Images of a data set, read block by block, and the true factors of each.

    Parameters
    ----------
    name : str
        As `nearid data list` tells. Looked for below the folder NEARID_DATA, then in the user's cache.
    split : str, optional
        A part that the source keeps apart, such as "train"; all images by default.
    size : int, optional
        Height and width to scale the images to, by the mean over the area of each new pixel.
    unpack : bool
        Write the images to the cache as plain numbers, once, and map that file: for batches in random order of sets
        that are compressed or kept in many files. Takes their full size on disk.
    progress : bool, default=False
        Draw a progress bar of the unpacking on stderr. A function is called with the stage and its number of steps.

    Returns
    -------
    LabelledImages

    Raises
    ------
    InputError
        If the data set is not here (the message says how to get it), or its files are not what they should be.

    Examples
    --------
    >>> import nearid
    >>> digits = nearid.load("digits")
    >>> digits.images.shape
    (1797, 8, 8, 1)
    >>> digits.columns["digit"][:3]
    array([0, 1, 2], dtype=int32)
    """
    described = dataset(name)
    if isinstance(described, Corpus):
        raise InputError(f"{described.title} is text and has no images: nearid.lab.data.texts.load_sentences reads it.")
    if not isinstance(described, Dataset):
        raise InputError(f"{described.title} has no images: {described.about}.")
    parts = described.parts(split)
    folder = locate(described) if described.files else Path()
    found = described.read(folder, parts)
    if size is not None and found.images.shape[1:3] != (size, size):
        found = found.with_images(ResizedImages(found.images, size))
    if unpack:
        stats = [(folder / path).stat() for path in described.held(folder) or ()]
        origin = f"{parts} {[(stat.st_size, stat.st_mtime_ns) for stat in stats]}"
        with reporting(progress) as report:
            found = found.with_images(unpacked(found.images, cache_folder() / described.name, origin, report))
    return found
