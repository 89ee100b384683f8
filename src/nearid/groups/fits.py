"""Maps from the space of the source to that of the target, and the fits of the ladder, all computed from moments.

All fits minimise the squared error of the target rows over their group, except the matching of columns or components.
There the assignment maximises |correlation|, as is usual in the field, and the scale then minimises the squared error.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nearid.base.extensions import extension, lapack
from nearid.moments import Floats, PairMoments, cholesky, resolution, span_of, spectrum

# The penalty of a linear map, or several penalties whose maps are averaged.
Ridge = float | tuple[float, ...]

# From this number of columns on, preparing an assignment saves time.
WIDE = 512
# From this number of columns on, a large singular value decomposition, and from that number on the nearest orthonormal
# matrix, is computed from products, if the ratio of their eigenvalues is above this limit.
BY_PRODUCTS, NEAREST_BY_PRODUCTS, WELL_CONDITIONED = 128, 4, 1e-8
# Size of the term that leads the descent out of the span of few rows.
NUDGE = 1e-3


@dataclass(frozen=True)
class Map(ABC):
    """Base class of fitted maps: y is predicted by (x - source_centre) A + target_centre."""

    source_centre: Floats
    target_centre: Floats

    @property
    @abstractmethod
    def matrix(self) -> Floats:
        """A, of shape (p, q)."""

    @abstractmethod
    def turn(self, centred: Floats, out: Floats | None = None) -> Floats:
        """Return rows that are already centred, times A, in a new array or in `out`."""

    @abstractmethod
    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> Map:
        """Return the same map with source columns in units of `source` and the target in units of `target`."""


@dataclass(frozen=True)
class DenseMap(Map):
    """A map with a full matrix.

    Attributes
    ----------
    source_centre : ndarray of shape (p,)
    target_centre : ndarray of shape (q,)
    coefficients : ndarray of shape (p, q)
        The matrix A.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.groups.fits import DenseMap, apply
    >>> doubling = DenseMap(np.zeros(2), np.ones(2), 2 * np.eye(2))
    >>> apply(doubling, np.array([[1.0, 2.0]])).tolist()
    [[3.0, 5.0]]
    """

    coefficients: Floats

    @property
    def matrix(self) -> Floats:
        """The matrix of shape (p, q)."""
        return self.coefficients

    def turn(self, centred: Floats, out: Floats | None = None) -> Floats:
        """Return centred rows times the matrix."""
        return np.matmul(centred, self.coefficients, out=out)

    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> DenseMap:
        """The same map in other units and precision."""
        matrix = np.ascontiguousarray(self.coefficients * (source / target)[:, None], dtype=dtype)
        return DenseMap(self.source_centre, self.target_centre, matrix)


@dataclass(frozen=True)
class MatchMap(Map):
    """A map that sends each target column to at most one source column: y_j = weight_j * x_(column_j).

    Attributes
    ----------
    columns : ndarray of int, shape (q,)
        Source column of each target column; where there is none the weight is 0.
    weights : ndarray of shape (q,)
        Sign times scale.
    width : int
        Number of source columns p.
    """

    columns: np.ndarray
    weights: Floats
    width: int

    def turn(self, centred: Floats, out: Floats | None = None) -> Floats:
        """Return the matched columns of centred rows times their weights."""
        # There is a column of each number, so nothing is clipped. To check that, numpy would copy `out`.
        picked = np.take(centred, self.columns, axis=1, out=out, mode="clip")
        picked *= self.weights
        return picked

    @property
    def matrix(self) -> Floats:
        """The matching as a matrix of shape (p, q)."""
        full = np.zeros((self.width, len(self.columns)))
        full[self.columns, np.arange(len(self.columns))] = self.weights
        return full

    def rescaled(self, source: Floats, target: float, dtype: np.dtype) -> MatchMap:
        """The same map in other units and precision."""
        weights = (self.weights * (source[self.columns] / target)).astype(dtype)
        return MatchMap(self.source_centre, self.target_centre, self.columns, weights, self.width)


def squared_errors(fitted: Map, moments: PairMoments) -> Floats:
    """Return the squared error of each target column, summed over rows, shape (q,), from the moments of the rows.

    With many targets, and a map for each, the errors have a leading axis.
    """
    total = np.diagonal(moments.yy, axis1=-2, axis2=-1)
    apart_x, apart_y = moments.mean_x - fitted.source_centre, moments.mean_y - fitted.target_centre
    if isinstance(fitted, MatchMap):
        partners, weights = fitted.columns, fitted.weights
        miss = apart_y - apart_x[partners] * weights
        products = moments.xy[partners, np.arange(len(partners))]
        about_mean = total + weights * (weights * np.diag(moments.xx)[partners] - 2 * products)
    else:
        matrix = fitted.matrix
        miss = apart_y - apart_x @ matrix
        about_mean = total + np.sum(matrix * (moments.xx @ matrix - 2 * moments.xy), axis=-2)
    # Rounding may make an error of 0 negative.
    return np.asarray(np.clip(about_mean, 0, None) + moments.n * miss**2)


def apply(fitted: Map, x: Floats) -> Floats:
    """Return rows of shape (n, p) mapped to the space of the target, shape (n, q)."""
    return fitted.turn(np.asarray(x, dtype=np.float64) - fitted.source_centre) + fitted.target_centre


def assignment(gains: Floats) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns, matched one to one, with the largest sum of gains.

    Subtracting a number from a whole row or column of a square matrix changes every sum by the same amount. For large
    matrices this is used to start near the solution, which halves the time.
    """
    if WIDE < len(gains) == gains.shape[1] and gains.any(axis=0).all() and gains.any(axis=1).all():
        # Not if a column has no correlations: then many partners are equally good, and the choice would change.
        gains = gains - (gains.max(axis=1)[:, None] + gains.max(axis=0)) / 2
        gains -= gains.max(axis=1)[:, None]
        gains -= gains.max(axis=0)
    rows, columns = extension("optimize", "_lsap").linear_sum_assignment(gains, maximize=True)
    return rows, columns


