"""The representations that are compared: the embedding, whitened, unmixed, and rotated at random, without labels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.memory import MemoryRows
from nearid.base.errors import InputError
from nearid.base.limits import check_memory
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.folds import row_moments
from nearid.ica.diagnostics import Diagnostics, see_rows
from nearid.ica.stream import Affine
from nearid.ica.whiten import Whitener, fit_whitener
from nearid.moments import ROUNDING, Floats, Moments
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.plan import CONDITIONS, CORRECTIONS, Plan

# Number of rows that are mapped at a time.
PIECE = 4096
# Up to this size, mapped rows are held at once: pieces would cost more than they save. Beyond, they never all exist.
HELD_BYTES = 64 << 20
# Maps that differ by less than this share are the same; components are kept in float32.
SAME_MAP = 1e-6
# Whitening keeps one direction for so many rows, but at least so many. With as many directions as rows, each whitened
# component is the noise of single rows.
ROWS_PER_COMPONENT, FEWEST_COMPONENTS = 10, 10


@dataclass(frozen=True)
class Condition:
    """A linear map of the embedding.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    matrix : ndarray of shape (k, d), or None
        Components are matrix (x - mean). If None, columns are divided by their standard deviations.
    columns : ndarray of int, shape (k,)
        Columns in use if there is no matrix: those that vary.
    scales : ndarray of shape (k,)
        Deviations of these.
    own : bool
        Whether it maps rows of the embedding; else rows of a corrected one, or each batch in another way.
    """

    name: str
    mean: Floats
    matrix: Floats | None
    columns: np.ndarray
    scales: Floats
    own: bool = True

    @property
    def title(self) -> str:
        """Name for people."""
        return CONDITIONS[self.name]

    @property
    def width(self) -> int:
        """Number of components."""
        return len(self.columns) if self.matrix is None else len(self.matrix)

    def some(self, which: np.ndarray, name: str | None = None) -> Condition:
        """A condition of some of the components alone."""
        matrix = None if self.matrix is None else self.matrix[which]
        columns = self.columns[which] if self.matrix is None else np.arange(len(which))
        return Condition(name or self.name, self.mean, matrix, columns, self.scales[which])

    def turns(self, other: Condition) -> bool:
        """Whether these components are a rotation of another condition's, so that distances and angles are the same."""
        if self.matrix is None or other.matrix is None or self.matrix.shape != other.matrix.shape:
            return False
        turn = np.linalg.lstsq(other.matrix.T, self.matrix.T, rcond=None)[0]
        rigid = np.allclose(turn @ turn.T, np.eye(self.width), atol=SAME_MAP)
        error = np.abs(turn.T @ other.matrix - self.matrix).max()
        return rigid and error <= SAME_MAP * np.abs(self.matrix).max() and np.array_equal(self.mean, other.mean)

    def map(self, x: Floats) -> Floats:
        """Components of rows in float32."""
        if self.matrix is None:
            scaled = np.subtract(x[:, self.columns], self.mean[self.columns], dtype=np.float64)
            return np.asarray(np.divide(scaled, self.scales, out=scaled), dtype=np.float32)
        return Affine(self.matrix, self.mean, np.zeros(self.width))(x).astype(np.float32, copy=False)

    def lift(self, weights: Floats) -> Floats:
        """Weights of centred columns that give the same score as these weights of components, of shape (..., k)."""
        if self.matrix is not None:
            return np.asarray(weights @ self.matrix)
        lifted = np.zeros((*weights.shape[:-1], len(self.mean)))
        lifted[..., self.columns] = weights / self.scales
        return lifted

    def gather(self, sums: Floats) -> Floats:
        """Sums over rows of components from sums of centred columns: the transpose of `lift`."""
        return np.asarray(sums[self.columns] / self.scales if self.matrix is None else self.matrix @ sums)


# From rows and their places to components, of shape (len(places), k).
RowMap = Callable[[Floats, np.ndarray], Floats]


