"""Words as numbers, and texts out of archives."""

import zipfile

import numpy as np
import pytest
from hypothesis import given, strategies as st

from nearid.base.errors import InputError
from nearid.lab.data.load import load, load_sentences
from nearid.lab.data.texts import END, UNKNOWN, Vocabulary, members

SENTENCES = [["b", "a", "b"], ["c", UNKNOWN, "b", "a"], ["d"]]


def test_the_most_frequent_words_come_first_and_ties_by_the_alphabet():
    made = Vocabulary.of(SENTENCES, 5)
    assert made.words == (UNKNOWN, END, "b", "a", "c") and len(made) == 5
    np.testing.assert_array_equal(made.ids(["a", "d", "b", UNKNOWN]), [3, 0, 2, 0])
    np.testing.assert_array_equal(made.stream(SENTENCES), [2, 3, 2, 1, 4, 0, 2, 3, 1, 0, 1])
    assert Vocabulary.of(SENTENCES[::-1], 5) == made


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=6), min_size=1, max_size=8), st.integers(3, 12))
def test_what_is_known_reads_back(sentences, size):
    made = Vocabulary.of(sentences, size)
    counts = {w: sum(s.count(w) for s in sentences) for w in "abcdefgh"}
    kept = set(made.words[2:])
    assert len(kept) == min(size - 2, sum(n > 0 for n in counts.values()))
    assert all(counts[k] >= counts[w] for k in kept for w in set(counts) - kept)
    for sentence in sentences:
        assert [made.words[i] for i in made.ids(sentence)] == [w if w in kept else UNKNOWN for w in sentence]


def test_a_vocabulary_without_room_is_refused():
    with pytest.raises(InputError, match="at least 3 words"):
        Vocabulary.of(SENTENCES, 2)


def test_texts_and_images_are_not_mistaken_for_each_other():
    with pytest.raises(InputError, match=r"MNIST holds images, not text: nearid\.load reads it"):
        load_sentences("mnist")
    with pytest.raises(InputError, match="WikiText-2 holds text, not images"):
        load("wikitext2")


def test_members_of_an_archive(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x", "one é")
        archive.writestr("y", "0" * 2000)
        archive.writestr("z", b"\xff\xfe")
    assert list(members(path, ["x"])) == ["one é"]
    with pytest.raises(InputError, match=r"a\.zip does not contain w"):
        list(members(path, ["x", "w"]))
    with pytest.raises(InputError, match="not a whole archive"):
        list(members(path, ["z"]))
    monkeypatch.setattr("nearid.lab.data.texts.MOST", 1000)
    with pytest.raises(InputError, match=r"'y' in a\.zip has 2 kB"):
        list(members(path, ["y"]))
    data = bytearray(path.read_bytes())
    data[33] ^= 255
    path.write_bytes(data)
    with pytest.raises(InputError, match="not a whole archive"):
        list(members(path, ["x"]))
