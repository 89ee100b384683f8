"""Mean correlation coefficient: latents matched to factors one to one, and how well they agree.

Matching picks the best of many correlations, which is far from 0 for pure noise. So the matching, and with it the
sign of every correlation, is chosen on all folds but one and judged on that one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nearid.arrays import Pair, open_rows, pair_rows
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.options import Seed, checked
from nearid.base.progress import Reporting, reporting
from nearid.engines.base import Engine
from nearid.folds import assign, few_rows_per_fold, fold_moments
from nearid.groups.fits import fit_linear
from nearid.measures.factors import Factor, load_pair
from nearid.measures.recovery import FactorRecovery
from nearid.measures.targets import Targets, gather
from nearid.moments import CrossMoments, Floats, PairMoments

METHODS = ("pearson", "spearman", "piecewise")
# Breaks of a piecewise linear fit: the deciles of the latent.
BREAKS = 9


@dataclass(frozen=True)
class MCC(FactorRecovery):
    """The mean correlation coefficient. The matrix holds correlations; the value is the mean over factors.

    Attributes
    ----------
    matched : ndarray of int, shape (m,)
        Latent of each factor by the matching on all rows; -1 where latents were too few.
    """

    matched: np.ndarray


@checked
def mcc(
    latents: object,
    factors: object,
    *,
    method: str = "pearson",
    folds: int = 5,
    random_state: Seed = 0,
    drop_nonfinite: bool = False,
    engine: str | Engine | None = None,
    progress: Reporting = False,
) -> MCC:
    """Mean correlation of each factor with the latent matched to it, on rows that the matching has not seen.

    The correlation of a latent with a circular or categorical factor is that with the best combination of its cosine
    and sine, or of its classes; like a sign, the combination is chosen with the matching.

    Parameters
    ----------
    latents : array, tensor, path or Rows, of shape (n, d)
    factors : anything `open_factors` takes, of m factors
        Factors without a latent, where d < m, count as 0.
    method : {"pearson", "spearman", "piecewise"}
        "pearson" takes one streaming pass. "spearman" correlates ranks among all rows. "piecewise" is the correlation
        of a factor with its fit by one latent, piecewise linear with breaks at the latent's deciles. The last two hold
        the latents in memory.
    folds : int
        Number of folds; 1 gives the in-sample value, which is far from 0 for noise. The value is a mean over folds,
        and too low where a fold has fewer than 10 rows, which an alert reports.
    random_state : int
        Seed of the folds.
    drop_nonfinite : bool
        Leave out rows with a NaN or an infinity among the latents; otherwise that is an error.
    engine : {"local", "dask"}, address or Engine, optional
        Where the pass for "pearson" runs. Rows that are fewer than the latents are read into memory here.
    progress : bool, default=False
        Draw a progress bar on stderr. A function is called with the name of each stage and its number of steps.

    Returns
    -------
    MCC
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(METHODS)}, not {method!r}.")
    if method == "pearson":
        targets = gather(
            latents,
            factors,
            folds=folds,
            random_state=random_state,
            drop_nonfinite=drop_nonfinite,
            engine=engine,
            progress=progress,
        )
        return _matched(targets, *_pearson(targets))
    x, found, notes = load_pair(latents, factors, drop_nonfinite=drop_nonfinite)
    if method == "spearman":
        from scipy.stats import rankdata

        x, found = rankdata(x, axis=0), replace(found, items=tuple(map(_ranked, found.items)))
    found = replace(found, ids=None)
    targets = gather(
        x, found, folds=folds, random_state=random_state, drop_nonfinite=False, engine=engine, progress=progress
    )
    targets = replace(targets, alerts=tuple(dict.fromkeys(notes + targets.alerts)))
    if method == "spearman":
        return _matched(targets, *_pearson(targets))
    seen, held, rows = [], [], found.rows
    with reporting(progress) as report:
        tick = report("piecewise fits", x.shape[1])
        for column in x.T:
            pair = pair_rows(open_rows(_hinges(column)), rows)
            train, test = _fitted(pair, targets, folds, random_state)
            seen.append(train)
            held.append(test)
            tick()
    return _matched(targets, np.stack(seen, axis=1), np.stack(held, axis=1))


