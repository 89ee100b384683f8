"""Corrections of batch effects by controls: centring, sphering and typical variation normalisation.

All take columns of unit variance. "centre" subtracts the mean of the controls of each batch. "sphere" makes the
covariance of the controls of all training batches the unit matrix (ZCA). "tvn" does the same, then centres each batch,
and aligns the covariance of its controls with the unit matrix (CORAL; Ando et al. 2017). Covariances are shrunk (OAS;
Chen et al. 2010), because controls are often fewer than columns.

No row is corrected by a mean or covariance that it is part of. Otherwise controls, which made them, would differ from
all other rows even if no perturbation did anything. So controls are divided into folds, and so are the other rows; a
row is corrected by the controls of the other folds. The common part is fitted on training batches only. A batch that is
judged contributes its own controls, never its other rows, to its own centre and covariance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.arrays.memory import MemoryRows
from nearid.arrays.names import few
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.moments import ROUNDING, Floats
from nearid.questions.deconfound.conditions import PIECE, ComponentRows, Condition, RowMap
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.plan import CORRECTIONS

# Folds of controls.
FOLDS = 5
# A batch with fewer controls keeps its place: a control would have no other to be corrected by.
FEWEST = 2
# Added to standard deviations, over the mean one, so that a constant direction stays finite.
SMALLEST = 1e-6


class Sphering(NamedTuple):
    """The inverse square root of a covariance: `scale` times the unit matrix, plus a part of low rank."""

    scale: float
    vectors: Floats
    gains: Floats
    shrunk: float

    def __call__(self, z: Floats) -> Floats:
        return np.asarray(self.scale * z + ((z @ self.vectors) * self.gains) @ self.vectors.T)


def fit_sphering(z: Floats, units: int) -> Sphering:
    """The sphering of centred rows z, of shape (n, d), with the covariance shrunk by OAS as that of `units` samples."""
    n, d = z.shape
    values, vectors = np.linalg.eigh(z.T @ z / n if n >= d else z @ z.T / n)
    real = values > 1e-10 * max(float(values[-1]), 1e-300)
    values = values[real]
    directions = vectors[:, real] if n >= d else z.T @ (vectors[:, real] / np.sqrt(n * values))
    mean = float(values.sum()) / d
    if not mean > 0:
        return Sphering(1.0, np.zeros((d, 0)), np.zeros(0), 1.0)
    rho = oas(values, d, units)
    inverse = 1 / (np.sqrt((1 - rho) * values + rho * mean) + SMALLEST * np.sqrt(mean))
    rest = 1 / (np.sqrt(rho * mean) + SMALLEST * np.sqrt(mean)) if len(values) < d else 0.0
    return Sphering(rest, directions, inverse - rest, rho)


def oas(values: Floats, d: int, n: int) -> float:
    """Share of the mean variance in the shrunk covariance of n rows, from its eigenvalues (Chen et al. 2010)."""
    alpha, mean = float(np.sum(values**2)) / d**2, float(values.sum()) / d
    below = (n + 1) * (alpha - mean**2 / d)
    return 1.0 if below <= 0 else min((alpha + mean**2) / below, 1.0)


@dataclass(frozen=True)
class Controls:
    """What the corrections are fitted from, read from the rows once.

    Attributes
    ----------
    fold : ndarray of int, shape (n,)
        Of every row. Rows of one block share it. All 0 if there are no controls.
    x : ndarray of shape (c, d)
        Values of the controls.
    places : ndarray of int, shape (c,)
        Their places among all rows.
    counts, sums, squares : ndarray of shape (batches,) and (batches, d)
        Of all rows of each batch, less `middle`.
    drawn : bool
        Whether only some of the controls are used.
    """

    design: Design
    fold: np.ndarray
    x: Floats
    places: np.ndarray
    middle: Floats
    counts: Floats
    sums: Floats
    squares: Floats
    drawn: bool

    @cached_property
    def batches(self) -> np.ndarray:
        """Batch of each control."""
        return np.asarray(self.design.batches.codes[self.places])

    @cached_property
    def units(self) -> np.ndarray:
        """Block of each control; itself if there are no blocks."""
        return self.places if self.design.blocks is None else self.design.blocks[self.places]

    @cached_property
    def few(self) -> list[str]:
        """Batches with too few controls to be corrected on their own."""
        of = [len(np.unique(self.fold[self.places[self.batches == b]])) for b in range(len(self.counts))]
        return [name for name, folds in zip(self.design.batches.names, of, strict=True) if folds < FEWEST]


def read_controls(design: Design, most: int, seed: int, engine: Engine = LOCAL) -> Controls:
    """Read the controls (at most `most`, as many of each batch as possible), and sums of the rows of each batch."""
    rng = np.random.default_rng([seed, 7])
    n, d = design.rows.shape
    units = np.arange(n) if design.blocks is None else design.blocks
    fold = np.zeros(n, np.intp)
    places = np.empty(0, np.intp)
    drawn = False
    if design.control is not None:
        is_control = design.labels.codes == design.control
        fold = _folds(units, design.batches.codes, is_control, rng)
        places = rng.permutation(np.flatnonzero(is_control))
        # The first of every batch, then the second of every batch, and so on.
        order = np.argsort(design.batches.codes[places], kind="stable")
        sizes = np.bincount(design.batches.codes[places], minlength=len(design.batches.names))
        turn = np.empty(len(places), np.intp)
        turn[order] = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        # Enough for each batch to be corrected, however many batches there are.
        most = max(most, FOLDS * len(design.batches.names))
        drawn = len(places) > most
        places = np.sort(places[np.argsort(turn, kind="stable")[:most]])
    count = len(design.batches.names)
    sums, squares = np.zeros((count, d)), np.zeros((count, d))
    middle = design.rows.read(0, min(n, PIECE)).astype(np.float64).mean(axis=0)
    cuts = [(a, design.batches.codes[a : a + PIECE]) for a in range(0, n, PIECE)]
    for there, own, own_squares in engine.map(_batch_sums, cuts, design.rows, middle):
        sums[there] += own
        squares[there] += own_squares
    counts = np.bincount(design.batches.codes, minlength=count).astype(np.float64)
    x = design.rows.take(places).astype(np.float64) if len(places) else np.empty((0, d))
    return Controls(design, fold, x, places, middle, counts, sums, squares, drawn)


def _batch_sums(cut: tuple[int, np.ndarray], rows: Rows, middle: Floats) -> tuple[np.ndarray, Floats, Floats]:
    """The batches of some rows, and the sums and squares of the rows of each, less `middle`."""
    start, codes = cut
    x = rows.read(start, start + len(codes)).astype(np.float64) - middle
    there = np.unique(codes)
    each = [x[codes == b] for b in there]
    squares = [np.einsum("ij,ij->j", own, own) for own in each]
    return there, np.array([own.sum(axis=0) for own in each]), np.array(squares)


def _folds(units: np.ndarray, batches: np.ndarray, is_control: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row: units stay together; controls, and other rows, of each batch are spread over the folds.

    A batch with fewer controls than folds uses as many folds as it has controls, for its other rows too.
    """
    first, unit = np.unique(units, return_index=True, return_inverse=True)[1:]
    fold = np.zeros(len(first), np.intp)
    order = rng.permutation(len(first))
    of, control = batches[first], is_control[first]
    for b in np.unique(of):
        mine = order[of[order] == b]
        folds = max(1, min(FOLDS, int(control[mine].sum())))
        for kind in (mine[control[mine]], mine[~control[mine]]):
            fold[kind] = np.arange(len(kind)) % folds
    return fold[unit]


