"""The log-bilinear word model with noise-contrastive estimation (Mnih & Teh 2012).

The words around a gap predict the word in it: f = sum over positions i of c_i * r(word_i), elementwise, and the score
of a word is <f, q(word)> + b(word). The softmax of these scores is p(word | context). To avoid the sum over all words,
training classifies the right word against noise words drawn from the corpus. It uses the scores as log p without a
normalising constant, so the probabilities sum to 1 only approximately.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from nearid.base.errors import InputError

# Deviation of the vectors at the start. It is small: runs that start near 0 first learn the strongest, common features.
START = 0.05


class LogBilinear(nn.Module):
    """A word model; calling it on contexts, targets and noise returns the loss.

    Parameters
    ----------
    shares : Tensor of shape (words,)
        Share of each word in the corpus, or its count; all above 0. Noise words must be drawn with these probabilities.
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
            raise InputError("Shares must be given for at least 2 words, and all must be above 0.")
        if min(width, places) < 1:
            raise InputError(
                f"A word model of width {width} with {places} places cannot be made: both must be at least 1."
            )
        self.register_buffer("log_share", (shares.double() / shares.sum()).log().float())
        self.log_share: Tensor
        self.context, self.target = nn.Embedding(len(shares), width), nn.Embedding(len(shares), width)
        for table in (self.context, self.target):
            if spread:
                nn.init.uniform_(table.weight, -spread, spread)
            else:
                nn.init.normal_(table.weight, std=START)
        self.weights = nn.Parameter(torch.ones(places, width))
        # The bias minus the log share. At 0, with no other score, the model gives the word frequencies of the corpus.
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
        """Scores of all words, shape (rows, words): their log p, which is normalised only approximately."""
        return self.encode(contexts) @ self.target.weight.T + self.bias

    def forward(self, contexts: Tensor, targets: Tensor, noise: Tensor) -> Tensor:
        """Loss of noise-contrastive estimation: classify the right word of each row against its noise words."""
        rows = len(contexts)
        if contexts.shape != (rows, len(self.weights)) or targets.shape != (rows,) or noise.shape[:-1] != (rows,):
            raise InputError(
                f"Contexts, targets and noise have shapes {tuple(contexts.shape)}, {tuple(targets.shape)} and "
                f"{tuple(noise.shape)}, but (rows, {len(self.weights)}), (rows,) and (rows, words) are expected."
            )
        words = torch.cat([targets[:, None], noise], dim=1)
        products = torch.bmm(self.target(words), self.encode(contexts)[:, :, None]).squeeze(2)
        # Log odds that a word is the right one: log p minus the log of its expected number in the noise.
        odds = products + self.excess[words] - math.log(noise.shape[1])
        loss: Tensor = (functional.softplus(-odds[:, 0]) + functional.softplus(odds[:, 1:]).sum(dim=1)).mean()
        return loss
