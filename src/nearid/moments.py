"""Mergeable first and second moments of rows, and rank-aware algebra on their scatter.

A block of rows is summarised by (n, mean, scatter). Blocks are merged exactly (Chan, Golub & LeVeque 1983), so folds,
chunks, threads and machines only need sums of small matrices. The scatter is centred on the mean of its rows and stored
in float64, so float32 rows with a large offset lose no precision. `folds` takes products of many float32 rows in
float32, block by block, where that suffices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.base.extensions import lapack
from nearid.engines.local import blocks

# A column whose spread is below this share of its mean is constant within the precision of float64.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
# A difference below this share of its terms may be only rounding error of sums over many rows.
CANCELLED = 1e-9
# Numbers of a matrix that are added at a time.
BAND = 1 << 15

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
        The rows minus their mean, if they are few and were kept.
    """

    n: int
    mean: Floats
    scatter: Floats
    rows: Floats | None = None

    @classmethod
    def of(cls, rows: ArrayLike) -> Moments:
        """Return the moments of rows of shape (n, d), computed block by block."""
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
        """Return moments from sums of z - shift and of (z - shift)(z - shift)^T. `second` is overwritten.

        `rows` are the rows z - shift if they are kept. They are overwritten, too.

        Sums about one point can be added over blocks without a correction. The distance of the shift from the mean
        cancels digits, so a spread below this precision is set to zero. For such a spread, use sums about the mean.
        """
        if not n:
            return cls.zero(len(first))
        gap = first / n
        about_shift = np.diag(second).copy()
        for own in _bands(second):
            second[own] -= (n * gap[own])[:, None] * gap
        constant = np.diag(second) <= CANCELLED * about_shift
        if rows is not None:
            rows -= gap
            rows[:, constant] = 0
        return cls(n, shift + gap, _zero_constant_columns(second, constant), rows)

    @classmethod
    def zero(cls, width: int) -> Moments:
        """Return the moments of no rows."""
        return cls(0, np.zeros(width), np.zeros((width, width)))

    def __add__(self, other: Moments) -> Moments:
        return total([self, other])

    def take(self, columns: np.ndarray) -> Moments:
        """Return the moments of some columns."""
        rows = None if self.rows is None else self.rows[:, columns]
        return Moments(self.n, self.mean[columns], self.scatter[np.ix_(columns, columns)], rows)


def _zero_constant_columns(scatter: Floats, constant: np.ndarray) -> Floats:
    """Set the rows and columns of constant columns in the scatter to zero, in place, and return it."""
    if constant.any():
        scatter[constant] = 0
        scatter[:, constant] = 0
    return scatter


def total(parts: Iterable[Moments]) -> Moments:
    """Return the merged moments, added in the given order, so that the result does not depend on threads."""
    parts = list(parts)
    filled = [part for part in parts if part.n]
    if len(filled) < 2:
        return filled[0] if filled else parts[0]
    counts = np.array([part.n for part in filled])
    means = np.stack([part.mean for part in filled])
    # About the first mean, so that a large common offset loses no digits.
    mean = means[0] + counts @ (means - means[0]) / counts.sum()
    gaps = (means - mean) * np.sqrt(counts)[:, None]
    scatter = gaps.T @ gaps
    for own in _bands(scatter):
        for part in filled:
            scatter[own] += part.scatter[own]
    return Moments(int(counts.sum()), mean, scatter)


