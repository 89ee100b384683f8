"""Whitening and ICA as scikit-learn transformers; files are read block by block."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from nearid.arrays import Rows, open_rows
from nearid.base.errors import InputError
from nearid.engines.base import Engine
from nearid.engines.local import one_blas_thread, open_engine
from nearid.folds import row_moments
from nearid.ica.contrast import CONTRASTS
from nearid.ica.diagnostics import Diagnostics, lost_rank
from nearid.ica.fit import fit_ica
from nearid.ica.influence import row_cautions
from nearid.ica.linear import IdentifiabilityWarning, LinearUnmixer, RankWarning
from nearid.ica.model import SHAPES, Model, check_kinds, describe, read_model, write_model
from nearid.ica.solver import Checkpoint
from nearid.ica.whiten import Form, fit_whitener

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
