"""Paths: the format of a file, the entry that follows a path, and the named arrays of a file."""

import os
from pathlib import Path

from nearid.arrays.formats.registry import FORMATS, Contents, Format, format_of, suffixes
from nearid.arrays.reading import missing, reached
from nearid.base.errors import InputError
from nearid.base.files import local_path

_PICKLES = (".pkl", ".pickle", ".joblib")


def known_format(path: Path) -> Format:
    """Return the format of the file at a path. Missing files and unknown formats raise an InputError."""
    if not os.path.exists(path):
        raise missing(path)
    if path.suffix.lower() in _PICKLES:
        raise InputError(
            f"{path.name} is a pickle, which could run code when it is loaded, so nearid never unpickles. "
            "Save the numbers instead, for example with np.save('rows.npy', x) or DataFrame.to_parquet(path)."
        )
    known = format_of(path)
    if path.is_dir() and not (known is not None and known.is_folder):
        folders = " or ".join(f"*{suffix}" for each in FORMATS if each.is_folder for suffix in each.suffixes)
        raise InputError(f"{path} is a directory, but a file or a directory named {folders} is expected.")
    if known is None:
        raise InputError(f"{path.name} has no suffix that nearid can open. Supported: {', '.join(suffixes())}.")
    if known.is_folder and not path.is_dir():
        raise InputError(f"{path} is not a {known.suffixes[0][1:]} directory.")
    if not known.is_folder:
        if not path.is_file():
            raise InputError(f"{path} is not a regular file.")
        # Without read permission, some libraries would report a damaged file.
        path.open("rb").close()
    return known


def open_contents(source: str | os.PathLike[str]) -> Contents:
    """Return the named arrays of a file of any format. The arrays may have any shape."""
    path = local_path(source)
    with reached(path):
        return known_format(path).contents_of(os.path.abspath(path), path.name)


def split_key(source: str | os.PathLike[str]) -> tuple[Path, str | None]:
    """Split "model.pt:linear.weight" or "run:layer3" into the path and the entry; the entry is None without one."""
    text = os.fspath(source)
    path = local_path(text)
    before, colon, after = text.rpartition(":")
    # Names may contain colons: run:a:b is the layer a:b of run.
    while colon and not os.path.exists(path):
        if after and os.path.exists(local_path(before)):
            return local_path(before), after
        before, colon, more = before.rpartition(":")
        after = f"{more}:{after}"
    return path, None
