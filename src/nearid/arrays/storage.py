"""Bytes of a file on this machine or of an object at an address, read the same way."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from typing import IO, Any, cast

from nearid.arrays import remote
from nearid.arrays.remote import State
from nearid.base.addresses import address_of

# Bytes that are read at once from the beginning of an object, which holds the header.
_HEAD = 1 << 16


def state_of(path: str) -> State:
    """Return the size of a file, and a mark that changes when the file changes."""
    if address_of(path) is not None:
        return remote.state_of(path)
    state = os.stat(path)
    return State(state.st_size, str(state.st_mtime_ns))


def exists(path: str) -> bool:
    """Return whether there is a file at a path, or an object at an address."""
    if address_of(path) is None:
        return os.path.exists(path)
    try:
        remote.state_of(path)
    except remote.NoSuchObject:
        return False
    return True


def opened(path: str, ahead: int = _HEAD) -> IO[bytes]:
    """Return a file that can be read from any position. Small reads of an object transfer `ahead` bytes at once."""
    if address_of(path) is None:
        return open(path, "rb")
    return cast(IO[bytes], io.BufferedReader(_Object(path), ahead) if ahead else _Object(path))


def read_into(path: str, parts: Iterable[tuple[int, memoryview]]) -> bool:
    """Fill each target from its offset on. Return whether the file was long enough."""
    if address_of(path) is not None:
        remote.read_into(path, parts)
        return True
    with open(path, "rb", buffering=0) as file:
        for at, target in parts:
            file.seek(at)
            if _fill(file, target) < len(target):
                return False
    return True


def _fill(file: io.RawIOBase, target: memoryview) -> int:
    """Read until the target is full or the file ends, because the system returns large pieces in parts."""
    filled = 0
    while filled < len(target) and (got := file.readinto(target[filled:])):
        filled += got
    return filled


class _Object(io.RawIOBase):
    """An object at an address. Every read is one request for exactly this range."""

    def __init__(self, address: str) -> None:
        self._address, self._at = address, 0
        self._size = remote.state_of(address).size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        stop = min(self._at + len(target), self._size)
        got = remote.read(self._address, self._at, stop)
        target[: len(got)] = got
        self._at += len(got)
        return len(got)
