"""What a data set is: where its files come from, what its factors are, and what reading it gives."""

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

# Words of each sentence, or of each line where a source has lines.
Sentences = list[list[str]]

# What to do about a damaged file.
AGAIN = "Get it again: nearid data fetch NAME --again"


@dataclass(frozen=True)
class FactorInfo:
    """A true factor of a data set.

    Attributes
    ----------
    kind : {"continuous", "integer", "categorical", "circular"}
        As `nearid.open_factors` knows them; "integer" stands for ordered levels.
    size : int or None
        Number of levels; None for a factor that is measured.
    period : float or None
        Of a circular factor, in the units of its values.
    levels : tuple
        Value of each level in units, or what a class is called; empty where levels are just counted.
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
        What it is called in the folder of its data set, and where it comes from.
    size : int or None
        Bytes, where they are known.
    checksum : str or None
        "sha256:..." or "md5:...", where one is published; `checked_by` says by whom.
    members : tuple of str
        Of an archive that is unpacked after the download: the paths in it that are kept, folders with a slash at the
        end. Empty for a file that is read as it is.
    holds : tuple of str
        What is there, in the folder of the data set, once the archive is unpacked.
    by_hand : bool
        Whether a person must download it, because its host has no plain address for it.
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
        """What must be there for the file to count as fetched."""
        return self.holds or (self.name,)


@dataclass(frozen=True, kw_only=True)
class FileSet:
    """What data sets of any kind have: a name, files, and where they come from.

    Attributes
    ----------
    name : str
        As the user types it; also its folder.
    files : tuple of RemoteFile
        Empty for what comes with a library.
    splits : tuple of str
        Parts that the source keeps apart; all together by default.
    folders : tuple of str
        Other names that its folder may have.
    layouts : tuple of tuples of str
        Other sets of files that can be read in the place of `files`.
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

    # What sets of this kind hold, and the function that reads them.
    kind: ClassVar[str]
    loader: ClassVar[str]

    @property
    def amount(self) -> str:
        """How much there is of it, for people."""
        raise NotImplementedError

    def held(self, folder: Path) -> tuple[str, ...] | None:
        """What a folder holds of the data set, if that is all that is needed."""
        canonical = tuple(path for file in self.files for path in file.paths)
        for layout in (canonical, *self.layouts):
            if all((folder / path).exists() for path in layout):
                return layout
        return None

    def parts(self, split: str | None) -> tuple[str, ...]:
        """The splits that are asked for; None stands for all."""
        if split is None:
            return self.splits
        if split not in self.splits:
            said = f"has the splits {', '.join(self.splits)}" if self.splits else "has no splits"
            raise InputError(f"{self.title} {said}, but split={split!r} was given. Leave split out to get all of it.")
        return (split,)


@dataclass(frozen=True, kw_only=True)
class Dataset(FileSet):
    """A data set of images with factors.

    Attributes
    ----------
    images : int or None
        How many there are, where that is known beforehand.
    shape : tuple of int
        Height, width and channels of an image.
    factors : tuple of FactorInfo
    read : callable
        read(folder, parts) gives the `LabelledImages` of these splits, from a folder that holds the files.
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
    """A data set of text; `words` counts all splits, punctuation included, and `read` is as that of `Dataset`."""

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
    """A data set of profiles of wells with their perturbations and batches; `read` is as that of `Dataset`."""

    rows: int
    read: Callable[[Path, tuple[str, ...]], Profiles]

    kind: ClassVar[str] = "profiles"
    loader: ClassVar[str] = "nearid.lab.data.load.load_profiles"

    @property
    def amount(self) -> str:
        return f"{self.rows:,}\nprofiles"


@dataclass(frozen=True, kw_only=True)
class Weights(FileSet):
    """Weights of trained networks: `networks` has the file of each by the name of the network."""

    networks: Mapping[str, str]

    kind: ClassVar[str] = "weights"
    loader: ClassVar[str] = "nearid.lab.models.cifar_resnet.load_cifar_resnet"

    @property
    def amount(self) -> str:
        return f"{len(self.networks)}\nnetworks"

    def held(self, folder: Path) -> tuple[str, ...] | None:
        """The files that a folder holds, if there is one: a network needs no weights but its own."""
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
        Levels counted from 0 (whole numbers), or values of factors that are measured (float64).
    sequence : ndarray of shape (n,) or None
        Of images that are frames of films: which film, counted from 0; frames of one follow each other.
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
                f"{self.name} has {n} images and factors of shape {self.table.shape}, but ({n}, {k}) is expected: its "
                f"files are not of one set. {AGAIN}"
            )
        for at, factor in enumerate(self.factors):
            column = self.table[:, at]
            if factor.size is None:
                if not np.isfinite(column).all():
                    raise InputError(f"{self.name} has values of {factor.name!r} that are no finite numbers.")
            elif n and not 0 <= column.min() <= column.max() < factor.size:
                raise InputError(
                    f"{self.name} has levels {column.min()} to {column.max()} of {factor.name!r}, but 0 to "
                    f"{factor.size - 1} are expected. {AGAIN}"
                )

    def __len__(self) -> int:
        return len(self.images)

    @property
    def codes(self) -> np.ndarray:
        """Level of each factor, counted from 0, of shape (n, n_factors)."""
        if self.table.dtype.kind == "f":
            raise InputError(f"The factors of {self.name} are measured and have no levels; use its columns.")
        return self.table

    @cached_property
    def columns(self) -> dict[str, np.ndarray]:
        """The factors by name, as `nearid.open_factors` takes them: angles in their units, levels counted."""
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
        """The same factors beside the same images in another form."""
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
    """Level of each value of a factor whose levels are numbers; by the nearest, never by truncation."""
    levels = np.asarray(factor.levels, dtype=np.float64)
    codes = np.abs(values[:, None] - levels).argmin(axis=1)
    # A tenth of a step is far above what any number format rounds away; what is no number is not near either.
    far = np.flatnonzero(~(np.abs(values - levels[codes]) <= 0.1 * np.diff(levels).min()))
    if len(far):
        raise InputError(
            f"{name} has {values[far[0]]:g} for {factor.name!r} at row {far[0]}, but one of {len(levels)} levels from "
            f"{levels[0]:g} to {levels[-1]:g} is expected. Is it the canonical file?"
        )
    return np.asarray(codes)
