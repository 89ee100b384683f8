"""Share of each component's variance that the batch explains, and that the label explains, given the other.

Labels are rarely the same in all batches, so neither can be judged alone. The model is additive: a mean for each batch
plus a mean for each label. The share of the batch is the part of the variance left by the labels that the batches
explain, and vice versa. If there are controls, the share of the batch is computed from controls only, which differ in
nothing but the batch. Perturbed rows of one label may have several doses or compounds, which differ between batches.
Shares are adjusted for the number of fitted means, so noise has 0 on average.

Tests use other units. Rows of one label and batch are similar for other reasons too: they share a well, an hour, a
position. So a label is tested against the variation of its mean between batches beyond the additive model: the mean
square of labels over that of label x batch, as in a mixed model with random wells. Each cell (label in a batch) counts
with the mean of its rows, of variance `well + row / rows of the cell`. The batch is tested against rows, because a
deviating well is technical too. If blocks are given, each block counts once in both tests, with its mean. Everything
follows from counts and sums of groups, in one pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearid.arrays import Rows
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.moments import Floats
from nearid.questions.deconfound.conditions import PIECE, Components, RowMap

# Level of the test for technical components, divided by the number of components.
LEVEL = 0.01
# Expected share of false ones among the components that are named biological (Benjamini & Hochberg).
FALSE_SHARE = 0.05
# Smaller batch effects are not named technical, however many rows show them.
MATTERS = 0.01
# Variance of wells over that of rows that are tried: weights of cells change little within steps of four.
RATIOS = (0.0, *(4.0**k for k in range(-6, 3)))
# Eigenvalues below this share of the largest are those of groups that are not linked.
LINKED = 1e-9


@dataclass(frozen=True)
class Attribution:
    """Adjusted shares of the variance of each component, and their p-values.

    Attributes
    ----------
    batch, label : ndarray of shape (k,)
        NaN if the two cannot be separated, or if there are too few rows.
    batch_p, label_p : ndarray of shape (k,)
        P-values of F tests. That of the label is NaN if label x batch has no degree of freedom.
    label_free : int
        Degrees of freedom of label x batch, which the label is tested against.
    """

    batch: Floats
    label: Floats
    batch_p: Floats
    label_p: Floats
    label_free: int

    @property
    def technical(self) -> np.ndarray:
        """Components that follow the batch, and more so than the label."""
        level = LEVEL / max(len(self.batch), 1)
        return np.asarray((self.batch_p < level) & (self.batch >= MATTERS) & (self.batch > self.label))

    @property
    def biological(self) -> np.ndarray:
        """Components that follow the label in one batch as in another, and are not technical."""
        return np.asarray(significant(self.label_p) & ~self.technical)

    @property
    def kinds(self) -> list[str]:
        """Of each component: "technical", "biological" or "neither"."""
        other = np.where(self.biological, "biological", "neither")
        return [str(kind) for kind in np.where(self.technical, "technical", other)]

    @property
    def ranked(self) -> np.ndarray:
        """Components from the most technical to the most biological, by batch share minus label share."""
        return np.argsort(-np.nan_to_num(self.batch - self.label), kind="stable")


def significant(p: Floats) -> np.ndarray:
    """Which p-values are small, so that at most 5% of those are expected to be so by chance; NaN never is."""
    known = np.sort(p[~np.isnan(p)])
    passed = known[known <= FALSE_SHARE * np.arange(1, len(known) + 1) / max(len(known), 1)]
    return np.asarray(p <= passed.max(initial=-1.0))


def attribution(
    components: Components,
    labels: np.ndarray,
    batches: np.ndarray,
    places: np.ndarray | None = None,
    control: int | None = None,
    blocks: np.ndarray | None = None,
    seen: Observed | None = None,
    engine: Engine = LOCAL,
) -> Attribution:
    """Shares of batch and label in each component.

    Parameters
    ----------
    labels, batches : ndarray of int, shape (n,)
        Of the rows at `places`.
    places : ndarray of int, shape (n,), optional
        All rows by default.
    control : int, optional
        Label of the rows for the batch's share, if these come from at least two batches, and are more rows (or blocks)
        than batches.
    blocks : ndarray of int, shape (n,), optional
        Rows of one number count once in the tests.
    seen : Observed, optional
        What `observe` returned for the same arguments, where another use needed it too.
    engine : Engine
        The engine that runs the passes.
    """
    places = np.arange(components.rows.shape[0]) if places is None else places
    every = _additive(seen or observe(components, labels, batches, places, blocks, engine))
    mine = labels == control
    own = None if blocks is None else blocks[mine]
    groups, units = len(np.unique(batches[mine])), int(mine.sum()) if own is None else len(np.unique(own))
    if control is None or groups < 2 or units <= groups:
        return every
    among = _additive(observe(components, labels[mine], batches[mine], places[mine], own, engine))
    return Attribution(among.batch, every.label, among.batch_p, every.label_p, every.label_free)


def observe(
    components: Components,
    labels: np.ndarray,
    batches: np.ndarray,
    places: np.ndarray | None = None,
    blocks: np.ndarray | None = None,
    engine: Engine = LOCAL,
) -> Observed:
    """Sums of the rows by cell, in one pass; the arguments are those of `attribution`."""
    places = np.arange(components.rows.shape[0]) if places is None else places
    b, l = (np.unique(codes, return_inverse=True)[1] for codes in (batches, labels))
    cell_of = np.unique(b * (l.max() + 1) + l, return_inverse=True)[1]
    if blocks is None:
        rows = _gather(components, places, b, l, cell_of, engine)
        return Observed(rows, rows)
    wells = np.unique(np.column_stack([cell_of, blocks]), axis=0, return_inverse=True)[1].ravel()
    each = _gather(components, places, b, l, wells, engine)
    means = each.sums / each.sizes[:, None]
    one = each._replace(sizes=np.ones(len(means)))
    units = _merged(one, means, group_sums(means**2, each.b), len(means))
    return Observed(_merged(each, each.sums, each.batch_squares, each.n), units)


def _additive(seen: Observed) -> Attribution:
    rows, units = seen
    fit = _fit(rows.sizes, rows)
    with np.errstate(divide="ignore", invalid="ignore"):
        batch, label = (
            1 - (fit.left / (rows.n - fit.params)) / (before / (rows.n - groups))
            if fit.params < rows.n and fit.params > groups
            else np.full(rows.sums.shape[1], np.nan)
            for before, groups in ((fit.left_l, fit.labels), (fit.left_b, fit.batches))
        )
    whole = fit if units is rows else _fit(units.sizes, units)
    batch_p = _f_test(whole.left_l, whole.left, whole.params - whole.labels, units.n - whole.params)
    return Attribution(batch, label, np.nan_to_num(batch_p, nan=1.0), *_label_test(units))


class Cells(NamedTuple):
    """Observations by cell (label in a batch, or a well of these): how many, their sums, and squares of each batch."""

    b: np.ndarray
    l: np.ndarray
    sizes: Floats
    sums: Floats
    batch_squares: Floats
    n: int


class Observed(NamedTuple):
    """Cells of rows, and cells of units: rows, or blocks that count once with their mean."""

    rows: Cells
    units: Cells


class Fit(NamedTuple):
    """Residual squares after the means of batches, of labels and of both, and the numbers of free means."""

    left_b: Floats
    left_l: Floats
    left: Floats
    batches: int
    labels: int
    params: int


class Piece(NamedTuple):
    """Places of some rows, and their groups."""

    places: np.ndarray
    groups: tuple[np.ndarray, ...]


def pieces(places: np.ndarray, *groups: np.ndarray) -> list[Piece]:
    """The rows at `places` in pieces, with their numbers in each grouping."""
    cuts = (slice(a, a + PIECE) for a in range(0, len(places), PIECE))
    return [Piece(places[cut], tuple(each[cut] for each in groups)) for cut in cuts]


def _sums(piece: Piece, rows: Rows, mapping: RowMap) -> tuple[np.ndarray, Floats, np.ndarray, Floats]:
    """The cells of a piece with the sums of their rows, and its batches with the squares of theirs."""
    y = mapping(rows.take(piece.places), piece.places).astype(np.float64)
    (cells, at), (batches, of) = (np.unique(each, return_inverse=True) for each in piece.groups)
    sums = group_sums(y, at)
    return cells, sums, batches, group_sums(np.square(y, out=y), of)


def _gather(
    components: Components, places: np.ndarray, b: np.ndarray, l: np.ndarray, cells: np.ndarray, engine: Engine
) -> Cells:
    first = np.unique(cells, return_index=True)[1]
    sums = np.zeros((len(first), components.width))
    batch_squares = np.zeros((int(b.max()) + 1, components.width))
    # Not merged by the engine: cells may be many, but a piece has few of them.
    for there, own, batches, squares in engine.map(
        _sums, pieces(places, cells, b), components.rows, components.mapping
    ):
        sums[there] += own
        batch_squares[batches] += squares
    sizes = np.bincount(cells).astype(np.float64)
    return Cells(b[first], l[first], sizes, sums, batch_squares, len(places))


def _merged(wells: Cells, sums: Floats, batch_squares: Floats, n: int) -> Cells:
    """Merge wells into their cells."""
    _, first, cells = np.unique(wells.b * (wells.l.max() + 1) + wells.l, return_index=True, return_inverse=True)
    sizes = np.bincount(cells, wells.sizes).astype(np.float64)
    return Cells(wells.b[first], wells.l[first], sizes, group_sums(sums, cells), batch_squares, n)


def group_sums(values: Floats, groups: np.ndarray) -> Floats:
    """Sums of rows by group, of shape (groups, k)."""
    from scipy.sparse import csr_matrix

    shape = (int(groups.max()) + 1, len(values))
    return np.asarray(csr_matrix((np.ones(len(values)), (groups, np.arange(len(values)))), shape) @ values)


def _fit(weights: Floats, cells: Cells) -> Fit:
    """The additive model of observations in cells; `weights` are those of the cells, `cells.sums` weighted sums.

    Components are centred over all rows, so that little cancels.
    """
    table = np.zeros((int(cells.b.max()) + 1, int(cells.l.max()) + 1))
    table[cells.b, cells.l] = weights
    squares = cells.batch_squares.sum(axis=0)
    return fit_additive(table, group_sums(cells.sums, cells.b), group_sums(cells.sums, cells.l), squares)


def fit_additive(table: Floats, by_batch: Floats, by_label: Floats, squares: Floats) -> Fit:
    """A mean for each batch plus a mean for each label, by least squares.

    Parameters
    ----------
    table : ndarray of shape (batches, labels)
        Weights of the observations in each cell; each batch and label has some.
    by_batch, by_label : ndarray of shape (batches, k) and (labels, k)
        Weighted sums of the observations.
    squares : ndarray of shape (k,)
        Weighted sum of their squares.
    """
    sizes_b, sizes_l = table.sum(axis=1), table.sum(axis=0)
    left_b = squares - np.sum(by_batch**2 / sizes_b[:, None], axis=0)
    left_l = squares - np.sum(by_label**2 / sizes_l[:, None], axis=0)
    # Eliminate the smaller side; the residual is the same.
    if len(sizes_l) <= len(sizes_b):
        extra, rank = _extra(table, by_batch, by_label)
        left, params = left_b - extra, len(sizes_b) + rank
    else:
        extra, rank = _extra(table.T, by_label, by_batch)
        left, params = left_l - extra, len(sizes_l) + rank
    return Fit(left_b, left_l, np.maximum(left, 0), len(sizes_b), len(sizes_l), params)


def _label_test(units: Cells) -> tuple[Floats, int]:
    """p of the label against label x batch, and the degrees of freedom of the latter.

    Means of cells are weighted by `1 / (ratio + 1 / size)`, where the ratio is the variance of wells over that of
    observations. With the true ratio the test is exact. The ratio is not known, so the largest p of all ratios is used,
    which keeps the level for any true ratio. If all cells have the same size, all ratios give the same p.
    """
    means = units.sums / units.sizes[:, None]
    p, free = np.full(means.shape[1], -np.inf), 0
    for ratio in RATIOS:
        weights = units.sizes / (1 + ratio * units.sizes)
        weighted = weights[:, None] * means
        fit = _fit(weights, units._replace(sums=weighted, batch_squares=np.sum(weighted * means, axis=0)[None]))
        free = len(means) - fit.params
        p = np.maximum(p, _f_test(fit.left_b, fit.left, fit.params - fit.batches, free))
    return p, free


def _f_test(before: Floats, left: Floats, spent: int, free: int) -> Floats:
    """p-value of the reduction of squares by `spent` more means, against the rest; NaN without degrees of freedom."""
    from scipy.special import fdtrc

    if spent <= 0 or free <= 0:
        return np.full(len(left), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        f = ((before - left) / spent) / (left / free)
    return np.asarray(fdtrc(spent, free, np.maximum(f, 0)))


def _extra(counts: Floats, first: Floats, second: Floats) -> tuple[Floats, int]:
    """Squares that the second grouping explains beyond the first, for each component, and its number of free means.

    The group means of the first are removed from the indicator columns of the second; `counts` has shape (first,
    second).
    """
    weights = counts / counts.sum(axis=1, keepdims=True)
    gram = np.diag(counts.sum(axis=0)) - counts.T @ weights
    residual = second - weights.T @ first
    values, vectors = np.linalg.eigh(gram)
    real = values > LINKED * max(float(values[-1]), 1.0)
    turned = vectors[:, real].T @ residual
    return np.asarray(np.sum(turned**2 / values[real][:, None], axis=0)), int(real.sum())