class Components(Protocol):
    """Components of rows: of a linear map, or after a correction that is fitted anew for each split."""

    @property
    def rows(self) -> Rows:
        """The rows that they are computed from."""

    @property
    def width(self) -> int:
        """Number of components."""

    @property
    def mapping(self) -> RowMap:
        """Their map without the rows, so that an engine sends the rows only once for all conditions."""

    def some(self, which: np.ndarray) -> Components:
        """Some of the components."""

    def take(self, places: np.ndarray) -> Floats:
        """Components of some rows, of shape (len(places), k)."""

    def trained(self, train: np.ndarray) -> Components:
        """The same, fitted on the batches of the training rows where the fit depends on them."""

    def held(self) -> Components:
        """The same components, mapped once and kept in memory where that saves work."""

    def linear(self, places: np.ndarray) -> tuple[ComponentRows, np.ndarray]:
        """Components that a linear map of rows makes, and the places of the wanted rows among these."""


def _anywhere(condition: Condition, x: Floats, places: np.ndarray) -> Floats:
    return condition.map(x)


@dataclass(frozen=True)
class ComponentRows:
    """Components of the rows of an embedding under a condition, computed when they are needed."""

    rows: Rows
    condition: Condition

    @property
    def width(self) -> int:
        """Number of components."""
        return self.condition.width

    @property
    def mapping(self) -> RowMap:
        """The map of the condition, which is the same for all places."""
        return partial(_anywhere, self.condition)

    def some(self, which: np.ndarray) -> ComponentRows:
        """Some of the components."""
        return ComponentRows(self.rows, self.condition.some(which))

    def held(self) -> ComponentRows:
        """The same components, mapped once and kept in memory where they are few."""
        n = self.rows.shape[0]
        if 4 * n * self.width > HELD_BYTES:
            return self
        every, one = np.arange(self.width), np.ones(self.width)
        mapped = MemoryRows(self.rows.name, self.take(np.arange(n)))
        return ComponentRows(mapped, Condition(self.condition.name, np.zeros(self.width), None, every, one))

    def take(self, places: np.ndarray) -> Floats:
        """Components of some rows, of shape (len(places), k); full rows are in memory for one piece at a time."""
        out = np.empty((len(places), self.width), np.float32)
        for a in range(0, len(places), PIECE):
            out[a : a + PIECE] = self.condition.map(self.rows.take(places[a : a + PIECE]))
        return out

    def trained(self, train: np.ndarray) -> ComponentRows:
        """Themselves: the map was fitted without labels and batches."""
        return self

    def linear(self, places: np.ndarray) -> tuple[ComponentRows, np.ndarray]:
        """Themselves, and the same places."""
        return self, places


@dataclass(frozen=True)
class Fitted:
    """The conditions by name, the rows that their maps were fitted on, and the diagnostics of ICA.

    `turns` are the rotations of the condition "random", which itself is the first of them. `others` are components that
    are no linear map of the embedding.
    """

    conditions: dict[str, Condition]
    turns: tuple[Condition, ...]
    rows: int
    diagnostics: Diagnostics | None
    others: dict[str, Components] = field(default_factory=dict)

    def components(self, name: str, rows: Rows) -> list[Components]:
        """Components of a condition; of "random", those of each rotation."""
        if name in self.others:
            return [self.others[name]]
        maps = self.turns if name == "random" else (self.conditions[name],)
        return [ComponentRows(rows, each) for each in maps]

    def with_others(self, others: dict[str, Components], corrected: dict[str, Condition]) -> Fitted:
        """The same with further conditions."""
        return replace(self, conditions={**self.conditions, **corrected}, others={**self.others, **others})


