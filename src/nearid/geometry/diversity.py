"""Diversity conditions: whether classes are many and varied enough for their heads or vectors to pin features down."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.moments import Floats

# Above this condition number a matrix of differences turns small errors of the heads into large ones of the transform.
LARGEST_CONDITION = 1e3


@dataclass(frozen=True)
class Diversity:
    """Whether some vectors span what a theorem needs.

    Attributes
    ----------
    needed : int
        Rank that the condition requires.
    condition : float
        Largest over smallest singular value of the matrix in question; infinite if the rank is too small.
    """

    holds: bool
    classes: int
    rank: int
    needed: int
    condition: float
    note: str


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of classes whose differences span the features of every head, and how well.

    Attributes
    ----------
    holds : bool
        Whether there are at least M + 1 classes, and the differences are invertible with a condition number at most
        the one allowed, for every head.
    pairs : ndarray of int, shape (M, 2), or None
        Classes (A, B) of each difference g(A) - g(B); None with fewer than M + 1 classes.
    condition : float
        Condition number of the matrix of differences, of the worst head; infinite without pairs.
    draws : int
        Choices of pairs that were tried.
    """

    holds: bool
    pairs: NDArray[np.intp] | None
    condition: float
    draws: int
    note: str


@dataclass(frozen=True)
class Prior:
    """How near classes are to a uniform prior.

    Attributes
    ----------
    holds : bool
        Whether a uniform prior is compatible with the counts: chi-square test at the given level.
    largest_deviation : float
        Largest |count / mean count - 1| over classes: 0 where all counts are equal.
    """

    holds: bool
    largest_deviation: float
    chi_square: float
    p_value: float
    note: str


def affine_generator(vectors: ArrayLike) -> Diversity:
    """Whether the differences of vectors of shape (classes, d) span R^d: at least d + 1 in general position.

    Cross-entropy needs this of class vectors. It is also Roeder's diversity condition for the head of one model.

    Examples
    --------
    >>> from nearid.geometry.diversity import affine_generator
    >>> affine_generator([[0, 0], [1, 0], [0, 1]]).holds, affine_generator([[0, 0], [1, 1], [2, 2]]).holds
    (True, False)
    """
    v = finite_rows("The class vectors", vectors)
    return _spanned(centred(v), v.shape[1], v.shape[1] + 1, rounding(vectors))


def quadratic_generator(vectors: ArrayLike) -> Diversity:
    """Whether the rows [v * v, v] of vectors of shape (classes, d) have rank 2d, which normalised heads need.

    With normalised heads and free features, the learned map is a scaled rotation only under this condition.

    Examples
    --------
    >>> from nearid.geometry.diversity import quadratic_generator
    >>> found = quadratic_generator([[1, 0], [0, 1], [-1, 0], [0, -1]])
    >>> found.holds, found.rank
    (True, 4)
    """
    v = finite_rows("The class vectors", vectors)
    # The rounding of a square is twice that of its root, in units of the square.
    limit = rounding(vectors) * max(1.0, 2 * float(np.abs(v).max()))
    return _spanned(np.hstack([v * v, v]), 2 * v.shape[1], 2 * v.shape[1], limit)


