"""WikiText-2 as numbers, for the experiments that learn from it."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from nearid.lab.data.load import load_sentences
from nearid.lab.data.texts import Vocabulary

# Splits that may be learnt from; the test split is held out.
SPLITS = ("train", "valid")


@dataclass(frozen=True, eq=False)
class Text:
    """Words of a split as numbers one after the other, those of the held-out split, and what they stand for."""

    vocabulary: Vocabulary
    learnt: NDArray[np.int32]
    unseen: NDArray[np.int32]


# Cells of one process read the same text.
@lru_cache(maxsize=1)
def wikitext(split: str, words: int) -> Text:
    """A split with its most frequent words, and the test split."""
    sentences = load_sentences("wikitext2", split=split)
    vocabulary = Vocabulary.of(sentences, words)
    return Text(vocabulary, vocabulary.stream(sentences), vocabulary.stream(load_sentences("wikitext2", split="test")))
