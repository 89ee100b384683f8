"""Description of a data set: its files and their addresses, its factors, and what its reader returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from nearid.base.errors import InputError
from nearid.moments import Floats

if TYPE_CHECKING:
    from nearid.lab.data.images import Images

# Words of each sentence, or of each line if the source has no sentences.
Sentences = list[list[str]]

# Advice for a damaged file.
AGAIN = "Download it again: nearid data fetch NAME --again"


@dataclass(frozen=True)
class FactorInfo:
    """A true factor of a data set.

    Attributes
    ----------
    kind : {"continuous", "integer", "categorical", "circular"}
        The same kinds as in `nearid.open_factors`; "integer" means ordered levels.
    size : int or None
        Number of levels; None for a measured factor.
    period : float or None
        Period of a circular factor, in the units of its values.
    levels : tuple
        Value of each level in its units, or name of each class; empty if levels are only numbered.
    """

    name: str
    kind: str
    size: int | None = None
    period: float | None = None
    levels: tuple[float, ...] | tuple[str, ...] = ()


@dataclass(frozen=True)
class RemoteFile:
    """A file of a data set.

    Attributes
    ----------
    name, url : str
        Name in the folder of the data set, and address of the download.
    size : int or None
        Number of bytes, if known.
    checksum : str or None
        "sha256:..." or "md5:...", if one is published; `checked_by` names the publisher.
    members : tuple of str
        For an archive that is unpacked after the download: the paths in it to keep, folders with a slash at the end.
        Empty for a file that is not unpacked.
    holds : tuple of str
        Paths in the folder of the data set after the archive is unpacked.
    by_hand : bool
        Whether the user must download it with a browser, because its host gives no direct address.
    """

    name: str
    url: str
    size: int | None = None
    checksum: str | None = None
    checked_by: str = ""
    members: tuple[str, ...] = ()
    holds: tuple[str, ...] = ()
    by_hand: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """Paths that must exist for the file to count as downloaded."""
        return self.holds or (self.name,)


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """Base of all data sets: a name, files, and their sources.

    Attributes
    ----------
    name : str
        Name that the user types; also the name of its folder.
    files : tuple of RemoteFile
        Empty if the data set comes with a library.
    splits : tuple of str
        Parts that the source distinguishes. By default all are read.
    folders : tuple of str
        Other names that its folder may have.
    layouts : tuple of tuples of str
        Other sets of files that can be read instead of `files`.
    """

    name: str
    title: str
    about: str
    files: tuple[RemoteFile, ...]
    licence: str
    citation: str
    homepage: str
    splits: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    layouts: tuple[tuple[str, ...], ...] = ()

    # Content of data sets of this kind, and the function that loads them.
    kind: ClassVar[str]
    loader: ClassVar[str]

    @property
    def amount(self) -> str:
        """Size of the data set in words."""
        raise NotImplementedError

    def held(self, folder: Path) -> tuple[str, ...] | None:
        """Files of the data set in a folder, if the folder has all that are needed."""
        canonical = tuple(path for file in self.files for path in file.paths)
        for layout in (canonical, *self.layouts):
            if all((folder / path).exists() for path in layout):
                return layout
        return None

    def parts(self, split: str | None) -> tuple[str, ...]:
        """The requested splits; None means all."""
        if split is None:
            return self.splits
        if split not in self.splits:
            splits = f"has the splits {', '.join(self.splits)}" if self.splits else "has no splits"
            raise InputError(f"{self.title} {splits}, but split={split!r} was given. Leave split out to get all of it.")
        return (split,)


@dataclass(frozen=True, kw_only=True)
class Dataset(FileSet):
    """A data set of images with factors.

    Attributes
    ----------
    images : int or None
        Number of images, if known before reading.
    shape : tuple of int
        Height, width and channels of an image.
    factors : tuple of FactorInfo
    read : callable
        read(folder, parts) returns the `LabelledImages` of these splits from the folder with the files.
    """

    images: int | None
    shape: tuple[int, int, int]
    factors: tuple[FactorInfo, ...]
    read: Callable[[Path, tuple[str, ...]], LabelledImages]

    kind: ClassVar[str] = "images"
    loader: ClassVar[str] = "nearid.load"

    @property
    def amount(self) -> str:
        count = "" if self.images is None else f"{self.images:,}\n"
        return f"{count}{' x '.join(map(str, self.shape))}"


@dataclass(frozen=True, kw_only=True)
class Corpus(FileSet):
    """A data set of text; `words` counts the words of all splits with punctuation; `read` as in `Dataset`."""

    words: int
    read: Callable[[Path, tuple[str, ...]], Sentences]

    kind: ClassVar[str] = "text"
    loader: ClassVar[str] = "nearid.lab.data.load.load_sentences"

    @property
    def amount(self) -> str:
        return f"{self.words:,}\nwords"


class Profiles(NamedTuple):
    """Rows of shape (n, d), the label and the batches of each (by kind of batch), and the label of the controls."""

    values: Floats
    labels: np.ndarray
    batches: dict[str, np.ndarray]
    control: str | None


@dataclass(frozen=True, kw_only=True)
class ProfileSet(FileSet):
    """A data set of profiles of wells with their perturbations and batches; `read` as in `Dataset`."""

    rows: int
    read: Callable[[Path, tuple[str, ...]], Profiles]

    kind: ClassVar[str] = "profiles"
    loader: ClassVar[str] = "nearid.lab.data.load.load_profiles"

    @property
    def amount(self) -> str:
        return f"{self.rows:,}\nprofiles"


@dataclass(frozen=True, kw_only=True)
class Weights(FileSet):
    """Weights of trained networks; `networks` maps the name of a network to its file."""

    networks: Mapping[str, str]

    kind: ClassVar[str] = "weights"
    loader: ClassVar[str] = "nearid.lab.models.cifar_resnet.load_cifar_resnet"

    @property
    def amount(self) -> str:
        return f"{len(self.networks)}\nnetworks"

    def held(self, folder: Path) -> tuple[str, ...] | None:
        """The weight files in a folder, if there are any. One file is enough: each network needs only its own "
        "weights."""
        there = tuple(file.name for file in self.files if (folder / file.name).is_file())
        return there or None


