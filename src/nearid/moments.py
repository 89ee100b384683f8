"""Mergeable first and second moments of rows, and rank-aware algebra on their scatter.

A block of rows becomes (n, mean, scatter); blocks merge exactly (Chan, Golub & LeVeque 1983), so folds, chunks,
threads and machines all reduce to sums of small matrices. The scatter is centred on the mean of its own rows and kept
in float64, which is what makes float32 rows with a large offset harmless.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.base.extensions import lapack
from nearid.engines.local import blocks

# A column that spreads by less than this share of its mean is constant as far as float64 can tell.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# What is left of a difference below this share of its terms may be rounding alone, of sums over many rows.
CANCELLED = 1e-9

Floats = NDArray[np.floating]


@dataclass(frozen=True)
class Moments:
    """Count, mean and centred scatter of rows.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : ndarray of shape (d,)
    scatter : ndarray of shape (d, d)
        Sum over rows of (z - mean)(z - mean)^T.
    rows : ndarray of shape (n, d) or None
        The rows less their mean, where they are few and were kept.
    """

    n: int
    mean: Floats
    scatter: Floats
    rows: Floats | None = None

    @classmethod
    def of(cls, rows: ArrayLike) -> Moments:
        """Moments of rows of shape (n, d), block by block."""
        z = np.asarray(rows)
        return total([cls.zero(z.shape[1]), *(cls._of_block(z[a:b]) for a, b in blocks(*z.shape))])

    @classmethod
    def _of_block(cls, rows: ArrayLike) -> Moments:
        z = np.array(rows, dtype=np.float64, order="C")
        mean = z.mean(axis=0)
        z -= mean
        return cls.from_sums(len(z), z.sum(axis=0), z.T @ z, mean)

    @classmethod
    def from_sums(cls, n: int, first: Floats, second: Floats, shift: Floats, rows: Floats | None = None) -> Moments:
        """Moments from sums of z - shift and of (z - shift)(z - shift)^T; `second` is overwritten.

        `rows` are the rows z - shift, if they are to be kept, and are overwritten, too.

        Sums about one point add up over blocks without any correction. What cancels here is the distance of the shift
        from the mean: a spread that is lost in it is set to zero. Take sums about the mean to see if there is one.
        """
        if not n:
            return cls.zero(len(first))
        gap = first / n
        about_shift = np.diag(second).copy()
        second -= (n * gap)[:, None] * gap
        constant = np.diag(second) <= CANCELLED * about_shift
        if rows is not None:
            rows -= gap
            rows[:, constant] = 0
        return cls(n, shift + gap, _zero_constant_columns(second, constant), rows)

    @classmethod
    def zero(cls, width: int) -> Moments:
        """Moments of no rows."""
        return cls(0, np.zeros(width), np.zeros((width, width)))

    def __add__(self, other: Moments) -> Moments:
        return total([self, other])

    def take(self, columns: np.ndarray) -> Moments:
        """The same of some columns."""
        rows = None if self.rows is None else self.rows[:, columns]
        return Moments(self.n, self.mean[columns], self.scatter[np.ix_(columns, columns)], rows)


def _zero_constant_columns(scatter: Floats, constant: np.ndarray) -> Floats:
    """The scatter with rows and columns of constant columns set to zero, in place."""
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0
    return scatter


def total(parts: Iterable[Moments]) -> Moments:
    """Merge moments in the order given, so that the result does not depend on who computed which part when."""
    parts = list(parts)
    filled = [part for part in parts if part.n]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    counts = np.array([part.n for part in filled])
    means = np.stack([part.mean for part in filled])
    # About the first mean, so that a large offset common to all parts costs no digits.
    mean = means[0] + counts @ (means - means[0]) / counts.sum()
    gaps = (means - mean) * np.sqrt(counts)[:, None]
    scatter = gaps.T @ gaps
    for part in filled:
        scatter += part.scatter
    return Moments(int(counts.sum()), mean, scatter)


@dataclass(frozen=True)
class PairMoments:
    """Moments of paired rows (x, y), as the blocks that alignment needs.

    Attributes
    ----------
    n : int
    mean_x, mean_y : ndarray of shape (p,), (q,)
    xx, xy, yy : ndarray of shape (p, p), (p, q), (q, q)
        Centred sums of products.

    One source may have many targets of one width: `mean_y`, `xy` and `yy` then have a leading axis more.
    """

    n: int
    mean_x: Floats
    mean_y: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def split(cls, joint: Moments, width: int) -> PairMoments:
        """Cut the moments of concatenated rows [x, y], where x has `width` columns.

        Merging parts of a constant column leaves rounding of its mean; it is set to zero here.
        """
        s = joint.scatter
        constant = (np.diag(s) > 0) & (np.diag(s) <= joint.n * (ROUNDING * joint.mean) ** 2)
        if constant.any():
            s = _zero_constant_columns(s.copy(), constant)
        return cls(
            joint.n, joint.mean[:width], joint.mean[width:], s[:width, :width], s[:width, width:], s[width:, width:]
        )

    @classmethod
    def of(cls, x: ArrayLike, y: ArrayLike) -> PairMoments:
        """Moments of paired rows."""
        x, y = np.asarray(x), np.asarray(y)
        if len(x) != len(y):
            raise InputError(f"Paired rows are needed: x has {len(x)} rows and y has {len(y)}.")
        width = x.shape[1] + y.shape[1]
        parts = (np.hstack([x[a:b], y[a:b]], dtype=np.float64) for a, b in blocks(len(x), width))
        return cls.split(total([Moments.zero(width), *map(Moments.of, parts)]), x.shape[1])

    @property
    def cross(self) -> CrossMoments:
        """The same without the products of the columns of x with one another."""
        return CrossMoments(self.n, np.diag(self.xx), self.xy, self.yy)

    def through(self, x_map: Floats, y_map: Floats) -> PairMoments:
        """Moments of the rows x x_map^T and y y_map^T; maps of shape (k, p) and (m, q)."""
        return PairMoments(
            self.n,
            x_map @ self.mean_x,
            y_map @ self.mean_y,
            x_map @ self.xx @ x_map.T,
            x_map @ self.xy @ y_map.T,
            y_map @ self.yy @ y_map.T,
        )

    def target(self, columns: slice) -> PairMoments:
        """The same with some columns of y alone."""
        mean, xy, yy = self.mean_y[..., columns], self.xy[..., columns], self.yy[..., columns, columns]
        return replace(self, mean_y=mean, xy=xy, yy=yy)

    def swapped(self) -> PairMoments:
        """The same with x and y in each other's place."""
        return PairMoments(self.n, self.mean_y, self.mean_x, self.yy, self.xy.T, self.xx)

    def scaled(self, x: float, y: float) -> PairMoments:
        """Moments of the rows times a number on each side."""
        return PairMoments(self.n, x * self.mean_x, y * self.mean_y, x * x * self.xx, x * y * self.xy, y * y * self.yy)

    def about_origin(self) -> PairMoments:
        """Products about the origin in the place of the means: fits without a translation follow from these."""
        n, mx, my = self.n, self.mean_x, self.mean_y
        return PairMoments(
            n,
            np.zeros_like(mx),
            np.zeros_like(my),
            self.xx + n * np.outer(mx, mx),
            self.xy + n * mx[:, None] * my[..., None, :],
            self.yy + n * my[..., :, None] * my[..., None, :],
        )


