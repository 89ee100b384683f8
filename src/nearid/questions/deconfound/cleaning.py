"""The embedding without its batch components: which are dropped, and what that costs in label information.

Columns are brought to unit variance and whitened, with a shrunk covariance because wells are often fewer than columns.
The batch components are found there (see `directions`). A row is cleaned by taking the dropped ones away from it and
leaving everything else where it was. The whole procedure (scales, covariance, components, which of them are dropped) is
judged on rows that it was not fitted on: batches are predicted for held-out rows of the same batches, and labels for
rows of held-out batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from nearid.arrays.metadata import column_names
from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.engines.base import Engine
from nearid.engines.local import LOCAL
from nearid.ica.stream import Affine
from nearid.measures.auroc import auroc
from nearid.moments import ROUNDING, Floats
from nearid.questions.deconfound.attribution import observe
from nearid.questions.deconfound.classifiers import auroc_within
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.directions import BatchComponents, Drop, batch_components
from nearid.questions.deconfound.paired import t_test
from nearid.questions.deconfound.partition import Partition, partition
from nearid.questions.deconfound.projection import oblique
from nearid.questions.deconfound.splits import batch_folds

# Memory of the rows that a cleaner is fitted on; of more rows a random part is used.
FIT_BYTES = 64 << 20
# The least variance of a direction of columns of unit variance.
LEAST = 1e-12
# Columns that are named of a component.
FEATURES = 5
# Ridge penalties that are tried, over the largest eigenvalue.
PENALTIES = np.logspace(-8, 1, 19)


@dataclass(frozen=True)
class Cleaner:
    """Rows less some of their batch components: x - patterns readings (x - mean).

    Attributes
    ----------
    mean : ndarray of shape (d,)
    components : ndarray of shape (k, d)
        Batch components are components (x - mean).
    correlations : ndarray of shape (d, k)
        Of each column with each component.
    follows : BatchComponents
        What batch and label explain of each component.
    dropped : ndarray of int, shape (r,)
        Components that are taken away, the largest share of the batch first.
    patterns : ndarray of shape (d, r)
        What a unit of each dropped component adds to a row.
    readings : ndarray of shape (r, d)
        How much of each pattern a row has: readings (x - mean). Where batches differ in the same direction as labels,
        it is not the component itself, but its part in which labels do not differ.
    share : float
        Share of the variance of all columns (each of unit variance) that is taken away.
    """

    mean: Floats
    components: Floats
    correlations: Floats
    follows: BatchComponents
    dropped: np.ndarray
    patterns: Floats
    readings: Floats
    share: float

    @property
    def affine(self) -> Affine:
        """The map of rows."""
        return Affine(np.eye(len(self.mean)) - self.patterns @ self.readings, self.mean, self.mean)


@dataclass(frozen=True)
class Cost:
    """How well batches and labels are predicted before and after, on rows that nothing was fitted on.

    Attributes
    ----------
    batch_before, batch_after : Estimate
        AUROC of one batch against all others, mean over batches, for held-out rows of the same batches.
    label_before, label_after : Estimate
        AUROC of a label against the control (or all others) among rows of one batch, mean over labels, for held-out
        batches. NaN where these cannot be judged.
    batch_change, label_change : Estimate
        After less before, by fold.
    """

    batch_before: Estimate
    batch_after: Estimate
    label_before: Estimate
    label_after: Estimate
    batch_change: Estimate
    label_change: Estimate


@dataclass(frozen=True)
class Dropped:
    """A component that is taken away: what batch and label explain of it, and the columns that it is most of.

    Attributes
    ----------
    features : tuple of (str, float)
        Names of the columns with the largest correlations with the component, and these.
    """

    component: int
    batch: float
    label: float
    features: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Cleaning:
    """The cleaned embedding: what was dropped, of how many components, and what it cost.

    Attributes
    ----------
    drop : str, int or float
        The rule, as of `nearid.deconfound`.
    share : float
        Share of the variance of all columns (each of unit variance) that is taken away.
    written : str or None
        Where the cleaned rows are.
    partition : Partition
        The variance of each batch component, split between batch and label.
    model : str or None
        Where the model is that cleans other rows.
    """

    drop: Drop
    components: int
    dropped: tuple[Dropped, ...]
    share: float
    cost: Cost
    partition: Partition
    written: str | None = None
    model: str | None = None


def split_components(design: Design, cleaner: Cleaner, *, seed: int = 0, engine: Engine = LOCAL) -> Partition:
    """The variance of each batch component of all rows, split between batch and label."""
    k = len(cleaner.components)
    condition = Condition("batch", cleaner.mean, cleaner.components, np.arange(k), np.ones(k))
    codes = design.labels.codes, design.batches.codes
    seen = observe(ComponentRows(design.rows, condition), *codes, blocks=design.blocks, engine=engine)
    return partition(seen.units, seed=seed)


def described(cleaner: Cleaner, names: Sequence[str], drop: Drop, judged: Cost, parts: Partition) -> Cleaning:
    """What there is to know of a cleaner."""
    dropped = []
    for k in cleaner.dropped:
        correlations = cleaner.correlations[:, k]
        top = np.argsort(-np.abs(correlations), kind="stable")[:FEATURES]
        features = tuple((names[at], float(correlations[at])) for at in top)
        dropped.append(Dropped(int(k), float(cleaner.follows.batch[k]), float(cleaner.follows.label[k]), features))
    return Cleaning(drop, len(cleaner.components), tuple(dropped), cleaner.share, judged, parts)


def check_drop(drop: Drop | str) -> Drop:
    """The choice of what to drop, refused unless it has a meaning."""
    rule: object = drop
    if isinstance(drop, str) and drop != "auto":
        try:
            rule = int(drop) if drop.isdecimal() else float(drop)
        except ValueError:
            rule = None
    whole = isinstance(rule, int) and not isinstance(rule, bool) and rule >= 0
    if rule != "auto" and not whole and not (isinstance(rule, float) and 0 <= rule < 1):
        raise InputError(
            "drop (--drop) takes 'auto', a number of components such as 3, or the share of a component that the batch "
            f"must explain, such as 0.2, but not {drop!r}."
        )
    return cast(Drop, rule)


def fit_cleaner(design: Design, places: np.ndarray, drop: Drop, *, seed: int = 0) -> Cleaner:
    """Fit scales, covariance and batch components on rows at `places` (one of each block), and choose which to drop."""
    rng = np.random.default_rng([seed, 5])
    chosen = fit_rows(design, places, rng)
    x = design.rows.take(chosen).astype(np.float64)
    mean, scales = x.mean(axis=0), x.std(axis=0)
    live = np.flatnonzero(scales > ROUNDING * np.abs(mean))
    if len(live) < 2:
        names = column_names(design.rows)
        which = f"only one column that varies, {names[live[0]]!r}" if len(live) else "no column that varies"
        raise InputError(f"{design.rows.name} has {which}. Two or more are needed to clean it.")
    z = (x[:, live] - mean[live]) / scales[live]
    covariance = z.T @ z / len(z)
    values, turn = (each[..., ::-1] for each in np.linalg.eigh(shrunk(covariance, len(z))))
    root = np.sqrt(np.maximum(values, LEAST))
    labels, batches = design.labels.codes[chosen], design.batches.codes[chosen]
    y = z @ (turn / root)
    follows = batch_components(y, labels, batches, design.control, rng)
    dropped = follows.dropped(drop)
    d, r = len(mean), len(dropped)
    white, colour = turn / root, turn * root
    pattern, reading = oblique(y, labels, batches, follows, dropped, rng)
    forward, back, read = white @ follows.vectors, colour @ pattern, white @ reading.T
    components, correlations = np.zeros((len(follows.batch), d)), np.zeros((d, len(follows.batch)))
    patterns, readings = np.zeros((d, r)), np.zeros((r, d))
    shared = covariance @ forward
    components[:, live] = forward.T / scales[live]
    correlations[live] = shared / np.sqrt(np.maximum(np.sum(forward * shared, axis=0), LEAST))
    patterns[live], readings[:, live] = back * scales[live][:, None], read.T / scales[live]
    kept = np.eye(len(live)) - back @ read.T
    share = 1 - float(np.sum((kept @ covariance) * kept)) / len(live)
    return Cleaner(mean, components, correlations, follows, dropped, patterns, readings, share)


def fit_rows(design: Design, places: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Places of the rows that batch components are fitted on: one of each block, and at most what memory is for."""
    rows = rng.permutation(places)
    if design.blocks is not None:
        rows = rng.permutation(rows[np.unique(design.blocks[rows], return_index=True)[1]])
    return np.sort(rows[: max(2, FIT_BYTES // (8 * design.rows.shape[1]))])


def shrunk(covariance: Floats, n: int) -> Floats:
    """A covariance of n rows, drawn towards the multiple of the identity with its trace.

    The weight is that of the oracle approximating shrinkage (Chen, Wiesel, Eldar & Hero 2010).
    """
    p = len(covariance)
    size = float(np.trace(covariance)) / p
    squares = float(np.sum(covariance**2))
    spread = (n + 1 - 2 / p) * (squares - p * size**2)
    weight = min(1.0, ((1 - 2 / p) * squares + (p * size) ** 2) / spread) if spread > 0 else 1.0
    return np.asarray((1 - weight) * covariance + weight * size * np.eye(p))


def cost(
    design: Design,
    drop: Drop,
    *,
    folds: int,
    most: int,
    seed: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> Cost:
    """Judge the procedure by cross-fitting: over rows for batches, over batches for labels."""
    rng = np.random.default_rng([seed, 6])
    places = np.sort(rng.permutation(design.n)[:most])
    x = design.rows.take(places).astype(np.float64)
    labels, batches = design.labels.codes[places], design.batches.codes[places]
    units = (
        np.arange(len(places)) if design.blocks is None else np.unique(design.blocks[places], return_inverse=True)[1]
    )

    def judge(
        fold: np.ndarray, targets: np.ndarray, score: Callable[[np.ndarray, Floats, np.ndarray], float]
    ) -> _Folds:
        each = _Folds([], [], [])
        for k in range(int(fold.max()) + 1):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(np.unique(batches[train])) > 1 and len(test):
                cleaner = fit_cleaner(design, places[train], drop, seed=seed)
                clean = cleaner.affine(x)
                plain, cleaned = (_Ridge(rows[train], targets[train], int(targets.max()) + 1) for rows in (x, clean))
                # One penalty for both: cleaned training rows lack what cross-validation would judge a penalty by.
                penalty, known = plain.penalty(), np.unique(targets[train])
                before, after = (
                    score(test, fit.scores(rows[test], penalty), known) for fit, rows in ((plain, x), (cleaned, clean))
                )
                each.add(before, after, len(test) / len(train))
            tick()
        return each

    by_row = _row_folds(units, batches, folds, rng)
    by_batch = batch_folds(np.ones(len(places)), batches, min(folds, len(np.unique(batches))), rng)[batches]
    batch = judge(by_row, batches, lambda test, scores, known: _one_against_all(batches[test], scores, known))

    def label_score(test: np.ndarray, scores: Floats, known: np.ndarray) -> float:
        values = []
        for code in np.intersect1d(labels[test], known):
            against = labels[test] == design.control if design.control is not None else labels[test] != code
            if code != design.control:
                rows = (labels[test] == code) | against
                values.append(auroc_within(labels[test][rows] == code, scores[rows, code], batches[test][rows]))
        return _mean(values)

    label = judge(by_batch, labels, label_score)
    return Cost(
        batch.estimate(batch.before),
        batch.estimate(batch.after),
        label.estimate(label.before),
        label.estimate(label.after),
        batch.change(),
        label.change(),
    )


@dataclass
class _Folds:
    """A score before and after, by fold, and test over training rows."""

    before: list[float]
    after: list[float]
    ratios: list[float]

    def add(self, before: float, after: float, ratio: float) -> None:
        if before == before and after == after:
            self.before.append(before)
            self.after.append(after)
            self.ratios.append(ratio)

    def estimate(self, values: list[float]) -> Estimate:
        if not values:
            return Estimate(float("nan"))
        return t_test(np.array(values), float(np.mean(self.ratios)), "folds, Student's t")[0].within(0, 1)

    def change(self) -> Estimate:
        if not self.before:
            return Estimate(float("nan"))
        gaps = np.array(self.after) - np.array(self.before)
        return t_test(gaps, float(np.mean(self.ratios)), "folds, Student's t")[0].within(-1, 1)


def _row_folds(units: np.ndarray, batches: np.ndarray, folds: int, rng: np.random.Generator) -> np.ndarray:
    """Fold of each row: blocks stay together, and each batch is spread over all folds."""
    first = np.unique(units, return_index=True)[1]
    order = rng.permutation(len(first))
    order = order[np.argsort(batches[first][order], kind="stable")]
    fold = np.empty(len(first), np.intp)
    fold[order] = np.arange(len(first)) % folds
    return np.asarray(fold[units])


def _one_against_all(codes: np.ndarray, scores: Floats, known: np.ndarray) -> float:
    """Mean over classes that were trained on of the AUROC of each against all others."""
    return _mean([auroc(codes == code, scores[:, code]) for code in np.intersect1d(codes, known)])


def _mean(values: list[float]) -> float:
    """Mean of the values that are defined."""
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


class _Ridge:
    """Ridge regression of the indicator of each class on columns of unit variance."""

    def __init__(self, train: Floats, codes: np.ndarray, classes: int) -> None:
        mean, size = train.mean(axis=0), train.std(axis=0)
        self._live = size > ROUNDING * np.abs(mean)
        self._mean, self._size = mean[self._live], size[self._live]
        x, y = self._scaled(train), np.eye(classes)[codes]
        self._centre = y.mean(axis=0)
        # The smaller Gram matrix. Its rounding errors are far below the least penalty.
        wide = x.shape[1] > x.shape[0]
        values, turn = np.linalg.eigh(x @ x.T if wide else x.T @ x)
        self._squares = np.maximum(values, values[-1] * np.finfo(float).eps)
        roots = np.sqrt(self._squares)
        self._right = x.T @ (turn / roots) if wide else turn
        self._turned = (turn if wide else x @ (turn / roots)).T @ (y - self._centre)
        self._total, self._n = float(np.sum((y - self._centre) ** 2)), len(x)

    def _scaled(self, x: Floats) -> Floats:
        return np.asarray((x[:, self._live] - self._mean) / self._size)

    def penalty(self) -> float:
        """The penalty with the least error by generalised cross-validation."""
        losses = []
        tried = PENALTIES * self._squares[-1]
        for penalty in tried:
            shrink = self._squares / (self._squares + penalty)
            left = self._total - np.sum((2 * shrink - shrink**2)[:, None] * self._turned**2)
            losses.append(left / max(self._n - 1 - shrink.sum(), 1e-9) ** 2)
        return float(tried[int(np.argmin(losses))])

    def scores(self, test: Floats, penalty: float) -> Floats:
        """Score of each class, of shape (rows, classes)."""
        weights = self._right @ ((np.sqrt(self._squares) / (self._squares + penalty))[:, None] * self._turned)
        return np.asarray(self._scaled(test) @ weights + self._centre)
