"""The sample of the Penn Treebank that comes with NLTK: sentences of the Wall Street Journal, parsed by hand."""

import re
from collections.abc import Iterator
from pathlib import Path

from nearid.base.errors import InputError
from nearid.lab.data.base import Corpus, RemoteFile, Sentences
from nearid.lab.data.texts import members

FILE = "treebank.zip"
# The same archive under another name.
RENAMED = "nltk_treebank.zip"
ARTICLES = 199
# The innermost brackets of a tree hold a tag and a word. The other brackets only give the structure.
PIECES = re.compile(r"\((?P<tag>[^\s()]+)\s+(?P<word>[^\s()]+)\)|(?P<bracket>[()])")
# The tag of traces: they mark the original place of a moved phrase and are not words.
TRACE = "-NONE-"
# How the treebank writes brackets of the newspaper text.
PRINTED = {"-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]", "``": '"', "''": '"'}


def read(folder: Path, parts: tuple[str, ...]) -> Sentences:
    """Return the words of each sentence as printed in the newspaper, in the order of the articles."""
    path = folder / FILE if (folder / FILE).is_file() else folder / RENAMED
    names = [f"treebank/combined/wsj_{article:04d}.mrg" for article in range(1, ARTICLES + 1)]
    sentences = []
    for name, text in zip(names, members(path, names), strict=True):
        sentences += list(_sentences(name, text))
    return sentences


def _sentences(name: str, text: str) -> Iterator[list[str]]:
    """The leaves of each tree; a tree ends where its first bracket closes."""
    depth, words = 0, list[str]()
    for piece in PIECES.finditer(text):
        if piece["word"]:
            if piece["tag"] != TRACE:
                words.append(_printed(piece["word"]))
        elif piece["bracket"] == "(":
            depth += 1
        else:
            depth -= 1
            if depth == 0:
                yield words
                words = []
        if depth < 0:
            break
    if depth or words:
        raise InputError(f"The brackets of {name} do not match: the file is damaged or does not contain trees.")


def _printed(word: str) -> str:
    return PRINTED.get(word) or word.replace("\\/", "/").replace("\\*", "*")


TREEBANK = Corpus(
    name="treebank",
    title="Penn Treebank sample",
    about="sentences of the Wall Street Journal",
    words=94_084,
    files=(
        RemoteFile(
            FILE,
            "https://raw.githubusercontent.com/nltk/nltk_data/gh-pages/packages/corpora/treebank.zip",
            checksum="sha256:9da92d76c3666cfb6cddeaed0f7e86b344cce0f0928a286d439e555f19c37399",
            checked_by="a program that uses NLTK's copy",
        ),
    ),
    licence="for use that is not commercial (a tenth of the Penn Treebank, LDC 1995)",
    citation="Marcus, Santorini, Marcinkiewicz: Building a Large Annotated Corpus of English: The Penn Treebank, 1993",
    homepage="https://www.nltk.org/nltk_data/",
    read=read,
    folders=("text",),
    layouts=((RENAMED,),),
)