class _Place(NamedTuple):
    """What is subtracted from some rows, and their sphering (None: none)."""

    mean: Floats
    sphering: Sphering | None

    def __call__(self, z: Floats) -> Floats:
        return z - self.mean if self.sphering is None else self.sphering(z - self.mean)


@dataclass(frozen=True)
class Correction:
    """A fitted correction: means and scales of columns, the map of each fold, and that of each batch and fold."""

    name: str
    live: np.ndarray
    scales: Floats
    means: Floats
    common: tuple[_Place, ...]
    own: dict[tuple[int, int], _Place]
    batches: np.ndarray
    fold: np.ndarray

    def map(self, x: Floats, places: np.ndarray) -> Floats:
        """Corrected rows, of shape (n, live), of the rows x at `places`."""
        z = (x[:, self.live].astype(np.float64) - self.means) / self.scales
        of, fold = self.batches[places], self.fold[places]
        for k in np.unique(fold) if self.common else ():
            z[fold == k] = self.common[k](z[fold == k])
        groups, at = np.unique(np.column_stack([of, fold]), axis=0, return_inverse=True)
        for g, (b, k) in enumerate(groups):
            place = self.own.get((int(b), int(k)))
            if place is not None:
                mine = at.ravel() == g
                z[mine] = place(z[mine])
        return z.astype(np.float32)


