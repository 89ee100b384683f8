"""What whitening and ICA share as scikit-learn transformers: rows to components and back, in memory or into files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
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
from nearid.arrays.metadata import metadata_alerts, typed_exclude
from nearid.base.errors import InputError
from nearid.base.progress import Reporting, reporting
from nearid.engines.base import Engine
from nearid.engines.local import one_blas_thread, open_engine
from nearid.folds import row_moments
from nearid.groups.estimators import validated
from nearid.ica.contrast import CONTRASTS
from nearid.ica.diagnostics import Diagnostics, lost_rank, row_cautions
from nearid.ica.fit import fit_ica
from nearid.ica.model import SHAPES, Model, check_kinds, describe, read_model, write_model
from nearid.ica.solver import Checkpoint
from nearid.ica.stream import Affine, check_output, refuse_input, write_mapped
from nearid.ica.whiten import Form, fit_whitener
from nearid.moments import Floats

PRECISIONS = [np.float64, np.float32]


class RankWarning(UserWarning):
    """Some columns are combinations of others, or rows are few: fewer directions exist than there are columns."""


class IdentifiabilityWarning(UserWarning):
    """Some components may not be the data's own: Gaussian ones, too few rows, no optimum, or others each time."""


class MetadataWarning(UserWarning):
    """Some columns of a table look like ids, counters, positions or labels, but are used as features."""


class LinearUnmixer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base of transformers that are a linear map: s = components_ (x - mean_), x = mixing_ s + mean_.

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
        progress: Reporting = False,
    ) -> None:
        """Write the components of rows to a file, block by block.

        Parameters
        ----------
        X : array, path or Rows
        path : str or PathLike
            An .npy or .zarr in the precision of the rows. Ids, where the rows have them, go beside it: x.ids.npy of
            x.npy, x.zarr.ids.npy of x.zarr.
        inverse : bool
            X holds components; write rows.
        overwrite : bool
            Replace a file that exists.
        drop_nonfinite : bool
            Give rows with a NaN or an infinity components of NaN; otherwise they are refused.
        progress : bool, default=False
            Draw a progress bar on stderr. A function is called with the name of the stage and its number of blocks.
        """
        check_is_fitted(self)
        target = check_output(path, overwrite=overwrite)
        if isinstance(X, str | os.PathLike):
            refuse_input(target, X)
        rows = open_rows(X) if inverse else self._rows(X, reset=False)
        if inverse:
            self._check_components(rows.name, rows.shape)
        affine = self._map(inverse)
        with reporting(progress) as report:
            tick = report("rows" if inverse else "components", len(affine.cut(rows.shape[0])))
            write_mapped(affine, rows, target, drop_nonfinite=drop_nonfinite, tick=tick)

    def inverse_transform(self, X: Any) -> Floats:
        """Rows from components."""
        check_is_fitted(self)
        components = np.asarray(X, dtype=np.float64)
        self._check_components("array", components.shape)
        return self._map(inverse=True)(components)

    def _map(self, inverse: bool = False) -> Affine:
        if inverse:
            return Affine(self.mixing_, np.zeros(self.n_components_), self.mean_)
        return Affine(self.components_, self.mean_, np.zeros(self.n_components_))

    def _check_components(self, name: str, shape: tuple[int, ...]) -> None:
        if len(shape) != 2 or shape[1] != self.n_components_:
            raise InputError(f"{self.n_components_} components a row are expected, but {name} has shape {shape}.")

    def _rows(self, X: Any, reset: bool) -> Any:
        """Rows for paths and Rows, a validated array for the rest."""
        if not isinstance(X, str | os.PathLike | Rows):
            return validated(self, X, reset=reset, dtype=PRECISIONS, ensure_min_samples=2 if reset else 1)
        rows = open_rows(X)
        if reset:
            self.n_features_in_ = rows.shape[1]
            self._name_columns(rows.columns)
            for alert in metadata_alerts(rows):
                warnings.warn(alert.message, MetadataWarning, stacklevel=3)
        elif rows.shape[1] != self.n_features_in_:
            raise InputError(
                f"{rows.name} has {rows.shape[1]} columns; {self.n_features_in_} were fitted.{self._advice(rows)}"
            )
        elif rows.columns is not None and hasattr(self, "feature_names_in_"):
            for at, (here, fitted) in enumerate(zip(rows.columns, self.feature_names_in_, strict=True)):
                if here != fitted:
                    raise InputError(
                        f"Column {at} of {rows.name} is {here!r}, but {fitted!r} was fitted there: give the columns "
                        "that were fitted, in their order."
                    )
        return rows

    def _advice(self, rows: Rows) -> str:
        """What to type where a table has the columns that were fitted, and more."""
        more = [name for name in rows.columns or () if name not in getattr(self, "feature_names_in_", ())]
        if not more or len(more) != rows.shape[1] - self.n_features_in_:
            return ""
        return f" Leave out what was not fitted, with {typed_exclude(more)}."

    def _name_columns(self, names: Sequence[str] | None) -> None:
        """Keep the names of the columns where there are any, as scikit-learn does for DataFrames."""
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _note(self, mean: Floats, components: Floats, mixing: Floats, rank: int) -> None:
        self.mean_, self.components_, self.mixing_, self.rank_ = mean, components, mixing, rank
        self.n_components_ = self._n_features_out = len(components)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


