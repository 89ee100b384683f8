"""Errors for files that cannot be read: they are missing, not accessible, damaged, or change while they are read."""

import difflib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from nearid.arrays.storage import state_of
from nearid.base.addresses import address_of, public
from nearid.base.errors import InputError
from nearid.base.files import shown


@contextmanager
def reached(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError, such as a file without read permission, into an InputError."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{shown(public(os.fspath(path)))} could not be read: {error.strerror or error}.") from None


def missing(path: Path) -> InputError:
    """Return the error for a path at which there is no file."""
    address = address_of(path)
    if address:
        return InputError(
            f"{shown(public(address))} is an address, but this input must be on this machine. "
            "Download it first and give the path of the downloaded file."
        )
    if os.path.islink(path):
        return InputError(f"{shown(path)} is a link to {os.readlink(path)!r}, but there is no such file.")
    try:
        os.stat(path)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return InputError(f"{shown(path)} could not be read: {error.strerror}.")
    except ValueError:
        pass  # the name contains a zero byte, so no such file can exist
    if not path.parent.is_dir():
        return InputError(f"There is no file {shown(path)}: the folder {path.parent} does not exist.")
    with reached(path.parent):
        hint = near_files(path)
    return InputError(f"There is no file named {path.name!r} in {path.parent.resolve()}.{hint}")


def near_files(path: Path) -> str:
    """Return a question that names the files with nearly the name of one that does not exist; empty for none."""
    near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=3)
    return f" Did you mean {' or '.join(map(repr, near))}?" if near else ""


@contextmanager
def damage_told(name: str, kind: str, advice: str = "Write or copy it again.") -> Iterator[None]:
    """Turn any error while reading `name`, a file of this `kind`, into an InputError."""
    try:
        yield
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0].rstrip(" .:") or type(error).__name__
        raise InputError(f"{name} is not a whole {kind}: {first_line}. {advice}") from None


class FileState:
    """State of a file or object when it was opened, to detect that it changes while it is read."""

    def __init__(self, path: str) -> None:
        self._path, self._state = path, state_of(path)

    def check(self, name: str) -> None:
        """Raise an error if the file has changed since."""
        if state_of(self._path) != self._state:
            raise InputError(
                f"{name} changed while it was read, so old and new numbers would be mixed. "
                "Run again when no program writes to it."
            )
