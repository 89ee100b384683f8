"""Whitening from moments: the map that makes a covariance the identity on the directions that exist."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nearid.base.errors import InputError
from nearid.base.extensions import lapack
from nearid.moments import Floats, Moments, cholesky, resolution, spectrum

Form = Literal["pca", "zca"]

# Directions need this many times the variance of rounding to be distinguished from it.
ROUNDINGS = 4
# Estimates of the smallest eigenvalue from a Cholesky factor may be off by some factor.
SAFELY = 100
# Smallest over largest variance of components from which on products of directions resolve them.
WELL_CONDITIONED = 1e-11
# The same where forward maps are made of these directions, and where sizes of directions that are not kept are read off
# the products, to five digits.
PRECISE, READ_OFF = 1e-8, 1e-10
# Up to this share of all eigenvectors are found one by one.
FEW = 0.25


@dataclass(frozen=True)
class Whitener:
    """z = (x - mean) forward^T, x = z backward^T + mean.

    Attributes
    ----------
    mean : ndarray of shape (p,)
    forward : ndarray of shape (k, p)
    backward : ndarray of shape (p, k)
    variances : ndarray of shape (rank,)
        Variances along all resolvable principal directions, descending.
    rank : int
        Number of resolvable directions; k of them are kept.
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
    """Whiten along the principal directions above the cut.

    The rank is judged in units of each column's own size, so that mixed scales lose nothing: columns are brought to
    unit variance first, their span found there, and the principal directions of the data's own units taken within it.

    Parameters
    ----------
    components : int, optional
        Leading directions to keep; all by default.
    form : {"pca", "zca"}
        "pca" orders by variance; "zca" rotates back, so that z stays as near to x as it can (p columns).
    rtol : float
        Further relative cut on variances.
    stored : dtype, optional
        Precision of the rows: directions that vary no more than its rounding do not exist. Float64 by default.
    """
    if form == "pca" and rtol == 0:
        leading = _leading_columns(moments, components, stored)
        if leading is not None:
            return leading
    span, unspan = _safe_span(moments, stored) or _span(moments, stored)
    return _principal(moments.mean, span, unspan, components, form, rtol)


def whiten_rows(x: Floats, *, components: int | None = None) -> Whitener:
    """The same for rows that are fewer than their columns, from products of rows with rows: no (p, p) matrix is made.

    Parameters
    ----------
    x : ndarray of shape (n, p)
        In the precision they are stored in, all finite.
    """
    n, p = x.shape
    mean = x.mean(axis=0, dtype=np.float64)
    centred = np.subtract(x, mean, dtype=np.float64)
    sizes = np.sqrt(np.einsum("ij,ij->j", centred, centred) / n)
    # What a constant column leaves is the rounding of its mean, which may be some units in its last place.
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
    """The same from the products of rows alone, where their rank is safely full; else None."""
    n = len(centred)
    count = min(components or n, n - 1)
    # Rows that are centred have no variance along one direction.
    found = _safe_leading(lambda: centred @ centred.T / n, count, n - 1, mean, sizes, stored)
    if found is None:
        return None
    values, u = found
    lead = u.T @ centred / np.sqrt(n)
    lead *= _signs(lead)[:, None]
    values[:count] = np.einsum("ij,ij->i", lead, lead)
    # Constant columns came with the size of another one.
    own = np.where(centred.any(axis=0), sizes, 0.0)
    return Whitener(mean, lead / values[:count, None], lead.T, values, n - 1, own)


def _leading_columns(moments: Moments, components: int | None, stored: np.dtype | None) -> Whitener | None:
    """Whitening along a few leading directions from the covariance alone, where its rank is safely full; else None."""
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
    """Variances of the rows and leading eigenvectors of a matrix that has them, if these are safe; else None.

    Parameters
    ----------
    matrix : callable
        Gives the covariance of columns of these sizes, or the products of their rows.
    rank : int
        Variances that differ from 0, if the rank is full.
    """
    p, largest = len(sizes), sizes.max() ** 2
    # In units of each column's size directions vary at least as much as in units of the largest, and at most by p.
    least = max(p * resolution(p), SAFELY * ROUNDINGS * _rounding(mean, sizes, stored).max()) * largest
    # The smallest variance is at most the mean one.
    if rank < 2 or least >= np.vdot(sizes, sizes) / rank:
        return None
    values, u = _leading(matrix(), count, rank)
    if values[rank - 1] <= max(least, READ_OFF * values[0]) or values[count - 1] <= PRECISE * values[0]:
        return None
    return values[:rank].copy(), u[:, :count]


