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
    """Return the images of a data set and the true factors of each image.

    The images are read block by block, when they are needed.

    Parameters
    ----------
    name : str
        Name of the data set. The command `nearid data list` lists all names. nearid looks for the files in the folder
        that the environment variable NEARID_DATA names, then in the user's cache.
    split : str, optional
        Part of the data set, such as "train", if its source has several. Default: all images.
    size : int, optional
        Height and width of the returned images. Each new pixel is the mean over its area. Default: the original size.
    unpack : bool, default=False
        Whether to write the images uncompressed to the cache, once, and to read them from there. This makes batches in
        random order fast if the files are compressed or many. It takes the full size of the images on disk.
    progress : bool or callable, default=False
        Whether to draw a progress bar of the unpacking on stderr; or a function that takes the name of a stage and its
        number of steps.

    Returns
    -------
    LabelledImages
        The images, of shape (n, height, width, channels), in `images`, and the true factors by name in `columns`.

    Raises
    ------
    InputError
        If the data set is not on this machine (the message says how to get it), or if a file is damaged.

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
