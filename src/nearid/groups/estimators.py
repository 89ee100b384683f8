"""The groups as scikit-learn estimators: fit(X, Y), transform(X), score(X, Y)."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from nearid.arrays.rows import refuse_masked
from nearid.base.errors import InputError, type_of
from nearid.groups.fits import Map, MatchMap, Ridge, apply
from nearid.groups.ladder import GROUPS
from nearid.groups.ridge import penalty_of
from nearid.moments import Floats, PairMoments


def validated(estimator: BaseEstimator, X: Any, *y: Any, **options: Any) -> Any:
    """Return the data after scikit-learn's validation. Errors from the code of the data are reported as InputError."""
    for what, given in zip("XY", (X, *y), strict=False):
        refuse_masked(what, given)
    try:
        return validate_data(estimator, X, *y, **options)
    except ValueError as error:
        # The wording of scikit-learn for a number of columns other than in the fit.
        if "features as input" in str(error):
            raise InputError(str(error)) from None
        raise
    except TypeError:
        raise
    except Exception as error:
        raise InputError(f"X, {type_of(X)}, cannot be converted to an array of rows: {error}.") from error


class GroupEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of estimators that align the rows of X with the rows of Y by an element of a group.

    Attributes
    ----------
    map_ : Map
        The fitted map, immutable.
    coef_ : ndarray of shape (n_features_in, n_targets)
        Matrix A of the map x -> (x - source_centre) A + target_centre.
    intercept_ : ndarray of shape (n_targets,)
        The image of the origin of X.
    """

    _group: str
    _parameter_constraints: dict[str, list[Any]] = {}  # noqa: RUF012

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Fit the map from rows of X to rows of y, and return the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)
        y : array-like of shape (n_samples, q) or (n_samples,)
        """
        self._validate_params()
        rows, targets = validated(
            self, X, y, multi_output=True, y_numeric=True, dtype=[np.float64, np.float32], ensure_min_samples=2
        )
        targets = targets.reshape(len(targets), -1)
        moments = PairMoments.of(rows, targets)
        if not (np.isfinite(moments.xx).all() and np.isfinite(moments.yy).all()):
            raise InputError("Squares of the values leave the range of float64. Divide X and y by their typical sizes.")
        self.map_: Map = GROUPS[self._group].fitted(moments, self._options(rows, targets))
        self.coef_ = self.map_.matrix
        self.intercept_ = self.map_.target_centre - self.map_.source_centre @ self.coef_
        self._n_features_out = targets.shape[1]
        return self

    def _options(self, rows: Floats, targets: Floats) -> dict[str, Any]:
        """Return the options of the fit."""
        return dict(self.get_params(deep=False))

    def transform(self, X: ArrayLike) -> Floats:
        """Return the rows of X mapped to the space of y.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)

        Returns
        -------
        ndarray of shape (n_samples, q)
        """
        check_is_fitted(self)
        return apply(self.map_, validated(self, X, reset=False, dtype=[np.float64, np.float32]))

    def predict(self, X: ArrayLike) -> Floats:
        """Return the same as `transform`, for tools that score predictions.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)

        Returns
        -------
        ndarray of shape (n_samples, q)
        """
        return self.transform(X)

    def score(self, X: ArrayLike, y: ArrayLike) -> float:
        """Return the share of the variance of y that the map explains, in total over all columns.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)
        y : array-like of shape (n_samples, q) or (n_samples,)

        Returns
        -------
        float
            1 is perfect. Below 0, the mean of y would do better.
        """
        estimate = self.transform(X)
        target = np.asarray(y, dtype=np.float64).reshape(len(estimate), -1)
        spread = float(np.sum((target - target.mean(axis=0)) ** 2))
        error = float(np.sum((target - estimate) ** 2))
        if spread == 0:
            return 1.0 if error == 0 else 0.0
        return 1 - error / spread

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.transformer_tags.preserves_dtype = []
        return tags


