"""Similarity of two representations of the same rows: CCA, SVCCA and linear CKA, all from moments.

Canonical directions are fitted, so their correlations are taken on rows that the fit has not seen: in sample they are
1 for pure noise as soon as n < p + q. Products are summed over folds before they are divided: correlations within folds
of few rows would be far off. CKA fits nothing but is biased upwards for few rows; the debiased form is used.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearid.arrays import open_rows, pair_rows
from nearid.base.extensions import lapack
from nearid.base.options import Count, Seed, checked
from nearid.engines.local import blocks, ordered_map
from nearid.folds import FoldMoments, assign, fold_moments, refuse_constant
from nearid.measures.registry import Measured
from nearid.moments import Floats, PairMoments, cholesky, eigen, resolution, spectrum

# SVCCA keeps this share of each side's variance unless the number of directions is given.
SVCCA_VARIANCE = 0.99


@checked
def cca(x: object, y: object, *, folds: int = 5, random_state: Seed = 0) -> Measured:
    """Mean held-out canonical correlation.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    folds : int
        Number of folds; 1 gives the in-sample correlations.
    random_state : int, default=0
        Seed of the folds.

    Returns
    -------
    Measured
        `correlations`, an array of shape (min(rank x, rank y),), holds them in the order of the fitted ones.

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
    return _correlated(_held_out(_moments(x, y, folds, random_state), leading=False, k=None))


@checked
def svcca(x: object, y: object, *, k: Count | None = None, folds: int = 5, random_state: Seed = 0) -> Measured:
    """Mean held-out canonical correlation of the leading principal components.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    k : int, optional
        Principal components kept on each side; by default as many as hold 99% of the variance.
    folds, random_state : int
        As of `cca`.

    Returns
    -------
    Measured
        `correlations` is an array with one entry for each pair of components.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 3))
    >>> round(nearid.svcca(x, x @ rng.normal(size=(3, 3)), k=3).value, 6)
    1.0
    """
    return _correlated(_held_out(_moments(x, y, folds, random_state), leading=True, k=k))


@checked
def linear_cka(x: object, y: object, *, debiased: bool = True) -> Measured:
    """Linear centred kernel alignment of paired rows.

    Parameters
    ----------
    x, y : array, tensor, path or Rows, of shape (n, p) and (n, q)
    debiased : bool
        Use the unbiased estimate of HSIC (Song et al. 2012), near 0 for independent rows; otherwise the classical
        ratio, which tends to 1 as n/d falls.

    Returns
    -------
    Measured
        The value alone. It is NaN where rows are too few for the unbiased estimate.

    Examples
    --------
    >>> import numpy as np
    >>> import nearid
    >>> x = np.random.default_rng(0).normal(size=(500, 3))
    >>> round(float(nearid.linear_cka(x, 5 * x[:, ::-1])), 6)
    1.0
    """
    pair = pair_rows(open_rows(x), open_rows(y))
    moments = fold_moments(pair, np.zeros(pair.n, dtype=np.uint8), 1).all
    refuse_constant((pair.x.name, pair.y.name), moments)
    if not debiased:
        return Measured(cka_from_moments(moments))
    fourth = np.zeros(3)

    def sums(block: tuple[int, int]) -> Floats:
        a, b = pair.read(*block)
        return fourth_moments(a - moments.mean_x, b - moments.mean_y)

    for part in ordered_map(sums, blocks(pair.n, pair.x.shape[1] + pair.y.shape[1])):
        fourth += part
    return Measured(debiased_cka(moments, fourth))


def _correlated(correlations: Floats) -> Measured:
    return Measured(float(np.mean(correlations)), arrays={"correlations": correlations})


def _held_out(parts: FoldMoments, *, leading: bool, k: int | None) -> Floats:
    if len(parts.parts) == 1:
        return canonical_correlations(parts.all, parts.all, leading=leading, k=k)
    return pooled(parts.map_splits(lambda _, train, test: canonical_products(train, test, leading=leading, k=k)))


def canonical_correlations(
    train: PairMoments, test: PairMoments, *, leading: bool = False, k: int | None = None
) -> Floats:
    """Correlations in `test` along the canonical directions of `train`.

    With `leading` only principal components enter (SVCCA): k of each side, or those that hold 99% of the variance.
    """
    return pooled([canonical_products(train, test, leading=leading, k=k)])


def canonical_products(train: PairMoments, test: PairMoments, *, leading: bool = False, k: int | None = None) -> Floats:
    """What `pooled` makes such correlations of."""
    a, b = canonical_directions(train, leading=leading, k=k)
    return products_along(a, b, test)


