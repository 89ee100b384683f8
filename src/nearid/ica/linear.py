"""What whitening and ICA share as scikit-learn transformers: rows to components and back, in memory or into files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nearid.arrays import Rows, open_rows
from nearid.arrays.metadata import metadata_alerts, typed_exclude
from nearid.base.errors import InputError
from nearid.base.progress import Reporting, reporting
from nearid.groups.estimators import validated
from nearid.ica.stream import Affine, check_output, refuse_input, write_mapped
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
