"""Rank-aware algebra on scatter matrices: what is resolvable in float64 and what is not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearid.moments import Floats


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
class Factor:
    """Cholesky factor of a scatter in units of each column's own size: scatter = S L L^T S.

    Attributes
    ----------
    sizes : ndarray of shape (d,)
    lower : ndarray of shape (d, d)
    """

    sizes: Floats
    lower: Floats


def cholesky(scatter: Floats, n: int) -> Factor | None:
    """Factor a scatter of n rows, or None where its rank is not safely full; far cheaper than a spectrum."""
    from scipy.linalg import cholesky as factorise
    from scipy.linalg import lapack

    sizes = np.sqrt(np.clip(np.diag(scatter), 0, None))
    if n <= len(scatter) or not sizes.all():
        return None
    scaled = scatter / sizes[:, None] / sizes
    try:
        lower = factorise(scaled, lower=True)
    except np.linalg.LinAlgError:
        return None
    rcond, _ = lapack.dpocon(lower, np.abs(scaled).sum(axis=0).max(), uplo="L")
    return Factor(sizes, lower) if rcond > resolution(len(scatter)) else None
