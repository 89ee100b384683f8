"""Files that must stay the same while they are read: numbers of two states would mix."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from nearid.base.errors import InputError


class FileState:
    """Size and time of a file, taken when it is opened.

    Parameters
    ----------
    path : str
    """

    def __init__(self, path: str) -> None:
        self._path, self._state = path, _state(path)

    def check(self, name: str) -> None:
        """Refuse a file that has been written to since."""
        if _state(self._path) != self._state:
            raise InputError(
                f"{name} changed while it was read, so its numbers are of two states. "
                "Run again once nothing writes to it."
            )


@contextmanager
def unchanged(path: str, name: str) -> Iterator[None]:
    """Refuse a file that is written to while it is loaded."""
    state = FileState(path)
    yield
    state.check(name)


def _state(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