def _bands(matrix: Floats) -> Iterator[slice]:
    """Yield the rows of a matrix, some that fit the cache at a time."""
    step = max(BAND // max(len(matrix), 1), 1)
    for start in range(0, len(matrix), step):
        yield slice(start, start + step)


@dataclass(frozen=True)
class PairMoments:
    """Moments of paired rows (x, y), in the blocks that the fits need.

    Attributes
    ----------
    n : int
    mean_x, mean_y : ndarray of shape (p,), (q,)
    xx, xy, yy : ndarray of shape (p, p), (p, q), (q, q)
        Centred sums of products.

    One source may have several targets of the same width. Then `mean_y`, `xy` and `yy` have an additional leading axis.
    """

    n: int
    mean_x: Floats
    mean_y: Floats
    xx: Floats
    xy: Floats
    yy: Floats

    @classmethod
    def split(cls, joint: Moments, width: int) -> PairMoments:
        """Return the moments of both sides from those of concatenated rows [x, y], where x has `width` columns.

        Merged parts of a constant column have rounding errors of its mean, which are set to zero.
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
        """Return the moments of paired rows."""
        x, y = np.asarray(x), np.asarray(y)
        if len(x) != len(y):
            raise InputError(f"x has {len(x)} rows and y has {len(y)}, but both must have the same rows.")
        width = x.shape[1] + y.shape[1]
        parts = (np.hstack([x[a:b], y[a:b]], dtype=np.float64) for a, b in blocks(len(x), width))
        return cls.split(total([Moments.zero(width), *map(Moments.of, parts)]), x.shape[1])

    @cached_property
    def directions(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of the source's scatter, which several fits share; see `eigen`."""
        return eigen(self.xx, self.n)

    @property
    def cross(self) -> CrossMoments:
        """Return the moments without the products of columns of x with each other."""
        return CrossMoments(self.n, np.diag(self.xx), self.xy, self.yy)

    def through(self, x_map: Floats, y_map: Floats) -> PairMoments:
        """Return the moments of the rows x x_map^T and y y_map^T, with maps of shape (k, p) and (m, q)."""
        return PairMoments(
            self.n,
            x_map @ self.mean_x,
            y_map @ self.mean_y,
            x_map @ self.xx @ x_map.T,
            x_map @ self.xy @ y_map.T,
            y_map @ self.yy @ y_map.T,
        )

    def target(self, columns: slice) -> PairMoments:
        """Return the moments with only some columns of y."""
        mean, xy, yy = self.mean_y[..., columns], self.xy[..., columns], self.yy[..., columns, columns]
        return replace(self, mean_y=mean, xy=xy, yy=yy)

    def swapped(self) -> PairMoments:
        """Return the moments with x and y exchanged."""
        return PairMoments(self.n, self.mean_y, self.mean_x, self.yy, self.xy.T, self.xx)

    def scaled(self, x: float, y: float) -> PairMoments:
        """Return the moments of rows that are multiplied by a number on each side."""
        return PairMoments(self.n, x * self.mean_x, y * self.mean_y, x * x * self.xx, x * y * self.xy, y * y * self.yy)

    def about_origin(self) -> PairMoments:
        """Return products about the origin instead of the means, for fits without a translation."""
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
    """Moments of paired rows (x, y) for correlations of single columns of x with y.

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
        """Return the moments of paired rows in memory."""
        x, y = _centred(x), _centred(y)
        return cls(len(x), np.einsum("ij,ij->j", x, x), x.T @ y, y.T @ y)


def _centred(rows: Floats) -> Floats:
    """Return rows minus their mean, with 0 in constant columns."""
    mean = rows.mean(axis=0)
    centred: Floats = rows - mean
    constant = np.einsum("ij,ij->j", centred, centred) <= len(rows) * (ROUNDING * mean) ** 2
    centred[:, constant] = 0
    return centred


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues and eigenvectors of a scatter with columns scaled to unit size.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
        Square root of the diagonal of the scatter, or 1 for a constant column.
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
    """Return the smallest eigenvalue ratio that sums of float64 products resolve. Below it there is only rounding."""
    return 10 * width * float(np.finfo(np.float64).eps)


def eigen(scatter: Floats, n: int) -> tuple[Floats, Floats]:
    """Return eigenvalues, descending, and eigenvectors of a scatter of n rows; with few rows, only in their span."""
    if 2 * n >= len(scatter):
        values, vectors = np.linalg.eigh(scatter)
    else:
        span = span_of(scatter, n)
        values, inner = np.linalg.eigh(span.T @ scatter @ span)
        vectors = span @ inner
    return values[::-1], vectors[:, ::-1]


def leading_eigen(scatter: Floats, n: int, count: int) -> tuple[Floats, Floats]:
    """Return all eigenvalues, descending, and only the leading eigenvectors of a scatter of n rows, to save time."""
    d = len(scatter)
    if 2 * n < d or 8 * count > d:
        values, vectors = eigen(scatter, n)
        return values, vectors[:, :count]
    # One reduction to tridiagonal form is used for both.
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
    """Return orthonormal columns that span a matrix of at most this rank, from random combinations of its columns."""
    probes = np.random.default_rng(0).normal(size=(matrix.shape[1], rank))
    span: Floats = np.linalg.qr(matrix @ probes)[0]
    return span


def spectrum(scatter: Floats, n: int, centred: bool = True) -> Spectrum:
    """Return the spectrum of a scatter matrix of n rows.

    Columns are scaled to equal size first, so that the rank does not depend on the units of the columns.
    """
    d = len(scatter)
    sizes = np.sqrt(np.clip(np.diag(scatter), 0, None))
    sizes = np.where(sizes > 0, sizes, 1.0)
    values, vectors = eigen(scatter / sizes[:, None] / sizes, n)
    kept = int(np.sum(values > resolution(d) * max(values[0], 0.0)))
    # n centred rows span at most n - 1 directions. Anything in other directions is rounding error.
    kept = min(kept, n - 1 if centred else n)
    return Spectrum(sizes, values[:kept], vectors[:, :kept])


@dataclass(frozen=True)
class Cholesky:
    """Cholesky factor of a scatter with columns scaled to unit size: scatter = S L L^T S.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
    lower : ndarray of shape (d, d)
    least : float
        Approximate lower bound of the smallest eigenvalue of L L^T.
    """

    sizes: Floats
    lower: Floats
    least: float


def cholesky(scatter: Floats, n: int) -> Cholesky | None:
    """Return the factor of a scatter of n rows, or None if its rank may not be full. Much faster than a spectrum."""
    sizes = np.sqrt(np.clip(np.diag(scatter), 0, None))
    if n <= len(scatter) or not sizes.all():
        return None
    scaled = scatter / sizes
    scaled /= sizes[:, None]
    norm = float(np.abs(scaled).sum(axis=0).max())
    # Transposed it has the layout of LAPACK, which then copies nothing.
    lower, failed = lapack().dpotrf(scaled.T, lower=True, clean=True, overwrite_a=True)
    if failed:
        return None
    rcond, _ = lapack().dpocon(lower, norm, uplo="L")
    return Cholesky(sizes, lower, rcond * norm) if rcond > resolution(len(scatter)) else None
