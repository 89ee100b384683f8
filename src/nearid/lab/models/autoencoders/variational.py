"""Variational autoencoders: beta-VAE (Higgins et al. 2017) and beta-TCVAE (Chen et al. 2018)."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import Autoencoder, per_input
from nearid.lab.models.autoencoders.networks import Networks

# Keeps the logarithm of a deviation finite where softplus underflows.
LEAST_DEVIATION = 1e-6


def kl_from_standard_normal(mean: Tensor, deviation: Tensor) -> Tensor:
    """KL(N(mean, deviation^2) || N(0, I)) of every row, in nats.

    Parameters
    ----------
    mean, deviation : Tensor of shape (rows, latents)
    """
    return ((mean.square() + deviation.square() - 1) / 2 - deviation.log()).sum(dim=1)


def total_correlation(z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    """KL(q(z) || prod_k q(z_k)) in nats, with q the mixture of the posteriors of a batch.

    The minibatch-weighted estimate of Chen et al. divides the mixture by the size of the data as well. This adds a
    constant and leaves the gradients, so it is left out here: what remains tends to the total correlation as the batch
    grows. Time and memory grow with rows^2 x latents.

    Parameters
    ----------
    z : Tensor of shape (rows, latents)
        One sample of each posterior.
    mean, deviation : Tensor of shape (rows, latents)
        Of the posteriors.
    """
    rows, latents = z.shape
    # log q(z_ik | x_j) as (k, i, j), short of a constant that falls out of the difference.
    standardised = (z.T[:, :, None] - mean.T[:, None]) / deviation.T[:, None]
    logs = -standardised.square() / 2 - deviation.log().T[:, None]
    joint, marginals = torch.logsumexp(logs.sum(dim=0), dim=1), torch.logsumexp(logs, dim=2).sum(dim=0)
    return (joint - marginals).mean() + (latents - 1) * math.log(rows)


class BetaVAE(Autoencoder):
    """Normal posteriors with diagonal covariance, whose KL from N(0, I) is weighted by beta.

    The loss is (cross-entropy of an image + beta KL) / coordinates of an image. A representation is the mean of the
    posterior; in training the decoder sees a sample.

    Parameters
    ----------
    latents : int
    networks : Networks
    beta : float
        1 for the plain variational autoencoder.
    reconstruction : {"bernoulli", "squared"}
    """

    def __init__(
        self, latents: int, networks: Networks, *, beta: float = 1.0, reconstruction: str = "bernoulli"
    ) -> None:
        super().__init__(latents, networks, reconstruction=reconstruction, per_latent=(2, 1))
        if not 0 <= beta < math.inf:
            raise InputError(f"beta is {beta}, but a number of at least 0 is expected; 1 is the plain objective.")
        self.beta = beta

    def posterior(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Means and standard deviations of the posteriors, each of shape (rows, latents)."""
        mean, raw = super().encode(x).chunk(2, dim=1)
        return mean, functional.softplus(raw) + LEAST_DEVIATION

    def encode(self, x: Tensor) -> Tensor:
        return self.posterior(x)[0]

    def code(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, deviation = self.posterior(x)
        z = mean + deviation * torch.randn_like(mean)
        return z, per_input(self.divergence(z, mean, deviation), x)

    def divergence(self, z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
        """What the posteriors pay, in nats."""
        return self.beta * kl_from_standard_normal(mean, deviation)


class BetaTCVAE(BetaVAE):
    """As the plain variational autoencoder, but with the total correlation of the latents weighted by beta.

    KL = index-code mutual information + total correlation + sum of KLs latent by latent, of which beta weights the
    second alone: KL + (beta - 1) total correlation, the KL in closed form.

    Parameters
    ----------
    latents : int
    networks : Networks
    beta : float
    reconstruction : {"bernoulli", "squared"}
    """

    def divergence(self, z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
        found = kl_from_standard_normal(mean, deviation)
        return found + (self.beta - 1) * total_correlation(z, mean, deviation)
