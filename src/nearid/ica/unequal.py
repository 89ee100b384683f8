"""The contrast of components of unequal variance: a rotation without whitening.

A component's mean contrast depends on its size as well as on its shape, and only the shape is what a rotation is sought
for. So each component is compared with a Gaussian one of its own variance: the objective is the sum of
s_i (E[G(y_i)] - E[G(sigma_i v)]). Components that hardly vary have hardly a say in it, which is why one rotates without
whitening; dividing by sigma_i would blow them up again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from nearid.ica.contrast import Contrast
from nearid.ica.solver import State
from nearid.moments import Floats


@cache
def _quadrature() -> tuple[Floats, Floats]:
    """Nodes and weights of the mean over a standard Gaussian; every look at a rotation asks for them."""
    v, weights = np.polynomial.hermite_e.hermegauss(60)
    return v, weights / weights.sum()


@dataclass(frozen=True)
class Unequal:
    """Corrections for rows whose principal directions have these variances.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        Of the coordinates that are rotated, in their common unit.
    contrast : Contrast
    """

    variances: Floats
    contrast: Contrast

    def covariance(self, rotation: Floats) -> Floats:
        """Covariance of the components."""
        return np.asarray(rotation * self.variances @ rotation.T)

    def _gaussian(self, variances: Floats) -> tuple[Floats, Floats, Floats]:
        """E[G], E[g'] and the derivative of E[g'] by the variance, of Gaussian components; Gauss-Hermite quadrature."""
        v, weights = _quadrature()
        y = np.sqrt(variances)[:, None] * v
        slopes = self.contrast.slope(y)
        return self.contrast.values(y) @ weights, slopes @ weights, slopes @ (weights * (v**2 - 1)) / (2 * variances)

    def corrected(self, state: State) -> State:
        """What a pass found, less what Gaussian components would give; as for unit variances in form."""
        covariance = self.covariance(state.rotation)
        variances = np.diag(covariance)
        values, slopes, _ = self._gaussian(variances)
        # Along the rotation of i into j a variance changes by twice the covariance, and E[G] by E[g'] / 2 times that.
        products = state.products - slopes[:, None] * (covariance - np.diag(variances))
        return replace(
            state,
            products=products,
            slopes=variances * state.slopes,
            values=state.values - values + self.contrast.gaussian,
        )

    def curved(self, rotation: Floats, bends: Floats, pull: Floats) -> tuple[Floats, Floats]:
        """E[g'(y_i) y_j^2] and E[g(y_i) y_i], less what Gaussian components would give."""
        covariance = self.covariance(rotation)
        variances = np.diag(covariance)
        _, slopes, change = self._gaussian(variances)
        lost = np.outer(slopes, variances) + 2 * change[:, None] * covariance**2
        return bends - lost, pull - slopes * variances
