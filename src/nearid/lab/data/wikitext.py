"""WikiText-2: good articles of Wikipedia, split into words. The source replaces rare words by <unk>."""

from pathlib import Path

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.lab.data.base import AGAIN, Corpus, RemoteFile, Sentences
from nearid.lab.data.texts import MOST, members

FILE = "wikitext-2-v1.zip"
SPLITS = ("train", "valid", "test")
# Another arrangement in circulation: training and validation in an archive, the test split beside it.
ARCHIVE, TEST = "wikitext2_train_valid.zip", "wikitext2_test.txt"


def read(folder: Path, parts: tuple[str, ...]) -> Sentences:
    """Return the words of each nonempty line: a paragraph, or a heading between equals signs."""
    texts = [_text(folder, part) for part in parts]
    return [words for text in texts for line in text.split("\n") if (words := line.split())]


def _text(folder: Path, part: str) -> str:
    if (folder / FILE).is_file():
        [text] = members(folder / FILE, [f"wikitext-2/wiki.{part}.tokens"])
    elif part != "test":
        [text] = members(folder / ARCHIVE, [f"wikitext2/{part}.txt"])
    else:
        path = folder / TEST
        with damage_told(TEST, "text", AGAIN):
            if path.stat().st_size > MOST:
                raise InputError(f"{TEST} is too large: it cannot be the test split of WikiText-2.")
            text = path.read_text(encoding="utf-8")
    return text


WIKITEXT2 = Corpus(
    name="wikitext2",
    title="WikiText-2",
    about="articles of Wikipedia, cut into words",
    words=2_507_007,
    files=(
        RemoteFile(
            FILE,
            "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip",
            checksum="md5:542ccefacc6c27f945fb54453812b3cd",
            checked_by="torchtext",
        ),
    ),
    licence="CC BY-SA 3.0",
    citation="Merity, Xiong, Bradbury, Socher: Pointer Sentinel Mixture Models, 2016",
    homepage="https://huggingface.co/datasets/Salesforce/wikitext",
    read=read,
    splits=SPLITS,
    folders=("text",),
    layouts=((ARCHIVE, TEST),),
)
