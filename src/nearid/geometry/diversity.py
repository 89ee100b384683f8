"""Diversity conditions: whether the classes are numerous and varied enough for their vectors to determine features."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.moments import Floats

# Above this condition number, small errors of the heads become large errors of the transform.
LARGEST_CONDITION = 1e3


@dataclass(frozen=True)
class Diversity:
    """Whether vectors satisfy the rank condition of a theorem.

    Attributes
    ----------
    needed : int
        Rank that the condition requires.
    condition : float
        Ratio of the largest to the smallest singular value of the matrix. It is infinite if the rank is too small.
    """

    holds: bool
    classes: int
    rank: int
    needed: int
    condition: float
    note: str


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of classes whose differences span the features of every head, with their condition number.

    Attributes
    ----------
    holds : bool
        Whether there are at least M + 1 classes, and for every head the condition number of the differences is at
        most the allowed one.
    pairs : ndarray of int, shape (M, 2), or None
        Classes (A, B) of each difference g(A) - g(B). None with fewer than M + 1 classes.
    condition : float
        Largest condition number of the matrix of differences over the heads. It is infinite without pairs.
    draws : int
        Number of random choices of pairs that were tried.
    """

    holds: bool
    pairs: NDArray[np.intp] | None
    condition: float
    draws: int
    note: str


@dataclass(frozen=True)
class Prior:
    """Test of whether the classes are equally frequent.

    Attributes
    ----------
    holds : bool
        Whether the counts are compatible with a uniform prior, by a chi-square test at the given level.
    largest_deviation : float
        Largest |count / mean count - 1| over the classes. It is 0 if all counts are equal.
    """

    holds: bool
    largest_deviation: float
    chi_square: float
    p_value: float
    note: str


def affine_generator(vectors: ArrayLike) -> Diversity:
    """Return whether the differences of vectors of shape (classes, d) span R^d.

    This needs at least d + 1 vectors in general position. Theorems on cross-entropy require it of the class vectors.
    It is also the diversity condition of Roeder et al. for the head of one model.

    Examples
    --------
    >>> from nearid.geometry.diversity import affine_generator
    >>> affine_generator([[0, 0], [1, 0], [0, 1]]).holds, affine_generator([[0, 0], [1, 1], [2, 2]]).holds
    (True, False)
    """
    v = finite_rows("The class vectors", vectors)
    return _spanned(centred(v), v.shape[1], v.shape[1] + 1, rounding(vectors))


def quadratic_generator(vectors: ArrayLike) -> Diversity:
    """Return whether the rows [v * v, v] of vectors v of shape (classes, d) have rank 2d.

    With normalised heads and unconstrained features, the learned map is a scaled rotation only under this condition.

    Examples
    --------
    >>> from nearid.geometry.diversity import quadratic_generator
    >>> found = quadratic_generator([[1, 0], [0, 1], [-1, 0], [0, -1]])
    >>> found.holds, found.rank
    (True, 4)
    """
    v = finite_rows("The class vectors", vectors)
    # The relative rounding error of a square is twice that of the number.
    limit = rounding(vectors) * max(1.0, 2 * float(np.abs(v).max()))
    return _spanned(np.hstack([v * v, v]), 2 * v.shape[1], 2 * v.shape[1], limit)


