"""What is at a path: its format, the entry that is named after it, its arrays by name."""

import os
from pathlib import Path

from nearid.arrays.formats.registry import FORMATS, Contents, Format, format_of, suffixes
from nearid.arrays.reading import missing, reached
from nearid.base.errors import InputError
from nearid.base.files import local_path

_PICKLES = (".pkl", ".pickle", ".joblib")


def known_format(path: Path) -> Format:
    """The format of what is at a path; refuses what is not there, and what cannot be opened."""
    if not os.path.exists(path):
        raise missing(path)
    if path.suffix.lower() in _PICKLES:
        raise InputError(
            f"{path.name} is a pickle, which could run code when loaded; nearid never unpickles. "
            "Save the numbers instead, for example with np.save('rows.npy', x) or DataFrame.to_parquet(path)."
        )
    known = format_of(path)
    if path.is_dir() and not (known is not None and known.is_folder):
        folders = " or ".join(f"*{suffix}" for each in FORMATS if each.is_folder for suffix in each.suffixes)
        raise InputError(f"{path} is a directory, but a file (or a directory named {folders}) is expected.")
    if known is None:
        raise InputError(f"{path.name} has no suffix that can be opened. Supported: {', '.join(suffixes())}.")
    if known.is_folder and not path.is_dir():
        raise InputError(f"{path} is not a {known.suffixes[0][1:]} directory.")
    if not known.is_folder:
        if not path.is_file():
            raise InputError(f"{path} is not a regular file.")
        # Where it may not be read, some libraries would call it damaged.
        path.open("rb").close()
    return known


def open_contents(source: str | os.PathLike[str]) -> Contents:
    """The arrays of a file of any format by name, of any shape."""
    path = local_path(source)
    with reached(path):
        return known_format(path).contents_of(os.path.abspath(path), path.name)


def split_key(source: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """A path, and the entry that is named after it as in model.pt:linear.weight or run:layer3."""
    text = os.fspath(source)
    path = local_path(text)
    before, colon, after = text.rpartition(":")
    # A name may hold colons, too: run:a:b is the layer a:b of run.
    while colon and not os.path.exists(path):
        if after and os.path.exists(local_path(before)):
            return local_path(before), after
        before, colon, more = before.rpartition(":")
        after = f"{more}:{after}"
    return path, None
