"""Unpacking archives that come from elsewhere: nothing leaves the folder, nothing but plain files is made."""

from __future__ import annotations

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import readable
from nearid.base.progress import Progress, silent
from nearid.lab.data.base import AGAIN

STEP = 1000


def extract(archive: Path, folder: Path, members: tuple[str, ...], progress: Progress = silent) -> int:
    """Unpack the wanted members of a .zip, .tar or .tar.gz into a folder; gives the number of files.

    Members are named by path, folders with a slash at the end. A path that would leave the folder is refused, whether
    it is wanted or not; links and devices are refused where they are wanted, and skipped elsewhere.
    """
    taken = 0
    # Counted in thousands: an archive of pictures has hundreds of thousands, and their number is not known beforehand.
    tick = progress(f"unpacking {archive.name} (thousands of files)", 1)
    for name, size, file in _contents(archive, folder, members):
        _check_room(f"{name} of {archive.name}", size, folder)
        target = folder / name
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            out = open(target, "wb")  # noqa: SIM115 (closed below; why it does not open is told here)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise InputError(f"{archive.name} has at {name!r} both a file and a folder. It is not used.") from None
        with damage_told(archive.name, "archive", AGAIN), out:
            shutil.copyfileobj(file, out, 1 << 20)
            if out.tell() != size:
                raise InputError(f"{name} of {archive.name} declares {size} bytes but holds {out.tell()}. {AGAIN}")
        taken += 1
        if taken % STEP == 0:
            tick()
    if not taken:
        raise InputError(f"{archive.name} holds nothing of {', '.join(members)}: it is another archive.")
    return taken


def _contents(archive: Path, folder: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    """Path, size and bytes of each file that is wanted in the folder."""
    if zipfile.is_zipfile(archive):
        yield from _zip(archive, folder, members)
    else:
        yield from _tar(archive, folder, members)


def _zip(archive: Path, folder: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with damage_told(archive.name, "archive", AGAIN):
        opened = zipfile.ZipFile(archive)
        infos = opened.infolist()
    with opened:
        for info in infos:
            _refuse_escape(archive, info.filename)
        infos = [info for info in infos if not info.is_dir() and _wanted(archive, info.filename, members)]
        # A .tar has no list of what it holds: there only file after file is compared with the room that is left.
        _check_room(archive.name, sum(info.file_size for info in infos), folder)
        for info in infos:
            if stat.S_ISLNK(info.external_attr >> 16):
                raise _no_file(archive, info.filename)
            with damage_told(archive.name, "archive", AGAIN):
                file = opened.open(info)
            with file:
                yield info.filename, info.file_size, file


def _tar(archive: Path, folder: Path, members: tuple[str, ...]) -> Iterator[tuple[str, int, IO[bytes]]]:
    with damage_told(archive.name, "archive", AGAIN):
        opened = tarfile.open(archive)  # noqa: SIM115 (closed below; its damage is told by name)
    with opened:
        while True:
            with damage_told(archive.name, "archive", AGAIN):
                info = opened.next()
            if info is None:
                return
            _refuse_escape(archive, info.name)
            if info.isdir() or not _wanted(archive, info.name, members):
                continue
            if not info.isreg():
                raise _no_file(archive, info.name)
            with damage_told(archive.name, "archive", AGAIN):
                # The standard library's own rules as well (from 3.11.4 on), for what is not thought of above.
                if hasattr(tarfile, "data_filter"):
                    tarfile.data_filter(info, str(folder))
                file = opened.extractfile(info)
            assert file is not None
            with file:
                yield str(PurePosixPath(info.name)), info.size, file
            # The list of members would grow with every one.
            opened.members = []  # type: ignore[attr-defined]


def _wanted(archive: Path, name: str, members: tuple[str, ...]) -> bool:
    path = str(PurePosixPath(name))
    wanted = any(path.startswith(m) if m.endswith("/") else path == m for m in members)
    if wanted and not name.isprintable():
        raise InputError(f"{archive.name} has a member {name!r}, whose name cannot be printed. It is not used.")
    return wanted


def _check_room(name: str, size: int, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(f"{name} needs {readable(size)}, but {readable(free)} are free in {folder}. Make room.")


def _refuse_escape(archive: Path, name: str) -> None:
    path = PurePosixPath(name)
    windows = PureWindowsPath(name)
    if path.is_absolute() or windows.drive or windows.root or ".." in windows.parts or "\\" in name:
        raise InputError(f"{archive.name} has a member {name!r} that would be written outside of its folder. Not used.")


def _no_file(archive: Path, name: str) -> InputError:
    return InputError(f"{archive.name} has at {name!r} a link or device where a file is expected. It is not used.")
