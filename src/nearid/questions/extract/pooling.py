"""Pool the output of a layer (maps, sequences or vectors) to one row for each input or token."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from nearid.base.errors import InputError
from nearid.questions.extract.words import WordTokens

# Tensor of shape (n, ...) and mask of shape (n, t) or None -> tensor of shape (n, d).
Pooler = Callable[[Tensor, Tensor | None], Tensor]


# Modules whose output has channels before positions even with three axes.
CHANNELS_FIRST = (
    nn.Conv1d,
    nn.ConvTranspose1d,
    nn.BatchNorm1d,
    nn.InstanceNorm1d,
    nn.MaxPool1d,
    nn.AvgPool1d,
    nn.AdaptiveAvgPool1d,
    nn.AdaptiveMaxPool1d,
)
# Modules whose output with three axes has tokens. All other modules follow the last one of both kinds.
TOKENS_FIRST = (nn.Linear, nn.LayerNorm, nn.Embedding, nn.MultiheadAttention, nn.RNNBase)
# Largest number of positions in an input; they take the lower 20 bits of an integer id.
PLACES = 1 << 20


def pool_name(pool: str | Pooler) -> str:
    """Name of a pooling in the provenance."""
    return pool if isinstance(pool, str) else f"{pool.__module__}.{getattr(pool, '__qualname__', type(pool).__name__)}"


def pooled(
    layer: str,
    x: Tensor,
    n: int,
    pool: str | Pooler,
    mask: Tensor | None,
    *,
    maps: bool = False,
    words: WordTokens | None = None,
) -> Tensor:
    """Rows of shape (n, d), or one per token or word with pool "tokens" or "words"; they may share memory with x.

    Parameters
    ----------
    layer : str
        For the messages.
    x : Tensor of shape (n, ...)
        (n, d): used as it is. (n, t, d): tokens. (n, c, h, w) and more axes: maps of c channels.
    n : int
        Inputs in the batch.
    mask : Tensor of bool, shape (n, t), or None
        True for tokens, False for padding.
    maps : bool
        Whether three axes are a map (n, c, positions) rather than tokens.
    words : WordTokens, optional
        The tokens of each word, for pool "words".
    """
    if 0 in x.shape:
        raise InputError(f"The layer {layer} gave shape {tuple(x.shape)}, which contains no numbers. Leave it out.")
    if x.dtype.itemsize < 4 or not x.dtype.is_floating_point:
        x = x.float()
    if not isinstance(pool, str):
        rows = pool(x, mask)
        if rows.ndim != 2 or len(rows) != n or not rows.shape[1]:
            raise InputError(
                f"The pool function returned shape {tuple(rows.shape)} for {tuple(x.shape)} at the layer {layer}, but "
                f"({n}, width) is expected."
            )
        return rows
    if x.ndim == 0 or x.shape[0] != n:
        raise InputError(
            f"The layer {layer} gave shape {tuple(x.shape)} for {n} inputs, but the first axis must have one entry "
            f"per input. Leave the layer out, or transpose it in your own pool function."
        )
    if x.ndim == 1:
        x = x[:, None]
    if pool == "flatten":
        return x.flatten(1)
    if x.ndim == 3 and not maps:
        _refuse_other_mask(layer, x, mask)
        return _tokens(layer, x, pool, mask) if words is None else _words(x, words)
    if pool == "mean":
        return x if x.ndim == 2 else x.flatten(2).mean(2)
    if x.ndim == 2 and pool not in ("tokens", "words"):
        return x
    raise InputError(
        f"The layer {layer} gives shape {tuple(x.shape)}, which has no tokens to pool by {pool!r}. Use mean (over "
        "positions) or flatten, or leave the layer out."
    )


def _refuse_other_mask(layer: str, x: Tensor, mask: Tensor | None) -> None:
    if mask is not None and mask.shape != x.shape[:2]:
        raise InputError(
            f"The layer {layer} gives {x.shape[1]} positions, but the mask is for {mask.shape[1]} tokens. Leave the "
            "layer out, or pool with a function of your own."
        )


def _words(x: Tensor, words: WordTokens) -> Tensor:
    """The mean over the tokens of each word."""
    inputs, tokens, sizes = (torch.from_numpy(each).to(x.device) for each in (words.inputs, words.tokens, words.sizes))
    if not len(sizes):  # texts without a complete word
        return x[inputs, tokens]
    return torch.segment_reduce(x[inputs, tokens], "mean", lengths=sizes)


def _tokens(layer: str, x: Tensor, pool: str, mask: Tensor | None) -> Tensor:
    n, t, _ = x.shape
    if pool == "patches":
        if t < 2:
            raise InputError(
                f"The layer {layer} gives {t} token, but pool 'patches' needs tokens after the class token."
            )
        if mask is None:
            x, t = x[:, 1:], t - 1
        else:
            # The class token is the first token after the padding.
            mask = mask & (mask.cumsum(1) > 1)
    if mask is None or bool(mask.all()):
        if pool == "tokens":
            return x.flatten(0, 1)
        return x.mean(1) if pool in ("mean", "patches") else x[:, -1 if pool == "last" else 0]
    if pool == "tokens":
        return x[mask]
    if pool in ("mean", "patches"):
        # Values at padding may be anything, even NaN.
        return x.masked_fill(~mask[:, :, None], 0).sum(1) / mask.sum(1, keepdim=True)
    rows = mask.int()
    at = t - 1 - rows.flip(1).argmax(1) if pool == "last" else rows.argmax(1)
    return x[list(range(n)), at]


def token_id_type(ids: np.dtype[Any]) -> np.dtype[Any]:
    """Type of the ids of tokens, given the type of the ids of inputs."""
    if ids.kind == "U":
        return np.dtype(f"<U{ids.itemsize // 4 + 1 + len(str(PLACES))}")
    return np.dtype(np.int64)


def token_ids(ids: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """Ids of the tokens without padding: id x 2^20 + position, or "id:position" if ids are text.

    Parameters
    ----------
    ids : ndarray of shape (n,)
    mask : ndarray of bool, shape (n, t)
    """
    row, place = np.nonzero(mask)
    # Positions count real tokens, so they do not depend on the side of the padding.
    return place_ids(ids[row], place - mask.argmax(axis=1)[row])


def word_ids(ids: np.ndarray, words: WordTokens) -> tuple[np.ndarray, np.ndarray]:
    """Ids of the words that have a token (from the id of the text and the number of the word), and the texts' ids."""
    text = ids[words.inputs[words.starts]]
    return place_ids(text, words.words[words.starts]), text


def place_ids(ids: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Ids of parts of inputs: id x 2^20 + position, or "id:position" if ids are text.

    Parameters
    ----------
    ids : ndarray of shape (n,)
        Of the input that each part is of.
    place : ndarray of shape (n,)
        Of the part in its input.
    """
    if ids.dtype.kind == "U":
        joined = np.char.add(np.char.add(ids, ":"), place.astype(np.str_))
        return joined.astype(token_id_type(ids.dtype))
    if place.max(initial=0) >= PLACES or ids.min(initial=0) < 0 or ids.max(initial=0) >= 2**63 // PLACES:
        raise InputError(
            f"Ids of tokens need input ids from 0 to {2**63 // PLACES - 1} and positions below {PLACES}. Use text ids."
        )
    return np.asarray(ids.astype(np.int64) * PLACES + place)
