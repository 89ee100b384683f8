"""The embedding without its technical components: which are dropped, and what that costs in label information.

Columns are brought to unit variance, whitened and unmixed. A component is technical where the batch explains more of it
than the label does. A row is cleaned by taking the technical components away from it and leaving everything else,
directions outside the components included, where it was. The whole procedure (scales, components, which of them are
technical) is judged on rows that it was not fitted on: batches are predicted for held-out rows of the same batches, and
labels for rows of held-out batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np

from nearid.arrays.memory import MemoryRows
from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.ica.fit import IcaOptions, fit_ica
from nearid.ica.stream import Affine
from nearid.measures.auroc import auroc
from nearid.moments import ROUNDING, Floats
from nearid.questions.deconfound.attribution import Attribution, Drop, attribution
from nearid.questions.deconfound.classifiers import auroc_within
from nearid.questions.deconfound.conditions import ComponentRows, Condition
from nearid.questions.deconfound.design import Design
from nearid.questions.deconfound.paired import t_test
from nearid.questions.deconfound.splits import batch_folds

# Components are at most the rows divided by this: with fewer rows each, they are accidents of single rows.
ROWS_PER_COMPONENT = 10
# Columns that are named of a component.
FEATURES = 5
# Ridge penalties that are tried, over the largest eigenvalue.
PENALTIES = np.logspace(-8, 1, 19)


@dataclass(frozen=True)
class Cleaner:
    """Rows less some of their components: x - mixing components (x - mean), of the dropped ones.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    components : ndarray of shape (k, d)
        Components are components (x - mean), each of unit variance.
    mixing : ndarray of shape (d, k)
    scales : ndarray of shape (d,)
        Standard deviations of the columns.
    follows : Attribution
        What batch and label explain of each component.
    dropped : ndarray of int
        Components that are taken away, the most technical first.
    """

    mean: Floats
    components: Floats
    mixing: Floats
    scales: Floats
    follows: Attribution
    dropped: np.ndarray

    @property
    def affine(self) -> Affine:
        """The map of rows."""
        away = self.mixing[:, self.dropped] @ self.components[self.dropped]
        return Affine(np.eye(len(self.mean)) - away, self.mean, self.mean)

    @property
    def correlations(self) -> Floats:
        """Correlation of each column with each component, of shape (d, k)."""
        return np.asarray(self.mixing / np.where(self.scales > 0, self.scales, 1)[:, None])


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
    model : str or None
        Where the model is that cleans other rows.
    """

    drop: Drop
    components: int
    dropped: tuple[Dropped, ...]
    share: float
    cost: Cost
    written: str | None = None
    model: str | None = None


def described(cleaner: Cleaner, names: Sequence[str], drop: Drop, judged: Cost) -> Cleaning:
    """What there is to know of a cleaner."""
    correlations = cleaner.correlations
    dropped = []
    for k in cleaner.dropped:
        top = np.argsort(-np.abs(correlations[:, k]), kind="stable")[:FEATURES]
        features = tuple((names[at], float(correlations[at, k])) for at in top)
        dropped.append(Dropped(int(k), float(cleaner.follows.batch[k]), float(cleaner.follows.label[k]), features))
    live = int(np.sum(cleaner.scales > 0))
    share = float(np.sum(correlations[:, cleaner.dropped] ** 2) / live)
    return Cleaning(drop, len(cleaner.components), tuple(dropped), share, judged)


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