# Kinds of cautions that have a warning of their own.
WARNINGS = {"not_converged": ConvergenceWarning, "rank": RankWarning}


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
    engine : {"local", "dask"}, address or Engine, optional
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
        "engine": [None, str, Engine],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        form: Form = "pca",
        rtol: float = 0.0,
        engine: str | Engine | None = None,
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
        # The last digits of decompositions depend on the threads of BLAS.
        with one_blas_thread:
            found = fit_whitener(
                moments, components=self.n_components, form=self.form, rtol=self.rtol, stored=rows.dtype
            )
        self.variances_ = found.variances
        self._note(found.mean, found.forward, found.backward, found.rank)
        if found.rank < (self.n_components or self.n_features_in_):
            warnings.warn(lost_rank(self.n_features_in_, found.rank), RankWarning, stacklevel=2)
        return self


class ICA(LinearUnmixer):
    """Independent component analysis of any number of rows.

    Whitening from one pass, then FastICA's fixed point and L-BFGS on the orthogonal group, each where it is the faster;
    every pass reads the rows in blocks. Components come in the order of their distance from Gaussian, the largest
    first, each with its largest loading positive. The same data and seed give the same bytes, whatever the number of
    threads.

    Parameters
    ----------
    n_components : int, optional
        Leading principal directions to unmix; all that exist by default.
    whiten : bool, default=True
        Otherwise a pure rotation of the centred rows is sought, in one common unit.
    contrast : {"logcosh", "exp", "cube"}, default="logcosh"
    tol : float, default=1e-4
        Relative projected gradient to stop at; products in float32 cannot tell much below 1e-6 from zero.
    max_passes : int, default=500
        Passes after which the search ends with a ConvergenceWarning.
    stability : int, default=0
        Fits from other starts to random halves of the rows; how well their components match those of the fit is
        `diagnostics_.stability`. Each costs about half of the fit.
    dtype : {"float32", "float64"}, optional
        Precision of the products; that of the rows by default. Sums are float64.
    random_state : int, RandomState or None, default=0
        Of the first rotation.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes of `fit` run: this process by default, a Dask cluster of this machine's cores, or the cluster
        of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.

    Attributes
    ----------
    n_iter_ : int
        Passes over the rows.
    converged_ : bool
    gradients_ : list of float
        Relative projected gradient after each pass.
    variances_ : ndarray of shape (rank_,)
        Variances along all principal directions that exist.
    diagnostics_ : Diagnostics
        Whether the fit can be trusted: convergence, rank, Gaussian components, cautions in words.
    input_ : dict
        Name, shape, dtype, fingerprint and digest (of all numbers) of the rows.
    seed_ : int
        Of the first rotation, drawn from random_state.
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
        "stability": [Interval(Integral, 0, None, closed="left")],
        "dtype": [None, StrOptions({"float32", "float64"})],
        "random_state": ["random_state"],
        "engine": [None, str, Engine],
    }

    def __init__(
        self,
        n_components: int | None = None,
        *,
        whiten: bool = True,
        contrast: str = "logcosh",
        tol: float = 1e-4,
        max_passes: int = 500,
        stability: int = 0,
        dtype: str | None = None,
        random_state: Any = 0,
        engine: str | Engine | None = None,
    ) -> None:
        self.n_components = n_components
        self.whiten = whiten
        self.contrast = contrast
        self.tol = tol
        self.max_passes = max_passes
        self.stability = stability
        self.dtype = dtype
        self.random_state = random_state
        self.engine = engine

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to an array, or to a path or Rows read block by block."""
        return self.fit_rows(open_rows(self._rows(X, reset=True)))

    def fit_rows(
        self,
        rows: Rows,
        *,
        drop_nonfinite: bool = False,
        resume: Checkpoint | None = None,
        keep: Callable[[Checkpoint], object] | None = None,
        tick: Callable[[], object] | None = None,
    ) -> Self:
        """Fit to rows, with a way to go on after an interruption.

        Parameters
        ----------
        rows : Rows
        drop_nonfinite : bool
            Leave out rows with a NaN or an infinity; otherwise they are refused.
        resume : Checkpoint, optional
            Where an earlier fit of the same rows with the same parameters was.
        keep, tick : callable, optional
            Called after each pass, `keep` with a checkpoint.
        """
        self._validate_params()
        self.n_features_in_ = rows.shape[1]
        if rows.columns is not None:
            self._name_columns(rows.columns)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        with open_engine(self.engine) as engine:
            found = fit_ica(
                rows,
                components=self.n_components,
                whiten=self.whiten,
                contrast=self.contrast,
                tol=self.tol,
                max_passes=self.max_passes,
                stability_runs=self.stability,
                seed=self.seed_,
                dtype=None if self.dtype is None else np.dtype(self.dtype),
                drop_nonfinite=drop_nonfinite,
                engine=engine,
                resume=resume,
                keep=keep,
                tick=tick,
            )
        self.input_ = {**describe(rows), "columns": getattr(self, "feature_names_in_", np.array([])).tolist() or None}
        self.gradients_, self.converged_ = found.solution.gradients, found.solution.converged
        self.n_iter_, self.diagnostics_ = len(self.gradients_), found.diagnostics
        self.kappa_, self.variances_ = found.kappa, found.whitener.variances
        self._note(found.mean, found.components, found.mixing, found.whitener.rank)
        self.diagnostics_.cautions.extend(row_cautions(rows, self._map()))
        for caution in self.diagnostics_.cautions:
            warnings.warn(caution.text, WARNINGS.get(caution.kind, IdentifiabilityWarning), stacklevel=3)
        return self

    def save_report(self, path: str | os.PathLike[str]) -> None:
        """Write one self-contained HTML page on the fit."""
        from nearid.questions.unmix.page import write_report

        check_is_fitted(self)
        write_report(self, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fit to a folder: model.safetensors and model.json; a model that is there is replaced."""
        check_is_fitted(self)
        # Numbers that numpy counted are plain ones in JSON.
        options = {k: v.item() if isinstance(v, np.generic) else v for k, v in self.get_params().items()}
        # Where the passes ran changes nothing, and is not where they will run next.
        del options["engine"]
        if not isinstance(options["random_state"], int):
            options["random_state"] = None
        tensors = {name: np.asarray(getattr(self, f"{name}_")) for name in SHAPES}
        write_model(Path(path), Model(tensors, options, self.seed_, self.input_, self.diagnostics_.to_dict()))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a fit that `save` wrote; the files are checked, and nothing is ever unpickled."""
        model = read_model(Path(path))
        try:
            found = cls(**model.options)
            found._validate_params()
            check_kinds(model.diagnostics, len(model.tensors["components"]))
            found.diagnostics_ = Diagnostics.from_dict(model.diagnostics)
        except (TypeError, ValueError, KeyError) as error:
            raise InputError(f"{path} has a model.json that does not describe an ICA: {error}. Fit again.") from None
        for name, tensor in model.tensors.items():
            setattr(found, f"{name}_", tensor)
        found.gradients_ = model.tensors["gradients"].tolist()
        found.n_features_in_, found.seed_, found.input_ = len(found.mean_), model.seed, model.input
        names = model.input.get("columns")
        if isinstance(names, list) and len(names) == found.n_features_in_ and all(isinstance(n, str) for n in names):
            found._name_columns(names)
        found.n_components_ = found._n_features_out = len(found.components_)
        found.rank_, found.n_iter_ = len(found.variances_), len(found.gradients_)
        found.converged_ = found.diagnostics_.converged
        return found