def _leading(matrix: Floats, count: int, rank: int) -> tuple[Floats, Floats]:
    """All eigenvalues of a symmetric matrix, descending, and eigenvectors (in columns) of at least the largest ones.

    All eigenvectors, unless few are asked for and every eigenvalue can be read off.

    Parameters
    ----------
    rank : int
        Eigenvalues that may differ from 0.
    """
    size = len(matrix)
    if count <= FEW * size:
        # To a tridiagonal matrix by reflections, which are then applied to its eigenvectors.
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
    """Signs that make the largest loading of each row positive."""
    return np.asarray(np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)]))


def _span(moments: Moments, stored: np.dtype | None) -> tuple[Floats, Floats]:
    """Directions of unit variance that exist: rows (r, p) that carry them to the data's own units, and (p, r) back."""
    units = spectrum(moments.scatter / max(moments.n, 1), moments.n)
    real = _resolvable(units.values, units.vectors, moments.mean, units.sizes, stored)
    values, vectors = units.values[real], units.vectors[:, real]
    return (vectors * np.sqrt(values)).T * units.sizes, vectors / np.sqrt(values) / units.sizes[:, None]


def _resolvable(values: Floats, vectors: Floats, mean: Floats, sizes: Floats, stored: np.dtype | None) -> np.ndarray:
    """Which directions, in units of each column's size, vary more than the rounding of stored numbers."""
    real = values > ROUNDINGS * (vectors**2).T @ _rounding(mean, sizes, stored)
    if not real.any():
        raise InputError("No column varies by more than the rounding of its numbers: there is nothing to whiten.")
    return np.asarray(real)


def _rounding(mean: Floats, sizes: Floats, stored: np.dtype | None) -> Floats:
    """Variance of rounding of each column, in units of its size."""
    # Rounding moves a value by up to half a unit in its last place, evenly: a twelfth of the unit squared.
    return np.asarray((float(np.finfo(stored or np.float64).eps) * mean / sizes) ** 2 / 12)


def _safe_span(moments: Moments, stored: np.dtype | None) -> tuple[Floats, Floats] | None:
    """The same by a Cholesky factor, which is far cheaper, where the rank is safely full; else None."""
    factor = cholesky(moments.scatter / max(moments.n, 1), moments.n)
    if factor is None:
        return None
    if factor.least <= SAFELY * ROUNDINGS * _rounding(moments.mean, factor.sizes, stored).max():
        return None
    inverse, _ = lapack().dtrtri(factor.lower, lower=True)
    return factor.lower.T * factor.sizes, (inverse / factor.sizes).T


def _principal(mean: Floats, span: Floats, unspan: Floats, components: int | None, form: Form, rtol: float) -> Whitener:
    """Whitening along principal directions, from the directions that exist.

    The principal directions of the data are a rotation u of the coordinates of the span: applying u, never dividing by
    singular values, keeps small scales exact.
    """
    u, singular, vt = _decomposed(span, components)
    rank = len(singular) if rtol == 0 else int(np.sum(singular > np.sqrt(rtol) * singular[0]))
    k = rank if components is None else min(components, rank)
    # Signs of principal directions are arbitrary: the largest loading of each is made positive.
    signs = _signs(vt[:k])
    forward, backward, lead = (unspan @ u[:, :k] * signs).T, span.T @ u[:, :k] * signs, vt[:k].T * signs
    if form == "zca":
        forward, backward = lead @ forward, backward @ lead.T
    return Whitener(mean, forward, backward, singular[:rank] ** 2, rank, np.linalg.norm(span, axis=0))


def _decomposed(span: Floats, components: int | None) -> tuple[Floats, Floats, Floats]:
    """The singular value decomposition of the span, of its vectors at least those of leading components."""
    gram = span @ span.T
    count = min(components or len(gram), len(gram))
    values, u = _leading(gram, count, len(gram))
    if values[-1] > READ_OFF * values[0]:
        lead = u[:, :count].T @ span
        singular = np.linalg.norm(lead, axis=1)
        return u, np.append(singular, np.sqrt(values[count:])), lead / singular[:, None]
    last = count - 1
    # Products square the condition: directions of variances far below the largest are mixed with one another. The
    # sizes of the directions themselves are exact all the same.
    if values[last] > WELL_CONDITIONED * values[0]:
        backward = u.T @ span
        singular = np.linalg.norm(backward, axis=1)
        order = np.argsort(-singular, kind="stable")
        u, singular, backward = u[:, order], singular[order], backward[order[: last + 1]]
        return u, singular, backward / singular[: last + 1, None]
    full: tuple[Floats, Floats, Floats] = np.linalg.svd(span, full_matrices=False)
    return full
