"""What experiments on images share: where images come from, encoding them, ICA of the codes, and their scores."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from nearid.base.errors import InputError, unknown
from nearid.lab.data.base import LabelledImages
from nearid.lab.data.registry import datasets
from nearid.lab.processes.images.base import FactorImages
from nearid.lab.processes.images.factors import Codes
from nearid.lab.processes.images.scenes import SolidProcess, SpriteProcess
from nearid.moments import Floats

if TYPE_CHECKING:
    from torch import Tensor

RENDERED: Mapping[str, Callable[[int], FactorImages]] = {"sprites": SpriteProcess, "solids": SolidProcess}
# The same under a light that changes from image to image, with spots in front: see `LitImages`.
LIT = {f"{name}-lit": name for name in RENDERED}
# Kinds of factors as measures know them; levels that have an order are numbers.
KINDS = {"interval": "continuous", "circle": "circular", "category": "categorical", "integer": "continuous"}
# Images that are encoded at once.
BLOCK = 512
# Where a traversal of a component stops, in standard deviations from its mean.
PLACES = (-2.0, -1.3, -0.7, 0.0, 0.7, 1.3, 2.0)


@dataclass(frozen=True)
class Sample:
    """Images and their factors.

    Attributes
    ----------
    images : ndarray of shape (n, channels, side, side)
        float32 from 0 to 1.
    codes : ndarray of shape (n, factors)
        Level of each factor, counted from 0.
    columns : dict of ndarray of shape (n,)
        Factors by name, in units.
    """

    images: Floats
    codes: Codes
    columns: dict[str, np.ndarray]

    def first(self, n: int) -> Sample:
        """The first images, at most so many."""
        return Sample(self.images[:n], self.codes[:n], {name: column[:n] for name, column in self.columns.items()})


class ImageSource(ABC):
    """Images of discrete factors, drawn at random.

    Attributes
    ----------
    kinds : dict
        Kind of each factor by name, as `nearid.open_factors` takes them.
    periods : dict
        Period of each circular factor.
    """

    name: str
    channels: int
    side: int
    kinds: dict[str, str]
    periods: dict[str, float]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the factors."""
        return tuple(self.kinds)

    @property
    @abstractmethod
    def size(self) -> int:
        """Number of different images."""

    @abstractmethod
    def take(self, index: np.ndarray) -> Sample:
        """Images at places 0 to size - 1."""

    @abstractmethod
    def levels(self, factor: str) -> int:
        """Number of levels of a factor."""

    def sample(self, size: int, rng: np.random.Generator) -> Sample:
        """Images drawn uniformly, with replacement."""
        return self.take(rng.integers(0, self.size, size))

    def sample_apart(self, size: int, rng: np.random.Generator) -> Sample:
        """Different images drawn uniformly; all of them, in random order, where there are no more than `size`."""
        return self.take(rng.choice(self.size, min(size, self.size), replace=False))


class RenderedImages(ImageSource):
    """All combinations of the levels of a process, each drawn when it is asked for."""

    def __init__(self, name: str, process: FactorImages) -> None:
        self.name, self.process = name, process
        self.channels, self.side = process.channels, process.side
        self.kinds = {f.name: KINDS[f.kind] for f in process.factors}
        self.periods = {f.name: f.high - f.low for f in process.factors if f.kind == "circle"}

    @property
    def size(self) -> int:
        return self.process.grid_size

    def levels(self, factor: str) -> int:
        return self.process.factors[self.names.index(factor)].count

    def take(self, index: np.ndarray) -> Sample:
        values, codes = self.process.grid(index)
        columns = dict(zip(self.names, values.T, strict=True))
        return Sample(self.process.observe(values), codes, columns)