def fit_correction(name: str, controls: Controls, train: np.ndarray | None = None) -> Correction:
    """Fit a correction; `train` are the places of the training rows, whose batches make its common part."""
    design = controls.design
    codes = design.batches.codes
    batches = np.unique(codes if train is None else codes[train])
    total = controls.counts[batches].sum()
    mean = controls.sums[batches].sum(axis=0) / total
    size = np.sqrt(np.maximum(controls.squares[batches].sum(axis=0) / total - mean**2, 0))
    # The same columns in every split, so that components keep their names.
    live = _live(controls)
    # A column may be constant in the training batches alone.
    scales = np.where(size[live] > ROUNDING * np.abs(controls.middle[live]), size[live], 1.0)
    means = (controls.middle + mean)[live]
    fitted = Correction(name, live, scales, means, (), {}, codes, controls.fold)
    if design.control is None:
        within = (controls.sums / controls.counts[:, None] + controls.middle)[:, live]
        own = {(b, 0): _Place((within[b] - means) / scales, None) for b in range(len(within))}
        return replace(fitted, own=own)
    z = (controls.x[:, live] - means) / scales
    fold = controls.fold[controls.places]
    if name != "centre":
        used = np.isin(controls.batches, batches)
        common = []
        for k in range(FOLDS):
            mine = used & (fold != k) if (used & (fold != k)).sum() >= FEWEST else used
            centre = z[mine].mean(axis=0)
            common.append(_Place(centre, fit_sphering(z[mine] - centre, len(np.unique(controls.units[mine])))))
        fitted = replace(fitted, common=tuple(common))
    return fitted if name == "sphere" else replace(fitted, own=dict(_places(fitted, controls, z, fold)))


def _places(
    fitted: Correction, controls: Controls, z: Floats, fold: np.ndarray
) -> Iterator[tuple[tuple[int, int], _Place]]:
    """The place of each batch and fold, from the controls of the batch in other folds."""
    for b in np.unique(controls.batches):
        mine = np.flatnonzero(controls.batches == b)
        if len(np.unique(fold[mine])) < FEWEST:
            continue
        # All folds: rows of a fold from which no control was drawn are corrected too.
        for k in range(FOLDS):
            others = mine[fold[mine] != k]
            values = fitted.common[k](z[others]) if fitted.common else z[others]
            centre = values.mean(axis=0)
            sphering = None
            if fitted.name == "tvn" and len(others) >= FEWEST:
                sphering = fit_sphering(values - centre, len(np.unique(controls.units[others])))
            yield (int(b), k), _Place(centre, sphering)


def _live(controls: Controls) -> np.ndarray:
    """Columns that vary over all rows."""
    total = controls.counts.sum()
    mean = controls.sums.sum(axis=0) / total
    size = np.sqrt(np.maximum(controls.squares.sum(axis=0) / total - mean**2, 0))
    return np.flatnonzero(size > ROUNDING * np.abs(controls.middle))


def _corrected(fit: Correction, which: np.ndarray | None, x: Floats, places: np.ndarray) -> Floats:
    z = fit.map(x, places)
    return z if which is None else z[:, which]


