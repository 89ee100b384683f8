"""Autoencoders with discrete latents: VQ-VAE (van den Oord et al. 2017) and QLAE (Hsu et al. 2023)."""

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import Autoencoder, Networks


class _Quantised(Autoencoder):
    """Base of both: entries of a codebook replace the encoder's outputs; gradients pass straight through.

    The loss adds quantisation * mean (sg[z] - q)^2, which pulls entries q to outputs z, and commitment *
    mean (z - sg[q])^2, which pulls outputs to entries; sg[.] stops gradients.
    """

    def __init__(
        self,
        latents: int,
        networks: Networks,
        codebook: Tensor,
        *,
        per_latent: int,
        quantisation: float,
        commitment: float,
        reconstruction: str,
    ) -> None:
        super().__init__(latents, networks, reconstruction=reconstruction, per_latent=(per_latent, per_latent))
        for name, weight in (("quantisation", quantisation), ("commitment", commitment)):
            if not 0 <= weight < float("inf"):
                raise InputError(f"{name} is {weight}, but a number of at least 0 is expected.")
        self.quantisation, self.commitment = quantisation, commitment
        self.codebook = nn.Parameter(codebook)

    def nearest(self, z: Tensor) -> Tensor:
        """Index of the nearest entry for every latent of every row, shape (rows, latents)."""
        raise NotImplementedError

    def entries(self, codes: Tensor) -> Tensor:
        """Input of `decode` for these codes."""
        raise NotImplementedError

    def codes(self, x: Tensor) -> Tensor:
        """Discrete representations of inputs: whole numbers of shape (rows, latents)."""
        return self.nearest(super().encode(x))

    def encode(self, x: Tensor) -> Tensor:
        return self.entries(self.codes(x))

    def code(self, x: Tensor) -> tuple[Tensor, Tensor]:
        z = super().encode(x)
        quantised = self.entries(self.nearest(z))
        pull = self.quantisation * (z.detach() - quantised).square().mean()
        commit = self.commitment * (z - quantised.detach()).square().mean()
        return straight_through(z, quantised), pull + commit

    def undecayed(self) -> list[nn.Parameter]:
        return [*super().undecayed(), self.codebook]


def straight_through(z: Tensor, quantised: Tensor) -> Tensor:
    """The values of `quantised` with the gradients of z."""
    return z + (quantised - z).detach()


class VQVAE(_Quantised):
    """Every latent is a vector from one codebook, which all latents share.

    Parameters
    ----------
    size, dimension : int
        Number of entries of the codebook, and their coordinates; `encode` returns latents x dimension numbers per row.
    quantisation, commitment : float
        Weights of the terms that pull entries to outputs, and outputs to entries.
    reconstruction : {"bernoulli", "squared"}
    """

    def __init__(
        self,
        latents: int,
        networks: Networks,
        *,
        size: int = 512,
        dimension: int = 64,
        quantisation: float = 1.0,
        commitment: float = 0.25,
        reconstruction: str = "bernoulli",
    ) -> None:
        if size < 2 or dimension < 1:
            raise InputError(
                f"A codebook needs at least 2 entries and 1 coordinate, but {size} entries and {dimension} "
                f"coordinates were given."
            )
        reach = (3 / dimension) ** 0.5
        super().__init__(
            latents,
            networks,
            torch.empty(size, dimension).uniform_(-reach, reach),
            per_latent=dimension,
            quantisation=quantisation,
            commitment=commitment,
            reconstruction=reconstruction,
        )

    def nearest(self, z: Tensor) -> Tensor:
        vectors, codebook = z.detach().unflatten(1, (self.latents, -1)), self.codebook.detach()
        # |z|^2 is the same for all entries.
        codes: Tensor = (codebook.square().sum(dim=1) - 2 * vectors @ codebook.T).argmin(dim=2)
        return codes

    def entries(self, codes: Tensor) -> Tensor:
        return functional.embedding(codes, self.codebook).flatten(1)


class QLAE(_Quantised):
    """Every latent takes one of a few learnt scalar values of its own. Intended for strong weight decay.

    Parameters
    ----------
    values : int
        Scalars for each latent; they start evenly spread over [-1/2, 1/2].
    quantisation, commitment : float
        Weights of the terms that pull scalars to outputs, and outputs to scalars.
    reconstruction : {"bernoulli", "squared"}
    """

    def __init__(
        self,
        latents: int,
        networks: Networks,
        *,
        values: int = 10,
        quantisation: float = 0.01,
        commitment: float = 0.01,
        reconstruction: str = "bernoulli",
    ) -> None:
        if values < 2:
            raise InputError(f"A latent needs at least 2 values, but {values} was given.")
        super().__init__(
            latents,
            networks,
            torch.linspace(-0.5, 0.5, values).repeat(max(latents, 1), 1),
            per_latent=1,
            quantisation=quantisation,
            commitment=commitment,
            reconstruction=reconstruction,
        )

    def nearest(self, z: Tensor) -> Tensor:
        return (z.detach()[:, :, None] - self.codebook.detach()).abs().argmin(dim=2)

    def entries(self, codes: Tensor) -> Tensor:
        return self.codebook.gather(1, codes.T).T