def choose_pairs(
    *heads: ArrayLike,
    draws: int = 100,
    largest_condition: float = LARGEST_CONDITION,
    random_state: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> Pairs:
    """Choose M pairs of classes whose differences are well conditioned in all heads: the best of some random choices.

    A choice is a random forest of classes, so that no difference is a sum of others by construction.

    Parameters
    ----------
    *heads : arrays of shape (K, M)
        Vectors g of the K classes, one array per model.
    largest_condition : float
        Largest condition number that counts as well conditioned.
    tick : callable
        Called after each choice, for progress.

    Returns
    -------
    Pairs
        The best choice, its condition number, and whether this is small enough.

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
    """Whether counts of classes are compatible with equal probabilities.

    Parameters
    ----------
    counts : array of shape (classes,)
        Samples of each class, as `np.bincount(labels, minlength=classes)` gives them.
    level : float
        A p-value below it speaks against the uniform prior.

    Returns
    -------
    Prior
        The largest deviation from equal counts, the test, and its outcome.

    Examples
    --------
    >>> from nearid.geometry.diversity import uniform_prior
    >>> uniform_prior([100, 96, 104]).holds, uniform_prior([100, 10, 190]).holds
    (True, False)
    """
    from scipy.special import chdtrc

    n = np.asarray(counts, dtype=np.float64)
    if n.ndim != 1 or len(n) < 2 or not np.isfinite(n).all() or n.min() < 0 or n.sum() == 0:
        raise InputError("Counts of classes must be at least 2 numbers of at least 0, not all 0, in one dimension.")
    deviation = n / n.mean() - 1
    chi_square = float(n.mean() * np.sum(deviation**2))
    largest, p_value = float(np.abs(deviation).max()), float(chdtrc(len(n) - 1, chi_square))
    note = f"counts deviate by up to {largest:.1%} from their mean (p = {p_value:.2g})"
    return Prior(p_value >= level, largest, chi_square, p_value, note)


def finite_rows(name: str, vectors: ArrayLike) -> Floats:
    """Vectors of classes or samples as finite float64, one in each row."""
    v = np.asarray(vectors, dtype=np.float64)
    if v.ndim != 2 or v.shape[0] < 2 or v.shape[1] < 1:
        raise InputError(f"{name} have shape {v.shape}, but at least 2 rows of at least 1 column are expected.")
    if not np.isfinite(v).all():
        raise InputError(f"{name} hold a NaN or an infinity.")
    return v


def matching_heads(heads: Sequence[ArrayLike]) -> list[Floats]:
    """Heads of several models as float64 arrays of one shape (K, M)."""
    g = [finite_rows("The heads", h) for h in heads]
    if not g or any(h.shape != g[0].shape for h in g):
        shapes = [h.shape for h in g]
        raise InputError(f"The heads have shapes {shapes}, but one shape (classes, features) for all is expected.")
    return g


def rounding(vectors: ArrayLike) -> float:
    """Singular values up to this one may come from the rounding of the entries alone, in the dtype they came in.

    Rounding is taken for noise of size eps |largest entry|, whose singular values are below the sum of the roots of
    the sides; ten times that leaves room for the algebra.
    """
    v = np.asarray(vectors)
    eps = np.finfo(v.dtype if v.dtype.kind == "f" else np.float64).eps
    return float(10 * eps * np.abs(v).max() * np.sum(np.sqrt(v.shape)))


def centred(vectors: Floats) -> Floats:
    """Vectors less their mean: the row space and the least squares of all pairwise differences."""
    return np.asarray(vectors - vectors.mean(axis=0))


def differences(vectors: Floats, pairs: NDArray[np.intp]) -> Floats:
    """Rows g(A) - g(B) of pairs (A, B)."""
    return np.asarray(vectors[pairs[:, 0]] - vectors[pairs[:, 1]])


def _spanned(matrix: Floats, needed: int, least: int, limit: float) -> Diversity:
    # The triangular factor has the same singular values, and is small however many classes there are.
    rank, condition = _rank_and_condition(np.asarray(np.linalg.qr(matrix, mode="r")), needed, limit)
    classes = len(matrix)
    if classes < least:
        note = _too_few(classes, least)
    elif rank < needed:
        note = f"rank {rank} where {needed} is needed: the classes lie in a smaller space"
    else:
        note = f"rank {rank} of {classes} classes, condition number {condition:.3g}"
    return Diversity(rank == needed, classes, rank, needed, condition, note)


def _rank_and_condition(matrix: Floats, needed: int, limit: float) -> tuple[int, float]:
    """Number of singular values above the limit; condition number, infinite where that falls short."""
    values = np.linalg.svd(matrix, compute_uv=False)
    rank = int(np.sum(values > limit))
    return rank, float(values[0] / values[-1]) if rank == needed else np.inf


def _forest(k: int, m: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """m edges without a cycle among k classes: each of m classes with one before it in a random order."""
    order = rng.permutation(k)
    nodes = 1 + rng.choice(k - 1, m, replace=False)
    return np.column_stack([order[nodes], order[rng.integers(0, nodes)]])


def _too_few(classes: int, least: int) -> str:
    return f"{classes} classes are too few: at least {least} are needed"