def sample(design: Design, most: int | None, random_state: int) -> np.ndarray | None:
    """Indices of the rows for fitting maps: one of each block, at most `most` of these at random; None for all."""
    rng = np.random.default_rng([random_state, 1])
    places = rng.permutation(design.n)
    if design.blocks is not None:
        places = places[np.unique(design.blocks[places], return_index=True)[1]]
    if most is not None and len(places) > most:
        places = rng.permutation(places)[:most]
    return None if len(places) == design.n else np.sort(places)


def fit_conditions(
    design: Design,
    moments: Moments,
    plan: Plan,
    engine: Engine,
    progress: Progress,
    timed: Callable[[str], AbstractContextManager[None]],
) -> Fitted:
    """Fit the maps, without labels and without batches; the moments are of all rows."""
    names, seed = plan.conditions, plan.random_state
    conditions: dict[str, Condition] = {}
    turns: tuple[Condition, ...] = ()
    if "base" in names:
        conditions["base"] = scaled(design.rows.name, moments)
    rows, diagnostics = design.rows, None
    with timed("whitening"):
        places = sample(design, plan.fit_rows, seed)
        if places is not None:
            size = len(places) * rows.shape[1] * rows.dtype.itemsize
            advice = "Draw fewer with fit_rows (--fit-rows)."
            check_memory(f"Fitting to {len(places):,} rows of {rows.name}", size, advice)
            rows = MemoryRows(rows.name, rows.take(places))
            moments, _ = row_moments(rows, engine=engine)
        components = plan.n_components
        if components is None and rows.shape[1] > most_components(rows.shape[0]):
            components = most_components(rows.shape[0])
        if "pca" in names or "random" in names:
            whitener = fit_whitener(moments, components=components, stored=rows.dtype)
            if "pca" in names:
                conditions["pca"] = _linear("pca", moments.mean, whitener.forward)
            if "random" in names:
                rng = np.random.default_rng([seed, 2])
                matrices = [_turned(whitener, rng) for _ in range(plan.rotations)]
                turns = tuple(_linear("random", moments.mean, matrix) for matrix in matrices)
                conditions["random"] = turns[0]
    if "ica" in names:
        from nearid.ica.fit import IcaOptions, fit_ica

        tick = progress("unmixing", 100)
        with timed("ICA"):
            unmixed = fit_ica(rows, IcaOptions(components), moments=moments, seed=seed, engine=engine, tick=tick)
            forward = Affine(unmixed.components, unmixed.mean, np.zeros(len(unmixed.components)))
            seen = see_rows(rows, forward, engine)
        d = unmixed.diagnostics
        diagnostics = replace(d, alerts=(*d.alerts, *seen.alerts), kurtosis=seen.kurtosis)
        conditions["ica"] = _linear("ica", unmixed.mean, unmixed.components)
    own = {name: conditions[name] for name in names if name not in CORRECTIONS}
    return Fitted(own, turns, rows.shape[0], diagnostics)


def most_components(rows: int) -> int:
    """How many components are kept by default at most: one for each ten rows that the maps are fitted on."""
    return max(FEWEST_COMPONENTS, rows // ROWS_PER_COMPONENT)


def scaled(name: str, moments: Moments) -> Condition:
    """The columns that vary, each of unit variance."""
    sizes = np.sqrt(np.diag(moments.scatter) / moments.n)
    live = np.flatnonzero(sizes > ROUNDING * np.abs(moments.mean))
    if not len(live):
        raise InputError(f"Every column of {name} is constant, so nothing can be classified.")
    return Condition("base", moments.mean, None, live, sizes[live])


def _turned(whitener: Whitener, rng: np.random.Generator) -> Floats:
    """The whitening map followed by a uniformly random rotation."""
    k = len(whitener.forward)
    q, r = np.linalg.qr(rng.standard_normal((k, k)))
    return np.asarray((q * np.sign(np.diagonal(r))) @ whitener.forward)


def _linear(name: str, mean: Floats, matrix: Floats) -> Condition:
    return Condition(name, mean, matrix, np.arange(len(matrix)), np.ones(len(matrix)))
