"""The representations that are compared: the embedding, whitened, unmixed, and turned at random; no label is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.memory import MemoryRows
from nearid.base.errors import InputError, unknown
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.folds import row_moments
from nearid.ica.diagnostics import Diagnostics
from nearid.ica.stream import Affine
from nearid.ica.whiten import Whitener, fit_whitener
from nearid.moments import ROUNDING, Floats, Moments
from nearid.questions.deconfound.design import Design

TITLES = {
    "base": "Base",
    "pca": "PCA",
    "random": "PCA + random rotation",
    "ica": "PCA + ICA",
    "kept": "PCA + ICA, technical components dropped",
}
# Rows that are mapped at a time.
PIECE = 4096


@dataclass(frozen=True)
class Condition:
    """A linear map of the embedding.

    Attributes
    ----------
    name : str
    mean : ndarray of shape (d,)
    matrix : ndarray of shape (k, d), or None
        Components are matrix (x - mean). Without one, columns are divided by their deviations.
    columns : ndarray of int, shape (k,)
        Columns in use, where there is no matrix: those that vary.
    scales : ndarray of shape (k,)
        Deviations of these.
    """

    name: str
    mean: Floats
    matrix: Floats | None
    columns: np.ndarray
    scales: Floats

    @property
    def title(self) -> str:
        """Name for people."""
        return TITLES[self.name]

    @property
    def width(self) -> int:
        """Number of components."""
        return len(self.columns) if self.matrix is None else len(self.matrix)

    def some(self, name: str, which: np.ndarray) -> Condition:
        """A condition of some of the components alone."""
        matrix = None if self.matrix is None else self.matrix[which]
        columns = self.columns[which] if self.matrix is None else np.arange(len(which))
        return Condition(name, self.mean, matrix, columns, self.scales[which])

    def map(self, x: Floats, which: np.ndarray | None = None) -> Floats:
        """Components of rows in float32; all, or some of them."""
        if self.matrix is None:
            columns, scales = self._used(which)
            found = np.subtract(x[:, columns], self.mean[columns], dtype=np.float64)
            return np.asarray(np.divide(found, scales, out=found), dtype=np.float32)
        matrix = self.matrix if which is None else self.matrix[which]
        return Affine(matrix, self.mean, np.zeros(len(matrix)))(x).astype(np.float32, copy=False)

    def lift(self, weights: Floats, which: np.ndarray | None = None) -> Floats:
        """Weights of columns, over the mean, that give the same sum as these weights of components."""
        if self.matrix is not None:
            return np.asarray(weights @ (self.matrix if which is None else self.matrix[which]))
        columns, scales = self._used(which)
        found = np.zeros(len(self.mean))
        found[columns] = weights / scales
        return found

    def gather(self, sums: Floats, which: np.ndarray | None = None) -> Floats:
        """Sums over rows of components from those of columns less their means: the transpose of `lift`."""
        if self.matrix is not None:
            return np.asarray((self.matrix if which is None else self.matrix[which]) @ sums)
        columns, scales = self._used(which)
        return np.asarray(sums[columns] / scales)

    def _used(self, which: np.ndarray | None) -> tuple[np.ndarray, Floats]:
        return (self.columns, self.scales) if which is None else (self.columns[which], self.scales[which])


@dataclass(frozen=True)
class View:
    """Rows of an embedding under a condition, mapped as they are asked for."""

    rows: Rows
    condition: Condition

    @property
    def width(self) -> int:
        """Number of components."""
        return self.condition.width

    def take(self, places: np.ndarray, which: np.ndarray | None = None) -> Floats:
        """Components of some rows, of shape (len(places), k); whole rows are held for one piece at a time."""
        out = np.empty((len(places), self.width if which is None else len(which)), np.float32)
        for a in range(0, len(places), PIECE):
            out[a : a + PIECE] = self.condition.map(self.rows.take(places[a : a + PIECE]), which)
        return out


@dataclass(frozen=True)
class Fitted:
    """The conditions by name, the rows that their maps were fitted on, and what is known of the unmixing."""

    conditions: dict[str, Condition]
    rows: int
    diagnostics: Diagnostics | None


def named(conditions: Sequence[str] | str) -> tuple[str, ...]:
    """Conditions that were asked for, in the order of their titles."""
    wanted = [c.strip() for c in (conditions.split(",") if isinstance(conditions, str) else conditions)]
    possible = [name for name in TITLES if name != "kept"]
    for name in wanted:
        if name not in possible:
            raise InputError(unknown("condition", name, possible))
    if not wanted:
        raise InputError(f"No condition was named; there are {', '.join(possible)}.")
    return tuple(name for name in possible if name in wanted)


def sample(design: Design, most: int | None, seed: int) -> np.ndarray | None:
    """Places of the rows that maps are fitted on: one of each group, and of those `most` at random; None for all."""
    rng = np.random.default_rng([seed, 1])
    places = rng.permutation(design.n)
    if design.groups is not None:
        places = places[np.unique(design.groups[places], return_index=True)[1]]
    if most is not None and len(places) > most:
        places = rng.permutation(places)[:most]
    return None if len(places) == design.n else np.sort(places)


def fit_conditions(
    design: Design,
    moments: Moments,
    names: Sequence[str],
    *,
    most: int | None,
    components: int | None,
    seed: int,
    engine: Engine,
    progress: Progress,
    timed: Callable[[str], AbstractContextManager[None]],
) -> Fitted:
    """Fit the maps, without labels and without batches.

    Parameters
    ----------
    design : Design
    moments : Moments
        Of all rows.
    names : sequence of str
    most : int or None
        Rows at most to fit whitening and ICA on.
    components : int or None
        Leading principal directions to keep; all that exist by default.
    """
    found: dict[str, Condition] = {}
    if "base" in names:
        sizes = np.sqrt(np.diag(moments.scatter) / moments.n)
        live = np.flatnonzero(sizes > ROUNDING * np.abs(moments.mean))
        if not len(live):
            raise InputError(f"Every column of {design.rows.name} is constant: there is nothing to tell apart.")
        found["base"] = Condition("base", moments.mean, None, live, sizes[live])
    rows, diagnostics = design.rows, None
    with timed("whitening"):
        places = sample(design, most, seed)
        if places is not None:
            rows = MemoryRows(rows.name, rows.take(places))
            moments, _ = row_moments(rows, engine=engine)
        if "pca" in names or "random" in names:
            whitener = fit_whitener(moments, components=components, stored=rows.dtype)
            if "pca" in names:
                found["pca"] = _linear("pca", moments.mean, whitener.forward)
            if "random" in names:
                found["random"] = _linear("random", moments.mean, _turned(whitener, seed))
    if "ica" in names:
        from nearid.ica.fit import fit_ica

        tick = progress("unmixing", 100)
        with timed("ICA"):
            unmixed = fit_ica(rows, components=components, moments=moments, seed=seed, engine=engine, tick=tick)
        diagnostics = unmixed.diagnostics
        found["ica"] = _linear("ica", unmixed.mean, unmixed.components)
    return Fitted({name: found[name] for name in names}, rows.shape[0], diagnostics)


def _turned(whitener: Whitener, seed: int) -> Floats:
    """The whitening map followed by a rotation that is uniform among all."""
    k = len(whitener.forward)
    q, r = np.linalg.qr(np.random.default_rng([seed, 2]).standard_normal((k, k)))
    return np.asarray((q * np.sign(np.diagonal(r))) @ whitener.forward)


def _linear(name: str, mean: Floats, matrix: Floats) -> Condition:
    return Condition(name, mean, matrix, np.arange(len(matrix)), np.ones(len(matrix)))
