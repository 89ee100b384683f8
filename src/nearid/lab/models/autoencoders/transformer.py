"""Parts of small transformers: blocks with attention, positions of patches, images as rows of patches."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Block(nn.Module):
    """Attention among the tokens of a row, then a perceptron for each token (pre-norm, with residual connections).

    Parameters
    ----------
    width : int
        Coordinates of a token.
    heads : int
        A divisor of the width.
    causal : bool
        Whether a token sees only itself and the tokens before it.
    """

    def __init__(self, width: int, heads: int, *, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before_attention, self.before_perceptron = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        tokens = tokens + self.attend(self.before_attention(tokens))
        output: Tensor = tokens + self.perceptron(self.before_perceptron(tokens))
        return output

    def attend(self, tokens: Tensor) -> Tensor:
        """Replace every token by a weighted mean of the tokens of its row that it sees, head by head."""
        # (rows, tokens, 3 width) to three of (rows, heads, tokens, width / heads).
        split = self.project(tokens).unflatten(2, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        query, key, value = split.unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        attended: Tensor = self.merge(mixed.transpose(1, 2).flatten(2))
        return attended


def blocks(depth: int, width: int, heads: int) -> nn.Sequential:
    """A sequence of `depth` blocks with a normalisation at the end."""
    return nn.Sequential(*(Block(width, heads) for _ in range(depth)), nn.LayerNorm(width))


def positions(grid: int, width: int) -> Tensor:
    """Sines and cosines of the places in a square grid, row by row, shape (grid^2, width); half of it for each axis.

    Parameters
    ----------
    grid : int
        Patches along a side.
    width : int
        A multiple of 4.
    """
    frequencies = 10_000 ** -(torch.arange(width // 4, dtype=torch.float64) / (width // 4))
    angles = torch.arange(grid, dtype=torch.float64)[:, None] * frequencies
    axis = torch.cat([angles.sin(), angles.cos()], dim=1)
    down, across = axis[:, None].expand(-1, grid, -1), axis.expand(grid, -1, -1)
    return torch.cat([down, across], dim=2).flatten(0, 1).float()


def to_patches(images: Tensor, patch: int) -> Tensor:
    """Square images (rows, channels, side, side) as (rows, patches, channels * patch^2), row by row."""
    patches = functional.pixel_unshuffle(images, patch)
    return patches.flatten(2).transpose(1, 2)


def from_patches(patches: Tensor, patch: int) -> Tensor:
    """Assemble images from their patches; the inverse of `to_patches`."""
    grid = round(patches.shape[1] ** 0.5)
    return functional.pixel_shuffle(patches.transpose(1, 2).unflatten(2, (grid, grid)), patch)
