"""Why a file cannot be read: it is missing, out of reach, damaged, or changes meanwhile."""

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


@contextmanager
def damage_told(name: str, kind: str, advice: str = "Write or copy it again.") -> Iterator[None]:
    """Turn whatever is raised while `name`, a `kind` of file, is read into an InputError."""
    try:
        yield
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0].rstrip(" .:") or type(error).__name__
        raise InputError(f"{name} is not a whole {kind}: {first_line}. {advice}") from None


class FileState:
    """Size and time of a file, taken when it is opened: numbers of two states would mix."""

    def __init__(self, path: str) -> None:
        self._path, self._state = path, self._now(path)

    @staticmethod
    def _now(path: str) -> tuple[int, int]:
        state = os.stat(path)
        return state.st_size, state.st_mtime_ns

    def check(self, name: str) -> None:
        """Refuse a file that has been written to since."""
        if self._now(self._path) != self._state:
            raise InputError(
                f"{name} changed while it was read, so its numbers are of two states. "
                "Run again once nothing writes to it."
            )
