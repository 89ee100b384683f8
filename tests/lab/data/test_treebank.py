"""The sample of the Penn Treebank."""

import zipfile

import pytest

from nearid.base.errors import InputError
from nearid.lab.data.load import load_sentences
from nearid.lab.data.registry import dataset, find
from nearid.lab.data.treebank import ARTICLES

TREES = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Doe) )
    (VP (VBZ says) (-LRB- -LRB-) (`` ``)
      (S (-NONE- *T*-1) ) (CD 1\\/2) ('' '') (-RRB- -RRB-) )
    (. .) ))
( (FRAG (UH Yes) ))
"""


def write(folder, name="treebank.zip", text=TREES, articles=ARTICLES):
    with zipfile.ZipFile(folder / name, "w") as archive:
        archive.writestr("treebank/README", "(not (a tree")
        for article in range(1, articles + 1):
            archive.writestr(f"treebank/combined/wsj_{article:04d}.mrg", text)


@pytest.mark.parametrize("folder, name", [("treebank", "treebank.zip"), ("text", "nltk_treebank.zip")])
def test_leaves_of_trees_as_they_are_printed(home, folder, name):
    write(home(folder), name)
    found = load_sentences("treebank")
    assert found[:2] == [["Mr.", "Doe", "says", "(", '"', "1/2", '"', ")", "."], ["Yes"]]
    assert len(found) == 2 * ARTICLES


@pytest.mark.parametrize("text", [TREES[:-4], TREES + ")", "(NN alone)"])
def test_brackets_that_do_not_match_are_told(home, text):
    write(home("treebank"), text=text)
    with pytest.raises(InputError, match=r"brackets of treebank/combined/wsj_0001\.mrg do not match"):
        load_sentences("treebank")


def test_a_missing_article_is_told(home):
    write(home("treebank"), articles=100)
    with pytest.raises(InputError, match=r"does not contain treebank/combined/wsj_0101\.mrg"):
        load_sentences("treebank")


def test_the_real_one():
    if find(dataset("treebank")) is None:
        pytest.skip("The Penn Treebank sample is not here: nearid data fetch treebank")
    found = load_sentences("treebank")
    # As many as NLTK's reader finds.
    assert len(found) == 3914 and sum(map(len, found)) == dataset("treebank").words
    assert (
        " ".join(found[0]) == "Pierre Vinken , 61 years old , will join the board as a nonexecutive director Nov. 29 ."
    )
    assert not any(word.startswith("*") or word in ("``", "-LRB-") for s in found for word in s if word != "*")