def fit_cleaner(
    design: Design, places: np.ndarray, drop: Drop, *, most: int, n_components: int | None = None, seed: int = 0
) -> Cleaner:
    """Fit the scales and components on rows at `places`, and name the technical ones among them.

    Parameters
    ----------
    most : int
        Rows at most, drawn at random, on which components are fitted; one row of each block.
    """
    rng = np.random.default_rng([seed, 5])
    fitted = rng.permutation(places)
    if design.blocks is not None:
        fitted = fitted[np.unique(design.blocks[fitted], return_index=True)[1]]
    x = design.rows.take(np.sort(rng.permutation(fitted)[:most])).astype(np.float64)
    mean, scales = x.mean(axis=0), x.std(axis=0)
    live = np.flatnonzero(scales > ROUNDING * np.abs(mean))
    if len(live) < 2:
        raise InputError(f"{design.rows.name} has {len(live)} columns that vary. Two or more are needed to clean it.")
    z = (x[:, live] - mean[live]) / scales[live]
    width = min(len(live), max(2, len(z) // ROWS_PER_COMPONENT))
    unmixed = fit_ica(MemoryRows(design.rows.name, z), IcaOptions(min(n_components or width, width)), seed=seed)
    d, k = len(mean), len(unmixed.components)
    components, mixing = np.zeros((k, d)), np.zeros((d, k))
    components[:, live] = unmixed.components / scales[live]
    mixing[live] = unmixed.mixing * scales[live][:, None]
    condition = Condition("ica", mean, components, np.arange(k), np.ones(k))
    codes = design.labels.codes[places], design.batches.codes[places]
    blocks = None if design.blocks is None else design.blocks[places]
    follows = attribution(ComponentRows(design.rows, condition), *codes, places, design.control, blocks)
    return Cleaner(mean, components, mixing, scales, follows, follows.dropped(drop))


def cost(
    design: Design,
    drop: Drop,
    *,
    folds: int,
    most: int,
    n_components: int | None = None,
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

    def judge(fold: np.ndarray, targets: np.ndarray, score: Callable[[np.ndarray, Floats], float]) -> _Folds:
        each = _Folds([], [], [])
        for k in range(int(fold.max()) + 1):
            train, test = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(np.unique(batches[train])) > 1 and len(test):
                cleaner = fit_cleaner(design, places[train], drop, most=most, n_components=n_components, seed=seed)
                both = [x, cleaner.affine(x)]
                before, after = (score(test, _ridge(each[train], targets[train], each[test])) for each in both)
                each.add(before, after, len(test) / len(train))
            tick()
        return each

    by_row = _row_folds(units, batches, folds, rng)
    by_batch = batch_folds(np.ones(len(places)), batches, min(folds, len(np.unique(batches))), rng)[batches]
    batch = judge(by_row, batches, lambda test, scores: _one_against_all(batches[test], scores))

    def label_score(test: np.ndarray, scores: Floats) -> float:
        values = []
        for code in np.unique(labels[test]):
            against = labels[test] == design.control if design.control is not None else labels[test] != code
            if code != design.control:
                rows = (labels[test] == code) | against
                values.append(auroc_within(labels[test][rows] == code, scores[rows, code], batches[test][rows]))
        known = [value for value in values if value == value]
        return float(np.mean(known)) if known else float("nan")

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


def _one_against_all(codes: np.ndarray, scores: Floats) -> float:
    """Mean over classes of the AUROC of each against all others."""
    values = [auroc(codes == code, scores[:, code]) for code in np.unique(codes)]
    known = [value for value in values if value == value]
    return float(np.mean(known)) if known else float("nan")


def _ridge(train: Floats, codes: np.ndarray, test: Floats) -> Floats:
    """Scores of every class by ridge regression on its indicator; the penalty by generalised cross-validation."""
    mean, size = train.mean(axis=0), train.std(axis=0)
    live = size > ROUNDING * np.abs(mean)
    x, new = ((each[:, live] - mean[live]) / size[live] for each in (train, test))
    y = np.eye(int(codes.max()) + 1)[codes]
    centre = y.mean(axis=0)
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    turned, n = u.T @ (y - centre), len(x)
    losses = []
    for penalty in PENALTIES * s[0] ** 2:
        shrink = s**2 / (s**2 + penalty)
        left = np.sum((y - centre) ** 2) - np.sum((2 * shrink - shrink**2)[:, None] * turned**2)
        losses.append(left / max(n - 1 - shrink.sum(), 1e-9) ** 2)
    penalty = PENALTIES[int(np.argmin(losses))] * s[0] ** 2
    weights = vt.T @ ((s / (s**2 + penalty))[:, None] * turned)
    return np.asarray(new @ weights + centre)
