"""The masked autoencoder (He et al. 2022) with a small vision transformer."""

import torch
from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.autoencoder import check_images, settings_of
from nearid.lab.models.autoencoders.transformer import blocks, from_patches, positions, to_patches
from nearid.lab.models.objectives import full_precision

# Deviation of the mask token at the start, the usual value for embeddings of transformers.
DEVIATION = 0.02


class MaskedAutoencoder(nn.Module):
    """Most patches of an image are hidden; the encoder sees the others, and the decoder predicts the hidden ones.

    The loss is the mean squared error over the pixels of hidden patches. There is no class token: a representation is
    the mean of all patches' embeddings, with nothing hidden.

    Parameters
    ----------
    side : int
        Height and width of an image.
    patch : int
        Side of a patch, a divisor of `side`.
    ratio : float
        Share of hidden patches. At least one patch is hidden, and at least one is visible.
    width, depth, heads : int
        Coordinates of an embedding (a multiple of 4 and of `heads`), blocks and attention heads of the encoder.
    decoder_width, decoder_depth : int
        The same for the decoder, which has the same number of heads.
    normalise : bool
        Whether the target pixels of every patch are normalised to mean 0 and variance 1. `decode` then returns
        normalised pixels.
    """

    def __init__(
        self,
        channels: int = 3,
        side: int = 32,
        *,
        patch: int = 4,
        ratio: float = 0.75,
        width: int = 64,
        depth: int = 3,
        heads: int = 4,
        decoder_width: int = 32,
        decoder_depth: int = 1,
        normalise: bool = False,
    ) -> None:
        super().__init__()
        if patch < 1 or side % patch or side < 2 * patch:
            raise InputError(f"Images of side {side} cannot be cut into 2 x 2 or more patches of side {patch}.")
        if not 0 < ratio < 1:
            raise InputError(f"ratio is {ratio}, but a share between 0 and 1 is expected; 0.75 is usual.")
        for name, given in (("width", width), ("decoder_width", decoder_width)):
            if heads < 1 or given < 1 or given % 4 or given % heads:
                raise InputError(f"{name} is {given}, but a multiple of 4 and of the {heads} heads is expected.")
        grid, pixels = side // patch, channels * patch**2
        if normalise and pixels < 2:
            raise InputError(
                "A patch of one pixel has no variance to normalise. Use larger patches, or normalise=False."
            )
        self.channels, self.side, self.patch, self.normalise = channels, side, patch, normalise
        self.patches = grid**2
        self.hidden = min(max(round(ratio * self.patches), 1), self.patches - 1)
        self.embed_patch, self.encoder = nn.Linear(pixels, width), blocks(depth, width, heads)
        self.narrow, self.decoder = nn.Linear(width, decoder_width), blocks(decoder_depth, decoder_width, heads)
        self.mask_token = nn.Parameter(torch.randn(decoder_width) * DEVIATION)
        self.tell = nn.Linear(decoder_width, pixels)
        self.register_buffer("places", positions(grid, width), persistent=False)
        self.register_buffer("decoder_places", positions(grid, decoder_width), persistent=False)

    def extra_repr(self) -> str:
        """Settings in which two objectives may differ."""
        return settings_of(self)

    def embed(self, x: Tensor, visible: Tensor | None = None) -> Tensor:
        """Embeddings of the patches, shape (rows, patches, width).

        Parameters
        ----------
        x : Tensor of shape (rows, channels, side, side)
        visible : Tensor of shape (rows, some), optional
            Indices of the patches that the encoder sees, row by row, counted from 0. Default: all patches.
        """
        tokens = self.embed_patch(self._patches(x)) + self.places
        if visible is not None:
            tokens = tokens.gather(1, visible[:, :, None].expand(-1, -1, tokens.shape[2]))
        return full_precision(self.encoder(tokens))

    def encode(self, x: Tensor) -> Tensor:
        """Representations of images, shape (rows, width)."""
        return self.embed(x).mean(dim=1)

    def decode(self, embeddings: Tensor, visible: Tensor | None = None) -> Tensor:
        """Reconstructed images from embeddings of patches; give the same `visible` as in `embed`."""
        return from_patches(self._predicted(embeddings, visible), self.patch)

    def draw_visible(self, rows: int) -> Tensor:
        """Draw the visible patches of each row, uniformly at random."""
        order = torch.rand(rows, self.patches, device=self.mask_token.device).argsort(dim=1)
        return order[:, self.hidden :]

    def forward(self, x: Tensor) -> Tensor:
        """The loss of a batch, with patches hidden at random."""
        return self.error(x, self.draw_visible(len(x)))

    def error(self, x: Tensor, visible: Tensor) -> Tensor:
        """Mean squared error over the patches that are not visible."""
        predicted, target = self._predicted(self.embed(x, visible), visible), self._patches(x)
        if self.normalise:
            target = (target - target.mean(dim=2, keepdim=True)) / (target.var(dim=2, keepdim=True) + 1e-6).sqrt()
        errors = (predicted - target).square().mean(dim=2)
        return errors.scatter(1, visible, 0.0).sum() / (len(x) * (self.patches - visible.shape[1]))

    def _patches(self, x: Tensor) -> Tensor:
        check_images(x, self.channels, self.side)
        return to_patches(x, self.patch)

    def _predicted(self, embeddings: Tensor, visible: Tensor | None) -> Tensor:
        tokens = self.narrow(embeddings)
        if visible is not None:
            everywhere = self.mask_token.to(tokens.dtype).expand(len(tokens), self.patches, -1)
            tokens = everywhere.scatter(1, visible[:, :, None].expand_as(tokens), tokens)
        return full_precision(self.tell(self.decoder(tokens + self.decoder_places)))
