"""The user's cache: folders of what can be made again, by key; beyond a size those not used for longest are removed."""

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

# Where the cache is, and its largest size in GB.
PLACE, SIZE = "NEARID_CACHE", "NEARID_CACHE_GB"
LARGEST = 10.0
# The hash of every file of a whole entry.
SUMS = "sums.json"
KEY = re.compile("[0-9a-f]{64}")


def cache_place() -> Path:
    """The folder of the cache: NEARID_CACHE, or the folder `nearid` in the user's cache of this system."""
    if os.environ.get(PLACE):
        return local_path(os.environ[PLACE])
    if sys.platform == "darwin":
        return local_path("~/Library/Caches/nearid")
    if sys.platform == "win32":
        return local_path(os.environ.get("LOCALAPPDATA") or "~/AppData/Local") / "nearid" / "Cache"
    return local_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "nearid"


def cache_bytes() -> int:
    """The largest size of the cache, from NEARID_CACHE_GB; 10 GB by default."""
    given = os.environ.get(SIZE)
    try:
        size = LARGEST if not given else float(given)
    except ValueError:
        size = math.nan
    if not 0 <= size < math.inf:
        raise InputError(f"{SIZE} is {given!r}, but the largest size of the cache in GB is expected, such as 10.")
    return int(size * 1e9)


class Unkeyed(Exception):
    """What nobody can tell by its contents for certain, such as a function: it has no key."""


@dataclass(frozen=True)
class Cache:
    """Folders by key, each whole or made again.

    Attributes
    ----------
    place : Path
        The folder of the entries.
    most : int
        Bytes that they may take together.
    """

    place: Path
    most: int

    @classmethod
    def of_user(cls, room: str) -> Cache:
        """The part of the user's cache that is called `room`."""
        return cls(cache_place() / room, cache_bytes())

    def fill(self, key: str, make: Callable[[Path], object]) -> bool:
        """Make the entry of a key where it is missing, or holds other files than were written; whether it was there.

        Processes that make the same entry wait for each other. Nobody may hold an entry who fills another: two
        processes would wait for each other for ever.

        Parameters
        ----------
        key : str
            A SHA-256 in hexadecimal digits.
        make : callable
            Fills the folder. What it leaves after a failure or an interruption it finds again the next time.
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
                    # What it held was changed since.
                    _empty(place)
                make(place)
                write_text(place / SUMS, json.dumps(_sums(place), indent=1))
                return False

    @contextmanager
    def hold(self, key: str) -> Iterator[Path | None]:
        """The folder of an entry, which nobody removes or changes meanwhile; None where there is none (any more)."""
        folder = self.place / key
        if not (folder / SUMS).is_file():
            yield None
            return
        with held(folder, alone=False) as here:
            yield folder if here and (folder / SUMS).is_file() else None

    def shrink(self) -> None:
        """Remove the entries that were not used for longest until the rest is small enough; none that is in use."""
        # Nothing but entries: the folder is one that somebody named.
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
                f"The cache {self.place} cannot be written: {error.strerror}. Set {PLACE} to another folder, or do "
                "without (--no-cache, cache=False)."
            ) from error
        return folder


def _is_whole(folder: Path) -> bool:
    """Whether every file is the one that was written, and there is no other."""
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
    """SHA-256 of the bytes of a regular file."""
    if not path.is_file():
        # A pipe would be waited for.
        raise OSError(f"{path} is not a regular file")
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def _size(folder: Path) -> int:
    # Files may go while they are counted.
    size = 0
    for path in _files(folder):
        with suppress(OSError):
            size += path.lstat().st_size
    return size


def _last_use(folder: Path) -> float:
    with suppress(OSError):
        return folder.stat().st_mtime
    return 0.0
