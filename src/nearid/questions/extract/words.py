"""Words of a text, and the tokens of each word for any tokeniser."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np


@cache
def _pattern() -> re.Pattern[str]:
    r"""Runs of letters, digits, underscores and the marks that go with letters.

    \w alone would cut words of Hindi or Thai at their vowel signs.
    """
    marks = "".join(chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code))[0] == "M")
    return re.compile(rf"[\w{marks}]+")


def spans(text: str) -> np.ndarray:
    """Start and end of every word, of shape (words, 2); they depend only on the text."""
    return np.array([match.span() for match in _pattern().finditer(text)], np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class WordTokens:
    """Which tokens of a batch belong to which words, with one entry per pair of a word and a token.

    The entries are sorted by input and word.

    Attributes
    ----------
    inputs : ndarray of shape (k,)
        Index of the text in the batch.
    tokens : ndarray of shape (k,)
        Index of the token in its text.
    words : ndarray of shape (k,)
        Number of the word in its text.
    """

    inputs: np.ndarray
    tokens: np.ndarray
    words: np.ndarray

    def first(self, count: int) -> WordTokens:
        """The words of the first few inputs."""
        kept = self.inputs < count
        return WordTokens(self.inputs[kept], self.tokens[kept], self.words[kept])

    @property
    def starts(self) -> np.ndarray:
        """The first entry of every word that has a token; each of these words is a row."""
        if not len(self.inputs):
            return np.zeros(0, np.int64)
        other = (np.diff(self.inputs) != 0) | (np.diff(self.words) != 0)
        return np.concatenate([[0], np.flatnonzero(other) + 1])

    @property
    def sizes(self) -> np.ndarray:
        """Tokens of every word."""
        return np.diff(np.append(self.starts, len(self.inputs)))

    def counts(self, n: int) -> np.ndarray:
        """Words with a token of each of n inputs."""
        return np.bincount(self.inputs[self.starts], minlength=n)


def lettered(offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """Start and end of each token with at least one letter, of shape (tokens, 2)."""
    places = np.array(offsets, np.int64).reshape(-1, 2)
    return places[places[:, 1] > places[:, 0]]


def word_tokens(
    texts: Sequence[str], offsets: Sequence[Sequence[tuple[int, int]]], dropped: Sequence[np.ndarray]
) -> WordTokens:
    """Tokens that share a letter with a word; a token across two words belongs to both.

    Parameters
    ----------
    offsets : sequence of sequences of (int, int)
        Start and end of each token of each text; equal for tokens without letters.
    dropped : sequence of ndarray of shape (m, 2)
        The same for the tokens that were cut off because the text is too long. Words that share a letter with one of
        them are left out (a letter may belong to several tokens).
    """
    parts = [
        np.vstack([np.full(len(pairs), at), pairs.T])
        for at, (text, places, lost) in enumerate(zip(texts, offsets, dropped, strict=True))
        for pairs in [_whole(spans(text), np.array(places, np.int64).reshape(-1, 2), lost)]
    ]
    inputs, tokens, words = np.concatenate(parts, axis=1).astype(np.int64)
    return WordTokens(inputs, tokens, words)


def _whole(words: np.ndarray, tokens: np.ndarray, lost: np.ndarray) -> np.ndarray:
    """Pairs of tokens and words, only of words whose tokens are complete."""
    pairs = _pairs(words, tokens)
    return pairs[~np.isin(pairs[:, 1], _pairs(words, lost)[:, 1])]


def _pairs(words: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Places of tokens and numbers of words, of shape (k, 2), sorted by word."""
    real = np.flatnonzero(tokens[:, 1] > tokens[:, 0])
    if not len(words) or not len(real):
        return np.zeros((0, 2), np.int64)
    begin, end = tokens[real].T
    first = np.searchsorted(words[:, 1], begin, side="right")
    last = np.searchsorted(words[:, 0], end, side="left")
    count = np.maximum(last - first, 0)
    token = np.repeat(real, count)
    word = np.repeat(first, count) + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    order = np.argsort(word, kind="stable")
    return np.stack([token[order], word[order]], axis=1)