def correlation(moments: PairMoments) -> Floats:
    """Return the cross-correlation of shape (p, q); 0 if a column is constant."""
    sx, sy = (np.sqrt(np.clip(np.diag(s), 0, None)) for s in (moments.xx, moments.yy))
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = moments.xy / sx[:, None] / sy
    return np.where((sx[:, None] > 0) & (sy > 0), rho, 0.0)


def fit_permutation(moments: PairMoments, *, translation: bool = True, scale: bool = True) -> MatchMap:
    """Return the matching of columns that maximises the sum of |correlation|, with signs and one scale.

    min(p, q) columns are matched. Target columns without a match are predicted by their mean.
    """
    return _matched(moments if translation else moments.about_origin(), scale, each=False)


def fit_scaled_permutation(moments: PairMoments, *, translation: bool = True) -> MatchMap:
    """Return the same matching, with a separate positive scale for each matched column."""
    return _matched(moments if translation else moments.about_origin(), scale=True, each=True)


def _matched(moments: PairMoments, scale: bool, *, each: bool) -> MatchMap:
    rho = correlation(moments)
    p, q = rho.shape
    rows, cols = assignment(np.abs(rho))
    signs = np.where(rho[rows, cols] < 0, -1.0, 1.0)
    # Least squares over the matched columns: c = sum |x.y| / sum x.x
    sizes, gains = np.diag(moments.xx)[rows], signs * moments.xy[rows, cols]
    if not each:
        sizes, gains = sizes.sum(keepdims=True), gains.sum(keepdims=True)
    factor = np.divide(gains, sizes, out=np.ones_like(gains), where=sizes > 0) if scale else 1.0
    columns, weights = np.zeros(q, dtype=np.intp), np.zeros(q)
    columns[cols], weights[cols] = rows, signs * factor
    return MatchMap(moments.mean_x, moments.mean_y, columns, weights, p)