@dataclass(frozen=True)
class CrossMoments:
    """Moments of paired rows (x, y) that correlations of single columns of x with y need.

    Attributes
    ----------
    n : int
    spread : ndarray of shape (p,)
        Centred sum of squares of each column of x.
    xy, yy : ndarray of shape (p, q), (q, q)
        Centred sums of products.
    """

    n: int
    spread: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats) -> CrossMoments:
        """Moments of paired rows in memory."""
        x, y = _centred(x), _centred(y)
        return cls(len(x), np.einsum("ij,ij->j", x, x), x.T @ y, y.T @ y)


def _centred(rows: Floats) -> Floats:
    """Rows less their mean; 0 in columns that are constant."""
    mean = rows.mean(axis=0)
    centred: Floats = rows - mean
    constant = np.einsum("ij,ij->j", centred, centred) <= len(rows) * (ROUNDING * mean) ** 2
    centred[:, constant] = 0
    return centred


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a scatter in units of each column's own size.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        Root of the scatter's diagonal; 1 where the column is constant.
    values : ndarray of shape (rank,)
        Eigenvalues above the cut, descending.
    vectors : ndarray of shape (d, rank)
    """

    sizes: Floats
    values: Floats
    vectors: Floats

    @property
    def rank(self) -> int:
        """Number of directions above the cut."""
        return len(self.values)


def resolution(width: int) -> float:
    """Smallest eigenvalue ratio that accumulated float64 products resolve; below it there is only rounding."""
    return 10 * width * float(np.finfo(np.float64).eps)


def eigen(scatter: Floats, n: int) -> tuple[Floats, Floats]:
    """Eigenvalues, descending, and eigenvectors of a scatter of n rows; of the rows' span alone where rows are few."""
    if 2 * n >= len(scatter):
        values, vectors = np.linalg.eigh(scatter)
    else:
        span = span_of(scatter, n)
        values, inner = np.linalg.eigh(span.T @ scatter @ span)
        vectors = span @ inner
    return values[::-1], vectors[:, ::-1]


