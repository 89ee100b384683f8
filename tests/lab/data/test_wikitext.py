"""WikiText-2 in both arrangements."""

import zipfile

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.load import load_sentences
from nearid.lab.data.registry import dataset, find

TEXTS = {part: f" \n = The {part} = \n \n It is @-@ one <unk> . \n" for part in ("train", "valid", "test")}


def canonical(folder):
    with zipfile.ZipFile(folder / "wikitext-2-v1.zip", "w") as archive:
        archive.writestr("wikitext-2/", "")
        for part, text in TEXTS.items():
            archive.writestr(f"wikitext-2/wiki.{part}.tokens", text)


def other(folder):
    with zipfile.ZipFile(folder / "wikitext2_train_valid.zip", "w") as archive:
        for part in ("train", "valid"):
            archive.writestr(f"wikitext2/{part}.txt", TEXTS[part])
    (folder / "wikitext2_test.txt").write_text(TEXTS["test"], encoding="utf-8")


@pytest.mark.parametrize("write, folder", [(canonical, "wikitext2"), (other, "text"), (other, "wikitext2")])
def test_lines_of_words(home, write, folder):
    write(home(folder))
    for part in TEXTS:
        assert load_sentences("wikitext2", split=part) == [
            ["=", "The", part, "="],
            ["It", "is", "@-@", "one", "<unk>", "."],
        ]
    assert [s[2] for s in load_sentences("wikitext2")[::2]] == list(TEXTS)


def test_what_is_missing_is_told(home):
    with pytest.raises(InputError, match="nearid data fetch wikitext2"):
        load_sentences("wikitext2")
    with pytest.raises(InputError, match="has the splits train, valid, test"):
        load_sentences("wikitext2", split="dev")
    other(home("text"))
    (home("text") / "wikitext2_test.txt").write_bytes(b"\xff")
    with pytest.raises(InputError, match="not a whole text"):
        load_sentences("wikitext2", split="test")


def test_the_real_one():
    if find(dataset("wikitext2")) is None:
        pytest.skip("WikiText-2 is not here: nearid data fetch wikitext2")
    # Tokens of the splits as its authors count them, less the ends of lines.
    counts = {part: sum(map(len, load_sentences("wikitext2", split=part))) for part in TEXTS}
    assert counts == {"train": 2_088_628 - 36_718, "valid": 217_646 - 3_760, "test": 245_569 - 4_358}
    assert sum(counts.values()) == dataset("wikitext2").words
