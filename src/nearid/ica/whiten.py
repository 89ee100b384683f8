"""Whitening from moments: the map after which the covariance is the identity on all directions with variance."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearid.base.errors import InputError
from nearid.base.extensions import lapack
from nearid.moments import Floats, Moments, cholesky, resolution, spectrum

Form = Literal["pca", "zca"]

# A direction exists if its variance is at least this many times the variance of rounding errors.
ROUNDINGS = 4
# Estimates of the smallest eigenvalue from a Cholesky factor may be off by some factor.
SAFELY = 100
# From this ratio of the smallest to the largest variance of components, products of directions resolve them.
WELL_CONDITIONED = 1e-11
# The same ratio for forward maps made of these directions, and for sizes of directions that are not kept (five digits).
PRECISE, READ_OFF = 1e-8, 1e-10
# Up to this share of all eigenvectors, they are computed one by one.
FEW = 0.25


@dataclass(frozen=True)
class Whitener:
    """A whitening map: z = (x - mean) forward^T, and back x = z backward^T + mean.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    forward : ndarray of shape (k, p)
    backward : ndarray of shape (p, k)
    variances : ndarray of shape (rank,)
        Variances along all resolvable principal directions, descending.
    rank : int
        Number of resolvable directions, of which k are kept.
    sizes : ndarray of shape (p,)
        Standard deviations of the columns over all resolvable directions, 0 for constant columns.
    """

    mean: Floats
    forward: Floats
    backward: Floats
    variances: Floats
    rank: int
    sizes: Floats


def fit_whitener(
    moments: Moments,
    *,
    components: int | None = None,
    form: Form = "pca",
    rtol: float = 0.0,
    stored: np.dtype | None = None,
) -> Whitener:
    """Return the whitening along all principal directions with sufficient variance.

    The rank is determined after scaling each column to unit variance, so that columns in small units are not lost. The
    principal directions are then computed in the original units, within the span of these directions.

    Parameters
    ----------
    components : int, optional
        Number of leading directions to keep. Default: all.
    form : {"pca", "zca"}
        "pca" orders components by variance. "zca" rotates them back, so that z is as close to x as possible.
    rtol : float
        Directions with less than this share of the largest variance are left out.
    stored : dtype, optional
        Precision of the rows. Directions whose variance is not above its rounding errors do not exist. Default:
        float64.
    """
    if form == "pca" and rtol == 0:
        leading = _leading_columns(moments, components, stored)
        if leading is not None:
            return leading
    span, unspan = _safe_span(moments, stored) or _span(moments, stored)
    return _principal(moments.mean, span, unspan, components, form, rtol)


def whiten_rows(x: Floats, *, components: int | None = None) -> Whitener:
    """Return the whitening of rows that are fewer than their columns, from products of rows, without a (p, p) matrix.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        Finite numbers in the precision in which they are stored.
    """
    n, p = x.shape
    mean = x.mean(axis=0, dtype=np.float64)
    centred = np.subtract(x, mean, dtype=np.float64)
    sizes = np.sqrt(np.einsum("ij,ij->j", centred, centred) / n)
    # A constant column minus its mean is the rounding error of the mean, a few units in the last place.
    constant = (sizes <= np.finfo(np.float64).eps * np.abs(mean)) | (x == x[0]).all(axis=0)
    centred[:, constant] = 0
    sizes[constant] = 1.0 if constant.all() else sizes[~constant].max()
    leading = _leading_rows(mean, centred, sizes, components, x.dtype)
    if leading is not None:
        return leading
    scaled = centred / sizes
    values, u = np.linalg.eigh(scaled @ scaled.T / n)
    values, u = values[::-1], u[:, ::-1]
    # n centred rows span at most n - 1 directions.
    kept = min(int(np.sum(values > resolution(p) * max(values[0], 0.0))), n - 1)
    values, vectors = values[:kept], scaled.T @ (u[:, :kept] / np.sqrt(n * values[:kept]))
    real = _resolvable(values, vectors, mean, sizes, x.dtype)
    values, vectors = values[real], vectors[:, real]
    span = u[:, :kept][:, real].T @ centred / np.sqrt(n)
    return _principal(mean, span, vectors / np.sqrt(values) / sizes[:, None], components, "pca", 0.0)


def _leading_rows(
    mean: Floats, centred: Floats, sizes: Floats, components: int | None, stored: np.dtype
) -> Whitener | None:
    """Return the same only from the products of rows, if their rank is certainly full; else None."""
    n = len(centred)
    count = min(components or n, n - 1)
    # Centred rows have no variance along one direction.
    found = _safe_leading(lambda: centred @ centred.T / n, count, n - 1, mean, sizes, stored)
    if found is None:
        return None
    values, u = found
    lead = u.T @ centred / np.sqrt(n)
    lead *= _signs(lead)[:, None]
    values[:count] = np.einsum("ij,ij->i", lead, lead)
    # Constant columns had the size of another column so far.
    own = np.where(centred.any(axis=0), sizes, 0.0)
    return Whitener(mean, lead / values[:count, None], lead.T, values, n - 1, own)


def _leading_columns(moments: Moments, components: int | None, stored: np.dtype | None) -> Whitener | None:
    """Return the whitening along leading directions from the covariance, if its rank is certainly full; else None."""
    p = len(moments.mean)
    sizes = np.sqrt(np.diag(moments.scatter) / moments.n)
    if components is None or components > FEW * p or moments.n <= p or not sizes.all():
        return None
    found = _safe_leading(lambda: moments.scatter / moments.n, components, p, moments.mean, sizes, stored)
    if found is None:
        return None
    values, u = found
    lead = (u * _signs(u.T)).T * np.sqrt(values[:components, None])
    return Whitener(moments.mean, lead / values[:components, None], lead.T, values, p, sizes)


def _safe_leading(
    matrix: Callable[[], Floats], count: int, rank: int, mean: Floats, sizes: Floats, stored: np.dtype | None
) -> tuple[Floats, Floats] | None:
    """Return the variances of the rows and the leading eigenvectors of a matrix if they are accurate; else None.

    Parameters
    ----------
    matrix : callable
        Returns the covariance of columns of these sizes, or the products of their rows.
    rank : int
        Number of nonzero variances if the rank is full.
    """
    p, largest = len(sizes), sizes.max() ** 2
    # In units of each column's size directions vary at least as much as in units of the largest, and at most by p.
    least = max(p * resolution(p), SAFELY * ROUNDINGS * _rounding(mean, sizes, stored).max()) * largest
    # The smallest variance is at most the mean variance.
    if rank < 2 or least >= np.vdot(sizes, sizes) / rank:
        return None
    values, u = _leading(matrix(), count, rank)
    if values[rank - 1] <= max(least, READ_OFF * values[0]) or values[count - 1] <= PRECISE * values[0]:
        return None
    return values[:rank].copy(), u[:, :count]


def _leading(matrix: Floats, count: int, rank: int) -> tuple[Floats, Floats]:
    """Return all eigenvalues of a symmetric matrix, descending, and at least the leading eigenvectors as columns.

    All eigenvectors are computed, unless few are requested and every eigenvalue is known.

    Parameters
    ----------
    rank : int
        Number of eigenvalues that may differ from 0.
    """
    size = len(matrix)
    if count <= FEW * size:
        # Reflections reduce the matrix to tridiagonal form and are then applied to its eigenvectors.
        few = lapack()
        reflections, diagonal, beside, factors, _ = few.dsytrd(matrix, lower=1, lwork=64 * size)
        values, failed = few.dsterf(diagonal, beside)
        if not failed and values[-rank] > READ_OFF * values[-1]:
            _, _, inner, failed = few.dstemr(diagonal, np.append(beside, 0.0), 2, 0.0, 0.0, size - count + 1, size)
            if not failed:
                vectors = np.array(inner[:, :count], order="F")
                vectors[1:], _, _ = few.dormqr("L", "N", reflections[1:, :-1], factors, vectors[1:], 64 * count)
                return values[::-1], vectors[:, ::-1]
    values, vectors = np.linalg.eigh(matrix)
    return values[::-1], vectors[:, ::-1]


def _signs(directions: Floats) -> Floats:
    """Return the signs that make the largest loading of each row positive."""
    return np.asarray(np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]))


def _span(moments: Moments, stored: np.dtype | None) -> tuple[Floats, Floats]:
    """Return the existing directions, scaled to unit variance: (r, p) to map rows to them, and (p, r) to map back."""
    units = spectrum(moments.scatter / max(moments.n, 1), moments.n)
    real = _resolvable(units.values, units.vectors, moments.mean, units.sizes, stored)
    values, vectors = units.values[real], units.vectors[:, real]
    return (vectors * np.sqrt(values)).T * units.sizes, vectors / np.sqrt(values) / units.sizes[:, None]


def _resolvable(values: Floats, vectors: Floats, mean: Floats, sizes: Floats, stored: np.dtype | None) -> np.ndarray:
    """Return which directions, with columns scaled to unit variance, vary more than rounding errors."""
    real = values > ROUNDINGS * (vectors**2).T @ _rounding(mean, sizes, stored)
    if not real.any():
        raise InputError("No column varies by more than its rounding errors, so there is nothing to whiten.")
    return np.asarray(real)


def _rounding(mean: Floats, sizes: Floats, stored: np.dtype | None) -> Floats:
    """Return the variance of the rounding errors of each column, relative to its variance."""
    # Rounding errors are uniform within half a unit in the last place: the variance is a twelfth of the unit squared.
    return np.asarray((float(np.finfo(stored or np.float64).eps) * mean / sizes) ** 2 / 12)


def _safe_span(moments: Moments, stored: np.dtype | None) -> tuple[Floats, Floats] | None:
    """Return the same from a Cholesky factor, which is much faster, if the rank is certainly full; else None."""
    factor = cholesky(moments.scatter / max(moments.n, 1), moments.n)
    if factor is None:
        return None
    if factor.least <= SAFELY * ROUNDINGS * _rounding(moments.mean, factor.sizes, stored).max():
        return None
    inverse, _ = lapack().dtrtri(factor.lower, lower=True)
    return factor.lower.T * factor.sizes, (inverse / factor.sizes).T


def _principal(mean: Floats, span: Floats, unspan: Floats, components: int | None, form: Form, rtol: float) -> Whitener:
    """Return the whitening along principal directions, from the existing directions.

    The principal directions are a rotation u of the coordinates of the span. Applying u without dividing by singular
    values keeps small scales exact.
    """
    u, singular, vt = _decomposed(span, components)
    rank = len(singular) if rtol == 0 else int(np.sum(singular > np.sqrt(rtol) * singular[0]))
    k = rank if components is None else min(components, rank)
    # The signs of principal directions are arbitrary, so the largest loading of each is made positive.
    signs = _signs(vt[:k])
    forward, backward, lead = (unspan @ u[:, :k] * signs).T, span.T @ u[:, :k] * signs, vt[:k].T * signs
    if form == "zca":
        forward, backward = lead @ forward, backward @ lead.T
    return Whitener(mean, forward, backward, singular[:rank] ** 2, rank, np.linalg.norm(span, axis=0))


def _decomposed(span: Floats, components: int | None) -> tuple[Floats, Floats, Floats]:
    """Return the singular value decomposition of the span, with at least the vectors of the leading components."""
    gram = span @ span.T
    count = min(components or len(gram), len(gram))
    values, u = _leading(gram, count, len(gram))
    if values[-1] > READ_OFF * values[0]:
        lead = u[:, :count].T @ span
        singular = np.linalg.norm(lead, axis=1)
        return u, np.append(singular, np.sqrt(values[count:])), lead / singular[:, None]
    last = count - 1
    # Products square the condition number, so directions with variances far below the largest are mixed.
    # The sizes of the directions are still exact.
    if values[last] > WELL_CONDITIONED * values[0]:
        backward = u.T @ span
        singular = np.linalg.norm(backward, axis=1)
        order = np.argsort(-singular, kind="stable")
        u, singular, backward = u[:, order], singular[order], backward[order[: last + 1]]
        return u, singular, backward / singular[: last + 1, None]
    full: tuple[Floats, Floats, Floats] = np.linalg.svd(span, full_matrices=False)
    return full
