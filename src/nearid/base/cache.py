"""The user's cache: folders by key that can be made again. Above a total size, the least recently used are removed."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from nearid.base.errors import InputError
from nearid.base.files import free, held, local_path, write_text

# Environment variables for the folder of the cache and for its maximum size in GB.
PLACE, SIZE = "NEARID_CACHE", "NEARID_CACHE_GB"
LARGEST = 10.0
# File with the hash of every file of a complete entry.
SUMS = "sums.json"
KEY = re.compile("[0-9a-f]{64}")


def cache_place() -> Path:
    """Return the folder of the cache: NEARID_CACHE, or the folder `nearid` in the user's cache folder."""
    if os.environ.get(PLACE):
        return local_path(os.environ[PLACE])
    if sys.platform == "darwin":
        return local_path("~/Library/Caches/nearid")
    if sys.platform == "win32":
        return local_path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local") / "nearid" / "Cache"
    return local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nearid"


def cache_bytes() -> int:
    """Return the maximum size of the cache in bytes, from NEARID_CACHE_GB (default: 10 GB)."""
    given = os.environ.get(SIZE)
    try:
        size = LARGEST if not given else float(given)
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        raise InputError(f"{SIZE} is {given!r}, but the maximum size of the cache in GB is expected, such as 10.")
    return int(size * 1e9)


class Unkeyed(Exception):
    """Raised for values without a reliable key, such as functions, whose contents cannot be hashed."""


@dataclass(frozen=True)
class Cache:
    """Folders by key. An incomplete or changed folder is made again.

    Attributes
    ----------
    place : Path
        The folder of the entries.
    most : int
        Maximum total size in bytes.
    """

    place: Path
    most: int

    @classmethod
    def of_user(cls, room: str) -> Cache:
        """Return the part of the user's cache with the name `room`."""
        return cls(cache_place() / room, cache_bytes())

    def fill(self, key: str, make: Callable[[Path], object]) -> bool:
        """Make the entry of a key if it is missing or its files were changed. Return whether it already existed.

        Processes that make the same entry wait for each other. Do not fill an entry while holding another one: two
        processes could then wait for each other forever.

        Parameters
        ----------
        key : str
            A SHA-256 hash in hexadecimal digits.
        make : callable
            Fills the folder. After a failure or an interruption, the next call finds the files that were left there.
        """
        while True:
            with self.hold(key) as folder:
                if folder is not None and _is_whole(folder):
                    os.utime(folder)
                    return True
            place = self._folder(key)
            with held(place, alone=True) as here:
                if not here:
                    continue
                if _is_whole(place):
                    return True
                if (place / SUMS).exists():
                    # Its files were changed after they were written.
                    _empty(place)
                make(place)
                write_text(place / SUMS, json.dumps(_sums(place), indent=1))
                return False

    @contextmanager
    def hold(self, key: str) -> Iterator[Path | None]:
        """Give the folder of an entry, protected from removal and changes meanwhile; None if it does not exist."""
        folder = self.place / key
        if not (folder / SUMS).is_file():
            yield None
            return
        with held(folder, alone=False) as here:
            yield folder if here and (folder / SUMS).is_file() else None

    def shrink(self) -> None:
        """Remove the least recently used entries until the cache is small enough. Entries in use are kept."""
        # Only entries are removed, because the user chose the folder and may keep other files in it.
        entries = [path for path in self.place.glob("*") if KEY.fullmatch(path.name) and not path.is_symlink()]
        sizes = {path: _size(path) for path in entries}
        total = sum(sizes.values())
        for path in sorted(entries, key=_last_use):
            if total <= self.most:
                return
            # Another process may remove it at the same time.
            with suppress(OSError), free(path) as unused:
                if unused:
                    shutil.rmtree(path)
                    total -= sizes[path]

    def _folder(self, key: str) -> Path:
        folder = self.place / key
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(
                f"The cache {self.place} cannot be written: {error.strerror}. Set {PLACE} to another folder, or switch "
                "the cache off (--no-cache, cache=False)."
            ) from error
        return folder


def _is_whole(folder: Path) -> bool:
    """Return whether all files are unchanged since they were written, and there are no other files."""
    try:
        told = json.loads((folder / SUMS).read_text(encoding="utf-8"))
        return bool(told == _sums(folder))
    except (OSError, ValueError, RecursionError):
        return False


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if not path.is_dir() and path != folder / SUMS)


def _sums(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): file_hash(path) for path in _files(folder)}


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the bytes of a regular file."""
    if not path.is_file():
        # Reading from a pipe could wait forever.
        raise OSError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _size(folder: Path) -> int:
    # Files may disappear while they are counted.
    size = 0
    for path in _files(folder):
        with suppress(OSError):
            size += path.lstat().st_size
    return size


def _last_use(folder: Path) -> float:
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0
