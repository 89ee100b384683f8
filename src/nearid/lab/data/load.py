"""Loading a data set by name: images with their factors, text, or profiles."""

from pathlib import Path
from typing import TypeVar

from nearid.base.errors import InputError
from nearid.base.options import Count, checked
from nearid.base.progress import Reporting, reporting
from nearid.lab.data.base import Corpus, Dataset, FileSet, LabelledImages, Profiles, ProfileSet, Sentences
from nearid.lab.data.images import ResizedImages, unpacked
from nearid.lab.data.registry import cache_folder, dataset, locate

F = TypeVar("F", bound=FileSet)


@checked
def load(
    name: str,
    *,
    split: str | None = None,
    size: Count | None = None,
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
    progress : bool or function, default=False
        Draw a progress bar of the unpacking on stderr; or a function of the name of a stage and its number of steps.

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
    described = _described(name, Dataset)
    parts = described.parts(split)
    folder = locate(described) if described.files else Path()
    labelled = described.read(folder, parts)
    if size is not None and labelled.images.shape[1:3] != (size, size):
        labelled = labelled.with_images(ResizedImages(labelled.images, size))
    with reporting(progress) as stages:
        if unpack:
            stats = [(folder / path).stat() for path in described.held(folder) or ()]
            origin = f"{parts} {[(stat.st_size, stat.st_mtime_ns) for stat in stats]}"
            labelled = labelled.with_images(unpacked(labelled.images, cache_folder() / described.name, origin, stages))
    return labelled


def load_sentences(name: str, *, split: str | None = None) -> Sentences:
    """Words of each sentence of a corpus, punctuation marks included; "wikitext2" has paragraphs and headings."""
    described = _described(name, Corpus)
    parts = described.parts(split)
    return described.read(locate(described), parts)


def load_profiles(name: str) -> Profiles:
    """Profiles of wells with their labels and batches, by name: "bbbc021", "cell-health" or "lincs"."""
    described = _described(name, ProfileSet)
    return described.read(locate(described), ())


def _described(name: str, kind: type[F]) -> F:
    described = dataset(name)
    if not isinstance(described, kind):
        raise InputError(f"{described.title} holds {described.kind}, not {kind.kind}: {described.loader} reads it.")
    return described