def choose_pairs(
    *heads: ArrayLike,
    draws: int = 100,
    largest_condition: float = LARGEST_CONDITION,
    random_state: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> Pairs:
    """Return M pairs of classes whose differences are well conditioned in all heads, the best of some random choices.

    The pairs of one choice form a random forest on the classes, so that no difference is a sum of others.

    Parameters
    ----------
    *heads : arrays of shape (K, M)
        Vectors g of the K classes, one array per model.
    largest_condition : float
        Largest condition number that is accepted as well conditioned.
    tick : callable
        Called after each choice, to report progress.

    Returns
    -------
    Pairs
        The best choice, its condition number, and whether this number is small enough.

    Examples
    --------
    >>> from nearid.geometry.diversity import choose_pairs
    >>> choose_pairs([[0, 0], [1, 0], [0, 1]]).holds
    True
    """
    g = matching_heads(heads)
    if draws < 1:
        raise InputError(f"draws is {draws}, but at least 1 is expected.")
    k, m = g[0].shape
    if k < m + 1:
        return Pairs(False, None, np.inf, 0, _too_few(k, m + 1))
    rng = np.random.default_rng(random_state)
    choices = [_forest(k, m, rng) for _ in range(draws)]
    limits = [rounding(h) for h in heads]
    conditions = []
    for pairs in choices:
        both = zip(g, limits, strict=True)
        conditions.append(max(_rank_and_condition(differences(h, pairs), m, limit)[1] for h, limit in both))
        tick()
    best = int(np.argmin(conditions))
    condition = conditions[best]
    holds = condition <= largest_condition
    note = f"condition number {condition:.3g}, {'at most' if holds else 'above'} {largest_condition:g}"
    return Pairs(holds, choices[best], condition, draws, note)


def uniform_prior(counts: ArrayLike, *, level: float = 0.01) -> Prior:
    """Return a test of whether class counts are compatible with equal probabilities.

    Parameters
    ----------
    counts : array of shape (classes,)
        Number of samples of each class, for example `np.bincount(labels, minlength=classes)`.
    level : float
        Level of the test. If p is below it, a uniform prior is rejected.

    Returns
    -------
    Prior
        The largest deviation from equal counts, the p-value, and whether a uniform prior is compatible.

    Examples
    --------
    >>> from nearid.geometry.diversity import uniform_prior
    >>> uniform_prior([100, 96, 104]).holds, uniform_prior([100, 10, 190]).holds
    (True, False)
    """
    from scipy.special import chdtrc

    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 1 or len(n) < 2 or not np.isfinite(n).all() or n.min() < 0 or n.sum() == 0:
        raise InputError("The class counts must be one-dimensional, with at least 2 numbers >= 0 that are not all 0.")
    deviation = n / n.mean() - 1
    chi_square = float(n.mean() * np.sum(deviation**2))
    largest, p_value = float(np.abs(deviation).max()), float(chdtrc(len(n) - 1, chi_square))
    note = f"counts deviate by up to {largest:.1%} from their mean (p = {p_value:.2g})"
    return Prior(p_value >= level, largest, chi_square, p_value, note)


def finite_rows(name: str, vectors: ArrayLike) -> Floats:
    """Return vectors of classes or samples as finite float64, one per row."""
    v = np.asarray(vectors, dtype=np.float64)
    if v.ndim != 2 or v.shape[0] < 2 or v.shape[1] < 1:
        raise InputError(f"{name} have shape {v.shape}, but at least 2 rows of at least 1 column are expected.")
    if not np.isfinite(v).all():
        raise InputError(f"{name} contain a NaN or an infinity. Fix or drop these rows.")
    return v


def matching_heads(heads: Sequence[ArrayLike]) -> list[Floats]:
    """Return the heads of several models as float64 arrays of the same shape (K, M)."""
    g = [finite_rows("The heads", h) for h in heads]
    if not g or any(h.shape != g[0].shape for h in g):
        shapes = [h.shape for h in g]
        raise InputError(f"The heads have shapes {shapes}, but all must have the same shape (classes, features).")
    return g


def rounding(vectors: ArrayLike) -> float:
    """Return the limit below which a singular value may be only rounding error of the entries in their dtype.

    Rounding is modelled as noise of size eps |largest entry|. Its singular values are below the sum of the square
    roots of the two dimensions times that size. The limit is ten times larger, to allow for errors of the algebra.
    """
    v = np.asarray(vectors)
    eps = np.finfo(v.dtype if v.dtype.kind == "f" else np.float64).eps
    return float(10 * eps * np.abs(v).max() * np.sum(np.sqrt(v.shape)))


def centred(vectors: Floats) -> Floats:
    """Return the vectors minus their mean, which have the row space and Gram matrix of all pairwise differences."""
    return np.asarray(vectors - vectors.mean(axis=0))


def differences(vectors: Floats, pairs: NDArray[np.intp]) -> Floats:
    """Return the rows g(A) - g(B) for pairs (A, B)."""
    return np.asarray(vectors[pairs[:, 0]] - vectors[pairs[:, 1]])


def _spanned(matrix: Floats, needed: int, least: int, limit: float) -> Diversity:
    # The triangular factor has the same singular values, and its size does not depend on the number of classes.
    rank, condition = _rank_and_condition(np.asarray(np.linalg.qr(matrix, mode="r")), needed, limit)
    classes = len(matrix)
    if classes < least:
        note = _too_few(classes, least)
    elif rank < needed:
        note = f"the rank is {rank}, but {needed} is needed: the classes lie in a smaller space"
    else:
        note = f"rank {rank} of {classes} classes, condition number {condition:.3g}"
    return Diversity(rank == needed, classes, rank, needed, condition, note)


def _rank_and_condition(matrix: Floats, needed: int, limit: float) -> tuple[int, float]:
    """Return the number of singular values above the limit, and the condition number (infinite if too few)."""
    values = np.linalg.svd(matrix, compute_uv=False)
    rank = int(np.sum(values > limit))
    return rank, float(values[0] / values[-1]) if rank == needed else np.inf


def _forest(k: int, m: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return m edges without a cycle among k classes: each of m classes is joined to an earlier one in random order."""
    order = rng.permutation(k)
    nodes = 1 + rng.choice(k - 1, m, replace=False)
    return np.column_stack([order[nodes], order[rng.integers(0, nodes)]])


def _too_few(classes: int, least: int) -> str:
    return f"{classes} classes are too few: at least {least} are needed"
