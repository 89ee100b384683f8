"""Autoencoders with continuous latents. They differ in the layer between encoder and decoder.

The plain autoencoder, BioAE with nonnegative latents of low energy (Whittington et al. 2023), beta-VAE (Higgins et al.
2017) and beta-TCVAE (Chen et al. 2018).
"""

import math
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.objectives import full_precision


class Networks(Protocol):
    """Factory of the encoder and decoder of an autoencoder for one kind of input."""

    def encoder(self, outputs: int) -> nn.Module:
        """Return a network from inputs to rows of `outputs` numbers."""

    def decoder(self, inputs: int) -> nn.Module:
        """Return a network from rows of `inputs` numbers to reconstructions or their logits."""


def check_images(x: Tensor, channels: int, side: int) -> None:
    """Raise an error unless x is a batch of square images, channels first, of the size that the network expects."""
    if tuple(x.shape[1:]) != (channels, side, side):
        raise InputError(
            f"Images have shape {tuple(x.shape)}, but (rows, {channels}, {side}, {side}) is expected: channels come "
            f"first, and each network takes images of one size."
        )


RECONSTRUCTIONS = ("bernoulli", "squared")


class Autoencoder(nn.Module):
    """An encoder and a decoder; the loss of a batch is the mean error of its reconstruction.

    Parameters
    ----------
    latents : int
        Coordinates of a representation.
    networks : Networks
        Makes the encoder and the decoder.
    reconstruction : {"bernoulli", "squared"}
        bernoulli: inputs lie in [0, 1], the decoder gives logits, and the error is their cross-entropy. squared: the
        decoder gives the reconstruction itself. Both are means over rows and over the coordinates of an input.
    per_latent : tuple of int
        Numbers per latent: outputs of the encoder, and inputs of the decoder.
    """

    def __init__(
        self,
        latents: int,
        networks: Networks,
        *,
        reconstruction: str = "bernoulli",
        per_latent: tuple[int, int] = (1, 1),
    ) -> None:
        super().__init__()
        if latents < 1:
            raise InputError(f"An autoencoder cannot have {latents} latents; give at least 1.")
        if reconstruction not in RECONSTRUCTIONS:
            raise InputError(
                f"There is no reconstruction {reconstruction!r}; choose one of {', '.join(RECONSTRUCTIONS)}."
            )
        self.latents, self.reconstruction = latents, reconstruction
        self.encoder = networks.encoder(per_latent[0] * latents)
        self.decoder = networks.decoder(per_latent[1] * latents)

    def extra_repr(self) -> str:
        """All numbers and words that a model stores. Objectives with different settings differ here."""
        return settings_of(self)

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs, one row each; `decode` accepts them."""
        return full_precision(self.encoder(x))

    def decode(self, z: Tensor) -> Tensor:
        """Reconstructions of inputs from representations; in [0, 1] for bernoulli."""
        decoded = full_precision(self.decoder(z))
        return decoded.sigmoid() if self.reconstruction == "bernoulli" else decoded

    def code(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the decoder's input during training, and the penalty that is added to the reconstruction error."""
        z = self.encode(x)
        return z, z.new_zeros(())

    def forward(self, x: Tensor) -> Tensor:
        """The loss of a batch."""
        z, penalty = self.code(x)
        return self.error(x, z) + penalty

    def error(self, x: Tensor, z: Tensor) -> Tensor:
        """Mean error of the reconstructions of x from z."""
        decoded = full_precision(self.decoder(z))
        if decoded.shape != x.shape:
            raise InputError(
                f"Inputs have shape {tuple(x.shape)}, but their reconstructions have shape {tuple(decoded.shape)}. "
                f"Make networks for inputs of this shape."
            )
        if self.reconstruction == "squared":
            return functional.mse_loss(decoded, x)
        least, most = (float(end) for end in x.aminmax())
        # The trainer handles NaN: it reports the step at which the loss became NaN.
        if least < 0 or most > 1:
            raise InputError(
                f"Inputs run from {least:g} to {most:g}, but bernoulli needs them in [0, 1]: divide bytes by 255, or "
                "choose the squared reconstruction."
            )
        return functional.binary_cross_entropy_with_logits(decoded, x)

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters without weight decay: the biases."""
        return [p for name, p in self.named_parameters() if name.endswith("bias")]


def settings_of(model: nn.Module) -> str:
    """Numbers and words among a module's own attributes."""
    own = {k: v for k, v in vars(model).items() if k != "training" and not k.startswith("_")}
    return ", ".join(f"{k}={v}" for k, v in own.items() if isinstance(v, bool | int | float | str))


def per_input(total: Tensor, x: Tensor) -> Tensor:
    """A sum over latents on the scale of the error, which is a mean over the coordinates of an input.

    Parameters
    ----------
    total : Tensor of shape (rows,) or ()
    x : Tensor of shape (rows, ...)
    """
    return torch.mean(total) / x[0].numel()


class BioAE(Autoencoder):
    """Adds mean relu(-z) + activity * mean z^2 to the error; weight decay limits the energy of the weights.

    Parameters
    ----------
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


# Keeps the logarithm of a deviation finite if softplus underflows.
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

    The minibatch-weighted estimate of Chen et al. divides the mixture by the size of the data as well. This only adds a
    constant and does not change gradients, so it is omitted here. The estimate then tends to the total correlation as
    the batch grows. Time and memory grow with rows^2 x latents.

    Parameters
    ----------
    z : Tensor of shape (rows, latents)
        One sample of each posterior.
    mean, deviation : Tensor of shape (rows, latents)
        Parameters of the posteriors.
    """
    rows, latents = z.shape
    # log q(z_ik | x_j) as (k, i, j), without a constant that cancels in the difference.
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
        """Penalty of the posteriors, in nats."""
        return self.beta * kl_from_standard_normal(mean, deviation)


class BetaTCVAE(BetaVAE):
    """As the plain variational autoencoder, but with the total correlation of the latents weighted by beta.

    KL = index-code mutual information + total correlation + sum of the KLs of the latents. beta weights only the second
    term, so the penalty is KL + (beta - 1) total correlation, with the KL in closed form.

    Parameters
    ----------
    reconstruction : {"bernoulli", "squared"}
    """

    def divergence(self, z: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
        divergence = kl_from_standard_normal(mean, deviation)
        return divergence + (self.beta - 1) * total_correlation(z, mean, deviation)
