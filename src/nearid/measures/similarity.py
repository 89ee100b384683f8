"""Similarity of two representations of the same rows: CCA, SVCCA and linear CKA, all from moments.

Canonical directions are fitted, so their correlations are taken on rows that the fit has not seen: in sample they are
1 for pure noise as soon as n < p + q. CKA fits nothing but is biased upwards for few rows; the debiased form is used.
"""

from __future__ import annotations

import numpy as np

from nearid.arrays import Rows, open_rows, pair_rows
from nearid.arrays.metadata import input_alerts
from nearid.arrays.pair import Index, read_side
from nearid.base.alerts import Alert
from nearid.base.options import Count, Seed, checked
from nearid.engines.base import Engine
from nearid.engines.local import blocks, open_engine
from nearid.folds import FoldMoments, assign, fold_moments, refuse_constant
from nearid.measures.canonical import Canonical, held_out
from nearid.measures.registry import Measured
from nearid.moments import Floats, PairMoments


@checked
def cca(
    x: object, y: object, *, folds: int = 5, random_state: Seed = 0, engine: str | Engine | None = None
) -> Measured:
    """Mean held-out canonical correlation.

    With fewer than 50 rows for each column, directions are sought within the leading principal components of each side.
    The other folds choose how many of them a fold uses: 1, 2, 4, ... or all.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    folds : int
        Number of folds; 1 gives the in-sample correlations along all directions.
    random_state : int, default=0
        Seed of the folds.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over the rows run; see `nearid.compare`.

    Returns
    -------
    Measured
        The mean of the correlations over all folds. `correlations` has one entry for each direction, in the order of
        the fitted ones. `ranks` has the number of directions in each fold.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 3))
    >>> m = nearid.cca(x, x @ rng.normal(size=(3, 3)))
    >>> round(m.value, 6), m.correlations.shape
    (1.0, (3,))
    """
    parts, alerts = _moments(x, y, folds, random_state, engine)
    return _correlated(held_out(parts), alerts)


@checked
def svcca(
    x: object,
    y: object,
    *,
    k: Count | None = None,
    folds: int = 5,
    random_state: Seed = 0,
    engine: str | Engine | None = None,
) -> Measured:
    """Mean held-out canonical correlation of the leading principal components.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    k : int, optional
        Principal components of each side. Default: as many as hold 99% of the variance, or fewer if there are few rows,
        chosen as in `cca`.
    folds, random_state, engine
        See `cca`.

    Returns
    -------
    Measured
        The mean of the correlations, with `correlations` and `ranks`; see `cca`.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 3))
    >>> round(nearid.svcca(x, x @ rng.normal(size=(3, 3)), k=3).value, 6)
    1.0
    """
    parts, alerts = _moments(x, y, folds, random_state, engine)
    return _correlated(held_out(parts, leading=True, k=k), alerts)


@checked
def linear_cka(x: object, y: object, *, debiased: bool = True, engine: str | Engine | None = None) -> Measured:
    """Linear centred kernel alignment of paired rows.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    debiased : bool
        Use the unbiased estimate of HSIC (Song et al. 2012), which is near 0 for independent rows. False gives the
        classical ratio, which tends to 1 if there are few rows for the columns.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes over the rows run; see `nearid.compare`.

    Returns
    -------
    Measured
        The value alone. It is NaN if there are too few rows for the unbiased estimate.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(float(nearid.linear_cka(x, 5 * x[:, ::-1])), 6)
    1.0
    """
    pair = pair_rows(open_rows(x), open_rows(y))
    with open_engine(engine) as opened:
        moments = fold_moments(pair, np.zeros(pair.n, dtype=np.uint8), 1, engine=opened).all
        refuse_constant((pair.x.name, pair.y.name), moments)
        if not debiased:
            return Measured(cka_from_moments(moments), alerts=tuple(input_alerts(pair)))
        how = (pair.x_index, pair.y_index), (moments.mean_x, moments.mean_y)
        work, fourth = blocks(pair.n, pair.x.shape[1] + pair.y.shape[1]), np.zeros(3)
        for part in opened.map(_fourth, work, *how, pair.x, pair.y):
            fourth += part
    return Measured(debiased_cka(moments, fourth), alerts=tuple(input_alerts(pair)))


def _fourth(block: tuple[int, int], indices: tuple[Index, Index], means: tuple[Floats, Floats], *sides: Rows) -> Floats:
    """Return the fourth moments of the pairs of a block."""
    x, y = (read_side(rows, index, *block) for rows, index in zip(sides, indices, strict=True))
    return fourth_moments(x - means[0], y - means[1])


