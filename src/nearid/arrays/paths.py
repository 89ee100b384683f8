"""Paths and addresses: the format of a file, the entry that follows a path, and the named arrays of a file."""

import os
import re
from pathlib import Path

from nearid.arrays.formats.registry import FORMATS, Contents, Format, format_of, suffixes
from nearid.arrays.reading import missing, reached
from nearid.arrays.storage import exists
from nearid.base.addresses import address_of, public
from nearid.base.errors import InputError
from nearid.base.files import local_path

# Where a source is: a path on this machine, or an address such as s3://bucket/rows.npy, which no Path can hold.
Place = Path | str

_PICKLES = (".pkl", ".pickle", ".joblib")


def place_of(source: str | os.PathLike[str]) -> Place:
    """Return the path that a user gave, with ~ replaced by the home folder, or the address."""
    return address_of(source) or local_path(source)


def whole(place: Place) -> str:
    """Return an absolute path, because a worker process in another folder may read the rows; or the address."""
    return place if isinstance(place, str) else os.path.abspath(place)


def name_of(place: Place) -> str:
    """Return the last part of a path or an address, without passwords and signatures."""
    return _public_path(place).name if isinstance(place, str) else place.name


def _public_path(address: str) -> Path:
    return Path(public(address).partition("://")[2].rstrip("/"))


def known_format(path: Place) -> Format:
    """Return the format of the file at a path or address. Missing files and unknown formats raise an InputError."""
    if isinstance(path, str):
        return _remote_format(path)
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


def format_at(place: str) -> Format | None:
    """Return the format of an absolute path or an address; None if it is unknown."""
    return format_of(Path(place) if address_of(place) is None else _public_path(place))


def _remote_format(address: str) -> Format:
    known = format_at(address)
    if known is None or not known.remote:
        raise InputError(
            f"{public(address)} cannot be read from where it is. At an address, nearid reads "
            f"{', '.join(suffixes('remote'))}. Save the rows as one of these, or download the file and give its path."
        )
    return known


def open_contents(source: str | os.PathLike[str]) -> Contents:
    """Return the named arrays of a file of any format. The arrays may have any shape."""
    place = place_of(source)
    with reached(place):
        return known_format(place).contents_of(whole(place), name_of(place))


def is_there(place: Place) -> bool:
    """Return whether there is a file or folder at a path, or an object at an address."""
    if isinstance(place, Path):
        return os.path.exists(place)
    known = format_at(place)
    # Of a zarr directory, the metadata are objects.
    return known is not None and known.remote and (known.is_folder or exists(place))


def split_key(source: str | os.PathLike[str]) -> tuple[Place, str | None]:
    """Split "model.pt:linear.weight" or "run:layer3" into the path and the entry; the entry is None without one."""
    address = address_of(source)
    if address is not None:
        return _split_address(address)
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


def check_source(source: str | os.PathLike[str]) -> None:
    """Raise an InputError if there is no file at a path, or none that nearid can open."""
    place, _ = split_key(source)
    with reached(place):
        known_format(place)


def _split_address(address: str) -> tuple[str, str | None]:
    """Split an address after the suffix of a format, because the objects of a store are not searched for its parts."""
    endings = "|".join(map(re.escape, suffixes("remote")))
    # Not after a question mark, where a signature may contain anything.
    found = re.match(rf"([^?#]*(?:{endings})):([^?#/][^?#]*)$", address, re.IGNORECASE)
    return (found[1], found[2]) if found else (address, None)
