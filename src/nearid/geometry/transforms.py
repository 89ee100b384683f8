"""The transform between the features of two models, computed only from their heads (Roeder, Metz & Kingma 2021).

Models p(y | x) = softmax(f(x) . g(y)) with equal likelihoods have equal differences of logits. Let L be the matrix with
columns g(A) - g(B). Then L'^T f' = L^T f, so f' = (L L'^-1)^T f. Features in rows are multiplied by L L'^-1.
With biases b(y), the differences of logits also contain b(A) - b(B), and the map gets an offset.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.geometry.diversity import (
    Diversity,
    affine_generator,
    centred,
    differences,
    finite_rows,
    matching_heads,
    rounding,
)
from nearid.groups.fits import Ridge, shares_of, typical
from nearid.groups.ridge import penalty_of
from nearid.moments import Floats

# Number of classes that are processed at once, so that memory does not grow with the vocabulary.
BLOCK = 8192


@dataclass(frozen=True, eq=False)
class HeadTransform:
    """Linear map from the features of one model to those of another, computed from their heads.

    Attributes
    ----------
    matrix : ndarray of shape (M, M), or None
        The map: features of the second model = features of the first @ matrix + offset. None if Roeder's condition
        does not hold.
    offset : ndarray of shape (M,), or None
        Offset of the map. It is 0 without biases.
    misfit : float or None
        |G' matrix^T - G| / |G| over all differences of the heads and biases. It is 0 if one map explains all of them,
        which is always the case with M + 1 classes.
    diversity : tuple of Diversity
        Roeder's condition for the first and the second head.
    note : str
        The reason why there is no matrix. Empty if there is one.
    basis : ndarray of shape (M, r)
        Orthonormal basis of the directions of the second model's features on which its differences of logits depend.
        These are all M directions, or fewer if the condition does not hold.
    seen_matrix, seen_offset : ndarrays of shape (M, r) and (r,)
        The map in these directions: features of the second model @ basis = features of the first @ seen_matrix +
        seen_offset.
    triangle : ndarray of shape (2M + 1, 2M + 1)
        Triangular factor of [second, first, first - second], the centred heads and biases side by side. It keeps
        their norms and inner products, and its size does not depend on the number of classes.
    """

    matrix: Floats | None
    offset: Floats | None
    misfit: float | None
    diversity: tuple[Diversity, Diversity]
    note: str
    basis: Floats
    seen_matrix: Floats
    seen_offset: Floats
    triangle: Floats


@dataclass(frozen=True)
class Agreement:
    """Quality of two maps on held-out rows, in the directions of the features on which the second head depends.

    Attributes
    ----------
    dimensions : int
        Number of these directions.
    variance : float
        Share of the variance of the second model's features in these directions.
    heads, fitted : Estimate
        R2 in these directions of the map from heads and of the fitted map, with intervals over rows.
    logits : Estimate
        R2 of the second model's differences of logits if they are predicted by those of the first model. Nothing is
        fitted.
    distance : float
        Root-mean-square distance between the predictions of both maps, divided by the spread of the predictions of
        the fitted map.
    """

    dimensions: int
    variance: float
    heads: Estimate
    fitted: Estimate
    logits: Estimate
    distance: float


@dataclass(frozen=True, eq=False)
class TransformComparison:
    """Comparison of a map computed from heads with a map fitted to features: their distance and their predictions.

    Attributes
    ----------
    fitted : ndarray of shape (M, M)
        Map fitted by ridge regression on the training half, with an intercept if the heads have biases.
    ridge : float
        Penalty of the ridge regression, or the median of the penalties if several maps are averaged.
    disagreement : float or None
        |heads - fitted| / |fitted| of the matrices. None without a map from heads.
    r2_heads : float or None
        R2 of the second model's features on the held-out half under the map from heads. It is below 0 if the map is
        worse than the mean.
    r2_fitted : float
        The same under the fitted map.
    seen : Agreement or None
        Comparison in the directions that the heads determine, available even without a full map from heads. None if
        all classes have the same vector.
    """

    heads: HeadTransform
    fitted: Floats
    ridge: float
    disagreement: float | None
    r2_heads: float | None
    r2_fitted: float
    seen: Agreement | None


def head_transform(
    first: ArrayLike,
    second: ArrayLike,
    *,
    biases: Sequence[ArrayLike | None] | None = None,
    pairs: ArrayLike | None = None,
) -> HeadTransform:
    """Return the map between the features of two models, computed from their heads.

    Parameters
    ----------
    first, second : array of shape (K, M)
        Vectors g of the K classes in each model, in the same order.
    biases : pair of arrays of shape (K,), optional
        Biases of the logits. None means 0.
    pairs : array of int, shape (P, 2), optional
        Pairs of classes whose differences are used, for example from `choose_pairs`. By default all differences are
        used, by least squares.

    Returns
    -------
    HeadTransform
        The map with its misfit. The matrix is None if a head does not satisfy Roeder's condition.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.geometry.transforms import head_transform
    >>> head = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> np.allclose(head_transform(head, 2 * head).matrix, np.eye(2) / 2)
    True
    """
    g, h = matching_heads([first, second])
    width = g.shape[1]
    shift = _shift(biases, len(g))
    triangle = _triangle(h, g, shift)
    if pairs is None:
        known, wanted = triangle[:, :width], triangle[:, width:]
    else:
        chosen = _check_pairs(pairs, len(g))
        known = differences(h, chosen)
        wanted = np.hstack([differences(g, chosen), differences(shift[:, None], chosen)])
    diversity = affine_generator(g), affine_generator(h)
    note = "; ".join(f"{d.note} (head {i})" for i, d in enumerate(diversity, start=1) if not d.holds)
    u, values, vt = np.linalg.svd(known, full_matrices=False)
    rank = int(np.sum(values > rounding(second)))
    if not note and min(rank, np.linalg.matrix_rank(wanted[:, :width], rounding(first))) < width:
        note = "the differences of these pairs do not span the features: choose other pairs"
    # known f' = wanted [f, 1] for every pair of feature vectors, hence V^T f' = (S^-1 U^T wanted) [f, 1].
    basis = vt[:rank].T
    seen = (u[:, :rank].T @ wanted / values[:rank, None]).T
    parts = diversity, note, basis, seen[:width], seen[width], triangle
    if note:
        return HeadTransform(None, None, None, *parts)
    whole = seen @ basis.T
    left, right = triangle[:, :width] @ whole.T, triangle[:, width:]
    misfit = float(np.linalg.norm(left - right) / np.linalg.norm(right))
    return HeadTransform(whole[:width], whole[width], misfit, *parts)


def compare_transforms(
    heads: tuple[ArrayLike, ArrayLike],
    features: tuple[ArrayLike, ArrayLike],
    *,
    biases: Sequence[ArrayLike | None] | None = None,
    pairs: ArrayLike | None = None,
    ridge: float | Literal["auto"] = "auto",
    random_state: int = 0,
    tick: Callable[[], object] = lambda: None,
) -> TransformComparison:
    """Return a comparison of the map from two heads with the linear map fitted to the features of the same rows.

    The maps disagree if the models do not have equal likelihoods, or if the diversity condition does not hold.

    Parameters
    ----------
    heads : pair of arrays of shape (K, M)
    features : pair of arrays of shape (n, M)
        Features of both models. Row i of both must belong to the same input.
    biases, pairs
        See `head_transform`.
    ridge : float or "auto"
        Penalty of the fitted map. "auto" chooses it by cross-validation within the training half, and 0 is least
        squares.
    random_state : int
        Seed of the split into a half for fitting and a half for testing both maps.
    tick : callable
        Called three times, to report progress: after the map from heads, after the fitted map, and after the test.

    Returns
    -------
    TransformComparison
        Both maps, their distance, and the R2 of each on held-out rows.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid.geometry.transforms import compare_transforms
    >>> head = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> features = np.random.default_rng(0).normal(size=(40, 2))
    >>> compared = compare_transforms((head, 2 * head), (features, features / 2), ridge=0)
    >>> compared.disagreement < 1e-9, round(compared.r2_heads, 3)
    (True, 1.0)
    """
    built = head_transform(*heads, biases=biases, pairs=pairs)
    tick()
    width = np.shape(heads[0])[1]
    x, y = (finite_rows("The features", f) for f in features)
    if x.shape != y.shape or x.shape[1] != width:
        raise InputError(
            f"The features have shapes {x.shape} and {y.shape}, but both must have the same shape with {width} "
            "columns, like the heads."
        )
    if len(x) < 2 * (width + 1):
        raise InputError(f"{len(x)} rows of {width} features are too few: give at least {2 * (width + 1)}.")
    order = np.random.default_rng(random_state).permutation(len(x))
    train, test = order[: len(x) // 2], order[len(x) // 2 :]
    centres = (x[train].mean(axis=0), y[train].mean(axis=0)) if biases is not None else (0.0, 0.0)
    own: Ridge = penalty_of(x[train], y[train], translation=biases is not None) if ridge == "auto" else ridge
    fitted, known, wanted = np.zeros((width, width)), x[train] - centres[0], y[train] - centres[1]
    for penalty, share in shares_of(own):
        # A ridge penalty is equivalent to additional rows of this size along each axis with target 0.
        more = np.sqrt(penalty) * np.eye(width)
        rows = np.vstack([known, more]), np.vstack([wanted, np.zeros_like(more)])
        fitted += share * np.linalg.lstsq(*rows, rcond=None)[0]
    tick()
    guess = (x[test] - centres[0]) @ fitted + centres[1]
    r2_fitted = _explained(guess, y[test]).value
    seen = _agreement(built, guess, x[test], y[test]) if built.basis.size else None
    tick()
    if built.matrix is None or built.offset is None:
        return TransformComparison(built, fitted, typical(own), None, None, r2_fitted, seen)
    disagreement = float(np.linalg.norm(built.matrix - fitted) / np.linalg.norm(fitted))
    r2_heads = _explained(x[test] @ built.matrix + built.offset, y[test]).value
    return TransformComparison(built, fitted, typical(own), disagreement, r2_heads, r2_fitted, seen)


def _agreement(built: HeadTransform, guess: Floats, x: Floats, y: Floats) -> Agreement:
    basis, m = built.basis, x.shape[1]
    mine, theirs, true = x @ built.seen_matrix + built.seen_offset, guess @ basis, y @ basis
    # Logits minus their mean over classes, up to a rotation of the classes.
    logits = x @ built.triangle[:, m:-1].T + built.triangle[:, -1], y @ built.triangle[:, :m].T
    distance = np.linalg.norm(mine - theirs) / max(np.linalg.norm(centred(theirs)), np.finfo(np.float64).tiny)
    return Agreement(
        dimensions=basis.shape[1],
        variance=float(np.sum(centred(true) ** 2) / np.sum(centred(y) ** 2)),
        heads=_explained(mine, true),
        fitted=_explained(theirs, true),
        logits=_explained(*logits),
        distance=float(distance),
    )


def _explained(made: Floats, true: Floats) -> Estimate:
    """Return the explained share of the summed variance of all columns, with an interval for a ratio of row means."""
    errors, spreads = (np.sum(z**2, axis=1) for z in (true - made, centred(true)))
    spread = float(spreads.sum())
    if spread == 0:
        raise InputError("The features of the second model are constant, so R2 is not defined.")
    missed = float(errors.sum()) / spread
    half = 1.96 * float(np.linalg.norm(errors - missed * spreads)) / spread
    return Estimate(1 - missed, 1 - missed - half, 1 - missed + half, of="rows")


def _triangle(second: Floats, first: Floats, shift: Floats) -> Floats:
    """Return the triangular factor of [second, first, shift], each centred over classes, in batches of classes."""
    means = second.mean(axis=0), first.mean(axis=0), shift.mean()
    triangle = np.zeros((0, 2 * first.shape[1] + 1))
    for start in range(0, len(first), BLOCK):
        part = slice(start, start + BLOCK)
        block = np.hstack([second[part] - means[0], first[part] - means[1], shift[part, None] - means[2]])
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, block]), mode="r"))
    return triangle


def _shift(biases: Sequence[ArrayLike | None] | None, classes: int) -> Floats:
    """Return the biases of the first model minus those of the second."""
    if biases is None:
        return np.zeros(classes)
    both = [np.zeros(classes) if b is None else np.asarray(b, dtype=np.float64) for b in biases]
    for b in both:
        if b.shape != (classes,) or not np.isfinite(b).all():
            raise InputError(
                f"The biases have shape {b.shape}, but {classes} finite numbers are expected, one per class."
            )
    return np.asarray(both[0] - both[1])


def _check_pairs(pairs: ArrayLike, classes: int) -> NDArray[np.intp]:
    chosen = np.asarray(pairs)
    if chosen.ndim != 2 or chosen.shape[1] != 2 or chosen.dtype.kind not in "iu":
        raise InputError(
            f"The pairs have dtype {chosen.dtype} and shape {chosen.shape}, but integers of shape (P, 2) are expected."
        )
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < classes:
        raise InputError(f"Some pairs contain a class outside the range 0 to {classes - 1}.")
    return chosen