def fit_unmixed(
    moments: PairMoments,
    *,
    source: Floats,
    target: Floats,
    mixing: Floats,
    translation: bool = True,
    scale: bool = True,
) -> DenseMap:
    """Return the signed matching of components that were found on each side separately, in the columns of the target.

    Components have unit variance on both sides, so a match has only a sign. One scale of the whole map then minimises
    the squared error in the columns of the target. Target components without a match are predicted by their mean.

    Parameters
    ----------
    source : ndarray of shape (k, p)
        Components of the source: s = source (x - mean).
    target : ndarray of shape (m, q)
        Components of the target.
    mixing : ndarray of shape (q, m)
        The map from the components of the target back to its columns.
    """
    if not translation:
        moments = moments.about_origin()
    match = fit_permutation(moments.through(source, target), scale=False)
    matrix = match.turn(source.T) @ mixing.T
    size = float(np.sum(matrix * (moments.xx @ matrix)))
    factor = float(np.sum(matrix * moments.xy)) / size if scale and size > 0 else 1.0
    return DenseMap(moments.mean_x, moments.mean_y, factor * matrix)


def fit_rigid(moments: PairMoments, *, translation: bool = True, scale: bool = True) -> DenseMap:
    """Return the orthogonal Procrustes map with reflections: R = U V^T from the SVD of the cross-scatter, and a scale.

    A source with fewer columns than the target is embedded isometrically. A source with more columns is rotated, and
    the other coordinates are dropped. This problem has no closed form and is solved by descent from three starts.
    """
    return fit_rigid_to_many([moments], translation=translation, scale=scale)[0]


def fit_rigid_to_many(many: Sequence[PairMoments], *, translation: bool = True, scale: bool = True) -> list[DenseMap]:
    """Return the same for several targets of one source and one width, which is faster than one by one."""
    if not translation:
        many = [moments.about_origin() for moments in many]
    xx, xy = many[0].xx, many[0].xy
    if len(xx) > xy.shape[1]:
        matrices = _rotate_and_drop(many, scale)
        return [DenseMap(m.mean_x, m.mean_y, matrix) for m, matrix in zip(many, matrices, strict=True)]
    total, found = float(np.trace(xx)) or 1.0, []
    for moments in many:
        rotation = _isometry(moments.xy, moments.n)
        factor = float(np.sum(rotation * moments.xy)) / total if scale else 1.0
        found.append(DenseMap(moments.mean_x, moments.mean_y, factor * rotation))
    return found


def polar(matrix: Floats) -> Floats:
    """Return the nearest matrix with orthonormal rows or columns, for one matrix or each of a stack."""
    sizes = np.abs(matrix).max(axis=(-2, -1), keepdims=True)
    scaled = matrix / np.where(sizes > 0, sizes, 1.0)
    if min(matrix.shape[-2:]) >= NEAREST_BY_PRODUCTS:
        tall = scaled if matrix.shape[-2] >= matrix.shape[-1] else np.swapaxes(scaled, -1, -2)
        nearest = _orthonormal(tall)
        if nearest is not None:
            return nearest if tall is scaled else np.swapaxes(nearest, -1, -2)
    u, _, vt = np.linalg.svd(scaled, full_matrices=False)
    return np.asarray(u @ vt)


def _orthonormal(tall: Floats) -> Floats | None:
    """Return M (M^T M)^(-1/2), three times faster than by an SVD; None if M is too close to a lower rank."""
    values, vectors = np.linalg.eigh(np.swapaxes(tall, -1, -2) @ tall)
    if not (values[..., 0] > WELL_CONDITIONED * values[..., -1]).all():
        return None
    root = (vectors / np.sqrt(values)[..., None, :]) @ np.swapaxes(vectors, -1, -2)
    nearest = tall @ root
    # A Newton-Schulz step removes the rounding errors of the products.
    return np.asarray(1.5 * nearest - 0.5 * nearest @ (np.swapaxes(nearest, -1, -2) @ nearest))


