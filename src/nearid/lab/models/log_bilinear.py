"""The log-bilinear word model with noise-contrastive estimation (Mnih & Teh 2012).

The words around a gap predict the one in it: f = sum over places i of c_i * r(word_i), elementwise, and the score of a
word is <f, q(word)> + b(word). The softmax of these scores is p(word | those around). Instead of the sum over all
words, training tells the right word from noise, words that are drawn from the corpus. It takes scores for log p
themselves, without a normalising constant, so that the probabilities sum to 1 only approximately.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError

# Deviation of the vectors at the start. Small: runs that start near 0 first learn what tells most, and so the same.
START = 0.05


class LogBilinear(nn.Module):
    """A word model whose call on contexts, targets and noise gives the loss.

    Parameters
    ----------
    shares : Tensor of shape (words,)
        Share of each word in the corpus, or its count; all above 0. Noise is expected to be drawn by these.
    width : int
        Coordinates of a vector.
    places : int
        Words around a gap.
    spread : float
        Vectors are uniform between -spread and spread at the start; 0 for normal ones.
    """

    def __init__(self, shares: Tensor, width: int, places: int, spread: float = 0.0) -> None:
        super().__init__()
        if shares.ndim != 1 or len(shares) < 2 or not bool((shares > 0).all()):
            raise InputError("Shares of words must be numbers above 0, of at least 2 words.")
        if min(width, places) < 1:
            raise InputError(f"A word model of width {width} with {places} places cannot be: both must be at least 1.")
        self.register_buffer("log_share", (shares.double() / shares.sum()).log().float())
        self.log_share: Tensor
        self.context, self.target = nn.Embedding(len(shares), width), nn.Embedding(len(shares), width)
        for table in (self.context, self.target):
            if spread:
                nn.init.uniform_(table.weight, -spread, spread)
            else:
                nn.init.normal_(table.weight, std=START)
        self.weights = nn.Parameter(torch.ones(places, width))
        # The bias less log share. At 0 and without the rest of the score, words are as frequent as they are.
        self.excess = nn.Parameter(torch.zeros(len(shares)))

    @property
    def bias(self) -> Tensor:
        """The bias b of each word, shape (words,)."""
        return self.excess + self.log_share

    def encode(self, contexts: Tensor) -> Tensor:
        """The vector f that the words around a gap predict, of shape (rows, width)."""
        predicted: Tensor = (self.context(contexts) * self.weights).sum(dim=1)
        return predicted

    def log_scores(self, contexts: Tensor) -> Tensor:
        """Scores of all words, shape (rows, words): their log p, as far as it is normalised."""
        return self.encode(contexts) @ self.target.weight.T + self.bias

    def forward(self, contexts: Tensor, targets: Tensor, noise: Tensor) -> Tensor:
        """The loss of noise-contrastive estimation: the right word of each row against the noise of the row."""
        rows = len(contexts)
        if contexts.shape != (rows, len(self.weights)) or targets.shape != (rows,) or noise.shape[:-1] != (rows,):
            raise InputError(
                f"Contexts, targets and noise have shapes {tuple(contexts.shape)}, {tuple(targets.shape)} and "
                f"{tuple(noise.shape)}, but (rows, {len(self.weights)}), (rows,) and (rows, words) are expected."
            )
        words = torch.cat([targets[:, None], noise], dim=1)
        products = torch.bmm(self.target(words), self.encode(contexts)[:, :, None]).squeeze(2)
        # Log odds of a word to be the right one: log p less the log of its expected number in the noise.
        odds = products + self.excess[words] - math.log(noise.shape[1])
        loss: Tensor = (functional.softplus(-odds[:, 0]) + functional.softplus(odds[:, 1:]).sum(dim=1)).mean()
        return loss
