"""The three fits of the ladder, each from moments alone.

All minimise the squared error of target rows over their group; matching columns is the exception, where the
assignment maximises |correlation| (the field's convention) and the scale then minimises the squared error.
"""

from __future__ import annotations

import numpy as np

from nearid.groups.maps import DenseMap, MatchMap
from nearid.moments import Floats, PairMoments
from nearid.spectra import cholesky, spectrum


def correlation(moments: PairMoments) -> Floats:
    """Cross-correlation of shape (p, q); 0 where a column is constant."""
    sx, sy = (np.sqrt(np.clip(np.diag(s), 0, None)) for s in (moments.xx, moments.yy))
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = moments.xy / sx[:, None] / sy
    return np.where((sx[:, None] > 0) & (sy > 0), rho, 0.0)


def fit_permutation(moments: PairMoments, *, translation: bool = True, scale: bool = True) -> MatchMap:
    """Match columns by the assignment that maximises the sum of |correlation|, with signs and one scale.

    With different widths min(p, q) columns are matched; target columns without a partner are estimated by their mean.
    """
    from scipy.optimize import linear_sum_assignment

    if not translation:
        moments = moments.about_origin()
    rho = correlation(moments)
    p, q = rho.shape
    rows, cols = linear_sum_assignment(np.abs(rho), maximize=True)
    signs = np.where(rho[rows, cols] < 0, -1.0, 1.0)
    # Least squares over the matched columns: c = sum |x.y| / sum x.x
    size = float(np.diag(moments.xx)[rows].sum())
    factor = float(np.sum(signs * moments.xy[rows, cols])) / size if scale and size > 0 else 1.0
    columns, weights = np.zeros(q, dtype=np.intp), np.zeros(q)
    columns[cols], weights[cols] = rows, signs * factor
    return MatchMap(moments.mean_x, moments.mean_y, columns, weights, p)


def fit_rigid(moments: PairMoments, *, translation: bool = True, scale: bool = True) -> DenseMap:
    """Orthogonal Procrustes with reflections: R = U V^T of the cross-scatter's SVD, and one scale.

    A narrower source is embedded isometrically. A wider one is rotated and its spare coordinates dropped, which is
    Procrustes on the target padded with zeros; the scale is then least squares in the target's own space.
    """
    if not translation:
        moments = moments.about_origin()
    u, _, vt = np.linalg.svd(moments.xy / (np.abs(moments.xy).max() or 1.0), full_matrices=False)
    rotation = u @ vt
    factor = 1.0
    if scale:
        wider = len(u) > vt.shape[1]
        kept = np.sum(rotation * (moments.xx @ rotation)) if wider else np.trace(moments.xx)
        size = float(kept)
        factor = float(np.sum(rotation * moments.xy)) / size if size > 0 else 1.0
    return DenseMap(moments.mean_x, moments.mean_y, factor * rotation)


def fit_linear(moments: PairMoments, *, translation: bool = True, ridge: float = 0.0) -> DenseMap:
    """Affine least squares; where the solution is not unique, the one of least norm; optional ridge penalty.

    `ridge` weighs the squared norm of the coefficients against the summed squared error (scikit-learn's alpha).
    """
    from scipy.linalg import cho_solve

    if not translation:
        moments = moments.about_origin()
    xx, n = moments.xx, moments.n
    if ridge:
        # The penalty is as good as d further rows.
        xx, n = xx + ridge * np.eye(len(xx)), n + len(xx)
    factor = cholesky(xx, n)
    if factor is not None:
        units = factor.sizes[:, None]
        matrix = cho_solve((factor.lower, True), moments.xy / units) / units
    else:
        matrix = _solve_least_norm(xx, moments.xy, n, translation)
    return DenseMap(moments.mean_x, moments.mean_y, matrix)


def _solve_least_norm(xx: Floats, xy: Floats, n: int, centred: bool) -> Floats:
    """Least-squares solution of least norm, the rank judged in units of each column's size."""
    s = spectrum(xx, n, centred)
    scaled = s.vectors @ ((s.vectors.T @ (xy / s.sizes[:, None])) / s.values[:, None])
    solution: Floats = scaled / s.sizes[:, None]
    if s.null.shape[1]:
        # All solutions differ by null directions; removing their span leaves the shortest in the original units.
        null, _ = np.linalg.qr(s.null / s.sizes[:, None])
        solution -= null @ (null.T @ solution)
    return solution