def _singular(flat: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the SVD of a matrix M with at most as many rows as columns. A large one is decomposed through M M^T.

    The eigenvectors of M M^T take a third of the time, but resolve only directions with large singular values. Those
    that `WELL_CONDITIONED` admits are off by 1e-8 at most. The others are decomposed without products, after their
    parts along the large ones are removed, and come last, descending. The large singular values ascend.
    """
    if len(flat) < BY_PRODUCTS:
        return np.linalg.svd(flat, full_matrices=False)
    values, vectors = np.linalg.eigh(flat @ flat.T)
    turned = vectors.T @ flat
    few = int(np.sum(values <= WELL_CONDITIONED * values[-1]))
    sizes, low, right = np.sqrt(values[few:]), turned[:few], turned[few:]
    right /= sizes[:, None]
    low -= (low @ right.T) @ right
    inner, small, low[:] = np.linalg.svd(low, full_matrices=False)
    vectors[:, :few] = vectors[:, :few] @ inner
    return np.roll(vectors, -few, axis=1), np.concatenate([sizes, small]), np.roll(turned, -few, axis=0)


def _isometry(xy: Floats, n: int) -> Floats:
    """Return the Procrustes map for p <= q: U V^T of the SVD of xy, as far as n rows determine it.

    Directions orthogonal to all rows are not determined, and any completion is optimal there. This one maps such
    directions to the first columns of the target, as closely as possible. With few rows, their span is rotated by small
    matrices.
    """
    p, q = xy.shape
    few = 2 * n < p
    left, right = (span_of(xy, n), span_of(xy.T, n)) if few else (None, None)
    small = xy if left is None or right is None else left.T @ xy @ right
    u, sizes, vt = _singular(small / (np.abs(small).max() or 1.0))
    k = int(np.sum(sizes > resolution(q) * sizes.max()))
    if not k:
        return np.eye(p, q)
    a, b, rest = u[:, :k], vt[:k].T, u[:, k:]
    stays = np.zeros((p, q))
    if left is not None and right is not None:
        a, b = left @ a, right @ b
        # Directions orthogonal to the rows of both sides do not move.
        plane = np.linalg.qr(np.hstack([a, b[:p]]))[0]
        rest = plane @ np.linalg.qr(plane.T @ a, mode="complete")[0][:, k:]
        stays += np.eye(p, q)
        stays[:, :p] -= plane @ plane.T
    nearest = a @ b.T + stays
    if rest.size:
        near = np.zeros((rest.shape[1], q))
        near[:, :p] = rest.T
        nearest += rest @ polar(near - (near @ b) @ b.T)
    return np.asarray(nearest)


def _rotate_and_drop(many: Sequence[PairMoments], scale: bool, steps: int = 50, tol: float = 1e-9) -> list[Floats]:
    """Minimise |y - s x R|^2 over R with orthonormal columns (fewer than rows) and, where asked, the scale s.

    Each step minimises a bound that touches the error near R (x^T x replaced by its largest eigenvalue), and is taken
    only if the error falls. The starts include the signed permutation, so that the ladder stays nested. Rows fewer than
    columns say nothing of directions at right angles to them, which descent would enter by rounding alone: a nudge
    towards the permutation decides which of them it enters.

    Targets of one source descend side by side, each until its own error no longer falls.
    """
    (p, q), n = many[0].xy.shape, many[0].n
    unit_x, units_y = (float(np.trace(many[0].xx)) or 1.0), np.array([float(np.trace(m.yy)) or 1.0 for m in many])
    xx = many[0].xx / unit_x
    xy = np.stack([m.xy / np.sqrt(unit_x) / np.sqrt(unit_y) for m, unit_y in zip(many, units_y, strict=True)])
    fixed = np.sqrt(unit_x / units_y)
    matched = np.stack([np.sign(fit_permutation(m).matrix) for m in many])
    few = n + q < p
    solve = _within_rows(many[0]) if few else least_squares(many[0].xx, n)
    starts = np.stack(
        [
            np.stack([_isometry(own.T, n).T for own in xy]),
            np.stack([_isometry(solve(m.xy).T, n).T for m in many]),
            matched,
        ]
    )
    basis = None
    if few:
        # Few rows: the frame lies in their span and that of the permutation, which is as many directions as it can use.
        # The span comes first, along eigenvectors: there the scatter is diagonal, and 0 along the other directions.
        values, vectors = many[0].directions
        kept = values > resolution(p) * values[0]
        span, sizes = vectors[:, kept], np.append(values[kept], np.zeros(q))[:, None] / unit_x
        basis = np.stack([np.linalg.qr(np.hstack([span, own]))[0] for own in matched])
        across = basis.transpose(0, 2, 1)
        xy, matched = across @ xy, across @ matched
        starts = polar(across @ starts)
        bound = sizes[0, 0]
    else:
        bound = np.linalg.eigvalsh(xx)[-1]

    def turned(rotation: Floats) -> Floats:
        """The scatter times some rotations."""
        return sizes * rotation if few else np.asarray(xx @ rotation)

    def judged(rotation: Floats, inner: Floats, at: np.ndarray | slice = slice(None)) -> tuple[Floats, Floats]:
        """Errors of some of the targets up to a constant, and their scales, of rotations and their products `inner`."""
        gain = np.einsum("kij,kij->k", rotation, xy[at])
        size = np.einsum("kij,kij->k", rotation, inner)
        s = np.divide(gain, size, out=fixed[at].copy(), where=size > 0) if scale else fixed[at]
        return s * s * size - 2 * s * gain, s

    best = np.argmin([judged(start, turned(start))[0] for start in starts], axis=0)
    start = starts[best, np.arange(len(many))]
    rotation = polar(start + NUDGE * matched) if n <= p else start.copy()
    inner = turned(rotation)
    error, s = judged(rotation, inner)
    falling = np.arange(len(many))
    before, inner_before, run = rotation.copy(), inner.copy(), np.zeros(len(many))
    for _ in range(steps):
        own, own_inner, ahead = rotation[falling], inner[falling], run[falling] / (run[falling] + 3)
        # The bound at a point further along the last step (Nesterov) saves most of the steps. It may lie above the
        # error; then the step is not taken, and the next one starts anew. Products with the scatter are linear, so
        # those of both ends of the step give those of the point.
        further = ahead[:, None, None]
        at = own + further * (own - before[falling])
        at_inner = own_inner + further * (own_inner - inner_before[falling])
        # A scale below zero or of zero leaves the cross-products alone.
        pull = np.clip(s[falling], 0, None)[:, None, None] * (bound * at - at_inner)
        own = polar(xy[falling] + pull)
        own_inner = turned(own)
        after, scales = judged(own, own_inner, falling)
        gained = error[falling] - after
        taken, slow = gained > 0, gained <= tol * np.abs(error[falling])
        better = falling[taken]
        before[better], rotation[better] = rotation[better], own[taken]
        inner_before[better], inner[better] = inner[better], own_inner[taken]
        error[better], s[better] = after[taken], scales[taken]
        run[falling] = np.where(slow, 0, run[falling] + 1)
        falling = falling[~(slow & (ahead == 0))]
        if not len(falling):
            break
    at_first, first_s = judged(start, turned(start))
    kept = at_first <= error
    rotation, s = np.where(kept[:, None, None], start, rotation), np.where(kept, first_s, s)
    scales = s * np.sqrt(units_y / unit_x)
    return list(scales[:, None, None] * (rotation if basis is None else basis @ rotation))


def fit_linear(moments: PairMoments, *, translation: bool = True, ridge: Ridge = 0.0) -> DenseMap:
    """Return the affine least-squares map (of smallest norm if it is not unique), with an optional ridge penalty.

    `ridge` is the penalty on the squared norm of the coefficients (alpha in scikit-learn). With several penalties, the
    result is the mean of their maps.
    """
    return fit_linear_to_many([moments], [ridge], translation=translation)[0]


def fit_linear_to_many(
    many: Sequence[PairMoments], ridges: Sequence[Ridge], *, translation: bool = True
) -> list[DenseMap]:
    """Return the same for several targets of one source, each with its own penalties. Each penalty is factored once."""
    if not translation:
        many = [moments.about_origin() for moments in many]
    solvers: dict[float, Callable[[Floats], Floats]] = {}
    found = []
    for moments, ridge in zip(many, ridges, strict=True):
        each = []
        for own, share in shares_of(ridge):
            if own not in solvers:
                solvers[own] = _penalised(many[0], own, translation)
            each.append(share * solvers[own](moments.xy))
        found.append(DenseMap(moments.mean_x, moments.mean_y, np.ascontiguousarray(sum(each[1:], each[0]))))
    return found


def shares_of(ridge: Ridge) -> list[tuple[float, float]]:
    """Return the different penalties, ascending, and the weight of each in the mean of the maps."""
    if not isinstance(ridge, tuple):
        return [(ridge, 1.0)]
    return [(own, ridge.count(own) / len(ridge)) for own in sorted(set(ridge))]


def typical(ridge: Ridge) -> float:
    """Return the penalty, or the median of several penalties."""
    return float(np.median(ridge))


def _penalised(moments: PairMoments, ridge: float, translation: bool) -> Callable[[Floats], Floats]:
    """The matrix of one penalty, of cross-products xy; moments are about the means, or about the origin."""
    xx, n = moments.xx, moments.n
    if ridge and 2 * n < len(xx):
        # Few rows: the map lies in their span.
        values, vectors = moments.directions
        weights = 1 / (np.clip(values, 0, None) + ridge)
        return lambda xy: np.asarray(vectors @ (weights[:, None] * (vectors.T @ xy)))
    if ridge:
        # The penalty is as good as d further rows.
        xx, n = xx.copy(), n + len(xx)
        xx.flat[:: len(xx) + 1] += ridge
    return least_squares(xx, n, centred=translation)


def _within_rows(moments: PairMoments) -> Callable[[Floats], Floats]:
    """The least-squares solver of least norm of few rows, from the decomposition that other fits share."""
    values, vectors = moments.directions
    kept = values > resolution(len(moments.xx)) * values[0]
    span, sizes = vectors[:, kept], values[kept, None]
    return lambda xy: np.asarray(span @ ((span.T @ xy) / sizes))


def least_squares(xx: Floats, n: int, *, centred: bool = True) -> Callable[[Floats], Floats]:
    """Return the least-squares solver of one source: a function from cross-products xy to the matrix of shape (p, q).

    If the solution is not unique, it has the smallest norm. The rank is determined in units of each column.
    """
    factor = cholesky(xx, n)
    if factor is not None:
        lower, units = factor.lower, factor.sizes[:, None]

        def solved(xy: Floats) -> Floats:
            solution = lapack().dpotrs(lower, np.divide(xy, units, order="F"), lower=True, overwrite_b=True)[0]
            solution /= units
            return np.asarray(solution)

        return solved
    s = spectrum(xx, n, centred)
    # All solutions differ at right angles to the rows; the shortest lies in their span, in the original units.
    span = np.linalg.qr(s.vectors * s.sizes[:, None])[0] if s.rank < len(xx) else None

    def solve(xy: Floats) -> Floats:
        scaled = s.vectors @ ((s.vectors.T @ (xy / s.sizes[:, None])) / s.values[:, None])
        solution: Floats = scaled / s.sizes[:, None]
        return solution if span is None else np.asarray(span @ (span.T @ solution))

    return solve


def scale_influence(
    moments: PairMoments, fitted: Map, gradient: Floats, x: Floats, y: Floats, *, translation: bool, scale: bool = True
) -> Floats:
    """Return the influence of each row of the fit on <gradient, A> through the scale of the map.

    This is the derivative of <gradient, A> by the weight of each row of the fit. The direction of A is fixed, because
    the weight of a single row does not change the matching.

    Parameters
    ----------
    moments : PairMoments
        Moments of the rows of the fit.
    gradient : ndarray of shape (p, q)
    x, y : ndarray of shape (m, p) and (m, q)
        Some of these rows, minus the centres of the map.
    """
    if not scale:
        return np.zeros(len(x))
    matrix, xx = fitted.matrix, (moments if translation else moments.about_origin()).xx
    turned, size = fitted.turn(x), float(np.sum(matrix * (xx @ matrix)))
    if not size:
        return np.zeros(len(x))
    gains = np.einsum("ij,ij->i", turned, y - turned)
    return np.asarray(float(np.sum(gradient * matrix)) / size * gains)


def scales_influence(
    moments: PairMoments, fitted: Map, gradient: Floats, x: Floats, y: Floats, *, translation: bool
) -> Floats:
    """Return the same for a matching with a scale for each column."""
    assert isinstance(fitted, MatchMap)
    sizes = np.diag((moments if translation else moments.about_origin()).xx)[fitted.columns]
    steep = gradient[fitted.columns, np.arange(len(sizes))]
    weights = np.divide(steep, sizes, out=np.zeros_like(sizes), where=(sizes > 0) & (fitted.weights != 0))
    picked = x[:, fitted.columns]
    return np.asarray((picked * (y - picked * fitted.weights)) @ weights)


def rigid_influence(
    moments: PairMoments, fitted: Map, gradient: Floats, x: Floats, y: Floats, *, translation: bool, scale: bool = True
) -> Floats:
    """Return the same for a rigid motion, through its rotation U V^T and its scale.

    d(U V^T) = U K V^T with K_ij = (N_ij - N_ji) / (s_i + s_j) and N = U^T d(xy) V. If the target has more columns, the
    part outside the span of V is added. If the source has more columns, the rotation has no closed form, and only the
    influence through the scale is computed.
    """
    own = scale_influence(moments, fitted, gradient, x, y, translation=translation, scale=scale)
    p, q = gradient.shape
    if p > q:
        return own
    xy = (moments if translation else moments.about_origin()).xy
    u, s, vt = np.linalg.svd(xy, full_matrices=False)
    least = resolution(q) * (s[0] or 1.0)
    steep = gradient * (np.linalg.norm(fitted.matrix) / np.sqrt(p))
    inner, apart = u.T @ steep @ vt.T, s[:, None] + s
    turn = u @ np.divide(inner - inner.T, apart, out=np.zeros_like(apart), where=apart > least) @ vt
    if q > p:
        outer = u.T @ (steep - steep @ vt.T @ vt)
        turn = turn + u @ np.divide(outer, s[:, None], out=np.zeros_like(outer), where=s[:, None] > least)
    return np.asarray(own + np.einsum("ij,ij->i", x @ turn, y))


def linear_influence(
    moments: PairMoments, fitted: Map, gradient: Floats, x: Floats, y: Floats, *, translation: bool, ridge: Ridge
) -> Floats:
    """Return the same for a linear map with fixed penalties: dA = (xx + ridge)^-1 x (y - x A)^T for each."""
    steep = replace(moments, xy=gradient, mean_y=np.zeros(gradient.shape[1]))
    each, influence = shares_of(ridge), np.zeros(len(x))
    for own, share in each:
        pulled = fit_linear(steep, translation=translation, ridge=own).coefficients
        map_of = fitted if len(each) == 1 else fit_linear(moments, translation=translation, ridge=own)
        influence += share * np.einsum("ij,ij->i", x @ pulled, y - map_of.turn(x))
    return influence