def _correlated(found: Canonical, alerts: tuple[Alert, ...]) -> Measured:
    arrays = {"correlations": found.correlations, "ranks": np.array(found.ranks)}
    return Measured(found.value, arrays=arrays, alerts=alerts)


def cka_from_moments(moments: PairMoments) -> float:
    """The classical linear CKA: |xy|^2 / (|xx| |yy|)."""
    size = np.linalg.norm(moments.xx) * np.linalg.norm(moments.yy)
    return _cosine(float(np.linalg.norm(moments.xy) ** 2 / size)) if size > 0 else float("nan")


def fourth_moments(x: Floats, y: Floats) -> Floats:
    """Sums over centred rows of |x|^2 |y|^2, |x|^4 and |y|^4, which the debiased CKA needs beside the moments."""
    a, b = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    return np.array([a @ b, a @ a, b @ b])


def cka_influence(x: Floats, y: Floats, moments: PairMoments) -> Floats:
    """How far each of some rows moves the linear CKA of all rows, times their number.

    CKA is A / sqrt(B C) with A the squared norm of the covariance of x with y, B and C those of x and of y with
    themselves. A row moves A by 2 (a - A) with a = x^T Cov(x, y) y for centred rows and the covariance of the other
    rows; B and C alike.

    Parameters
    ----------
    x, y : ndarray of shape (m, p) and (m, q)
        Some of the rows.
    moments : PairMoments
        Of all rows.
    """
    x, y = x - moments.mean_x, y - moments.mean_y
    near, far = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    if len(x) == moments.n < x.shape[1] + y.shape[1]:
        # Few rows, all of them: their products with each other take less time than those of columns.
        left, right = x @ x.T, y @ y.T
        sums = [np.einsum("ij,ij->i", *both) for both in ((left, right), (left, left), (right, right))]
    else:
        each = (x, moments.xy, y), (x, moments.xx, x), (y, moments.yy, y)
        sums = [np.einsum("ij,ij->i", left @ scatter, right) for left, scatter, right in each]
    # The row's own products are taken out, and its share in the mean goes with them, up to terms of order 1 / n^2.
    a, b, c = (
        (own - square) / (moments.n - 1) for own, square in zip(sums, (near * far, near**2, far**2), strict=True)
    )
    size_x, size_y = np.mean(b), np.mean(c)
    if not (size_x > 0 and size_y > 0):
        return np.full(len(x), np.nan)
    a, b, c = a / np.sqrt(size_x) / np.sqrt(size_y), b / size_x, c / size_y
    return np.asarray(2 * (a - np.mean(a)) - np.mean(a) * (b + c - 2))


def debiased_cka(moments: PairMoments, fourth: Floats) -> float:
    """Linear CKA from unbiased HSIC estimates (Song et al. 2012, eq. 5), for rows centred on their mean.

    With centred rows and K' = K without its diagonal: K' 1 = -diag(K), so every term is a moment.
    NaN where the estimate of a side's own HSIC is not positive (fewer than 4 rows, or noise alone).
    """
    n = moments.n
    if n < 4:
        return float("nan")

    def hsic(cross: Floats, quartic: float, left: Floats, right: Floats) -> float:
        rest = float(np.trace(left) * np.trace(right)) / ((n - 1) * (n - 2))
        return float(np.sum(cross**2) - quartic + rest - 2 * quartic / (n - 2))

    # Units cancel in the ratio; taking them out first keeps products of products inside float64.
    ux, uy = float(np.trace(moments.xx)) or 1.0, float(np.trace(moments.yy)) or 1.0
    xx, yy, xy = moments.xx / ux, moments.yy / uy, moments.xy / np.sqrt(ux) / np.sqrt(uy)
    both = hsic(xy, fourth[0] / ux / uy, xx, yy)
    left, right = hsic(xx, fourth[1] / ux / ux, xx, xx), hsic(yy, fourth[2] / uy / uy, yy, yy)
    return _cosine(both / np.sqrt(left * right)) if left > 0 and right > 0 else float("nan")


def _cosine(value: float) -> float:
    """CKA is a cosine of two centred kernels (Szekely and Rizzo 2014): what rounding leaves above 1 is 1."""
    return 1.0 if 1 < value < 1 + 1e-9 else float(value)


def _moments(
    x: object, y: object, folds: int, seed: int, engine: str | Engine | None
) -> tuple[FoldMoments, tuple[Alert, ...]]:
    pair = pair_rows(open_rows(x), open_rows(y))
    with open_engine(engine) as opened:
        parts = fold_moments(pair, assign(pair.n, folds, seed), folds, engine=opened)
    refuse_constant((pair.x.name, pair.y.name), parts.all)
    return parts, tuple(input_alerts(pair))
