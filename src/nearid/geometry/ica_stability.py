"""Stability of whitening and ICA (Theorem 2 of Nelson et al. 2026), evaluated on data.

If centred representations x and x' are within eps of each other, up to an invertible linear map, then

- whitening (Lemma A.5): |W x - W' x'| <= eps (lambda^(-1/2) + R^2 lambda^(-3/2)), for covariances with eigenvalues of
  at least lambda and rows of length at most R. Proof: |Cov - Cov'| <= 2 R eps, the square root of a matrix is
  1 / (2 sqrt(lambda))-Lipschitz there, and W - W' = W (W'^-1 - W^-1) W';
- ICA (Lemma A.8): if whitened rows of length at most r change by eta, the components change by at most
  eta (1 + sqrt(2) r (l2 r + sqrt(k) l1) / mu) to first order in eta. Here the contrast has |G'| <= l1 and |G''| <= l2,
  and its Riemannian Hessian at the optimum has eigenvalues of at least mu. Proof: by the implicit function theorem,
  the rotation changes by the inverse Hessian times the derivative of the Riemannian gradient.

The constants follow the proofs of the lemmas, with the angles between pairs of components as coordinates of rotations.
The inequality is proven for suprema over the support. The values are computed on the given rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from nearid.base.errors import InputError
from nearid.geometry.diversity import finite_rows
from nearid.ica.contrast import CONTRASTS
from nearid.moments import Floats

if TYPE_CHECKING:
    from nearid.ica.estimators import IcaEstimator

# Up to so many components the whole Hessian is computed. It has one row for each pair of components.
WHOLE = 32


@dataclass(frozen=True)
class IcaStability:
    """Factors by which whitening and ICA may enlarge an error.

    Attributes
    ----------
    smallest_eigenvalue : float
        lambda, the smallest eigenvalue of the covariance.
    radius : float
        R, the largest distance of a row from the mean.
    whitened_radius : float
        r, the largest length of a row after whitening.
    curvature : float
        mu, the smallest eigenvalue of the Riemannian Hessian of the contrast, in angles of pairs.
    whole_hessian : bool
        Whether mu is computed over all rotations. Otherwise it is computed over rotations of single pairs, which
        gives a value that is at least as large.
    whitening : float
        Factor of Lemma A.5.
    ica : float
        Factor of Lemma A.8. It is infinite if mu is not above 0.
    total : float
        Product of both factors. Up to a signed permutation, the components of two runs are within total * eps of each
        other, to first order in eps.
    """

    smallest_eigenvalue: float
    radius: float
    whitened_radius: float
    curvature: float
    whole_hessian: bool
    whitening: float
    ica: float
    total: float


def ica_stability(ica: IcaEstimator, rows: ArrayLike) -> IcaStability:
    """Return the terms of Theorem 2 for a fitted ICA.

    Parameters
    ----------
    ica : nearid.ICA
        An ICA that was fitted with whitening and with all components.
    rows : array of shape (n, d)
        The rows to which it was fitted.

    Returns
    -------
    IcaStability
        The terms of the theorem and the factors that follow from them.

    Examples
    --------
    >>> import nearid, numpy as np
    >>> from nearid.geometry.ica_stability import ica_stability
    >>> rows = np.random.default_rng(0).laplace(size=(500, 3))
    >>> stability = ica_stability(nearid.ICA().fit(rows), rows)
    >>> stability.total == stability.whitening * stability.ica
    True
    """
    x = finite_rows("The rows", rows)
    if not ica.whiten or ica.n_components_ != x.shape[1]:
        raise InputError(
            f"The theorem requires whitening and all components, but this ICA has {ica.n_components_} components "
            f"{'with' if ica.whiten else 'without'} whitening for {x.shape[1]} columns."
        )
    x = x - ica.mean_
    y = x @ ica.components_.T
    k = y.shape[1]
    eigenvalues = np.linalg.eigvalsh(x.T @ x / len(x))
    smallest = float(eigenvalues[0])
    if not smallest > k * np.finfo(np.float64).eps * eigenvalues[-1]:
        raise InputError(
            f"The covariance of {len(x)} rows of {k} columns does not have full rank, so there is no bound for "
            "whitening. Give more rows, or leave out columns that are linear combinations of others (fewer principal "
            "components)."
        )
    radius, whitened = (float(np.sqrt(np.einsum("ij,ij->i", v, v).max())) for v in (x, y))
    mu = float(np.linalg.eigvalsh(contrast_hessian(ica, y))[0]) if 1 < k <= WHOLE else ica.diagnostics_.mu
    l1, l2 = _lipschitz(ica.contrast, whitened)
    whitening = smallest**-0.5 + radius**2 * smallest**-1.5
    turned = np.sqrt(2) * whitened * (l2 * whitened + np.sqrt(k) * l1) / mu if mu > 0 else np.inf
    return IcaStability(
        smallest, radius, whitened, mu, k <= WHOLE, whitening, float(1 + turned), float(whitening * (1 + turned))
    )


def contrast_hessian(ica: IcaEstimator, components: Floats) -> Floats:
    """Return the Riemannian Hessian of the signed contrast at a fit, in the angles of all pairs i < j.

    The second derivative along a skew matrix A is the sum over i of s_i E[g'(y_i) (A y)_i^2 + g(y_i) (A^2 y)_i].

    Returns
    -------
    ndarray of shape (k (k - 1) / 2, k (k - 1) / 2)
    """
    contrast, (n, k) = CONTRASTS[ica.contrast], components.shape
    signs = np.sign(ica.kappa_)
    slopes = contrast.slope(components)
    pull = signs[:, None] * (contrast.evaluate(components, False).g.T @ components) / n
    form = np.zeros((k, k, k, k))
    for i in range(k):
        form[i, :, i, :] += signs[i] * (components * slopes[:, i, None]).T @ components / n
        # A_ij A_jl pull_il
        for j in range(k):
            form[i, j, j, :] += pull[i]
    rows, columns = np.triu_indices(k, 1)
    angles = np.zeros((len(rows), k, k))
    pairs = np.arange(len(rows))
    angles[pairs, rows, columns], angles[pairs, columns, rows] = 1.0, -1.0
    basis = angles.reshape(len(rows), k * k)
    hessian: Floats = basis @ form.reshape(k * k, k * k) @ basis.T
    return (hessian + hessian.T) / 2


def _lipschitz(contrast: str, radius: float) -> tuple[float, float]:
    """Return bounds of |G'| and |G''| on components up to a radius."""
    return {"logcosh": (1.0, 1.0), "exp": (float(np.exp(-0.5)), 1.0), "cube": (radius**3, 3 * radius**2)}[contrast]
