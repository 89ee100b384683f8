"""Variance of a matching from the choice of partners: the cross-validation is repeated on halves of the rows.

A derivative keeps the matching of columns fixed. If several partners of a column are about equally good, other rows
choose other partners, and the value changes. So random halves of the rows of every fold choose partners again. The
variance over such halves, minus that of fixed maps on the same halves, is due to the choice.

Halves differ from all rows as much as all rows differ from the population. So for a value that is linear in the rows,
their variance is the right one. The choice of partners is not linear. If very many partners are about equally good, it
is quadratic, and halves overstate its variance by a factor of three (the cross products of the drawn rows with their
average count as well). If two partners are about equally good, it jumps, and halves understate its variance by a third.
nearid uses one half of the variance, which simulations support (docs/concepts/validity.md).

Everything is computed from sums over pieces of the folds. If there are many rows, a sample is used and its deviations
are scaled.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nearid.groups.fits import MatchMap, squared_errors
from nearid.groups.ladder import Group
from nearid.moments import Floats, PairMoments
from nearid.questions.compare.errors import Fits, Gathered

# Random halves, and pieces of a fold that they are made of.
HALVES, PIECES = 32, 8
# Share of the variance over halves that nearid uses.
TAKEN = 0.5
# Beyond this width, assignments take too long to be tried.
WIDEST = 512
# Rows, and numbers, that deviations are taken from.
ROWS, NUMBERS = 20_000, 2_000_000


def choice_variances(gathered: Gathered, groups: Sequence[Group], fits: Fits) -> Floats:
    """Variance that the choice of partners adds to the logarithm of each group's squared error; 0 for other groups.

    NaN if other choices cannot be tried: for components that were found on each side alone, and for wide rows whose
    folds disagree on the partners.
    """
    added = np.where([group.prepare is not None for group in groups], np.nan, 0.0)
    matching = [g for g, group in enumerate(groups) if group.matches]
    if not matching:
        return added
    if max(gathered.moments.xy.shape) > WIDEST:
        for g in matching:
            added[g] = 0.0 if _agree([maps[g] for maps in fits.maps]) else np.nan
        return added
    anew, fixed = np.zeros((2, HALVES, len(groups)))
    for at, (parts, rest) in enumerate(_halves(gathered)):
        guess = 0.0
        for k, (test, train) in enumerate(zip(parts, rest, strict=True)):
            guess += float(np.trace(test.yy)) + test.n * float(np.sum((test.mean_y - train.mean_y) ** 2))
            for g in matching:
                chosen = groups[g].fitted(train, gathered.without_fold[k])
                for errors, fitted in ((anew, chosen), (fixed, fits.maps[k][g])):
                    errors[at, g] += float(squared_errors(fitted, test).sum())
        anew[at] /= guess or 1.0
        fixed[at] /= guess or 1.0
    more = np.clip(anew.var(axis=0, ddof=1) - fixed.var(axis=0, ddof=1), 0, None)
    size = fixed.mean(axis=0) ** 2
    for g in matching:
        added[g] = TAKEN * more[g] / size[g] if size[g] > 0 else 0.0
    return added


def _agree(maps: Sequence[object]) -> bool:
    """Whether all matchings have the same partners with the same signs."""
    matched = [m for m in maps if isinstance(m, MatchMap)]
    signs = np.stack([np.sign(m.weights) for m in matched])
    partners = np.where(signs == 0, -1, np.stack([m.columns for m in matched]))
    return bool(np.all(signs == signs[0]) and np.all(partners == partners[0]))


def _halves(gathered: Gathered) -> Iterator[tuple[list[PairMoments], list[PairMoments]]]:
    """Of each random half, the moments of every fold and of the rows outside it; of own products the diagonals."""
    rng, whole = np.random.default_rng(0), gathered.moments
    p, q = whole.xy.shape
    sample = gathered.sample(min(ROWS, max(NUMBERS // (p + q), 1000)), rng)
    x, y = (np.asarray(side, dtype=np.float64) for side in gathered.pair.take(sample.rows))
    # Rounding errors of constant columns can correlate with anything.
    x, y = (x - whole.mean_x) * (np.diag(whole.xx) > 0), (y - whole.mean_y) * (np.diag(whole.yy) > 0)
    units = np.arange(len(x)) if sample.blocks is None else sample.blocks
    folds_of = None if gathered.blocks is None else gathered.fold[gathered.used]
    names = None if gathered.blocks is None else gathered.blocks.codes[gathered.used]
    sums, deviations, signs = [], [], []
    for k, count in enumerate(gathered.parts.counts):
        sums.append(_of_moments(gathered.parts.part(k), whole))
        own = np.flatnonzero(gathered.fold[sample.rows] == k)
        present, at = np.unique(units[own], return_inverse=True)
        pieces = min(PIECES, len(present))
        piece = (rng.permutation(len(present)) % max(pieces, 1))[at]
        each = [own[piece == j] for j in range(pieces)]
        # Scale the deviations of the sample to those of all units.
        among = count if names is None else len(np.unique(names[folds_of == k]))
        scale = min(np.sqrt(among / max(len(present), 1)), count / max(float(sample.weights[own].sum()), 1.0))
        deviations.append(scale * np.reshape([_of_rows(x[i], y[i], sample.weights[i]) for i in each], (pieces, -1)))
        drawn = [1.0] * (pieces // 2) + [-1.0] * (pieces // 2) + [0.0] * (pieces % 2)
        signs.append(rng.permuted(np.tile(drawn, (HALVES, 1)), axis=1))
    for half in range(HALVES):
        folds = np.stack([s + sign[half] @ own for s, sign, own in zip(sums, signs, deviations, strict=True)])
        yield _to_moments(folds, whole), _to_moments(folds.sum(axis=0) - folds, whole)


def _of_rows(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Weighted sums over rows in one line: number, both sides, their squares, products of all columns of both."""
    weighted = x * weights[:, None]
    own = [weights.sum()[None], weights @ x, weights @ y, weights @ x**2, weights @ y**2]
    return np.concatenate([*own, (weighted.T @ y).ravel()])


def _of_moments(part: PairMoments, whole: PairMoments) -> Floats:
    """The same sums, about the means of all rows, of rows whose moments are known."""
    n, x, y = part.n, part.mean_x - whole.mean_x, part.mean_y - whole.mean_y
    squares = np.diag(part.xx) + n * x**2, np.diag(part.yy) + n * y**2
    return np.concatenate([[n], n * x, n * y, *squares, (part.xy + n * x[:, None] * y).ravel()])


def _to_moments(sums: Floats, whole: PairMoments) -> list[PairMoments]:
    """Moments of several lines of such sums; of the products of a side with itself the diagonals alone."""
    p, q = whole.xy.shape
    n, (x, y, xx, yy, xy) = sums[:, :1], np.split(sums[:, 1:], np.cumsum([p, q, p, q]), axis=1)
    x, y = x / n, y / n
    between = xy.reshape(-1, p, q) - n[:, :, None] * x[:, :, None] * y[:, None]
    own = ([np.diag(squares) for squares in np.clip(s - n * m**2, 0, None)] for s, m in ((xx, x), (yy, y)))
    each = zip(n[:, 0], x + whole.mean_x, y + whole.mean_y, *own, between, strict=True)
    return [PairMoments(round(n), x, y, xx, xy, yy) for n, x, y, xx, yy, xy in each]
