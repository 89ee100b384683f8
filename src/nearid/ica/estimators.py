"""Whitening and ICA as scikit-learn transformers between rows and components, in memory or from file to file."""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nearid.arrays import Rows, open_rows
from nearid.arrays.derived import SelectedColumns
from nearid.arrays.memory import is_a
from nearid.arrays.metadata import metadata_alerts
from nearid.arrays.rows import single_rows
from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.progress import Reporting, reporting
from nearid.base.provenance import provenance
from nearid.engines.base import Engine
from nearid.engines.local import one_blas_thread, open_engine
from nearid.folds import row_moments
from nearid.groups.estimators import validated
from nearid.ica.contrast import CONTRASTS
from nearid.ica.diagnostics import lost_rank, see_rows
from nearid.ica.fit import IcaOptions, fit_ica
from nearid.ica.model import SHAPES, Model, describe, describing_ica, read_model, write_model
from nearid.ica.solver import Checkpoint
from nearid.ica.starts import MOST_STARTS
from nearid.ica.stream import Affine, check_output, refuse_input, write_mapped
from nearid.ica.whiten import Form, fit_whitener
from nearid.moments import Floats

PRECISIONS = [np.float64, np.float32]


class RankWarning(UserWarning):
    """There are fewer directions than columns: some columns are combinations of others, or there are few rows."""


class IdentifiabilityWarning(UserWarning):
    """Some components may not be identified: they are Gaussian or unstable, rows are few, or there is no optimum."""


class MetadataWarning(UserWarning):
    """Some columns of a table look like ids, counters, positions or labels, but are used as features."""


# Alerts with their own class of warning.
# Options of `unmix` that the provenance records in addition to those of the estimator.
RECORDED = ("drop_nonfinite", "features", "exclude", "blocks")
WARNINGS = {"not_converged": ConvergenceWarning, "rank": RankWarning}


class LinearUnmixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of linear transformers: s = components_ (x - mean_), x = mixing_ s + mean_.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
    components_ : ndarray of shape (n_components, n_features)
    mixing_ : ndarray of shape (n_features, n_components)
    n_components_ : int
    rank_ : int
        Number of directions with variance in the data.
    """

    def transform(self, X: Any) -> Floats:
        """Return the components of rows. X is an array, or a path or Rows that is read block by block.

        Parameters
        ----------
        X : array, path or Rows, of shape (n, d)

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        check_is_fitted(self)
        rows = self._rows(X, reset=False)
        forward = self._map()
        out = np.empty((rows.shape[0], self.n_components_), rows.dtype)
        for (a, b), part in zip(forward.cut(len(out)), forward.over(rows), strict=True):
            out[a:b] = part
        return out

    def transform_to(
        self,
        X: Any,
        path: str | os.PathLike[str],
        *,
        inverse: bool = False,
        overwrite: bool = False,
        drop_nonfinite: bool = False,
        engine: str | Engine | None = None,
        progress: Reporting = False,
    ) -> None:
        """Write the components of rows to a file, block by block.

        Parameters
        ----------
        X : array, path or Rows
        path : str or PathLike
            File to write, in the precision of the rows: .npy, .parquet, .safetensors or .zarr. If the rows have ids,
            these are written to another file: x.ids.npy for x.npy, x.zarr.ids.npy for x.zarr.
        inverse : bool
            Whether X holds components that are mapped back to rows.
        overwrite : bool
            Whether to replace an existing file.
        drop_nonfinite : bool
            If True, the components of rows with NaN or infinity are NaN. Otherwise such rows raise an error.
        engine : {"local", "dask"}, address or Engine, optional
            Where the components are computed: in this process (default), on a Dask cluster of the cores of this
            machine, or on the cluster of the scheduler at an address. The chunks of a .zarr directory are written
            there, too. The result is the same.
        progress : bool, default=False
            Draw a progress bar on stderr. A function is called with the name of the stage and its number of blocks.
        """
        check_is_fitted(self)
        target = check_output(path, overwrite=overwrite)
        if isinstance(X, str | os.PathLike):
            refuse_input(target, X)
        with single_rows():
            rows = open_rows(X) if inverse else self._rows(X, reset=False)
        if inverse:
            self._check_components(rows.name, rows.shape)
        affine = self._map(inverse)
        with reporting(progress) as stage, open_engine(engine) as opened:
            tick = stage("rows" if inverse else "components", len(affine.cut(rows.shape[0])))
            write_mapped(affine, rows, target, drop_nonfinite=drop_nonfinite, engine=opened, tick=tick)

    def astype(self, dtype: Any) -> Self:
        """Return a copy of a fit with arrays in this precision, "float32" or "float64" (the default of a fit).

        `ica.astype(x.dtype)` gives arrays in the precision of the rows, like FastICA of scikit-learn. Maps still
        compute in float64, but from rounded numbers. Numbers beyond the range of float32 raise an error.

        Parameters
        ----------
        dtype : {"float32", "float64"} or a dtype
        """
        check_is_fitted(self)
        if dtype is None or np.dtype(dtype) not in PRECISIONS:
            raise InputError(f"The arrays of a fit can be float32 or float64, not {dtype}.")
        rounded = copy(self)
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray) and value.dtype in PRECISIONS:
                setattr(rounded, name, _rounded(name, value, np.dtype(dtype)))
        return rounded

    def inverse_transform(self, X: Any) -> Floats:
        """Return rows for components, in the precision of the components.

        Parameters
        ----------
        X : array of shape (n, n_components)

        Returns
        -------
        ndarray of shape (n, d)
        """
        check_is_fitted(self)
        components = np.asarray(X)
        components = components.astype(np.float32 if components.dtype == np.float32 else np.float64, copy=False)
        self._check_components("array", components.shape)
        return self._map(inverse=True)(components)

    def _map(self, inverse: bool = False) -> Affine:
        if inverse:
            return Affine(self.mixing_, np.zeros(self.n_components_), self.mean_)
        return Affine(self.components_, self.mean_, np.zeros(self.n_components_))

    def _check_components(self, name: str, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[1] != self.n_components_:
            raise InputError(
                f"{name} has shape {shape}, but {self.n_components_} columns are expected, one for each component."
            )

    def _rows(self, X: Any, reset: bool) -> Any:
        """Return Rows for paths and Rows, and a validated array for anything else. A single row is accepted."""
        if not isinstance(X, str | os.PathLike | Rows):
            X = X if reset else self._fitted_frame(X)
            return validated(self, X, reset=reset, dtype=PRECISIONS, ensure_min_samples=2 if reset else 1)
        with nullcontext() if reset else single_rows():
            rows = open_rows(X)
        if reset:
            self.n_features_in_ = rows.shape[1]
            self._name_columns(rows.columns)
            for alert in metadata_alerts(rows):
                warnings.warn(alert.message, MetadataWarning, stacklevel=3)
        else:
            rows = self._fitted_columns(rows)
        if rows.shape[1] != self.n_features_in_:
            raise InputError(f"{rows.name} has {rows.shape[1]} columns, but the fit used {self.n_features_in_}.")
        if rows.columns is not None and hasattr(self, "feature_names_in_"):
            for at, (here, fitted) in enumerate(zip(rows.columns, self.feature_names_in_, strict=True)):
                if here != fitted:
                    raise InputError(
                        f"Column {at} of {rows.name} is {here!r}, but in the fit it was {fitted!r}. Give the same "
                        "columns in the same order."
                    )
        return rows

    def _fitted_columns(self, rows: Rows) -> Rows:
        """Return the columns of the fit if the rows are a table that has them and others."""
        names = list(rows.columns or ())
        chosen = self._among(names)
        return SelectedColumns(rows, np.array([names.index(name) for name in chosen])) if chosen else rows

    def _fitted_frame(self, X: Any) -> Any:
        """Return the columns of the fit if X is a DataFrame that has them and others."""
        if not any(is_a(X, package, "DataFrame") for package in ("pandas", "polars")):
            return X
        chosen = self._among(list(X.columns))
        return X[chosen] if chosen else X

    def _among(self, names: list[Any]) -> list[str]:
        """Return the columns of the fit if these names have them and others; otherwise none."""
        fitted = [str(name) for name in getattr(self, "feature_names_in_", ())]
        return fitted if len(names) > len(fitted) and set(fitted) <= set(names) else []

    def _name_columns(self, names: Sequence[str] | None) -> None:
        """Store the names of the columns if there are any, as scikit-learn does for DataFrames."""
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _set_map(self, mean: Floats, components: Floats, mixing: Floats, rank: int) -> None:
        self.mean_, self.components_, self.mixing_, self.rank_ = mean, components, mixing, rank
        self.n_components_ = self._n_features_out = len(components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _rounded(name: str, values: Floats, dtype: np.dtype) -> Floats:
    """Return an array of a fit in this precision. Raises an error if numbers become infinite or all become 0."""
    with np.errstate(over="ignore", under="ignore"):
        rounded = values.astype(dtype)
    large = bool(np.any(np.isfinite(values) & ~np.isfinite(rounded)))
    if large or (values.any() and not rounded.any()):
        size = np.abs(values[np.isfinite(values)]).max()
        raise InputError(
            f"{name} holds numbers too {'large' if large else 'small'} for {dtype} (up to {size:.1e}). Keep float64, "
            "or fit rows in other units."
        )
    return rounded


@dataclass(eq=False, repr=False)
class Whitening(LinearUnmixer):
    """Transform rows so that their covariance is the identity on the directions that exist.

    The moments are computed in float64 in one pass. This is safe for float32 with large offsets, for columns in
    different units, for fewer rows than columns and for dependent columns. Directions below the resolution of float64
    are left out, and a RankWarning reports it.

    Parameters
    ----------
    n_components : int, optional
        Number of leading principal directions to keep. Default: all.
    form : {"pca", "zca"}, default="pca"
        "pca" gives components by descending variance. "zca" rotates them back as close to the columns as possible.
    rtol : float, default=0.0
        Directions with less than this share of the largest variance are left out.
    engine : {"local", "dask"}, address or Engine, optional
        Where `fit` computes: in this process (default), on a Dask cluster of the cores of this machine, or on the
        cluster of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    components_ : ndarray of shape (n_components, n_features)
        The whitening matrix. Whitened rows are ``(x - mean_) @ components_.T``.
    mixing_ : ndarray of shape (n_features, n_components)
        Pseudo-inverse of the whitening matrix. Rows are ``s @ mixing_.T + mean_``.
    n_components_ : int
        Number of directions that were kept.
    rank_ : int
        Number of directions that exist in the data.
    variances_ : ndarray of shape (rank,)
        Variance of the sample (divided by n) along each principal direction that exists.
    n_features_in_ : int
        Number of columns of the rows.
    feature_names_in_ : ndarray of str, shape (n_features,)
        Names of the columns, if the rows have them.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import Whitening
    >>> x = np.random.default_rng(0).normal(size=(1000, 3)) * [1, 10, 100] + 5
    >>> bool(np.allclose(np.cov(Whitening().fit_transform(x).T, bias=True), np.eye(3)))
    True
    """

    n_components: int | None = None
    _: KW_ONLY
    form: Form = "pca"
    rtol: float = 0.0
    engine: str | Engine | None = None

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "form": [StrOptions({"pca", "zca"})],
        "rtol": [Interval(Real, 0, 1, closed="left")],
        "engine": [None, str, Engine],
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to an array, or to a path or Rows that is read block by block, and return the estimator.

        Parameters
        ----------
        X : array, path or Rows, of shape (n, d)
        y : ignored
        """
        self._validate_params()
        rows = open_rows(self._rows(X, reset=True))
        with open_engine(self.engine) as engine:
            moments, _ = row_moments(rows, engine=engine)
        # The last digits of decompositions depend on the number of BLAS threads.
        with one_blas_thread:
            whitener = fit_whitener(
                moments, components=self.n_components, form=self.form, rtol=self.rtol, stored=rows.dtype
            )
        self.variances_ = whitener.variances
        self._set_map(whitener.mean, whitener.forward, whitener.backward, whitener.rank)
        requested = self.n_components or self.n_features_in_
        if whitener.rank < requested:
            warnings.warn(lost_rank(self.n_features_in_, whitener.rank, requested), RankWarning, stacklevel=2)
        return self


@dataclass(eq=False, repr=False, kw_only=True)
class IcaEstimator(IcaOptions, LinearUnmixer):
    """ICA as a transformer. See `nearid.ICA`, which is also a result, for its parameters and attributes."""

    random_state: Any = 0
    engine: str | Engine | None = None

    _parameter_constraints = {  # noqa: RUF012
        "n_components": [None, Interval(Integral, 1, None, closed="left")],
        "whiten": ["boolean"],
        "contrast": [StrOptions({*CONTRASTS, "auto"})],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_passes": [Interval(Integral, 1, None, closed="left")],
        "starts": [Interval(Integral, 1, MOST_STARTS, closed="both")],
        "stability": [Interval(Integral, 0, None, closed="left")],
        "dtype": [None, StrOptions({"float32", "float64"})],
        "random_state": ["random_state"],
        "engine": [None, str, Engine],
    }

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to an array, or to a path or Rows that is read block by block, and return the estimator.

        Parameters
        ----------
        X : array, path or Rows, of shape (n, d)
        y : ignored
        """
        rows = open_rows(self._rows(X, reset=True))
        self._validate_params()
        with open_engine(self.engine) as opened:
            return self.fit_rows(rows, describe(X, rows, opened), engine=opened)

    def fit_rows(
        self,
        rows: Rows,
        source: dict[str, Any],
        *,
        drop_nonfinite: bool = False,
        recorded: Mapping[str, Any] | None = None,
        alerts: Sequence[Alert] | None = None,
        resume: Checkpoint | None = None,
        keep: Callable[[Checkpoint], object] | None = None,
        tick: Callable[[], object] | None = None,
        engine: str | Engine | None = None,
    ) -> Self:
        """Fit to rows, with checkpoints so that an interrupted fit can continue.

        Parameters
        ----------
        rows : Rows
        source : dict
            Description of the rows by `nearid.ica.model.describe`.
        recorded : mapping, optional
            Options of `RECORDED` that selected the rows, for the provenance.
        alerts : sequence of Alert, optional
            Alerts about the columns. Default: those of columns that look like metadata.
        drop_nonfinite, resume, keep, tick
            See `nearid.ica.fit.fit_ica`.
        engine : {"local", "dask"}, address or Engine, optional
            Where passes run. Default: the engine of the estimator.
        """
        self._validate_params()
        self.n_features_in_ = rows.shape[1]
        if rows.columns is not None:
            self._name_columns(rows.columns)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        with open_engine(self.engine if engine is None else engine) as opened:
            unmixing = fit_ica(
                rows,
                self,
                seed=self.seed_,
                drop_nonfinite=drop_nonfinite,
                engine=opened,
                resume=resume,
                keep=keep,
                tick=tick,
            )
            shift = np.zeros(len(unmixing.components))
            seen = see_rows(rows, Affine(unmixing.components, unmixing.mean, shift), opened)
        columns = self.feature_names_in_.tolist() if hasattr(self, "feature_names_in_") else None
        # The engine does not change the result, so it is not kept. A random generator cannot be kept, only its seed.
        options = {name: value for name, value in self.get_params().items() if name != "engine"}
        options["random_state"] = self.random_state if isinstance(self.random_state, Integral) else None
        options |= recorded or {}
        self.provenance_ = {**provenance(options, seed=self.seed_), "inputs": [{**source, "columns": columns}]}
        self.gradients_, self.converged_ = unmixing.solution.gradients, unmixing.solution.converged
        self.n_iter_, self.kappa_ = len(self.gradients_), unmixing.kappa
        self.variances_ = unmixing.whitener.variances
        self._set_map(unmixing.mean, unmixing.components, unmixing.mixing, unmixing.whitener.rank)
        fit_alerts = (*unmixing.diagnostics.alerts, *seen.alerts)
        for alert in fit_alerts:
            warnings.warn(alert.message, WARNINGS.get(alert.code, IdentifiabilityWarning), stacklevel=3)
        notes = (Alert("input", note) for note in rows.notes)
        about_columns = metadata_alerts(rows) if alerts is None else alerts
        told = (*notes, *about_columns, *fit_alerts)
        self.diagnostics_ = replace(unmixing.diagnostics, alerts=told, kurtosis=seen.kurtosis)
        self.recurrence_, self.agreement_ = self.diagnostics_.recurrence, self.diagnostics_.agreement
        return self

    @property
    def whitening_(self) -> Floats:
        """The matrix (n_components, n_features) that whitens centred rows, as in FastICA of scikit-learn."""
        check_is_fitted(self)
        if not self.whiten:
            raise AttributeError("whitening_ exists only for fits with whiten=True.")
        # The mixing is sqrt(variance) times the principal directions, times a rotation that the components also have.
        # The rotation can be removed without dividing by small variances.
        directions, sizes, rotation = np.linalg.svd(self.mixing_, full_matrices=False)
        signs = np.sign(directions[np.abs(directions).argmax(axis=0), np.arange(len(sizes))])
        return np.asarray(signs[:, None] * (rotation @ self.components_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a folder as model.safetensors and model.json. An existing model is replaced.

        Parameters
        ----------
        path : str or PathLike
            The folder.
        """
        check_is_fitted(self)
        tensors = {name: np.asarray(getattr(self, f"{name}_")) for name in SHAPES}
        write_model(Path(path), Model(tensors, self.provenance_, self.diagnostics_))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return a fit that `save` wrote. The files are checked, and nothing is unpickled.

        Parameters
        ----------
        path : str or PathLike
            The folder.
        """
        model = read_model(Path(path))
        with describing_ica(path):
            options = model.provenance["options"].items()
            ica = cls(**{name: value for name, value in options if name not in RECORDED})
            ica._validate_params()
        for name, tensor in model.tensors.items():
            setattr(ica, f"{name}_", tensor)
        ica.gradients_, ica.diagnostics_ = model.tensors["gradients"].tolist(), model.diagnostics
        ica.provenance_, ica.seed_ = model.provenance, model.provenance["seed"]
        ica.n_features_in_ = len(ica.mean_)
        names = model.provenance["inputs"][0].get("columns")
        if isinstance(names, list) and len(names) == ica.n_features_in_ and all(isinstance(n, str) for n in names):
            ica._name_columns(names)
        ica._set_map(ica.mean_, ica.components_, ica.mixing_, len(ica.variances_))
        ica.n_iter_, ica.converged_ = len(ica.gradients_), ica.diagnostics_.converged
        ica.recurrence_, ica.agreement_ = ica.diagnostics_.recurrence, ica.diagnostics_.agreement
        return ica
