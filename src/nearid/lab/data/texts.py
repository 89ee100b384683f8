"""Texts: words as numbers, and the reading of files in archives."""

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

# The first words of every vocabulary: what stands for all others, and for the end of a sentence.
UNKNOWN, END = "<unk>", "<eos>"
# Far above any file of these corpora, the largest of which has 11 MB.
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
        """The most frequent words of some sentences, in that order; `size` counts UNKNOWN and END, too."""
        if size < 3:
            raise InputError(f"A vocabulary of {size} words has no room for any beside {UNKNOWN} and {END}.")
        counts = Counter(word for sentence in sentences for word in sentence if word not in (UNKNOWN, END))
        # Words of one count in the order of the alphabet, so that files in another order give the same numbers.
        frequent = sorted(counts, key=lambda word: (-counts[word], word))
        return cls((UNKNOWN, END, *frequent[: size - 2]))

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Number of each word."""
        return {word: number for number, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def ids(self, words: Sequence[str]) -> NDArray[np.int32]:
        """Numbers of some words; 0 for those that the vocabulary does not have."""
        known = self.numbers
        return np.fromiter((known.get(word, 0) for word in words), np.int32, len(words))

    def stream(self, sentences: Iterable[Sequence[str]]) -> NDArray[np.int32]:
        """Numbers of the words of all sentences, one after the other, with END after each."""
        return self.ids([word for sentence in sentences for word in (*sentence, END)])


def members(path: Path, wanted: Iterable[str]) -> Iterator[str]:
    """Texts (UTF-8) of some files of a .zip archive; one that is too large to be what it should is refused."""
    with damage_told(path.name, "archive", AGAIN), zipfile.ZipFile(path) as archive:
        there = set(archive.namelist())
        for name in wanted:
            if name not in there:
                raise InputError(f"{path.name} lacks {name}: it is another archive.")
            size = archive.getinfo(name).file_size
            if size > MOST:
                raise InputError(f"{path.name} declares {readable(size)} for {name!r}, which is no text of this set.")
            # No more than is declared is unpacked, and the checksum of the format is compared.
            yield archive.read(name).decode("utf-8")
