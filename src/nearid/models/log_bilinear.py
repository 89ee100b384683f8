"""The log-bilinear word model with noise-contrastive estimation (Mnih & Teh 2012).

The words around a gap predict the one in it: f = sum over places i of c_i * r(word_i), elementwise, and the score of a
word is <f, q(word)> + b(word). The softmax of these scores is p(word | those around); instead of the sum over all words
it is learnt by telling the right word from words drawn from the corpus. Scores are taken as log p themselves, without a
normalising constant, so that the probabilities sum to 1 only approximately.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.errors import InputError

# Deviation of the vectors at the start.
START = 0.05


class LogBilinear(nn.Module):
    """A word model whose call on contexts and targets gives the loss.

    Parameters
    ----------
    frequencies : Tensor of shape (words,)
        Of the words in the corpus, which is what noise is drawn from; all above 0.
    width : int
        Coordinates of a vector.
    places : int
        Words around a gap.
    noise : int
        Words drawn for each target.
    """

    def __init__(self, frequencies: Tensor, width: int, places: int, *, noise: int = 25) -> None:
        super().__init__()
        if frequencies.ndim != 1 or len(frequencies) < 2 or not bool((frequencies > 0).all()):
            raise InputError("Frequencies of words must be numbers above 0, of at least 2 words.")
        if min(width, places, noise) < 1:
            raise InputError(
                f"A word model of width {width} with {places} places and {noise} words of noise cannot be: all must be "
                "at least 1."
            )
        share = (frequencies / frequencies.sum()).double()
        self.register_buffer("log_share", share.log().float())
        self.register_buffer("cumulated", share.cumsum(0).float())
        self.log_share: Tensor
        self.cumulated: Tensor
        self.context, self.target = nn.Embedding(len(share), width), nn.Embedding(len(share), width)
        self.weights = nn.Parameter(torch.ones(places, width))
        # Without the rest of the score, words are as frequent as they are.
        self.bias = nn.Parameter(self.log_share.clone())
        self.noise = noise
        # Small: runs that start near 0 first learn the directions that tell most, and so the same ones.
        for table in (self.context, self.target):
            nn.init.normal_(table.weight, std=START)

    def extra_repr(self) -> str:
        """What tells two objectives apart."""
        return f"noise={self.noise}"

    def encode(self, contexts: Tensor) -> Tensor:
        """The vector f that the words around a gap predict, of shape (rows, width)."""
        return (self.context(contexts) * self.weights).sum(dim=1)

    def scores(self, predicted: Tensor, words: Tensor) -> Tensor:
        """Scores of some words for each row, less those of the noise: shape (rows, words)."""
        # A column for each word: one product of rows by as many small vectors.
        found = torch.bmm(self.target(words), predicted[:, :, None]).squeeze(2)
        return found + self.bias[words] - (self.log_share[words] + math.log(self.noise))

    def forward(self, contexts: Tensor, targets: Tensor) -> Tensor:
        """The loss of noise-contrastive estimation: the right word against `noise` drawn ones, for each row."""
        if contexts.ndim != 2 or contexts.shape[1] != len(self.weights) or targets.shape != contexts.shape[:1]:
            raise InputError(
                f"Contexts have shape {tuple(contexts.shape)} and targets {tuple(targets.shape)}, but (rows, "
                f"{len(self.weights)}) and (rows,) are expected."
            )
        uniform = torch.rand(len(targets), self.noise, device=targets.device)
        drawn = torch.searchsorted(self.cumulated, uniform).clamp_(max=len(self.log_share) - 1)
        scores = self.scores(self.encode(contexts), torch.cat([targets[:, None], drawn], dim=1))
        wrong = functional.softplus(scores[:, 1:]).sum(dim=1)
        found: Tensor = (functional.softplus(-scores[:, 0]) + wrong).mean()
        return found