def pooled(sums: Sequence[Floats]) -> Floats:
    """Correlations over all folds; 0 where a projection is constant.

    Of each fold the sums of products and of squares of both sides are given, of shape (3, r), in descending order of
    their fits; folds may differ in rank by a few.
    """
    size = min(products.shape[1] for products in sums)
    top, left, right = np.sum([products[:, :size] for products in sums], axis=0)
    spread = np.sqrt(np.clip(left, 0, None) * np.clip(right, 0, None))
    rho: Floats = np.divide(top, spread, out=np.zeros_like(top), where=spread > 0)
    return rho


def canonical_directions(moments: PairMoments, *, leading: bool = False, k: int | None = None) -> tuple[Floats, Floats]:
    """Directions of shape (p, r) and (q, r) whose projections correlate most, strongest first."""
    wx, wy = (side_whitener(s, moments.n, leading=leading, k=k) for s in (moments.xx, moments.yy))
    return directions_between(wx, moments.xy, wy)


def side_whitener(scatter: Floats, n: int, *, leading: bool = False, k: int | None = None) -> Floats:
    """A map of shape (p, r) that makes the columns of one side, or its leading components, uncorrelated and unit."""
    whitener = _leading_whitener(scatter, n, k) if leading else _whitener(scatter, n)
    # A side that does not vary in these rows correlates with nothing: one direction, of length 0.
    return whitener if whitener.shape[1] else np.zeros((len(whitener), 1))


def directions_between(wx: Floats, xy: Floats, wy: Floats) -> tuple[Floats, Floats]:
    """Canonical directions of two sides whose whiteners are known."""
    u, _, vt = np.linalg.svd(wx.T @ xy @ wy, full_matrices=False)
    return wx @ u, wy @ vt.T


def products_along(a: Floats, b: Floats, moments: PairMoments) -> Floats:
    """Sums of products of x a_i with y b_i for each pair of directions, and of the squares of both; see `pooled`."""
    top = np.einsum("ik,ij,jk->k", a, moments.xy, b, optimize=True)
    left, right = (np.einsum("ik,ij,jk->k", v, s, v, optimize=True) for v, s in ((a, moments.xx), (b, moments.yy)))
    return np.stack([top, left, right])


def _whitener(scatter: Floats, n: int) -> Floats:
    factor = cholesky(scatter, n)
    if factor is not None:
        whitener: Floats = lapack().dtrtrs(factor.lower, np.diag(1 / factor.sizes), lower=True)[0].T
        return whitener
    s = spectrum(scatter, n)
    return s.vectors / np.sqrt(s.values) / s.sizes[:, None]


def _leading_whitener(scatter: Floats, n: int, k: int | None) -> Floats:
    # Principal components are those of the data's own units; the rank of the others is judged column by column.
    values, vectors = eigen(scatter, n)
    if values[0] <= 0:
        return np.zeros((len(scatter), 0))
    rank = max(min(int(np.sum(values > resolution(len(scatter)) * values[0])), n - 1), 1)
    if k is None:
        share = np.cumsum(values[:rank]) / values[:rank].sum()
        k = int(np.searchsorted(share, SVCCA_VARIANCE)) + 1
    k = min(k, rank)
    return np.asarray(vectors[:, :k] / np.sqrt(values[:k]))


def cka_from_moments(moments: PairMoments) -> float:
    """The classical linear CKA: |xy|^2 / (|xx| |yy|)."""
    size = np.linalg.norm(moments.xx) * np.linalg.norm(moments.yy)
    return float(np.linalg.norm(moments.xy) ** 2 / size) if size > 0 else float("nan")


def fourth_moments(x: Floats, y: Floats) -> Floats:
    """Sums over centred rows of |x|^2 |y|^2, |x|^4 and |y|^4, which the debiased CKA needs beside the moments."""
    a, b = np.einsum("ij,ij->i", x, x), np.einsum("ij,ij->i", y, y)
    return np.array([a @ b, a @ a, b @ b])


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
    return both / np.sqrt(left * right) if left > 0 and right > 0 else float("nan")


def _moments(x: object, y: object, folds: int, seed: int) -> FoldMoments:
    pair = pair_rows(open_rows(x), open_rows(y))
    parts = fold_moments(pair, assign(pair.n, folds, seed), folds)
    refuse_constant((pair.x.name, pair.y.name), parts.all)
    return parts
