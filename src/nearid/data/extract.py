"""Unpacking archives that come from elsewhere: nothing leaves the folder, nothing but plain files is made."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from nearid.arrays.damage import damage_told
from nearid.arrays.memory import readable
from nearid.data.base import AGAIN
from nearid.errors import InputError
from nearid.progress import Progress, silent

STEP = 1000


def extract(archive: Path, folder: Path, members: tuple[str, ...], progress: Progress = silent) -> int:
    """Unpack the wanted members of a .zip, .tar or .tar.gz into a folder; gives the number of files.

    Members are named by path, folders with a slash at the end. A path that would leave the folder is refused, whether
    it is wanted or not; links and devices are refused where they are wanted.
    """
    taken = 0
    # Counted in thousands: an archive of pictures has hundreds of thousands, and their number is not known beforehand.
    tick = progress(f"unpacking {archive.name} (thousands of files)", 1)
    for name, size, file in _contents(archive, members):
        target = folder / name
        free = shutil.disk_usage(folder).free
        if size > free:
            raise InputError(f"{name} of {archive.name} needs {readable(size)}, but {readable(free)} are free.")
        target.parent.mkdir(parents=True, exist_ok=True)
        with damage_told(archive.name, "archive", AGAIN), open(target, "wb") as out:
            shutil.copyfileobj(file, out, 1 << 20)
            if out.tell() != size:
                raise InputError(f"{name} of {archive.name} declares {size} bytes but holds {out.tell()}. {AGAIN}")
        taken += 1
        if taken % STEP == 0:
            tick()
    if not taken:
        raise InputError(f"{archive.name} holds nothing of {', '.join(members)}: it is another archive.")
    return taken


def _contents(archive: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Path, size and bytes of each file that is wanted."""
    if zipfile.is_zipfile(archive):
        yield from _zip(archive, members)
    else:
        yield from _tar(archive, members)


def _zip(archive: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with damage_told(archive.name, "archive", AGAIN):
        opened = zipfile.ZipFile(archive)
        infos = opened.infolist()
    with opened:
        for info in infos:
            _refuse_escape(archive, info.filename)
            if info.is_dir() or not _wanted(info.filename, members):
                continue
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _no_file(archive, info.filename)
            with damage_told(archive.name, "archive", AGAIN):
                file = opened.open(info)
            with file:
                yield info.filename, info.file_size, file


def _tar(archive: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with damage_told(archive.name, "archive", AGAIN):
        opened = tarfile.open(archive)  # noqa: SIM115 (closed below; its damage is told by name)
    with opened:
        while True:
            with damage_told(archive.name, "archive", AGAIN):
                info = opened.next()
            if info is None:
                return
            _refuse_escape(archive, info.name)
            if info.isdir() or not _wanted(info.name, members):
                continue
            if not info.isreg():
                raise _no_file(archive, info.name)
            with damage_told(archive.name, "archive", AGAIN):
                # The standard library's own rules as well (from 3.11.4 on), for what is not thought of above.
                if hasattr(tarfile, "data_filter"):
                    tarfile.data_filter(info, str(archive.parent))
                file = opened.extractfile(info)
            assert file is not None
            with file:
                yield str(PurePosixPath(info.name)), info.size, file
            # The list of members would grow with every one.
            opened.members = []  # type: ignore[attr-defined]


def _wanted(name: str, members: tuple[str, ...]) -> bool:
    path = str(PurePosixPath(name))
    return any(path.startswith(m) if m.endswith("/") else path == m for m in members)


def _refuse_escape(archive: Path, name: str) -> None:
    path = PurePosixPath(name)
    windows = PureWindowsPath(name)
    if path.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\\" in name:
        raise InputError(f"{archive.name} has a member {name!r} that would be written outside of its folder. Not used.")


def _no_file(archive: Path, name: str) -> InputError:
    return InputError(f"{archive.name} has at {name!r} a link or device where a file is expected. It is not used.")