def leading_eigen(scatter: Floats, n: int, count: int) -> tuple[Floats, Floats]:
    """All eigenvalues, descending, and some leading eigenvectors of a scatter of n rows; faster than all of these."""
    d = len(scatter)
    if 2 * n < d or 8 * count > d:
        values, vectors = eigen(scatter, n)
        return values, vectors[:, :count]
    # One reduction to a tridiagonal matrix serves both.
    reduced, diagonal, beside, factors, failed = lapack().dsytrd(scatter, lower=True, lwork=64 * d)
    values, lost = lapack().dsterf(diagonal, beside)
    by_number = 2
    _, _, inner, missed = lapack().dstemr(diagonal, np.append(beside, 0.0), by_number, 0.0, 0.0, d - count + 1, d)
    if failed or lost or missed or not np.isfinite(diagonal).all():
        values, vectors = np.linalg.eigh(scatter)
        return values[::-1], vectors[:, ::-1][:, :count]
    vectors = inner[:, :count]
    vectors[1:] = lapack().dormqr("L", "N", reduced[1:, :-1], factors, vectors[1:], 64 * count)[0]
    return values[::-1], vectors[:, ::-1]


def span_of(matrix: Floats, rank: int) -> Floats:
    """Orthonormal columns that span those of a matrix of at most this rank: random combinations span all of them."""
    probes = np.random.default_rng(0).normal(size=(matrix.shape[1], rank))
    span: Floats = np.linalg.qr(matrix @ probes)[0]
    return span


def spectrum(scatter: Floats, n: int, centred: bool = True) -> Spectrum:
    """Decompose a scatter matrix of n rows.

    Columns are brought to equal size first, so that the rank does not depend on anybody's units.
    """
    d = len(scatter)
    sizes = np.sqrt(np.clip(np.diag(scatter), 0, None))
    sizes = np.where(sizes > 0, sizes, 1.0)
    values, vectors = eigen(scatter / sizes[:, None] / sizes, n)
    kept = int(np.sum(values > resolution(d) * max(values[0], 0.0)))
    # n centred rows span at most n - 1 directions, whatever rounding leaves in the others.
    kept = min(kept, n - 1 if centred else n)
    return Spectrum(sizes, values[:kept], vectors[:, :kept])


@dataclass(frozen=True)
class Cholesky:
    """Cholesky factor of a scatter in units of each column's own size: scatter = S L L^T S.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
    lower : ndarray of shape (d, d)
    least : float
        About the smallest eigenvalue of L L^T, or less.
    """

    sizes: Floats
    lower: Floats
    least: float


def cholesky(scatter: Floats, n: int) -> Cholesky | None:
    """Factor a scatter of n rows, or None where its rank is not safely full; far cheaper than a spectrum."""
    sizes = np.sqrt(np.clip(np.diag(scatter), 0, None))
    if n <= len(scatter) or not sizes.all():
        return None
    scaled = scatter / sizes[:, None] / sizes
    lower, failed = lapack().dpotrf(scaled, lower=True, clean=True)
    if failed:
        return None
    norm = float(np.abs(scaled).sum(axis=0).max())
    rcond, _ = lapack().dpocon(lower, norm, uplo="L")
    return Cholesky(sizes, lower, rcond * norm) if rcond > resolution(len(scatter)) else None