@dataclass(frozen=True)
class CorrectedRows:
    """Components of rows after a correction that is fitted anew on the training batches of each split."""

    rows: Rows
    controls: Controls
    fit: Correction
    which: np.ndarray | None = None

    @property
    def width(self) -> int:
        """Number of components."""
        return len(self.fit.live) if self.which is None else len(self.which)

    @property
    def mapping(self) -> RowMap:
        """The correction of the batch and fold of each row."""
        return partial(_corrected, self.fit, self.which)

    def some(self, which: np.ndarray) -> CorrectedRows:
        """Some of the components."""
        return replace(self, which=which if self.which is None else self.which[which])

    def take(self, places: np.ndarray) -> Floats:
        """Components of some rows, of shape (len(places), k)."""
        out = np.empty((len(places), self.width), np.float32)
        for a in range(0, len(places), PIECE):
            part = places[a : a + PIECE]
            out[a : a + PIECE] = self.mapping(self.rows.take(part), part)
        return out

    def trained(self, train: np.ndarray) -> CorrectedRows:
        """The same, with the correction fitted on the batches of the training rows."""
        return replace(self, fit=fit_correction(self.fit.name, self.controls, train))

    def held(self) -> CorrectedRows:
        """Themselves: rows are mapped in another way for each split."""
        return self

    def linear(self, places: np.ndarray) -> tuple[ComponentRows, np.ndarray]:
        """The components in memory, as rows of their own: the map of each batch differs, so they cannot be streamed."""
        x = self.take(places)
        whole = Condition(self.fit.name, np.zeros(self.width), None, np.arange(self.width), np.ones(self.width))
        return ComponentRows(MemoryRows(self.rows.name, x), whole), np.arange(len(places))


def fit_corrections(
    names: Sequence[str], design: Design, most: int, seed: int, engine: Engine = LOCAL
) -> tuple[dict[str, CorrectedRows], list[Alert]]:
    """The corrections by name, fitted on all batches, and what is to be known of them."""
    needing = [name for name in names if name != "centre"]
    if design.control is None and needing:
        raise InputError(
            f"The condition {needing[0]!r} is fitted on controls. Name the control label with control (--control), or "
            "leave the condition out."
        )
    controls = read_controls(design, most, seed, engine)
    made = {name: CorrectedRows(design.rows, controls, fit_correction(name, controls)) for name in names}
    return made, list(_alerts(names, controls, made))


def _alerts(names: Sequence[str], controls: Controls, made: dict[str, CorrectedRows]) -> Iterator[Alert]:
    titles = ", ".join(CORRECTIONS[name] for name in names)
    if controls.design.control is None:
        yield Alert(
            "centred_by_all_rows",
            "No control is named, so each batch is centred by the mean of all its rows. This also removes biology "
            "where labels differ between batches. To centre by controls: control (--control).",
        )
        return
    yield Alert(
        "corrected_by_controls",
        f"{titles}: batches that are judged are corrected by their own control rows. Everything else is fitted on the "
        "training batches, and no row is corrected by a mean or covariance that it is part of.",
    )
    own = [name for name in names if name != "sphere"]
    if controls.few and own:
        named = ", ".join(CORRECTIONS[name] for name in own)
        yield Alert(
            "few_controls",
            f"{len(controls.few)} of {len(controls.counts)} batches have fewer than {FEWEST} control rows "
            f"({few(map(repr, controls.few))}). These are not corrected: {named}.",
        )
    if controls.drawn:
        yield Alert(
            "drawn_controls",
            f"Corrections are fitted on {len(controls.places):,} control rows that were drawn evenly from all batches. "
            "For more: max_rows (--max-rows).",
        )
    for name in names:
        fit = made[name].fit
        shares = [place.sphering.shrunk for place in fit.own.values() if place.sphering is not None]
        shares = shares or [c.sphering.shrunk for c in fit.common if c.sphering is not None]
        sizes = np.bincount(controls.batches)
        least = int(sizes[sizes > 0].min()) if name == "tvn" else len(controls.places)
        if shares and least < len(fit.live):
            where = "A batch has" if name == "tvn" else "There are"
            yield Alert(
                f"shrunk_{name}",
                f"{CORRECTIONS[name]}: {where} as few as {least} control rows for {len(fit.live)} columns. Covariances "
                f"are shrunk towards equal variances (OAS, mean weight {np.mean(shares):.2f}; 1 is no sphering).",
            )
