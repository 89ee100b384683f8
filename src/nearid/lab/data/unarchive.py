"""Safe unpacking of downloaded archives: only plain files are written, and only inside the target folder.

nearid does not use Untar and Unzip of pooch. They read the list of all members first. They also accept links,
unprintable names, and archives that are larger than the free disk space.
"""

import shutil
import stat
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO, NamedTuple

from nearid.arrays.reading import damage_told
from nearid.base.errors import InputError
from nearid.base.limits import readable
from nearid.base.progress import Progress, silent
from nearid.lab.data.base import AGAIN

STEP = 1000
# Megabytes of padding to read at most to find the end.
PADDING = 64


class Member(NamedTuple):
    """Name, size and type of a member of an archive, and the function that opens it."""

    name: str
    size: int
    folder: bool
    plain: bool
    open: Callable[[], IO[bytes] | None]


def unarchive(archive: Path, folder: Path, wanted: tuple[str, ...], progress: Progress = silent) -> int:
    """Unpack some members of a .zip, .tar or .tar.gz into a folder; return the number of files.

    `wanted` lists the paths of members, folders with a slash at the end. An archive with any path outside of the folder
    is refused. Links and devices are refused if they are wanted, and skipped otherwise.
    """
    taken = 0
    # Progress counts thousands of files: an archive of pictures has hundreds of thousands, and the total is not known.
    tick = progress(f"unpacking {archive.name} (thousands of files)", 1)
    with opened(archive, folder) as members:
        # A .tar has no list of members. There the free space is checked file by file.
        if isinstance(members, list):
            total = sum(member.size for member in members if _is_wanted(archive, member, wanted))
            check_room(archive.name, total, folder)
        for member in members:
            if _is_wanted(archive, member, wanted):
                check_room(f"{member.name} of {archive.name}", member.size, folder)
                _write(archive, member, folder / PurePosixPath(member.name))
                taken += 1
                if taken % STEP == 0:
                    tick()
    if not taken:
        raise InputError(f"{archive.name} does not contain {', '.join(wanted)}: it is a different archive.")
    return taken


@contextmanager
def opened(archive: Path, folder: Path | None = None) -> Iterator[Iterable[Member]]:
    """Yield the members of a .zip (a list), .tar or .tar.gz (an iterator); they will be written into `folder`."""
    with damage_told(archive.name, "archive", AGAIN):
        if zipfile.is_zipfile(archive):
            with zipfile.ZipFile(archive) as packed:
                yield _zipped(packed)
        else:
            with tarfile.open(archive) as tarred:
                yield _tarred(tarred, folder)


def _zipped(archive: zipfile.ZipFile) -> list[Member]:
    return [
        Member(i.filename, i.file_size, i.is_dir(), not stat.S_ISLNK(i.external_attr >> 16), partial(archive.open, i))
        for i in archive.infolist()
    ]


def _tarred(archive: tarfile.TarFile, folder: Path | None) -> Iterator[Member]:
    def opening(info: tarfile.TarInfo) -> IO[bytes] | None:
        # Also apply the rules of the standard library (from 3.11.4 on), for cases that are not handled here.
        if folder is not None and hasattr(tarfile, "data_filter"):
            tarfile.data_filter(info, str(folder))
        return archive.extractfile(info)

    while (info := archive.next()) is not None:
        yield Member(info.name, info.size, info.isdir(), info.isreg(), partial(opening, info))
        # Otherwise the list of members would grow with every member.
        archive.members = []  # type: ignore[attr-defined]
    _check_end(archive)


def _check_end(archive: tarfile.TarFile) -> None:
    """Refuse a .tar without a proper end: tarfile also stops silently at a cut or damaged header."""
    file = archive.fileobj
    assert file is not None  # it was just read
    file.seek(archive.offset)
    # Two blocks of zeros; some programs write one.
    end = file.read(2 * tarfile.BLOCKSIZE)
    if len(end) < tarfile.BLOCKSIZE or any(end):
        raise tarfile.ReadError("it is cut or damaged after its first members")
    # The checksum of a .tar.gz follows the padding, which is short.
    for _ in range(PADDING):
        if not file.read(1 << 20):
            break


def _is_wanted(archive: Path, member: Member, wanted: tuple[str, ...]) -> bool:
    name, windows = member.name, PureWindowsPath(member.name)
    if name.startswith("/") or windows.drive or windows.root or ".." in windows.parts or "\\" in name:
        raise InputError(
            f"{archive.name} has a member {name!r} that would be written outside of its folder, so the "
            f"archive is not used."
        )
    path = str(PurePosixPath(name))
    if member.folder or not any(path.startswith(w) if w.endswith("/") else path == w for w in wanted):
        return False
    if not name.isprintable():
        raise InputError(f"{archive.name} has a member with an unprintable name, {name!r}, so the archive is not used.")
    if not member.plain:
        raise InputError(
            f"{name!r} in {archive.name} is a link or device, but a file is expected. The archive is not used."
        )
    return True


def _write(archive: Path, member: Member, target: Path) -> None:
    source = member.open()
    assert source is not None  # a plain file
    with source:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            out = open(target, "wb")  # noqa: SIM115 (closed below; an error while opening is reported here)
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            raise InputError(
                f"{archive.name} has both a file and a folder {member.name!r}, so the archive is not used."
            ) from None
        with out:
            shutil.copyfileobj(source, out, 1 << 20)
            if out.tell() != member.size:
                raise InputError(
                    f"{member.name} in {archive.name} declares {member.size} bytes but has {out.tell()}. {AGAIN}"
                )


def check_room(name: str, size: int, folder: Path, advice: str = "Free some space.") -> None:
    """Raise an error if a folder has fewer than `size` free bytes."""
    free = shutil.disk_usage(folder).free
    if size > free:
        raise InputError(f"{name} needs {readable(size)}, but {readable(free)} are free in {folder}. {advice}")
