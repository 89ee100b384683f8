"""A fitted ICA: a scikit-learn transformer, and a result that shows whether to trust it."""

from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from nearid.base.alerts import Alert
from nearid.base.jsonable import plain
from nearid.ica.estimators import IcaEstimator
from nearid.ica.fit import with_options
from nearid.questions.unmix.view import records, view
from nearid.show.result import Result
from nearid.show.view import View


@with_options
class ICA(Result, IcaEstimator):
    """Independent component analysis of any number of rows.

    One pass whitens the rows. FastICA's fixed point and L-BFGS on the orthogonal group, whichever is faster, then find
    the rotation from several starts. If the rows fit in memory, they are whitened once and kept there. Otherwise every
    pass reads them in blocks. The least Gaussian component comes first, and the largest loading of each component is
    positive. The same data and seed give the same bytes with any number of threads.

    Parameters
    ----------
    {options}
    random_state : int, RandomState or None, default=0
        Seed of the first rotations.
    engine : {"local", "dask"}, address or Engine, optional
        Where the passes of `fit` run: this process by default, a Dask cluster of this machine's cores, or the cluster
        of the scheduler at an address such as "tcp://127.0.0.1:8786". The result is the same.

    Attributes
    ----------
    mean_ : ndarray of shape (n_features,)
        Mean of the rows.
    components_ : ndarray of shape (n_components, n_features)
        The unmixing matrix. Components are ``(x - mean_) @ components_.T``.
    mixing_ : ndarray of shape (n_features, n_components)
        The mixing matrix. Rows are ``s @ mixing_.T + mean_``.
    whitening_ : ndarray of shape (n_components, n_features)
        The matrix that whitens centred rows: principal directions divided by their standard deviations. It exists with
        `whiten` only. ``components_`` is a rotation of it.
    n_components_ : int
        Number of components.
    rank_ : int
        Number of directions that exist in the data.
    n_iter_ : int
        Number of passes over the rows from the best start.
    converged_ : bool
        Whether the gradient fell below `tol`.
    gradients_ : list of float
        Relative projected gradient after each pass.
    variances_ : ndarray of shape (rank,)
        Variance along each principal direction that exists.
    kappa_ : ndarray of shape (n_components,)
        ``E[g'(s)] - E[g(s) s]``. With logcosh it is positive for super-Gaussian components and negative for
        sub-Gaussian ones. It is near 0 for Gaussian components, which ICA cannot separate.
    recurrence_ : ndarray of int, shape (n_components,), or None
        Number of starts that found each component again, each on a random half of the rows; None with one start.
        Components that all starts find are determined by the data.
    agreement_ : ndarray of shape (n_components,), or None
        Absolute correlation of each component with the nearest one that a start found, averaged over the starts.
    diagnostics_ : Diagnostics
        Whether the fit can be trusted: convergence, rank, Gaussian components, kurtosis, stability, alerts.
    seed_ : int
        Seed of the first rotations, drawn from `random_state`.
    alerts : tuple of Alert
        Warnings about the components.
    provenance : dict
        Versions, options and seed; name, shape, dtype, fingerprint and digest (of all numbers) of the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from nearid import ICA
    >>> rng = np.random.default_rng(0)
    >>> sources = rng.laplace(size=(2000, 3))
    >>> ica = ICA().fit(sources @ rng.normal(size=(3, 3)))
    >>> ica.converged_, ica.diagnostics_.kinds
    (True, ['super-Gaussian', 'super-Gaussian', 'super-Gaussian'])
    >>> ica.to_frame()[["component", "kind"]].shape
    (3, 2)
    """

    @property
    def alerts(self) -> tuple[Alert, ...]:  # type: ignore[override]
        """Warnings about the fit."""
        check_is_fitted(self)
        return self.diagnostics_.alerts

    @property
    def provenance(self) -> dict[str, Any]:  # type: ignore[override]
        """Origin of the fit."""
        check_is_fitted(self)
        return self.provenance_

    def to_dict(self) -> dict[str, Any]:
        """Diagnostics, a record of each component, alerts and provenance as plain data, ready for JSON.

        To store the matrices of the fit, use `save`.
        """
        check_is_fitted(self)
        diagnostics = plain(self.diagnostics_)
        return {
            "diagnostics": diagnostics,
            "components": plain(self._records()),
            "alerts": diagnostics.pop("alerts"),
            "provenance": plain(self.provenance_),
        }

    def _view(self) -> View:
        check_is_fitted(self)
        return view(self)

    def _records(self) -> list[dict[str, Any]]:
        check_is_fitted(self)
        return records(self)

    def __repr__(self) -> str:
        # The display of scikit-learn, also inside pipelines.
        return str(BaseEstimator.__repr__(self))

    def __str__(self) -> str:
        return super().__str__() if hasattr(self, "diagnostics_") else repr(self)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """For notebooks: the result of a fit, the parameters before it. scikit-learn's own would hide `_repr_html_`."""
        if hasattr(self, "diagnostics_"):
            return {"text/plain": str(self), "text/html": self._repr_html_()}
        return {"text/plain": repr(self)}
