"""Paths that users give, and safe writing: a reader sees the old file or the complete new one, never a part of it."""

from __future__ import annotations

import glob
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any

from nearid.base.addresses import address_of, public
from nearid.base.errors import InputError
from nearid.base.printable import shortened

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]

# Suffix of temporary files and folders. They are locked while their process lives.
TEMPORARY = ".nearid-part"
# Maximum number of characters of a path in a message.
_SHOWN = 200


def local_path(source: str | os.PathLike[str]) -> Path:
    """Return a path with ~ and ~name replaced by the home folder."""
    try:
        return Path(source).expanduser()
    except RuntimeError:
        raise InputError(f"{shown(source)} cannot be found: there is no home folder of that name.") from None


def shown(path: str | os.PathLike[str]) -> str:
    """Return a path for messages. The middle of a long path is left out."""
    return shortened(os.fspath(path), _SHOWN)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Raise an error if a path cannot be written. Called before long work, so that no result is lost at the end."""
    target = Path(path)
    _refuse_address(target)
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        # Such as a name that is too long.
        raise _unwritable(target, error) from error
    if target.is_dir():
        raise InputError(f"{target} is a folder. Give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a regular file and would be replaced. Give the name of a file to write.")
    check_parent(Path(os.path.realpath(target)))
    return target


def refuse_source(target: Path, source: str | os.PathLike[str]) -> None:
    """Raise an error if `target` is the input or inside it. Inputs may be of the form FILE:ENTRY."""
    if address_of(source) is not None:
        return
    # Not Path.resolve, which fails at circular links before Python 3.13.
    written, text = Path(os.path.realpath(target)), os.fspath(source)
    for place in filter(None, (text, text.rpartition(":")[0])):
        read = Path(os.path.realpath(local_path(place)))
        same = written == read or (written.exists() and read.exists() and written.samefile(read))
        if same or read in written.parents or (written in read.parents and written.suffix == ".zarr"):
            raise InputError(f"Writing {target} would damage the input {source}. Give another name.")


def _refuse_address(target: Path) -> None:
    address = address_of(target)
    if address is not None:
        raise InputError(
            f"{public(address)} is an address, and nearid writes files on this machine only. Give a path, and copy the "
            "output to the store."
        )


def check_parent(target: Path) -> None:
    """Raise an error if the folder of a path does not exist or cannot be written into."""
    _refuse_address(target)
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to write {target.name} into. Create it first.")
    try:
        # Permissions alone are not enough: the disk may be read-only, and nobody can create files in /proc.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{target.name} cannot be written into the folder {target.parent}: {error.strerror or error}."
        ) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a temporary file in the same folder, sync it and rename it to `path`."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: str | os.PathLike[str], change: AbstractContextManager[None] | None = None) -> Iterator[IO[bytes]]:
    """Give a temporary file in the folder of `path`. It is synced and renamed at the end, and removed after a failure.

    If `path` is a link, the file behind the link is replaced. A replaced file keeps its permissions. The rename happens
    within the context `change`, see `changing_with`.
    """
    target = Path(os.path.realpath(check_target(path)))
    try:
        with _temporary(target, _make_file) as temporary:
            with open(temporary, "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, _rights(target))
            with change or nullcontext():
                os.replace(temporary, target)
    except OSError as error:
        raise _unwritable(Path(path), error) from error


@contextmanager
def replacing_folder(
    path: str | os.PathLike[str], change: AbstractContextManager[None] | None = None
) -> Iterator[Path]:
    """Give a temporary folder next to `path`. It is synced and renamed at the end, and removed after a failure.

    An existing folder is replaced, so the caller must have checked that it may be deleted. The rename happens within
    the context `change`, see `changing_with`.
    """
    target = Path(os.path.realpath(path))
    check_parent(target)
    try:
        # The folder is made inside another one, to which the old folder is moved during the change.
        with _temporary(target, tempfile.mkdtemp) as temporary:
            new, old = Path(temporary, "new"), Path(temporary, "old")
            new.mkdir()
            yield new
            _sync(new)
            with change or nullcontext(), _aside(target, old):
                os.rename(new, target)
    except OSError as error:
        raise _unwritable(Path(path), error) from error


def put_folder(folder: str | os.PathLike[str], path: str | os.PathLike[str]) -> None:
    """Rename a finished folder to `path` on the same disk.

    An existing folder is replaced, so the caller must have checked that it may be deleted.
    """
    target = Path(os.path.realpath(path))
    with _temporary(target, tempfile.mkdtemp) as temporary, _aside(target, Path(temporary, "old")):
        os.rename(folder, target)


def is_left_of(target: Path, name: str) -> bool:
    """Return whether a name in the folder of `target` belongs to a temporary file or folder for `target`."""
    # tempfile adds characters without a dot, so that temporary files of run.zarr are not taken for those of run.
    return re.fullmatch(f"{re.escape(_prefix(target))}[a-z0-9_]+{re.escape(TEMPORARY)}", name) is not None


@contextmanager
def changing_with(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object] | None
) -> Iterator[AbstractContextManager[None]]:
    """Give the context `change` in which another file or folder is renamed, so that `path` is replaced with it.

    The old file is removed just before that rename, and the new file is put in place just after it. So `path` never
    lies next to a file or folder to which it does not belong. After a failure the old file is kept.

    Parameters
    ----------
    path : str or PathLike
    write : callable or None
        Writes the new file. With None, there is no file at `path` afterwards.
    """
    target = Path(os.path.realpath(check_target(path)))
    try:
        with _temporary(target, tempfile.mkdtemp) as temporary:
            # Not named "old": after a kill it would be restored, although the data it belongs to may be gone.
            new, before = Path(temporary, "new"), Path(temporary, "before")
            if write is not None:
                with open(new, "wb") as file:
                    write(file)
                    file.flush()
                    os.fsync(file.fileno())
                os.chmod(new, _rights(target))
            yield _swapped(target, new, before)
    except OSError as error:
        raise _unwritable(Path(path), error) from error


@contextmanager
def _swapped(target: Path, new: Path, before: Path) -> Iterator[None]:
    with _aside(target, before):
        yield
    if new.exists():
        os.rename(new, target)


@contextmanager
def _aside(target: Path, place: Path) -> Iterator[None]:
    """Move `target` to `place` during this context, and back if the context fails."""
    if target.exists():
        os.rename(target, place)
    try:
        yield
    except OSError:
        if place.exists():
            os.rename(place, target)
        raise


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Raise an error if another process works in a folder, on systems with file locks."""
    with _locked(folder) as alone:
        if alone is False:
            raise InputError(f"Another process is at work in {folder}. Wait until it ends, or give another folder.")
        yield


