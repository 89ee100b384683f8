"""Whitening and ICA as scikit-learn transformers; files are read block by block."""

from __future__ import annotations

import os
import warnings
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from nearid.arrays import Rows, open_rows
from nearid.engines.local import blocks
from nearid.engines.open import open_engine
from nearid.errors import InputError
from nearid.folds import row_moments
from nearid.moments import Floats
from nearid.unmix.contrast import CONTRASTS
from nearid.unmix.ica import fit_ica
from nearid.unmix.whiten import Form, fit_whitener

PRECISIONS = [np.float64, np.float32]


class RankWarning(UserWarning):
    """Some columns are combinations of others, or rows are few: fewer directions exist than there are columns."""


class LinearUnmixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What whitening and ICA share: s = components_ (x - mean_), x = mixing_ s + mean_.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_in_,)
    components_ : ndarray of shape (n_components_, n_features_in_)
    mixing_ : ndarray of shape (n_features_in_, n_components_)
    n_components_ : int
    rank_ : int
        Directions that exist in the data.
    """

    def transform(self, X: Any) -> Floats:
        """Components of rows: an array, or a path or Rows that is read block by block."""
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        out = np.empty((rows.shape[0], self.n_components_), rows.dtype)
        for a, b in blocks(*rows.shape):
            part = rows.read(a, b) if isinstance(rows, Rows) else rows[a:b]
            out[a:b] = np.subtract(part, self.mean_, dtype=np.float64) @ self.components_.T
        return out

    def inverse_transform(self, X: Any) -> Floats:
        """Rows from components."""
        check_is_fitted(self)
        components = np.asarray(X, dtype=np.float64)
        if components.ndim != 2 or components.shape[1] != self.n_components_:
            raise InputError(f"{self.n_components_} components a row are expected, not an array of {components.shape}.")
        return np.asarray(components @ self.mixing_.T + self.mean_)

    def _rows(self, X: Any, reset: bool) -> Any:
        """Rows for paths and Rows, a validated array for the rest."""
        if not isinstance(X, str | os.PathLike | Rows):
            return validate_data(self, X, reset=reset, dtype=PRECISIONS, ensure_min_samples=2 if reset else 1)
        rows = open_rows(X)
        if reset:
            self.n_features_in_ = rows.shape[1]
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(f"{rows.name} has {rows.shape[1]} columns; {self.n_features_in_} were fitted.")
        return rows

    def _note(self, mean: Floats, components: Floats, mixing: Floats, rank: int) -> None:
        self.mean_, self.components_, self.mixing_, self.rank_ = mean, components, mixing, rank
        self.n_components_ = self._n_features_out = len(components)
        if rank < min(self.n_features_in_, self.n_components or self.n_features_in_):
            warnings.warn(
                f"{self.n_features_in_} columns have rank {rank}: only {rank} directions are kept.",
                RankWarning,
                stacklevel=3,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class Whitening(LinearUnmixer):
    """Bring the covariance to the identity on the directions that exist, from float64 moments in one pass.

    Safe for float32 with large offsets, for any units and mixtures of them, for fewer rows than columns and for
    dependent columns: directions below float64's resolution are left out, and a RankWarning says so.

    Parameters
    ----------
    n_components : int, optional
        Leading principal directions to keep; all by default.
    form : {"pca", "zca"}, default="pca"
        "pca" gives components by descending variance; "zca" turns them back, as near to the columns as can be.
    rtol : float, default=0.0
        Leave out directions with less than this share of the largest variance.
    engine : {"local", "dask"} or str, optional
        Where the pass of `fit` runs: this process by default, a Dask cluster of this machine's cores, or the cluster of
        the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.

    Attributes
    ----------
    variances_ : ndarray of shape (rank_,)
        Variances along all principal directions that exist (of the sample, divided by n).
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "form": [StrOptions({"pca", "zca"})],
        "rtol": [Interval(Real, 0, 1, closed="left")],
        "engine": [None, str],
    }

    def __init__(
        self, n_components: int | None = None, *, form: Form = "pca", rtol: float = 0.0, engine: str | None = None
    ) -> None:
        self.n_components = n_components
        self.form = form
        self.rtol = rtol
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to an array, or to a path or Rows read block by block."""
        self._validate_params()
        rows = open_rows(self._rows(X, reset=True))
        with open_engine(self.engine) as engine:
            moments, _ = row_moments(rows, engine=engine)
        found = fit_whitener(moments, components=self.n_components, form=self.form, rtol=self.rtol)
        self.variances_ = found.variances
        self._note(found.mean, found.forward, found.backward, found.rank)
        return self


class ICA(LinearUnmixer):
    """Independent component analysis of any number of rows.

    Whitening from one pass, then FastICA's fixed point and, where that creeps, L-BFGS on the orthogonal group; every
    pass reads the rows in blocks. Components come in the order of their distance from Gaussian, the largest first, each
    with its largest loading positive. The same data and seed give the same bytes, whatever the number of threads.

    Parameters
    ----------
    n_components : int, optional
        Leading principal directions to unmix; all that exist by default.
    whiten : bool, default=True
        Otherwise a pure rotation of the centred rows is sought, in one common unit.
    contrast : {"logcosh", "exp", "cube"}, default="logcosh"
    tol : float, default=1e-4
        Relative projected gradient to stop at; products in float32 cannot tell much below 1e-5 from zero.
    max_passes : int, default=500
        Passes after which the search ends with a ConvergenceWarning.
    dtype : {"float32", "float64"}, optional
        Precision of the products; that of the rows by default. Sums are float64.
    random_state : int, RandomState or None, default=0
        Of the first rotation.
    engine : {"local", "dask"} or str, optional
        Where the passes of `fit` run: this process by default, a Dask cluster of this machine's cores, or the cluster
        of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.

    Attributes
    ----------
    n_iter_ : int
        Passes over the rows.
    converged_ : bool
    gradients_ : list of float
        Relative projected gradient after each pass.
    kappa_ : ndarray of shape (n_components_,)
        E[g'(s)] - E[g(s) s]: with logcosh positive for super-Gaussian components, negative for sub-Gaussian ones, near
        0 for Gaussian ones, which ICA cannot tell apart.
    """

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "whiten": ["boolean"],
        "contrast": [StrOptions(set(CONTRASTS))],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "dtype": [None, StrOptions({"float32", "float64"})],
        "random_state": ["random_state"],
        "engine": [None, str],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        whiten: bool = True,
        contrast: str = "logcosh",
        tol: float = 1e-4,
        max_passes: int = 500,
        dtype: str | None = None,
        random_state: Any = 0,
        engine: str | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.contrast = contrast
        self.tol = tol
        self.max_passes = max_passes
        self.dtype = dtype
        self.random_state = random_state
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to an array, or to a path or Rows read block by block."""
        self._validate_params()
        rows = open_rows(self._rows(X, reset=True))
        with open_engine(self.engine) as engine:
            found = fit_ica(
                rows,
                components=self.n_components,
                whiten=self.whiten,
                contrast=self.contrast,
                tol=self.tol,
                max_passes=self.max_passes,
                seed=int(check_random_state(self.random_state).randint(2**31 - 1)),
                dtype=None if self.dtype is None else np.dtype(self.dtype),
                engine=engine,
            )
        self.gradients_ = found.solution.gradients
        self.n_iter_, self.converged_, self.kappa_ = len(self.gradients_), found.solution.converged, found.kappa
        self._note(found.mean, found.components, found.mixing, found.whitener.rank)
        if not self.converged_:
            warnings.warn(
                f"ICA stopped after {self.n_iter_} passes at a relative gradient of {self.gradients_[-1]:.1e} (tol "
                f"{self.tol:g}): raise max_passes or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return self