@dataclass(frozen=True)
class LabelledImages:
    """Images and the true factors of each.

    Attributes
    ----------
    images : Images
        Read block by block: `images.read(start, stop)`, `images.take(indices)`.
    factors : tuple of FactorInfo
    table : ndarray of shape (n, n_factors)
        Levels counted from 0 (whole numbers), or values of measured factors (float64).
    sequence : ndarray of shape (n,) or None
        For frames of films: number of the film of each image, counted from 0. Frames of one film are consecutive rows.
    """

    name: str
    images: Images
    factors: tuple[FactorInfo, ...]
    table: np.ndarray
    sequence: np.ndarray | None = None

    def __post_init__(self) -> None:
        n, k = len(self.images), len(self.factors)
        if self.table.shape != (n, k):
            raise InputError(
                f"{self.name} has {n} images, but its factors have shape {self.table.shape} instead of ({n}, {k}): "
                f"the files do not belong together. {AGAIN}"
            )
        for at, factor in enumerate(self.factors):
            column = self.table[:, at]
            if factor.size is None:
                if not np.isfinite(column).all():
                    raise InputError(f"Factor {factor.name!r} of {self.name} has values that are not finite.")
            elif n and not 0 <= column.min() <= column.max() < factor.size:
                raise InputError(
                    f"Factor {factor.name!r} of {self.name} has levels {column.min()} to {column.max()}, but 0 to "
                    f"{factor.size - 1} are expected. {AGAIN}"
                )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def codes(self) -> np.ndarray:
        """Level of each factor, counted from 0, of shape (n, n_factors)."""
        if self.table.dtype.kind == "f":
            raise InputError(
                f"The factors of {self.name} are measured and have no levels. Use `columns` instead of `codes`."
            )
        return self.table

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The factors by name, in the form that `nearid.open_factors` accepts: angles in their units, levels from 0."""
        return {f.name: _in_units(f, self.table[:, at]) for at, f in enumerate(self.factors)}

    @property
    def kinds(self) -> dict[str, str]:
        """Kind of each factor."""
        return {factor.name: factor.kind for factor in self.factors}

    @property
    def periods(self) -> dict[str, float]:
        """Period of each circular factor."""
        return {factor.name: factor.period for factor in self.factors if factor.period is not None}

    def with_images(self, images: Images) -> LabelledImages:
        """Return the same factors with another form of the same images."""
        return replace(self, images=images)


def _in_units(factor: FactorInfo, column: np.ndarray) -> np.ndarray:
    if factor.kind == "circular" and factor.levels:
        return np.asarray(np.asarray(factor.levels, dtype=np.float64)[column])
    return column


def grid(factors: Sequence[FactorInfo]) -> np.ndarray:
    """All combinations of levels in order, the last factor fastest, of shape (product of sizes, n_factors)."""
    sizes = [factor.size or 1 for factor in factors]
    places = np.unravel_index(np.arange(int(np.prod(sizes))), sizes)
    return np.stack(places, axis=1).astype(np.int32)


def nearest_level(name: str, factor: FactorInfo, values: np.ndarray) -> np.ndarray:
    """Nearest level of each value of a factor whose levels are numbers (values are never truncated)."""
    levels = np.asarray(factor.levels, dtype=np.float64)
    codes = np.abs(values[:, None] - levels).argmin(axis=1)
    # Rounding of any number format is far below a tenth of a step. NaN is not near any level.
    far = np.flatnonzero(~(np.abs(values - levels[codes]) <= 0.1 * np.diff(levels).min()))
    if len(far):
        raise InputError(
            f"{name} has {values[far[0]]:g} for {factor.name!r} at row {far[0]}, but one of {len(levels)} levels from "
            f"{levels[0]:g} to {levels[-1]:g} is expected. Is it the canonical file?"
        )
    return np.asarray(codes)
