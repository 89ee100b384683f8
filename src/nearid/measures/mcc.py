"""Mean correlation coefficient: latents matched to factors one to one, and how well they agree.

Matching selects the best of many correlations, which is far from 0 even for noise. So the matching, and the sign of
every correlation, is chosen on all folds but one and tested on that one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from nearid.arrays import Pair, open_rows, pair_rows
from nearid.base.alerts import Alert
from nearid.base.options import Seed
from nearid.folds import assign, few_rows_per_fold, fold_moments
from nearid.groups.fits import assignment, fit_linear
from nearid.measures.factors import Factor
from nearid.measures.ranks import average_ranks
from nearid.measures.registry import EACH_LATENT, Measured, measure, variant
from nearid.measures.targets import Inputs, Targets
from nearid.moments import CrossMoments, Floats, PairMoments

# Breaks of a piecewise linear fit: the deciles of the latent.
BREAKS = 9


@measure(
    "MCC",
    low=-1.0,
    invariances=EACH_LATENT,
    each="MCC",
    each_low=-1.0,
    heat_map="|Correlation|, held out",
    heat_map_of="correlation",
    streams=True,
    symmetric=True,
)
def mcc(
    inputs: Inputs,
    *,
    method: Literal["pearson", "spearman", "piecewise"] = "pearson",
    folds: int = 5,
    random_state: Seed = 0,
) -> Measured:
    """Return the mean correlation of each factor with its matched latent, on rows that the matching has not used.

    For a circular or categorical factor, it is the correlation with the best combination of its cosine and sine, or of
    its classes. Like the sign, this combination is chosen together with the matching.

    Parameters
    ----------
    factors : anything `open_factors` takes, of m factors
        If there are fewer latents than factors, factors without a latent count as 0.
    method : {"pearson", "spearman", "piecewise"}
        "pearson" takes one streaming pass. "spearman" correlates ranks among all rows. "piecewise" is the correlation
        of a factor with its fit by one latent, piecewise linear with breaks at the latent's deciles. The last two hold
        the latents in memory.
    folds : int
        Number of folds. 1 gives the in-sample value, which is far from 0 for noise. The value is a mean over folds. It
        is too low if a fold has fewer than 10 rows, which an alert reports.

    Returns
    -------
    Measured
        The value is the mean over factors. `matrix` holds correlations. `matched`, an array of shape (m,), holds the
        latent of each factor by the matching on all rows, -1 where latents were too few.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> u = np.random.default_rng(0).uniform(size=(300, 2))
    >>> m = nearid.mcc(-3 * u[:, ::-1], {"x": u[:, 0], "y": u[:, 1]})
    >>> round(m.value, 3), dict(zip(m.factors, m.matched.tolist()))
    (1.0, {'x': 1, 'y': 0})
    """
    if method == "pearson":
        targets = inputs.moments(folds, random_state)
        return _matched(targets, *_pearson(targets))
    x, factors, alerts = inputs.load()
    if method == "spearman":
        x, factors = average_ranks(x), replace(factors, items=tuple(map(_ranked, factors.items)))
    targets = replace(inputs, latents=x, factors=factors, blocks=None).moments(folds, random_state)
    targets = replace(targets, alerts=tuple(dict.fromkeys(alerts + targets.alerts)))
    if method == "spearman":
        return _matched(targets, *_pearson(targets))
    seen, held, tick = [], [], inputs.progress("piecewise fits", x.shape[1])
    for column in x.T:
        pair = pair_rows(open_rows(_hinges(column)), factors.rows)
        train, test = _fitted(pair, targets, folds, random_state)
        seen.append(train)
        held.append(test)
        tick()
    return _matched(targets, np.stack(seen, axis=1), np.stack(held, axis=1))


variant(
    "mcc",
    "mcc_spearman",
    "MCC, Spearman",
    options={"method": "spearman"},
    each="MCC, Spearman",
    heat_map="|Rank correlation|, held out",
    streams=False,
)
variant(
    "mcc",
    "mcc_piecewise",
    "MCC, piecewise linear",
    options={"method": "piecewise"},
    each="MCC, piecewise linear",
    heat_map="",
    streams=False,
    symmetric=False,
    by_default=False,
)


def _matched(targets: Targets, seen: Floats, held: Floats) -> Measured:
    """Match on correlations seen in training, shape (folds + 1, d, m), all rows last; judge by those held out."""
    d, m = held.shape[1:]
    values = np.zeros((len(held), m))
    for k in range(len(held)):
        rows, columns = assignment(seen[k])
        values[k, columns] = held[k, rows, columns]
    matched = np.full(m, -1)
    rows, columns = assignment(seen[-1])
    matched[columns] = rows
    alerts = targets.alerts + few_rows_per_fold("MCC", sum(targets.source.counts), len(targets.source.counts))
    if d < m:
        alerts += (
            Alert(
                "fewer_latents",
                f"There are fewer latents ({d}) than factors ({m}): factors without a match ({m - d}) count as 0.",
            ),
        )
    per_factor = values.mean(axis=0)
    value, matrix = float(per_factor.mean()), held.mean(axis=0)
    return Measured(value, matrix, targets.names, per_factor, arrays={"matched": matched}, alerts=alerts)


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
    # Of one column the training rows decide the sign alone.
    single = [at for at, b in enumerate(blocks) if b.stop - b.start == 1]
    columns = [blocks[at].start for at in single]
    signed = np.sign(train.xy[:, columns]) * test.xy[:, columns]
    out[:, single] = _ratio(signed, np.diag(test.yy)[columns], test.spread[:, None])
    for at in (at for at in range(len(blocks)) if at not in single):
        b = blocks[at]
        own = train.yy[b, b]
        # From the factor's columns to each latent: such a fit needs no products of latents.
        back = PairMoments(train.n, np.zeros(len(own)), np.zeros(d), own, train.xy[:, b].T, no_latents)
        weights = fit_linear(back).coefficients
        top = np.sum(weights * test.xy[:, b].T, axis=0)
        out[:, at] = _ratio(top, np.sum(weights * (test.yy[b, b] @ weights), axis=0), test.spread)
    return out


def _fitted(pair: Pair, targets: Targets, folds: int, seed: int) -> tuple[Floats, Floats]:
    """Correlation of each factor with its fit by one latent: in training, all rows last; and held out."""
    parts = replace(targets, source=fold_moments(pair, assign(pair.n, folds, seed, pair.blocks), folds))

    def judged(_: int, train: PairMoments, test: PairMoments) -> tuple[Floats, Floats]:
        matrix = fit_linear(train).coefficients
        return _agreement(matrix, train, targets.blocks), _agreement(matrix, test, targets.blocks)

    pairs = parts.splits(judged)
    everything = parts.row_space.parts.all
    whole = judged(0, everything, everything)[0]
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
    # The order of classes is arbitrary, and that of angles has no first.
    ordered = factor.kind in ("continuous", "integer")
    return replace(factor, values=average_ranks(factor.values)) if ordered else factor