class _Matching(GroupEstimator):
    """Base class of estimators that match columns, with attributes of the matching."""

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Match the columns of X to those of y, and return the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)
        y : array-like of shape (n_samples, q) or (n_samples,)
        """
        super().fit(X, y)
        assert isinstance(self.map_, MatchMap)
        self.signs_ = np.sign(self.map_.weights)
        self.columns_ = np.where(self.signs_ != 0, self.map_.columns, -1)
        return self


class SignedPermutation(_Matching):
    """Match columns one to one, with signs, a translation and one global scale.

    Columns are matched by the assignment with the largest sum of absolute correlations. If the numbers of columns
    differ, all columns of the narrower side are matched. Target columns without a match are predicted by their mean.

    Parameters
    ----------
    translation : bool, default=True
        Centre both sides; otherwise products about the origin are used.
    scale : bool, default=True
        Fit one global scale.

    Attributes
    ----------
    columns_ : ndarray of shape (n_targets,)
        Source column matched to each target column, -1 where there is none.
    signs_ : ndarray of shape (n_targets,)
        Sign of each match, 0 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import SignedPermutation
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = SignedPermutation().fit(x, 3 * np.column_stack([x[:, 1], -x[:, 0]]))
    >>> model.columns_, model.signs_, round(model.score(x, 3 * np.column_stack([x[:, 1], -x[:, 0]])), 6)
    (array([1, 0]), array([ 1., -1.]), 1.0)
    """

    _group = "permutation"
    _parameter_constraints = {"translation": ["boolean"], "scale": ["boolean"]}  # noqa: RUF012

    def __init__(self, *, translation: bool = True, scale: bool = True) -> None:
        self.translation = translation
        self.scale = scale


class ScaledPermutation(_Matching):
    """Match columns one to one, with signs, a translation and a positive scale for each column.

    Columns are matched as in `SignedPermutation`. This group contains the signed permutations and is contained in the
    linear maps. It does not contain the rigid motions, and they do not contain it.

    Parameters
    ----------
    translation : bool, default=True
        Centre both sides; otherwise products about the origin are used.

    Attributes
    ----------
    columns_ : ndarray of shape (n_targets,)
        Source column matched to each target column, -1 where there is none.
    signs_ : ndarray of shape (n_targets,)
        Sign of each match, 0 where there is none.
    scales_ : ndarray of shape (n_targets,)
        Scale of each match, 0 where there is none.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import ScaledPermutation
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = ScaledPermutation().fit(x, np.column_stack([3 * x[:, 1], -x[:, 0]]))
    >>> model.columns_, model.signs_, model.scales_.round(6)
    (array([1, 0]), array([ 1., -1.]), array([3., 1.]))
    """

    _group = "scaled_permutation"
    _parameter_constraints = {"translation": ["boolean"]}  # noqa: RUF012

    def __init__(self, *, translation: bool = True) -> None:
        self.translation = translation

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Match the columns of X to those of y, each with its own scale, and return the estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, p)
        y : array-like of shape (n_samples, q) or (n_samples,)
        """
        super().fit(X, y)
        self.scales_ = np.abs(np.asarray(self.coef_).sum(axis=0))
        return self


class Rigid(GroupEstimator):
    """Orthogonal Procrustes (rotation or reflection) with a translation and one global scale.

    Parameters
    ----------
    translation : bool, default=True
        Fit a translation.
    scale : bool, default=True
        Fit one global scale.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import Rigid
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> turned = 2 * x @ [[0.6, 0.8], [-0.8, 0.6]] + 1
    >>> model = Rigid().fit(x, turned)
    >>> round(model.score(x, turned), 6), model.intercept_.round(6)
    (1.0, array([1., 1.]))
    """

    _group = "rigid"
    _parameter_constraints = {"translation": ["boolean"], "scale": ["boolean"]}  # noqa: RUF012

    def __init__(self, *, translation: bool = True, scale: bool = True) -> None:
        self.translation = translation
        self.scale = scale


class Linear(GroupEstimator):
    """Affine map by ridge regression with a cross-validated penalty, or by plain least squares.

    Parameters
    ----------
    translation : bool, default=True
        Fit an intercept.
    ridge : float or "auto", default="auto"
        Penalty on the squared norm of the coefficients (``Ridge(alpha=...)`` in scikit-learn). By default it is chosen
        by cross-validation with five folds, or fewer with fewer than ten rows. 0 is plain least squares, with the
        solution of smallest norm if it is not unique. Plain least squares is also used with fewer than six rows.

    Attributes
    ----------
    ridge_ : float or tuple of float
        The penalty of the fit. If folds chose different penalties, this is a tuple, and the map is the mean of their
        maps.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import Linear
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> Linear().fit(x, x @ [[1.0, 2.0], [0.0, 3.0]]).coef_.round(6) + 0.0
    array([[1., 2.],
           [0., 3.]])
    """

    _group = "linear"
    _parameter_constraints = {  # noqa: RUF012
        "translation": ["boolean"],
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(self, *, translation: bool = True, ridge: float | Literal["auto"] = "auto") -> None:
        self.translation = translation
        self.ridge = ridge

    def _options(self, rows: Floats, targets: Floats) -> dict[str, Any]:
        chosen = penalty_of(rows, targets, translation=self.translation) if self.ridge == "auto" else self.ridge
        self.ridge_: Ridge = chosen if isinstance(chosen, tuple) else float(chosen)
        return {"translation": self.translation, "ridge": self.ridge_}
