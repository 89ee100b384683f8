"""The autoencoder with latents that are nonnegative and of little energy (BioAE, Whittington et al. 2023)."""

from __future__ import annotations

import math

from torch import Tensor

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import Autoencoder
from nearid.lab.models.autoencoders.networks import Networks


class BioAE(Autoencoder):
    """Adds mean relu(-z) + activity * mean z^2 to the error; the weights' energy is left to weight decay.

    Parameters
    ----------
    latents : int
    networks : Networks
    activity : float
    reconstruction : {"bernoulli", "squared"}
    """

    def __init__(
        self, latents: int, networks: Networks, *, activity: float = 0.01, reconstruction: str = "bernoulli"
    ) -> None:
        super().__init__(latents, networks, reconstruction=reconstruction)
        if not 0 <= activity < math.inf:
            raise InputError(f"activity is {activity}, but a number of at least 0 is expected, such as 0.01.")
        self.activity = activity

    def code(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = self.encode(x)
        return z, (-z).relu().mean() + self.activity * z.square().mean()