@contextmanager
def held(place: Path, *, alone: bool) -> Iterator[bool]:
    """Wait for other holders of a folder, then hold it alone or shared. Gives False if the folder no longer exists.

    On systems without file locks this does not wait.
    """
    handle = os.open(place, os.O_RDONLY)
    try:
        if fcntl is not None:
            # Network file systems, for example, lock no folders.
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield place.exists() and os.path.samestat(os.fstat(handle), place.stat())
    finally:
        os.close(handle)


@contextmanager
def free(place: Path) -> Iterator[bool]:
    """Give True if no process holds a folder, and hold it alone meanwhile. Always True on systems without locks."""
    with _locked(place) as alone:
        yield alone is not False


@contextmanager
def _temporary(target: Path, make: Callable[..., str]) -> Iterator[str]:
    """Give a temporary file or folder next to `target`. It is locked: an unlocked one was left by a killed process."""
    _sweep(target)
    with ExitStack() as locks:
        alone: bool | None = False
        # Before it is locked, another process may take it for a leftover and remove it.
        while alone is False:
            place = make(dir=target.parent, prefix=_prefix(target), suffix=TEMPORARY)
            with suppress(FileNotFoundError):
                alone = locks.enter_context(_locked(place))
                alone = alone if os.path.exists(place) else False
        try:
            yield place
        finally:
            _discard(place, target)


def _make_file(**where: Any) -> str:
    handle, place = tempfile.mkstemp(**where)
    os.close(handle)
    return str(place)


def _prefix(target: Path) -> str:
    # A name may already have the maximum length, so long names are shortened, with a hash to keep them different.
    name = target.name
    return f".{name}." if len(name) <= 40 else f".{name[:40]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}."


def _rights(target: Path) -> int:
    """Return the permissions of the replaced file, or of a new file, because a temporary file is private."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sweep(target: Path) -> None:
    """Remove temporary files and folders of `target` that killed processes have left."""
    names = glob.glob(f".*{TEMPORARY}", root_dir=target.parent, include_hidden=True)
    for left in (target.parent / name for name in names if is_left_of(target, name)):
        # It may belong to another user, or no longer exist.
        with suppress(OSError), _locked(left) as abandoned:
            if abandoned:
                _discard(str(left), target)


def _discard(place: str, target: Path) -> None:
    """Remove a temporary file or folder. If it holds the old `target`, and `target` is missing, restore it first."""
    old = Path(place, "old")
    if old.exists() and not target.exists():
        # The process was killed between two renames.
        os.rename(old, target)
    if os.path.isdir(place):
        shutil.rmtree(place, ignore_errors=True)
    elif os.path.exists(place):
        os.unlink(place)


@contextmanager
def _locked(place: str | os.PathLike[str]) -> Iterator[bool | None]:
    """Lock a file or folder. Gives True, or False if another process holds the lock, or None without file locks."""
    if fcntl is None:
        yield None
        return
    # Opened without waiting, because the name may be that of a pipe.
    handle = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locked: bool | None = True
        except BlockingIOError:
            locked = False
        except OSError:
            # Network file systems, for example, lock no folders.
            locked = None
        yield locked
    finally:
        os.close(handle)


def _sync(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                os.fsync(file.fileno())


def _unwritable(target: Path, error: OSError) -> InputError:
    return InputError(f"Could not write {target}: {error.strerror or error}.")