class LitImages(ImageSource):
    """Rendered images whose contrast is drawn anew for each image and colour, with spots in front of them.

    A pixel of value v becomes 1/2 + a (v - 1/2). The contrast a is as likely to be -a, so that no pixel is correlated
    with any factor: linear maps of pixels decode nothing, though shapes are as easy to see as before. Spots of any
    place and colour are distractors. Contrast and spots follow from the place of an image in the source alone.
    """

    # Least absolute contrast, number of spots, and their radius as a share of the side.
    LEAST, SPOTS, RADIUS = 0.3, 3, 0.05

    def __init__(self, plain: ImageSource) -> None:
        self.plain = plain
        self.name, self.channels, self.side = f"{plain.name}-lit", 3, plain.side
        self.kinds, self.periods = plain.kinds, plain.periods

    @property
    def size(self) -> int:
        return self.plain.size

    def levels(self, factor: str) -> int:
        return self.plain.levels(factor)

    def take(self, index: np.ndarray) -> Sample:
        sample = self.plain.take(index)
        drawn = hashed(index, 3 + self.SPOTS * 5)
        signed = 2 * drawn[:, :3] - 1
        contrast = np.sign(signed) * (self.LEAST + (1 - self.LEAST) * np.abs(signed))
        images = 0.5 + contrast[:, :, None, None] * (
            np.broadcast_to(sample.images, (len(index), 3, *2 * (self.side,))) - 0.5
        )
        places = (np.arange(self.side) + 0.5) / self.side
        for spot in drawn[:, 3:].reshape(len(index), self.SPOTS, 5).transpose(1, 0, 2):
            across, down = (np.exp(-(((places - at[:, None]) / self.RADIUS) ** 2)) for at in (spot[:, 0], spot[:, 1]))
            cover = (down[:, :, None] * across[:, None, :])[:, None]
            images += cover * (spot[:, 2:, None, None] - images)
        return Sample(images.astype(np.float32), sample.codes, sample.columns)


def hashed(index: np.ndarray, count: int) -> Floats:
    """Numbers from 0 to 1 that look drawn, of shape (n, count), and follow from n whole numbers alone (splitmix64)."""
    steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    # Products are meant to overflow.
    with np.errstate(over="ignore"):
        z = np.asarray(index).astype(np.uint64)[:, None] * np.uint64(0xD1342543DE82EF95) + steps
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return np.asarray((z ^ (z >> np.uint64(31))) / 2.0**64)


class StoredImages(ImageSource):
    """Images of a data set in its canonical files."""

    def __init__(self, held: LabelledImages) -> None:
        self.name, self.held = held.name, held
        _, height, width, self.channels = held.images.shape
        if height != width:
            raise InputError(f"Images of {held.name} are {height} x {width}, but square ones are expected.")
        self.side = height
        self.kinds = {name: KINDS.get(kind, kind) for name, kind in held.kinds.items()}
        self.periods = held.periods
        # Told at once where the factors have no levels.
        self.codes: Codes = held.codes

    @property
    def size(self) -> int:
        return len(self.held)

    def levels(self, factor: str) -> int:
        return int(self.codes[:, self.names.index(factor)].max()) + 1

    def take(self, index: np.ndarray) -> Sample:
        images = as_planes(self.held.images.take(index))
        columns = {name: column[index] for name, column in self.held.columns.items()}
        return Sample(images, self.codes[index], columns)


def as_planes(images: np.ndarray) -> Floats:
    """Images as networks take them, channels first and from 0 to 1, from bytes or floats with channels last."""
    planes = np.ascontiguousarray(images.transpose(0, 3, 1, 2), dtype=np.float32)
    return planes / np.float32(255) if images.dtype == np.uint8 else planes


def image_source(name: str, side: int) -> ImageSource:
    """Images by name: rendered ("sprites", "solids", or these with "-lit"), or of a data set that is here, scaled."""
    if name in LIT:
        return LitImages(image_source(LIT[name], side))
    if name in RENDERED:
        return RenderedImages(name, RENDERED[name](side))
    check_source(name)
    from nearid.lab.data.load import load

    # Batches in random order out of compressed files would take longer than the training.
    return StoredImages(load(name, size=side, unpack=True))


def check_source(name: str) -> None:
    """Refuse a name that stands for no images."""
    if not is_rendered(name) and name not in datasets():
        raise InputError(unknown("source of images", name, (*RENDERED, *LIT, *datasets())))


def is_rendered(name: str) -> bool:
    """Whether images are drawn here, and not read from files."""
    return name in RENDERED or name in LIT


def source_names(data: str) -> tuple[str, ...]:
    """Names of images, by comma, each of which is known."""
    names = tuple(name.strip() for name in data.split(","))
    for name in names:
        check_source(name)
    return names


def stored_names(sources: Iterable[str]) -> tuple[str, ...]:
    """Those sources of images that are data sets."""
    return tuple(name for name in sources if not is_rendered(name))


