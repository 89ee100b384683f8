"""Words follow from the text alone; tokens belong to the words that they share letters with."""

import numpy as np

from nearid.questions.extract.words import spans, word_tokens


def words(text):
    return [text[a:b] for a, b in spans(text)]


def test_words_of_a_text():
    assert words("It's 12 o'clock, Ms. O_2!") == ["It", "s", "12", "o", "clock", "Ms", "O_2"]
    assert words("हिन्दी में café cafe\u0301") == ["हिन्दी", "में", "café", "cafe\u0301"]
    assert words("... --") == [] and spans("").shape == (0, 2)


def pairs(texts, offsets, dropped=()):
    lost = [np.array(each, np.int64).reshape(-1, 2) for each in dropped or [[]] * len(texts)]
    found = word_tokens(texts, offsets, lost)
    return list(zip(found.inputs.tolist(), found.words.tolist(), found.tokens.tolist(), strict=True)), found


def test_tokens_of_words():
    text = "the unbelievable, end"
    marks = [(0, 0), (0, 3), (4, 6), (6, 16), (16, 17), (17, 21), (0, 0)]
    entries, found = pairs([text, "x"], [marks, [(0, 1)]])
    # A token may begin with the space before its word; marks of the ends and commas belong to none.
    assert entries == [(0, 0, 1), (0, 1, 2), (0, 1, 3), (0, 2, 5), (1, 0, 0)]
    assert found.sizes.tolist() == [1, 2, 1, 1] and found.counts(2).tolist() == [3, 1]
    assert found.first(1).counts(1).tolist() == [3]
    # A token across two words belongs to both.
    assert pairs(["of the"], [[(0, 6)]])[0] == [(0, 0, 0), (0, 1, 0)]


def test_a_word_that_is_cut_is_none():
    text, marks = "the unbelievable", [(0, 3), (4, 6)]
    assert pairs([text], [marks])[0] == [(0, 0, 0), (0, 1, 1)]
    assert pairs([text], [marks], [[(6, 16)]])[0] == [(0, 0, 0)]
    # Its last letter, of which some bytes are a token that is missing; its beginning.
    assert pairs([text], [[(0, 3), (4, 16)]], [[(15, 16)]])[0] == [(0, 0, 0)]
    assert pairs([text], [[(1, 3), (4, 16)]], [[(0, 1)]])[0] == [(0, 1, 1)]


def test_texts_without_words():
    entries, found = pairs(["...", "a", ""], [[(0, 3)], [(0, 1)], []])
    assert entries == [(1, 0, 0)] and found.counts(3).tolist() == [0, 1, 0]
    empty = pairs(["?"], [[(0, 1)]])[1]
    assert len(empty.starts) == len(empty.sizes) == 0 and empty.counts(1).tolist() == [0]
