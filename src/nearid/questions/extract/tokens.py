"""Texts through a model's own tokeniser, in batches of similar lengths."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch

from nearid.base.alerts import Alert
from nearid.base.errors import InputError, type_of
from nearid.base.files import local_path
from nearid.questions.extract.batches import MASK, Batch, Source
from nearid.questions.extract.network import Network, quiet, reason
from nearid.questions.extract.onnx_network import OnnxNetwork
from nearid.questions.extract.texts import TOKENS, Texts, refuse_no_tokeniser
from nearid.questions.extract.words import WordTokens, lettered, word_tokens

OFFSETS = "offset_mapping"
# Texts that are tokenised at once.
CHUNK = 1024
# A text shorter than this share of the longest in a batch starts the next batch. Then at most a fourth is padding, and
# there are only a few more batches.
LIKE = 0.75
# Tokenisers without a limit return a huge number.
NO_LIMIT = 10**9


class TextSource(Source):
    """Texts as batches of tokens, the longest first, each padded to its own longest.

    A model without a mask would treat padding as tokens, so its batches have texts of one length.

    Parameters
    ----------
    tokenizer : transformers.PreTrainedTokenizerBase
    network : Network or OnnxNetwork
        The model, which says what its forward pass takes.
    pool : str
        How rows are made: one for each text, token or word.
    max_length : int, optional
        Largest number of tokens of a text. Default: as many as the model takes.
    """

    def __init__(
        self, texts: Texts, tokenizer: Any, network: Network | OnnxNetwork, *, pool: str, max_length: int | None = None
    ) -> None:
        self.name, self.rows, self.id_type, self.sha256 = texts.name, len(texts.texts), texts.ids.dtype, texts.digest()
        self._texts, self._tokenizer, self._by_words = texts, tokenizer, pool == "words"
        if self._by_words and not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"The tokeniser of {network.name} ({type(tokenizer).__name__}) does not give the letters of each "
                f"token, so tokens cannot be joined to words. Choose another pool (--pool)."
            )
        self._most = _limit(network, tokenizer, max_length)
        self._from_left = getattr(tokenizer, "truncation_side", "right") == "left"
        self._names = _names(network, tokenizer)
        self._pad = tokenizer.pad_token_id or 0
        self._like = LIKE if network.takes_mask else 1.0
        lengths, words, tokens, cut = self._measured()
        if self._by_words and words.sum() < 2:
            raise InputError(f"The texts of {self.name} have {words.sum()} words, but at least 2 rows are needed.")
        counts = words if self._by_words else lengths if pool == "tokens" else np.ones_like(lengths)
        self.total = int(counts.sum())
        self._spans = np.stack([np.cumsum(counts) - counts, counts], axis=1)
        self._lengths, self._order = lengths, np.argsort(-lengths, kind="stable")
        self.identity = {"texts": self.sha256, "tokens": tokens, "ids": hashlib.sha256(texts.ids.tobytes()).hexdigest()}
        self._about = {"tokenizer": type(tokenizer).__name__, "max_length": self._most, "cut": cut}
        self.alerts = texts.alerts
        if cut:
            sentence = (
                f"{cut:,} of {self.rows:,} texts ({cut / self.rows:.1%}) are longer than {self._most} tokens. nearid "
                f"left out their {'beginning' if self._from_left else 'end'}."
            )
            self.alerts += (Alert("truncated_texts", sentence),)

    def _measured(self) -> tuple[np.ndarray, np.ndarray, str, int]:
        """Tokens and words of each text, the hash of all tokens, and how many texts are cut."""
        hashed = hashlib.sha256()
        lengths, words, cut = [], [], 0
        for start in range(0, len(self._texts.texts), CHUNK):
            places = np.arange(start, min(start + CHUNK, len(self._texts.texts)))
            encoded = self._encoded(places)
            for tokens in encoded[TOKENS]:
                hashed.update(len(tokens).to_bytes(8, "little") + np.array(tokens, "<i8").tobytes())
            lengths += [len(tokens) for tokens in encoded[TOKENS]]
            short, dropped = self._cut(places, encoded)
            cut += int(np.sum(short))
            if self._by_words:
                words.append(self._words(places, encoded, dropped).counts(len(places)))
        if not min(lengths):
            at = int(np.argmin(lengths))
            raise InputError(f"The text with the id {self._texts.ids[at].item()!r} of {self.name} has no token.")
        return np.array(lengths), np.concatenate(words) if words else np.zeros(0, int), hashed.hexdigest(), cut

    def _encoded(self, places: np.ndarray, *, whole: bool = False) -> Mapping[str, Any]:
        options = {} if whole or self._most is None else {"truncation": True, "max_length": self._most}
        with quiet():
            return self._tokenizer(  # type: ignore[no-any-return]
                [self._texts.texts[at] for at in places],
                padding=False,
                return_offsets_mapping=self._by_words,
                **({"truncation": False} | options),
            )

    def _cut(self, places: np.ndarray, encoded: Mapping[str, Any]) -> tuple[np.ndarray, list[np.ndarray]]:
        """Which texts were cut and, for words, the letters of the tokens that were cut off."""
        full = np.array([len(tokens) == self._most for tokens in encoded[TOKENS]])
        dropped = [np.zeros((0, 2), np.int64)] * len(places)
        if full.any():
            at = np.flatnonzero(full)
            whole = self._encoded(places[full], whole=True)
            full[full] = [len(tokens) > int(self._most or 0) for tokens in whole[TOKENS]]
            for place, letters in zip(at, whole[OFFSETS] if self._by_words else (), strict=False):
                every, kept = lettered(letters), len(lettered(encoded[OFFSETS][place]))
                dropped[place] = every[: len(every) - kept] if self._from_left else every[kept:]
        return full, dropped

    def _words(self, places: np.ndarray, encoded: Mapping[str, Any], dropped: list[np.ndarray]) -> WordTokens:
        return word_tokens([self._texts.texts[at] for at in places], encoded[OFFSETS], dropped)

    def _cuts(self, size: int) -> Iterator[tuple[int, int]]:
        """First and end of each batch among the texts in the order of their lengths."""
        lengths = self._lengths[self._order]
        start = 0
        while start < len(lengths):
            # Negative, because the lengths are descending.
            like = int(np.searchsorted(-lengths, -self._like * lengths[start], side="right"))
            stop = min(start + size, max(like, start + 1))
            yield start, stop
            start = stop

    def count(self, size: int) -> int:
        return sum(1 for _ in self._cuts(size))

    def batches(self, size: int) -> Iterator[Batch]:
        for start, stop in self._cuts(size):
            places = self._order[start:stop]
            encoded = self._encoded(places)
            lengths = np.array([len(tokens) for tokens in encoded[TOKENS]])
            mask = np.arange(lengths.max()) < lengths[:, None]
            arrays = {name: self._padded(encoded[name], mask, name) for name in self._names if name in encoded}
            arrays[MASK] = torch.from_numpy(mask.astype(np.int64))
            words = self._words(places, encoded, self._cut(places, encoded)[1]) if self._by_words else None
            yield Batch(start, arrays, self._texts.ids[places], None, self._spans[places], words)

    def _padded(self, values: list[list[int]], mask: np.ndarray, name: str) -> torch.Tensor:
        padded = np.full(mask.shape, self._pad if name == TOKENS else 0, np.int64)
        padded[mask] = list(itertools.chain.from_iterable(values))
        return torch.from_numpy(padded)

    def described(self, first: Batch) -> dict[str, Any]:
        return {"text": {"dtype": "str", "shape": [], **self._about}}


def open_tokenizer(given: Any, model: Any, network: Network | OnnxNetwork, revision: str | None = None) -> Any:
    """The tokeniser of a model; its own code is never run.

    Parameters
    ----------
    given : str, path, tokeniser or None
        The user's choice instead of the model's own.
    model : Any
        The model, as it was given.
    """
    if given is not None and not isinstance(given, str | os.PathLike):
        if not callable(given) or not hasattr(given, "model_input_names"):
            raise InputError(
                f"tokenizer is {type_of(given)}, but a tokeniser of transformers, or its folder, is expected."
            )
        return given
    source = given if given is not None else _home(model, network)
    if source is None:
        raise InputError(
            f"nearid does not know the tokeniser of {network.name}. Name a folder or a model on the hub that has "
            "it: tokenizer (--tokenizer)."
        )
    refuse_no_tokeniser(source)
    from transformers import AutoTokenizer

    place = local_path(source)
    try:
        with quiet():
            tokenizer = AutoTokenizer.from_pretrained(
                str(place) if place.is_dir() else os.fspath(source),
                revision=(revision if given is None else None) or "main",
                local_files_only=place.is_dir(),
                trust_remote_code=False,
            )
    except Exception as error:  # what is raised for a missing or damaged tokeniser is not documented
        raise InputError(
            f"The tokeniser of {os.fspath(source)} cannot be loaded: {reason(error)}. Give another one that fits: "
            "tokenizer (--tokenizer)."
        ) from None
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise InputError(f"The tokeniser of {os.fspath(source)} has no vocabulary. Copy its files again.")
    return tokenizer


def _home(model: Any, network: Network | OnnxNetwork) -> str | os.PathLike[str] | None:
    """The folder or name that a transformers model comes from, or the folder of an ONNX file."""
    if isinstance(network, OnnxNetwork):
        return network.graph.path.parent
    if not network.pretrained:
        return None
    if isinstance(model, str | os.PathLike):
        return model
    return getattr(network.module, "name_or_path", None) or None


def _names(network: Network | OnnxNetwork, tokenizer: Any) -> list[str]:
    """Arrays that the tokeniser returns and the forward pass accepts."""
    if isinstance(network, OnnxNetwork):
        return [name for name in tokenizer.model_input_names if name in network.graph.inputs and name != MASK]
    try:
        taken = set(inspect.signature(network.module.forward).parameters)
    except (TypeError, ValueError):  # compiled code has no signature
        taken = {TOKENS}
    return [TOKENS, *(name for name in tokenizer.model_input_names if name in taken - {TOKENS, MASK})]


def _limit(network: Network | OnnxNetwork, tokenizer: Any, wanted: int | None) -> int | None:
    """Largest number of tokens of a text; None if neither the model nor its tokeniser has a limit."""
    limits = [tokenizer.model_max_length, _positions(network)]
    most = min((limit for limit in limits if limit is not None and limit < NO_LIMIT), default=None)
    if wanted is None:
        return most
    if most is not None and wanted > most:
        raise InputError(f"max_length is {wanted}, but {network.name} takes {most} tokens at most.")
    special = tokenizer.num_special_tokens_to_add()
    if wanted <= special:
        raise InputError(
            f"max_length is {wanted}, but each text needs {special} special tokens that mark its ends. "
            f"Give a larger number."
        )
    return wanted


def _positions(network: Network | OnnxNetwork) -> int | None:
    """Number of positions of a transformers model; some models count them from after the padding index."""
    if isinstance(network, OnnxNetwork):
        return None
    most = getattr(getattr(network.module, "config", None), "max_position_embeddings", None)
    if not isinstance(most, int) or most < 1:
        return None
    for name, module in network.module.named_modules():
        if name.rpartition(".")[2] == "position_embeddings" and isinstance(module, torch.nn.Embedding):
            return most if module.padding_idx is None else most - module.padding_idx - 1
    return most