def encoded(encode: Callable[[Tensor], Tensor], images: Floats, device: Any = "cpu") -> np.ndarray:
    """Codes of images, or whatever a function of a torch module makes of them, block by block; floats in float64."""
    import torch

    with torch.no_grad():
        blocks = [
            encode(torch.as_tensor(images[k : k + BLOCK], device=device)).cpu() for k in range(0, len(images), BLOCK)
        ]
    codes = torch.cat(blocks)
    return np.asarray(codes.double() if codes.is_floating_point() else codes)


def explained(images: Floats, reconstructions: Floats) -> float:
    """Share of the variance of the pixels that reconstructions explain; the mean image explains 0."""
    left = float(np.square(images - reconstructions, dtype=np.float64).sum())
    return 1 - left / float(np.square(images - images.mean(axis=0), dtype=np.float64).sum())


@dataclass(frozen=True)
class Components:
    """Representations after ICA, and the way back.

    Attributes
    ----------
    back : ndarray of shape (k, latents)
        values @ back + mean are the latents.
    """

    values: Floats
    back: Floats
    mean: Floats


def components(codes: Floats, *, whiten: bool) -> Components:
    """Latents after ICA; without whitening a pure rotation, which leaves idle latents as small as they were."""
    from nearid.arrays import open_rows
    from nearid.ica.fit import IcaOptions, fit_ica

    fit = fit_ica(open_rows(codes), IcaOptions(whiten=whiten))
    # Without whitening ICA works in one common unit: that of the latents is put back.
    length = 1.0 if whiten else float(np.linalg.norm(fit.components[0]))
    return Components((codes - fit.mean) @ fit.components.T / length, fit.mixing.T * length, fit.mean)


def traversals(
    decode: Callable[[Floats], np.ndarray], turned: Components, which: np.ndarray, start: Floats
) -> np.ndarray:
    """Images along some components, all others as they are at the start.

    Parameters
    ----------
    decode : callable
        From latents of shape (n, latents) to images.

    Returns
    -------
    ndarray of shape (components, places, channels, side, side)
    """
    at = (start - turned.mean) @ np.linalg.pinv(turned.back)
    places = np.tile(at, (len(which), len(PLACES), 1))
    for row, k in enumerate(which):
        places[row, :, k] = np.multiply(PLACES, turned.values[:, k].std())
    images = decode(places.reshape(-1, len(at)) @ turned.back + turned.mean)
    return images.reshape(len(which), len(PLACES), *images.shape[1:])


@dataclass(frozen=True)
class Judge:
    """Scores of representations of a sample.

    Attributes
    ----------
    dci_rows : int
        Rows for DCI, whose trees take the longest; 0 leaves it out.
    """

    source: ImageSource
    sample: Sample
    dci_rows: int

    @cached_property
    def _levels(self) -> Any:
        from nearid.measures.factors import open_factors

        columns = dict(zip(self.source.names, self.sample.codes.T, strict=True))
        return open_factors(columns, kinds=dict.fromkeys(columns, "integer"))

    def _factors(self, rows: int) -> Any:
        from nearid.measures.factors import open_factors

        columns = {name: column[:rows] for name, column in self.sample.columns.items()}
        return open_factors(columns, kinds=self.source.kinds, periods=self.source.periods)

    def information(self, z: np.ndarray, *, discrete: bool = False) -> tuple[dict[str, float | None], Floats]:
        """InfoM, InfoE and InfoC, and the normalised information of factors (columns) and latents (rows)."""
        from nearid.measures.infomec import infomec

        information = infomec(z, self._levels, discrete_latents=discrete)
        # What is not defined has no value in a cell.
        scores = {name: None if np.isnan(value) else value for name, value in information.parts.items()}
        return {**scores, "active": float(information.active.sum())}, information.matrix

    def recovery(self, z: Floats) -> dict[str, float]:
        """MCC and DCI; what they fit (matching, trees) is judged on other rows."""
        from nearid.measures.dci import dci
        from nearid.measures.mcc import mcc

        scores = {"mcc": mcc(z, self._factors(len(z))).value}
        if self.dci_rows:
            rows = min(self.dci_rows, len(z))
            trees = dci(z[:rows], self._factors(rows), model="boost")
            scores |= {"dci_d": trees.disentanglement, "dci_c": trees.completeness, "dci_i": trees.informativeness}
        return scores
