"""Texts: vocabularies that number words, and readers of text files in archives."""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import readable
from nearid.lab.data.base import AGAIN

# The first two words of every vocabulary: one replaces all unknown words, one marks the end of a sentence.
UNKNOWN, END = "<unk>", "<eos>"
# The largest file of these corpora has 11 MB.
MOST = 100_000_000


@dataclass(frozen=True)
class Vocabulary:
    """Words by number.

    Attributes
    ----------
    words : tuple of str
        The number of a word is its place; the first two are UNKNOWN and END.
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], size: int) -> Vocabulary:
        """Return the vocabulary of the most frequent words, in this order; `size` includes UNKNOWN and END."""
        if size < 3:
            raise InputError(
                f"A vocabulary needs at least 3 words, because {UNKNOWN} and {END} take two. size={size} was given."
            )
        counts = Counter(word for sentence in sentences for word in sentence if word not in (UNKNOWN, END))
        # Equally frequent words are sorted alphabetically, so that the order of the files does not matter.
        frequent = sorted(counts, key=lambda word: (-counts[word], word))
        return cls((UNKNOWN, END, *frequent[: size - 2]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of the words; 0 for words that are not in the vocabulary."""
        known = self.numbers
        return np.fromiter((known.get(word, 0) for word in words), np.int32, len(words))

    def stream(self, sentences: Iterable[Sequence[str]]) -> NDArray[np.int32]:
        """Numbers of the words of all sentences, one after the other, with END after each."""
        return self.ids([word for sentence in sentences for word in (*sentence, END)])


def members(path: Path, wanted: Iterable[str]) -> Iterator[str]:
    """Yield the texts (UTF-8) of the wanted files of a .zip archive; a file that is too large is refused."""
    with damage_told(path.name, "archive", AGAIN), zipfile.ZipFile(path) as archive:
        there = set(archive.namelist())
        for name in wanted:
            if name not in there:
                raise InputError(f"{path.name} does not contain {name}: it is a different archive.")
            size = archive.getinfo(name).file_size
            if size > MOST:
                raise InputError(f"{name!r} in {path.name} has {readable(size)}, too much for a text of this data set.")
            # zipfile unpacks at most the declared size and compares the checksum.
            yield archive.read(name).decode("utf-8")
