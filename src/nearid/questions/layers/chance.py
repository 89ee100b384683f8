"""Chance level of the best pair of layers: all pairs are measured again with the target's rows in another order.

The rows of all target layers are reordered together, which keeps the similarity of layers of one model. Every
repetition keeps its best pair. So the p-value accounts for the choice among many pairs.

If there are many rows, measures use a sample. If layers are wide, they use leading principal components. The observed
order is measured in the same way, so p-values are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from nearid.arrays import Pair, Rows, open_rows, pair_rows
from nearid.arrays.derived import JoinedRows, SelectedRows
from nearid.base.progress import Progress
from nearid.folds import FoldMoments
from nearid.groups.ladder import GROUPS, Group
from nearid.groups.ridge import Judges
from nearid.moments import Floats, Moments
from nearid.questions.compare.chance import AT_A_TIME, PERMUTATIONS, CrossFolds, Orders, explained
from nearid.questions.compare.verdict import add_one
from nearid.questions.layers.result import group_of
from nearid.questions.layers.tiles import Fitting, Tile

# For wider layers, chance is measured along this number of leading principal components.
LEADING = 16
# Measures that match columns need the columns themselves. Wider layers take too long to match 99 times.
MATCHED = 32
# Rows, and numbers of all layers, that chance is measured on.
LEAST_ROWS, ROWS, NUMBERS = 1_000, 5_000, 2_000_000
# With more pairs of layers, fitted measures are repeated less often: 99 repetitions would take minutes.
PAIRS, FEWER = 256, 19
# Smallest number of rows per component of CCA.
ROWS_PER_COMPONENT = 10


@dataclass(frozen=True)
class BestByChance:
    """The best of all pairs of layers, by one measure, with rows in other orders.

    Attributes
    ----------
    reached : ndarray of shape (different repetitions,)
        The best pair of each.
    values : ndarray of shape (layers of the source, layers of the target)
        Values of the same rows in their own order.
    rows, components : int
        Rows in use, and largest number of columns of a layer.
    """

    reached: Floats
    values: Floats
    rows: int
    components: int

    @property
    def p_values(self) -> Floats:
        """P-value of each pair against the best of all pairs; NaN if nothing was measured."""
        each = [np.nan if np.isnan(own) else add_one(self.reached, float(own)) for own in self.values.flat]
        return np.reshape(each, self.values.shape)


def has_chance(measure: object, widest: int) -> bool:
    """Whether the chance level of a measure is affordable for layers of this width."""
    if not isinstance(measure, str) or group_of(measure, "epsilon"):
        return False
    return widest <= MATCHED or not _of_columns(measure)


def _of_columns(measure: str) -> bool:
    """Whether a measure depends on individual columns, so that principal components cannot replace them."""
    group = group_of(measure, "r2")
    return measure == "mcc" if group is None else "rigid" not in (group, *GROUPS[group].contains)


class Shuffles:
    """The rows of all layers, or a sample of them, and the orders of the target's rows.

    Parameters
    ----------
    pair : Pair
        All layers of both sides, side by side.
    left, right : sequence of Rows
        The layers.
    how : Fitting
    """

    def __init__(self, pair: Pair, left: Sequence[Rows], right: Sequence[Rows], how: Fitting) -> None:
        self._layers, self._how, blocks = ((left, pair.x_index), (right, pair.y_index)), how, how.blocks
        rng = np.random.default_rng([how.seed, 1])
        columns = sum(min(layer.shape[1], LEADING) for layer in (*left, *right))
        most = int(np.clip(NUMBERS // columns, LEAST_ROWS, ROWS))
        rows = np.arange(pair.n)
        if pair.n > most:
            rows = np.sort(rng.choice(rows, most, replace=False)) if blocks is None else blocks.sample(rows, most, rng)
        self._rows, self._blocks = rows, None if blocks is None else blocks.take(rows)
        self._all = pair.n

    def best(
        self, measure: str, compared: np.ndarray, permutations: int | None, progress: Progress
    ) -> BestByChance | None:
        """The best of the compared pairs (a matrix of bool selects them); None if none has a value."""
        group = group_of(measure, "r2")
        repetitions = permutations or (PERMUTATIONS if measure == "cka" or compared.sum() <= PAIRS else FEWER)
        n = len(self._rows)
        repeated = Orders(n, self._blocks, repetitions, np.random.SeedSequence([self._how.seed, 4]))
        if not len(repeated):
            return None
        shown = np.asarray if _of_columns(measure) else _leading
        # Layer by layer: all columns may not fit into memory.
        x, y = ([shown(self._centred(layer, index)) for layer in layers] for layers, index in self._layers)
        if group is None:
            values = self._measured(measure, x, y, repeated, progress("chance", 1 + repeated.ways * len(repeated)))
        else:
            values = self._explained(GROUPS[group], x, y, repeated, progress("chance", len(x) * len(y)))
        values[:, ~compared] = np.nan
        if np.isnan(values).all(axis=(1, 2)).any():
            return None
        # If rows are both permuted and rotated, the worse one counts.
        reached = np.nanmax(values[1:], axis=(1, 2)).reshape(len(repeated), -1).max(axis=1)
        return BestByChance(reached, values[0], n, max(layer.shape[1] for layer in (*x, *y)))

    @cached_property
    def _fold(self) -> np.ndarray:
        """Fold of each row in use. Measures that hold nothing out may have fewer rows than folds need."""
        fold = self._how.deal(self._all, self._how.folds)[self._rows]
        return np.unique(fold, return_inverse=True)[1].astype(np.uint8)

    def _in_turn(self, repeated: Orders) -> Iterator[np.ndarray]:
        """The rows' own order, then those of every repetition."""
        yield np.arange(len(self._rows))
        for at in range(len(repeated)):
            yield from repeated[at]

    def _centred(self, layer: Rows, index: np.ndarray | None) -> Floats:
        x = layer.take(self._rows if index is None else index[self._rows]).astype(np.float64)
        return np.asarray(x - x.mean(axis=0))

    def _measured(
        self,
        measure: str,
        x: list[Floats],
        y: list[Floats],
        repeated: Orders,
        tick: Callable[..., object],
    ) -> Floats:
        """Matrices of every pair of layers: first in the rows' own order, then for each other order."""
        left, right = (JoinedRows("", [open_rows(layer) for layer in side]) for side in (x, y))
        n, fold = len(self._rows), np.zeros(len(self._rows), dtype=np.uint8) if measure == "cka" else self._fold
        sources, targets = left.read(0, n), right.read(0, n)
        # For unrelated rows the number of directions of CCA is not chosen. Without a choice all orders are treated
        # equally.
        k = min(self._how.k if measure == "svcca" and self._how.k else LEADING, max(n // ROWS_PER_COMPONENT, 1))
        values = []
        for order in self._in_turn(repeated):
            rows = np.hstack([sources, targets[order]])
            parts = FoldMoments([Moments.of(rows[fold == f]) for f in range(fold.max() + 1)], left.shape[1], None)
            tile = Tile(pair_rows(left, SelectedRows(right, order)), parts, left.columns_of, right.columns_of)
            kind = "svcca" if measure == "cca" else measure
            values.append(tile.cka() if measure == "cka" else tile.held_out(kind, k, self._how.ridge))
            tick()
        return np.stack(values)

    def _explained(
        self,
        group: Group,
        x: list[Floats],
        y: list[Floats],
        repeated: Orders,
        tick: Callable[..., object],
    ) -> Floats:
        """Held-out R2 of every pair of layers, many orders of a pair at a time."""
        count, folds = 1 + repeated.ways * len(repeated), int(self._fold.max()) + 1
        values = np.empty((count, len(x), len(y)))
        options: dict[str, Any] = {"translation": True, "scale": True, "ridge": self._how.ridge}
        for i, source in enumerate(x):
            judges = None
            for j, target in enumerate(y):
                base = CrossFolds(source, target, self._fold, folds)
                if self._how.ridge == "auto" and "ridge" in group.options:
                    judges = judges or Judges(base)
                orders = self._in_turn(repeated)
                for at in range(0, count, AT_A_TIME):
                    r2 = explained(base.given(list(islice(orders, AT_A_TIME))), [group], [options] * folds, judges)
                    values[at : at + AT_A_TIME, i, j] = r2[:, 0]
                tick()
        return values


def _leading(x: Floats) -> Floats:
    """Centred rows along their approximate leading principal components, by subspace iteration."""
    if x.shape[1] <= LEADING:
        return x
    span = np.random.default_rng(0).normal(size=(x.shape[1], 2 * LEADING))
    for _ in range(3):
        span = np.linalg.qr(x.T @ (x @ span))[0]
    inner = x @ span
    return np.asarray(inner @ np.linalg.eigh(inner.T @ inner)[1][:, : -LEADING - 1 : -1])
