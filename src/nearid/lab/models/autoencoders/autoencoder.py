"""The plain autoencoder, from which the others differ by what stands between encoder and decoder."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.networks import Networks
from nearid.lab.models.outputs import full_precision

RECONSTRUCTIONS = ("bernoulli", "squared")


class Autoencoder(nn.Module):
    """An encoder and a decoder; the loss of a batch is the mean error of its reconstruction.

    Parameters
    ----------
    latents : int
        Coordinates of a representation.
    networks : Networks
        What makes encoder and decoder.
    reconstruction : {"bernoulli", "squared"}
        bernoulli: inputs lie in [0, 1], the decoder gives logits, and the error is their cross-entropy. squared: the
        decoder gives the reconstruction itself. Both are means over rows and over the coordinates of an input.
    per_latent : tuple of int
        Numbers that the encoder gives, and that the decoder takes, for each latent.
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
        """What tells two objectives apart: all numbers and words that a model keeps."""
        return settings_of(self)

    def encode(self, x: Tensor) -> Tensor:
        """Representations of inputs: one row each, such as `decode` takes."""
        return full_precision(self.encoder(x))

    def decode(self, z: Tensor) -> Tensor:
        """Inputs that representations stand for; in [0, 1] for bernoulli."""
        found = full_precision(self.decoder(z))
        return found.sigmoid() if self.reconstruction == "bernoulli" else found

    def code(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the decoder is given in training, and what is added to the error of the reconstruction."""
        z = self.encode(x)
        return z, z.new_zeros(())

    def forward(self, x: Tensor) -> Tensor:
        """The loss of a batch."""
        z, penalty = self.code(x)
        return self.error(x, z) + penalty

    def error(self, x: Tensor, z: Tensor) -> Tensor:
        """Mean error of the reconstructions of x from z."""
        found = full_precision(self.decoder(z))
        if found.shape != x.shape:
            raise InputError(
                f"Inputs have shape {tuple(x.shape)} and their reconstructions {tuple(found.shape)}; make the networks "
                "for inputs of this shape."
            )
        if self.reconstruction == "squared":
            return functional.mse_loss(found, x)
        least, most = (float(end) for end in x.aminmax())
        # NaN is left to the trainer, which tells where the loss became none.
        if least < 0 or most > 1:
            raise InputError(
                f"Inputs run from {least:g} to {most:g}, but bernoulli needs them in [0, 1]: divide bytes by 255, or "
                "choose the squared reconstruction."
            )
        return functional.binary_cross_entropy_with_logits(found, x)

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters that weight decay is to spare: the biases."""
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
