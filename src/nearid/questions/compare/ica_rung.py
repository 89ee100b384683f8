"""The rung beside the ladder: ICA of each run alone, on all rows and on the rows outside each fold, then matching."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nearid.arrays import Pair, Rows
from nearid.base.alerts import Alert
from nearid.base.progress import Progress
from nearid.engines.base import Engine
from nearid.folds import FoldMoments
from nearid.groups.fits import DenseMap, fit_unmixed, polar, squared_errors
from nearid.groups.ladder import Group, Prepared, register
from nearid.ica.recurrence import chosen_by_start, majority
from nearid.measures.canonical import PLENTY, Grid, fold_groups, side_whitener
from nearid.moments import Floats, Moments, PairMoments

# Passes over the rows; a fold starts from the fit on all rows and needs few.
PASSES, FOLD_PASSES = 500, 200
# Rows needed per component if there are fewer than `PLENTY` rows per column: ICA has to find k (k - 1) / 2 angles.
ROWS_PER_COMPONENT = 20


@dataclass(frozen=True)
class Components:
    """Components (k, p) of one run, the mixing (p, k), which may be Gaussian, how the search ended, and its starts.

    `recurrence` is the number of starts that found each component; None if there was only one start.
    """

    components: Floats
    mixing: Floats
    gaussian: np.ndarray
    n: int
    passes: int
    gradient: float
    converged: bool
    starts: int = 1
    recurrence: np.ndarray | None = None


Tick = Callable[[], object] | None
# Of the source and of the target; neither side has seen the pairing.
Sides = tuple[Components, Components]


class ComponentCache:
    """Fits ICA to the sides of pairs; fits of the same run and rows are reused."""

    def __init__(self, seed: int, engine: Engine, progress: Progress) -> None:
        self._seed, self._engine, self._progress = seed, engine, progress
        self._known: dict[tuple[int, bytes, int | None], Components] = {}

    def __call__(self, pair: Pair, fold: np.ndarray, parts: FoldMoments) -> Prepared:
        """Components of both sides, on all rows and without each fold.

        The search without a fold starts from the fit on all rows. A held-out row may influence which of several optima
        is found, but not the position of the optimum of the other rows.
        """
        used = np.ones(pair.n, dtype=bool) if parts.kept is None else parts.kept
        most, without_fold = component_counts(parts)
        whole = self._both(pair, used, parts.all, most, None, self._progress("unmixing", 2 * PASSES))
        folds = []
        tick = self._progress("unmixing without each fold", len(parts.parts))
        for k, own in enumerate(without_fold):
            folds.append(self._both(pair, used & (fold != k), parts.split(k)[0], own, whole, None))
            tick()
        alerts = tuple(_alerts((pair.x.name, pair.y.name), whole, folds, most))
        return Prepared(_fit_options(whole), [_fit_options(sides) for sides in folds], alerts)

    def _both(
        self, pair: Pair, used: np.ndarray, moments: PairMoments, most: int | None, start: Sides | None, tick: Tick
    ) -> Sides:
        own = Moments(moments.n, moments.mean_x, moments.xx), Moments(moments.n, moments.mean_y, moments.yy)
        source, target = (
            self._fit(rows, _rows_used(rows, index, used), m, most, start[k] if start else None, tick)
            for k, ((rows, index), m) in enumerate(zip(pair.sides, own, strict=True))
        )
        return source, target

    def _fit(
        self,
        rows: Rows,
        kept: np.ndarray,
        moments: Moments,
        most: int | None,
        start: Components | None,
        tick: Tick,
    ) -> Components:
        from nearid.ica.fit import IcaOptions, fit_ica

        key = id(rows), hashlib.sha256(np.packbits(kept).tobytes()).digest(), most
        if key in self._known:
            return self._known[key]
        if not np.any(np.diag(moments.scatter) > 0):
            # All variation of this run is in the held-out fold: use one component that is always 0 and matches nothing.
            none = np.zeros((1, rows.shape[1]))
            return Components(none, none.T, np.ones(1, dtype=bool), moments.n, 0, 0.0, True)
        fit = fit_ica(
            rows,
            IcaOptions(most, max_passes=FOLD_PASSES if start else PASSES),
            moments=moments,
            kept=None if kept.all() else kept,
            start=start.components if start else None,
            seed=self._seed,
            engine=self._engine,
            tick=tick,
        )
        solution, d = fit.solution, fit.diagnostics
        ended = len(solution.gradients), solution.gradients[-1], solution.converged
        tried = d.starts, d.recurrence
        self._known[key] = Components(fit.components, fit.mixing, d.gaussian, moments.n, *ended, *tried)
        return self._known[key]


def component_counts(parts: FoldMoments) -> tuple[int | None, list[int | None]]:
    """Number of principal components that the rows support, for all rows and without each fold; None means all.

    Whatever ICA finds, a matching of components is a rotation between whitened principal components. So the chosen
    number is the one with which the best rotation explains most of both sides on other rows. As for the ranks of CCA,
    each fold's number is chosen on the other folds.
    """
    grid, counts = Grid.of(parts), parts.counts
    ranks = _candidates(max(grid.x[0].width, grid.y[0].width), counts)
    if len(ranks) == 1:
        # If a side was reduced, all its components are fewer than its columns.
        only = ranks[0] or _reduced_width(grid)
        return only, [only] * len(counts)
    groups = fold_groups(len(counts))
    errors = np.zeros((len(groups), len(ranks)))
    for g in range(len(groups)):
        h = (g + 1) % len(groups)
        train = grid.of_folds([k for k in range(len(counts)) if k not in groups[g] + groups[h]])
        for judged, judge in ((g, h), (h, g)):
            errors[judged] += _unexplained(train, grid.of_folds(groups[judge]), ranks)
    each = [ranks[int(at)] or _reduced_width(grid) for at in errors.argmin(axis=1)]
    whole = ranks[int(errors.sum(axis=0).argmin())] or _reduced_width(grid)
    return whole, [each[k % len(groups)] for k in range(len(counts))]


def _candidates(width: int, counts: Sequence[int]) -> list[int | None]:
    """Numbers of components to choose from, ascending; only the largest if there is no third fold to judge them."""
    if sum(counts) >= PLENTY * width:
        return [None]
    powers = [2**e for e in range((width - 1).bit_length())]
    rows = sum(counts) - max(counts)
    carried = [k for k in (*powers, None) if (k or width) * ROWS_PER_COMPONENT <= rows] or [1]
    return carried if len(counts) > 2 else carried[-1:]


def _reduced_width(grid: Grid) -> int | None:
    """Components of the sides that a grid reduced; None where it reduced neither."""
    return max((side.width for side in (grid.x[0], grid.y[0]) if side.basis is not None), default=None)


def _unexplained(train: PairMoments, test: PairMoments, ranks: Sequence[int | None]) -> Floats:
    """Squared error of the best rotation over that of the mean, both directions together, for each number."""
    wx, wy = (side_whitener(s, train.n, leading=True, variance=1.0) for s in (train.xx, train.yy))
    # From whitened components back to columns: w^T S is the inverse of w on its span.
    back_x, back_y = wx.T @ train.xx, wy.T @ train.yy
    shares = np.zeros(len(ranks))
    for at, rank in enumerate(ranks):
        rotation = polar(wx[:, :rank].T @ train.xy @ wy[:, :rank])
        ways = (
            (wx[:, :rank] @ rotation @ back_y[:rank], train, test),
            (wy[:, :rank] @ rotation.T @ back_x[:rank], train.swapped(), test.swapped()),
        )
        for matrix, fitted_on, judged in ways:
            size, gain = np.sum(matrix * (fitted_on.xx @ matrix)), np.sum(matrix * fitted_on.xy)
            fitted = DenseMap(fitted_on.mean_x, fitted_on.mean_y, matrix * (gain / size if size > 0 else 0.0))
            guess = np.trace(judged.yy) + judged.n * np.sum((judged.mean_y - fitted_on.mean_y) ** 2)
            shares[at] += squared_errors(fitted, judged).sum() / guess if guess > 0 else 1.0
    return shares


def _rows_used(rows: Rows, index: np.ndarray | None, used: np.ndarray) -> np.ndarray:
    """Which rows of a run belong to the pairs in use."""
    if index is None:
        return used
    kept = np.zeros(rows.shape[0], dtype=bool)
    kept[index[used]] = True
    return kept


def _fit_options(sides: Sides) -> dict[str, Floats]:
    """What fitting the group needs besides moments."""
    source, target = sides
    return {"source": source.components, "target": target.components, "mixing": target.mixing}


def _alerts(names: tuple[str, str], whole: Sides, folds: list[Sides], most: int | None) -> Iterator[Alert]:
    """Alerts about the ica group."""
    if most is not None:
        text = f"ICA unmixes only the {most} leading principal components of each side: {whole[0].n} rows are too few "
        yield Alert("ica_few_rows", f"{text}for more components. Use more rows.")
    for k, (name, side) in enumerate(zip(names, whole, strict=True)):
        yield from _side_alerts(name, side, [sides[k] for sides in folds])
    first, second = (len(side.components) for side in whole)
    if first != second:
        left = f" and estimates the other {second - first} of {names[1]} by their mean" if second > first else ""
        yield Alert(
            "ica_counts_differ",
            f"{names[0]} has {first} components and {names[1]} has {second}: ica matches {min(first, second)}{left}.",
        )


def _side_alerts(name: str, side: Components, folds: list[Components]) -> Iterator[Alert]:
    if not all(s.converged for s in (side, *folds)):
        worst = max((side, *folds), key=lambda s: s.gradient)
        yield Alert(
            "ica_not_converged",
            f"ICA of {name} stopped after {worst.passes} passes at a relative gradient of {worst.gradient:.1e}, short "
            "of 1e-4. Its components and all figures of ica may still change.",
        )
    k = len(side.gaussian)
    doubtful = int(np.sum(side.gaussian))
    # One Gaussian component is determined by the others; two or more can be mixed arbitrarily.
    if doubtful > 1:
        yield Alert(
            "ica_gaussian",
            f"{doubtful} of {k} components of {name} look Gaussian with {side.n} rows. ICA cannot separate Gaussian "
            "components. If such components match between the runs, the reason may be that both runs have the same "
            "rows. nearid unmix --stability 5 shows which components half of the rows find again.",
        )
    if side.recurrence is not None:
        every = int(np.sum(side.recurrence == side.starts))
        alone = int(np.sum(chosen_by_start(side.recurrence, side.starts, side.gaussian)))
        if alone:
            if alone == 1:
                found, advice = "1 that does not look Gaussian was", "it. Do not interpret its match."
            else:
                found, advice = f"{alone} that do not look Gaussian were", "them. Do not interpret their matches."
            yield Alert(
                "ica_start_dependent",
                f"{every} of {k} components of {name} {'was' if every == 1 else 'were'} found by all {side.starts} "
                f"starts, each on half of the rows. {found} found by at most {majority(side.starts) - 1} of them: the "
                f"start or the sample chose {advice}",
            )


register(
    Group(
        "ica",
        "ICA of each side, matched",
        "#D55E00",
        (),
        fit_unmixed,
        ("translation", "scale", "source", "target", "mixing"),
        lambda p, q: q + 1,
        default=False,
        prepare=ComponentCache,
    )
)
