"""The transform between two models' features, built from their heads alone (Roeder, Metz & Kingma 2021).

Models p(y | x) = softmax(f(x) . g(y)) with equal likelihoods have equal differences of logits: with the matrices L of
columns g(A) - g(B), L'^T f' = L^T f, so that f' = (L L'^-1)^T f. Features in rows are multiplied by L L'^-1 itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nearid.errors import InputError
from nearid.geometry.diversity import (
    Diversity,
    affine_generator,
    centred,
    differences,
    finite_rows,
    matching_heads,
    rounding,
)
from nearid.moments import Floats


@dataclass(frozen=True, eq=False)
class HeadTransform:
    """Linear map from the features of one model to those of another, from their heads.

    Attributes
    ----------
    matrix : ndarray of shape (M, M), or None
        Features of the second model are features of the first @ matrix; None where the condition fails.
    misfit : float or None
        |G' matrix^T - G| / |G| over all differences of the heads: 0 where one linear map explains them all, as it
        always does with M + 1 classes.
    diversity : tuple of Diversity
        Roeder's condition for the first and the second head.
    note : str
        Why there is no matrix; empty where there is one.
    """

    matrix: Floats | None
    misfit: float | None
    diversity: tuple[Diversity, Diversity]
    note: str


@dataclass(frozen=True, eq=False)
class TransformComparison:
    """A map built from heads beside the one fitted to features: how far apart they are and how well each predicts.

    Attributes
    ----------
    heads : HeadTransform
    fitted : ndarray of shape (M, M)
        Least squares without an intercept on the training half.
    disagreement : float or None
        |heads - fitted| / |fitted| of the matrices; None without a map from heads.
    r2_heads : float or None
        R2 of the second model's features on the held-out half under the map from heads; below 0 where it is worse
        than their mean.
    r2_fitted : float
        The same under the fitted map.
    """

    heads: HeadTransform
    fitted: Floats
    disagreement: float | None
    r2_heads: float | None
    r2_fitted: float


def head_transform(first: ArrayLike, second: ArrayLike, *, pairs: ArrayLike | None = None) -> HeadTransform:
    """Build the map between the features of two models from their heads.

    Parameters
    ----------
    first, second : array of shape (K, M)
        Vectors g of the K classes in either model, in the same order.
    pairs : array of int, shape (P, 2), optional
        Pairs of classes to take differences of, as `choose_pairs` finds them. By default all differences count, in
        the sense of least squares.

    Returns
    -------
    HeadTransform
        Without a matrix where a head fails Roeder's condition.
    """
    g, h = matching_heads([first, second])
    if pairs is None:
        known, wanted = centred(h), centred(g)
    else:
        chosen = _check_pairs(pairs, len(g))
        known, wanted = differences(h, chosen), differences(g, chosen)
    diversity = affine_generator(g), affine_generator(h)
    note = "; ".join(f"{d.note} (head {i})" for i, d in enumerate(diversity, start=1) if not d.holds)
    ranks = np.linalg.matrix_rank(known, rounding(second)), np.linalg.matrix_rank(wanted, rounding(first))
    if not note and min(ranks) < g.shape[1]:
        note = "the differences of these pairs do not span the features: choose others"
    if note:
        return HeadTransform(None, None, diversity, note)
    # known f' = wanted f for every feature vector f, hence f' = (known^+ wanted) f
    matrix = np.linalg.lstsq(known, wanted, rcond=None)[0].T
    misfit = np.linalg.norm(centred(h) @ matrix.T - centred(g)) / np.linalg.norm(centred(g))
    return HeadTransform(matrix, float(misfit), diversity, "")


def compare_transforms(
    heads: tuple[ArrayLike, ArrayLike],
    features: tuple[ArrayLike, ArrayLike],
    *,
    pairs: ArrayLike | None = None,
    random_state: int = 0,
) -> TransformComparison:
    """Compare the map built from two heads with the least-squares map between the features of the same rows.

    Their disagreement tells how far the models are from equal likelihoods, or from the diversity condition.

    Parameters
    ----------
    heads : pair of arrays of shape (K, M)
    features : pair of arrays of shape (n, M)
        Row i of both belongs to one input.
    pairs : array of int, shape (P, 2), optional
        See `head_transform`.
    random_state : int
        Seed of the halves: one to fit, one to judge both maps.
    """
    built = head_transform(*heads, pairs=pairs)
    width = np.shape(heads[0])[1]
    x, y = (finite_rows("The features", f) for f in features)
    if x.shape != y.shape or x.shape[1] != width:
        raise InputError(
            f"The features have shapes {x.shape} and {y.shape}, but equal ones with {width} columns, as the heads "
            "have, are expected."
        )
    if len(x) < 2 * (width + 1):
        raise InputError(f"{len(x)} rows of {width} features are too few: give at least {2 * (width + 1)}.")
    order = np.random.default_rng(random_state).permutation(len(x))
    train, test = order[: len(x) // 2], order[len(x) // 2 :]
    fitted = np.linalg.lstsq(x[train], y[train], rcond=None)[0]
    r2_fitted = _r2(x[test] @ fitted, y[test])
    if built.matrix is None:
        return TransformComparison(built, fitted, None, None, r2_fitted)
    disagreement = float(np.linalg.norm(built.matrix - fitted) / np.linalg.norm(fitted))
    return TransformComparison(built, fitted, disagreement, _r2(x[test] @ built.matrix, y[test]), r2_fitted)


def _r2(made: Floats, true: Floats) -> float:
    """Share of the summed variance of all columns that is explained."""
    spread = float(np.sum(centred(true) ** 2))
    if spread == 0:
        raise InputError("The features of the second model are constant: there is nothing to explain.")
    return 1 - float(np.sum((true - made) ** 2)) / spread


def _check_pairs(pairs: ArrayLike, classes: int) -> NDArray[np.intp]:
    chosen = np.asarray(pairs)
    if chosen.ndim != 2 or chosen.shape[1] != 2 or chosen.dtype.kind not in "iu":
        raise InputError(f"The pairs are {chosen.dtype} of shape {chosen.shape}, but integers of (P, 2) are expected.")
    if chosen.size and not 0 <= chosen.min() <= chosen.max() < classes:
        raise InputError(f"Some pairs name a class outside 0 to {classes - 1}.")
    return chosen
