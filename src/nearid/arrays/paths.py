"""Paths as people give them: what is there, and why something cannot be reached."""

import difflib
import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearid.base.errors import InputError
from nearid.base.files import shown


@contextmanager
def reached(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system raises where a file is out of reach into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{shown(path)} could not be read: {error.strerror or error}.") from None


def missing(path: Path) -> InputError:
    """Error for a path that leads to no file."""
    address = re.match(r"([A-Za-z][\w+.-]+:)/+(.+)", str(path))
    if address:
        return InputError(
            f"{shown('//'.join(address.groups()))} is an address, but nearid only reads files on this machine. "
            "Download it first, then give the path of the file."
        )
    if os.path.islink(path):
        return InputError(f"{shown(path)} is a link to {os.readlink(path)!r}, which leads to no file.")
    try:
        os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return InputError(f"{shown(path)} could not be read: {error.strerror}.")
    except ValueError:
        pass  # a name with a zero byte, which no file has
    if not path.parent.is_dir():
        return InputError(f"There is no file {shown(path)}: the folder {path.parent} does not exist.")
    with reached(path.parent):
        near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=3)
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    return InputError(f"There is no file named {path.name!r} in {path.parent.resolve()}.{hint}")