def _matched(targets: Targets, seen: Floats, held: Floats) -> MCC:
    """Match on correlations seen in training, shape (folds + 1, d, m), all rows last; judge by those held out."""
    from scipy.optimize import linear_sum_assignment

    d, m = held.shape[1:]
    values = np.zeros((len(held), m))
    for k in range(len(held)):
        rows, columns = linear_sum_assignment(seen[k], maximize=True)
        values[k, columns] = held[k, rows, columns]
    matched = np.full(m, -1)
    rows, columns = linear_sum_assignment(seen[-1], maximize=True)
    matched[columns] = rows
    alerts = targets.alerts + few_rows_per_fold("MCC", sum(targets.source.counts), len(targets.source.counts))
    if d < m:
        alerts += (
            Alert("fewer_latents", f"{d} latents cannot match {m} factors one to one: {m - d} of them count as 0."),
        )
    per_factor = values.mean(axis=0)
    return MCC(float(per_factor.mean()), held.mean(axis=0), targets.names, alerts, per_factor, matched)


def _pearson(targets: Targets) -> tuple[Floats, Floats]:
    whole = targets.cross
    pairs = targets.cross_splits(
        lambda train, test: (_along(train, train, targets.blocks), _along(train, test, targets.blocks))
    )
    seen = [train for train, _ in pairs]
    return np.stack([*seen, _along(whole, whole, targets.blocks)]), np.stack([test for _, test in pairs])


def _along(train: CrossMoments, test: CrossMoments, blocks: tuple[slice, ...]) -> Floats:
    """Correlation in `test` of each latent with each factor's columns, combined as fits the latent best in `train`."""
    d = len(train.spread)
    out, no_latents = np.zeros((d, len(blocks))), np.zeros((d, 0))
    for at, b in enumerate(blocks):
        columns = train.yy[b, b]
        # From the factor's columns to each latent: such a fit needs no products of latents.
        back = PairMoments(train.n, np.zeros(len(columns)), np.zeros(d), columns, train.xy[:, b].T, no_latents)
        weights = fit_linear(back).coefficients
        top = np.sum(weights * test.xy[:, b].T, axis=0)
        out[:, at] = _ratio(top, np.sum(weights * (test.yy[b, b] @ weights), axis=0), test.spread)
    return out


def _fitted(pair: Pair, targets: Targets, folds: int, seed: int) -> tuple[Floats, Floats]:
    """Correlation of each factor with its fit by one latent: in training, all rows last; and held out."""
    parts = replace(targets, source=fold_moments(pair, assign(pair.n, folds, seed), folds))

    def judged(train: PairMoments, test: PairMoments) -> tuple[Floats, Floats]:
        matrix = fit_linear(train).coefficients
        return _agreement(matrix, train, targets.blocks), _agreement(matrix, test, targets.blocks)

    pairs = parts.splits(judged)
    everything = parts.row_space.parts.all
    whole = judged(everything, everything)[0]
    return np.stack([*(train for train, _ in pairs), whole]), np.stack([test for _, test in pairs])


def _agreement(matrix: Floats, moments: PairMoments, blocks: tuple[slice, ...]) -> Floats:
    top = np.sum(matrix * moments.xy, axis=0)
    size = np.sum(matrix * (moments.xx @ matrix), axis=0)
    spread = np.diag(moments.yy)
    sums = [[part[b].sum() for b in blocks] for part in (top, size, spread)]
    return _ratio(*map(np.asarray, sums))


def _ratio(top: Floats, left: Floats, right: Floats) -> Floats:
    """top / sqrt(left right), in [-1, 1]; 0 where nothing varies."""
    size = np.sqrt(np.clip(left, 0, None)) * np.sqrt(np.clip(right, 0, None))
    return np.asarray(np.clip(np.divide(top, size, out=np.zeros_like(top), where=size > 0), -1.0, 1.0))


def _hinges(column: Floats) -> Floats:
    """A latent and its parts beyond each of its deciles: what piecewise linear functions are made of."""
    breaks = np.unique(np.quantile(column, np.linspace(0, 1, BREAKS + 2)[1:-1]))
    return np.column_stack([column, *(np.maximum(column - at, 0) for at in breaks)])


def _ranked(factor: Factor) -> Factor:
    from scipy.stats import rankdata

    # The order of classes is arbitrary, and that of angles has no first.
    ordered = factor.kind in ("continuous", "integer")
    return replace(factor, values=rankdata(factor.values)) if ordered else factor
