"""A small GPT-2 (Radford et al. 2019): causal attention over learnt embeddings of tokens and positions.

The output vectors equal the input vectors (tied weights), and there is no bias. So p(token | previous tokens) is the
softmax of <g(token), f(previous tokens)>, with f the last hidden state. This is the model of linear identifiability.
"""

import math

from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.lab.models.autoencoders.transformer import Block
from nearid.lab.models.objectives import full_precision
from nearid.lab.models.similarity import Dot, mean_log_partition

# Deviation of the weights at the start.
SPREAD = 0.02


class GPT(nn.Module):
    """A language model; calling it on rows of tokens returns the loss.

    Parameters
    ----------
    tokens : int
        Size of the vocabulary.
    width : int
        Coordinates of a hidden state.
    depth : int
        Blocks.
    heads : int
        A divisor of the width.
    context : int
        Largest number of tokens in a row.
    """

    def __init__(self, tokens: int, width: int, depth: int, heads: int, context: int) -> None:
        super().__init__()
        if min(tokens, width, depth, heads, context) < 1 or width % heads:
            raise InputError(
                f"A GPT of {tokens} tokens, width {width}, depth {depth}, {heads} heads and context {context} cannot "
                f"be made: all must be at least 1, and the width must be a multiple of the heads."
            )
        self.tokens, self.places = nn.Embedding(tokens, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, causal=True) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        for layer in self.modules():
            if isinstance(layer, nn.Linear | nn.Embedding):
                nn.init.normal_(layer.weight, std=SPREAD)
            if isinstance(layer, nn.Linear):
                nn.init.zeros_(layer.bias)
        # Every block adds to the residual stream twice. With this scale the sum has the same size at any depth.
        for name, p in self.named_parameters():
            if name.endswith(("merge.weight", "perceptron.2.weight")):
                nn.init.normal_(p, std=SPREAD / math.sqrt(2 * depth))

    @property
    def head(self) -> Tensor:
        """The vector g of each token, shape (tokens, width)."""
        return self.tokens.weight

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters without weight decay: all except the matrices of the blocks, as usual."""
        return [p for name, p in self.named_parameters() if p.ndim < 2 or not name.startswith("blocks")]

    def hidden_states(self, ids: Tensor) -> list[Tensor]:
        """All depth + 1 hidden states of rows of tokens, each of shape (rows, length, width).

        The first is the embedding, the others are the outputs of the blocks. The last one is normalised, and the head
        is multiplied with it.
        """
        length, longest = ids.shape[1], self.places.num_embeddings
        if length > longest:
            raise InputError(f"Rows of {length} tokens are too long: this model takes at most {longest}.")
        state = self.tokens(ids) + self.places.weight[:length]
        states = [state]
        for block in self.blocks:
            state = block(state)
            states.append(state)
        states[-1] = self.norm(state)
        return states

    def forward(self, ids: Tensor) -> Tensor:
        """Mean cross-entropy of each token given the tokens before it; the first token of a row is not predicted."""
        if ids.ndim != 2 or ids.shape[1] < 2 or ids.is_floating_point():
            raise InputError(
                f"Tokens have shape {tuple(ids.shape)}, but whole numbers of shape (rows, 2 or more) are expected."
            )
        least, most = (int(end) for end in ids.aminmax())
        if least < 0 or most >= len(self.head):
            raise InputError(f"Tokens run from {least} to {most}, but the vocabulary has 0 to {len(self.head) - 1}.")
        features = full_precision(self.hidden_states(ids[:, :-1])[-1].flatten(0, 1))
        right = self.head[ids[:, 1:].flatten()]
        dot = Dot(1.0)
        return mean_log_partition(features, self.head, dot) - dot.pairs(features, right).mean()
