"""Paths as people give them, and files written so that a reader sees the old one or the whole new one, never a half."""

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

from nearid.base.errors import InputError
from nearid.base.printable import shortened

try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None  # type: ignore[assignment]

# How the name of a temporary file or folder ends. It is locked while its process lives.
TEMPORARY = ".nearid-part"
# Letters of a path in a message.
_SHOWN = 200


def local_path(source: str | os.PathLike[str]) -> Path:
    """A path with ~ and ~name replaced by the home folder."""
    try:
        return Path(source).expanduser()
    except RuntimeError:
        raise InputError(f"{shown(source)} cannot be found: there is no home folder of that name.") from None


def shown(path: str | os.PathLike[str]) -> str:
    """A path as messages show it: a long one without its middle."""
    return shortened(os.fspath(path), _SHOWN)


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to. Called before long work, so that no result is lost at the end."""
    target = Path(path)
    try:
        target.stat()
    except FileNotFoundError:
        pass
    except OSError as error:
        # Such as a name that is too long.
        raise _unwritable(target, error) from error
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a regular file and would be replaced. Give the name of a file to write.")
    check_parent(Path(os.path.realpath(target)))
    return target


def refuse_source(target: Path, source: str | os.PathLike[str]) -> None:
    """Refuse to write over the input, or inside it; an input may name an entry, as in model.pt:weight or run:layer3."""
    # Not Path.resolve, which before Python 3.13 fails at links that lead in a circle.
    written, text = Path(os.path.realpath(target)), os.fspath(source)
    for place in filter(None, (text, text.rpartition(":")[0])):
        read = Path(os.path.realpath(local_path(place)))
        same = written == read or (written.exists() and read.exists() and written.samefile(read))
        if same or read in written.parents or (written in read.parents and written.suffix == ".zarr"):
            raise InputError(f"Writing {target} would damage the input {source}; give another name.")


def check_parent(target: Path) -> None:
    """Refuse a path whose folder does not exist or cannot be written into."""
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to write {target.name} into; make it first.")
    try:
        # Permissions alone do not decide it: a disk may be read-only, and /proc takes no file from anybody.
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{target.name} cannot be written into the folder {target.parent}: {error.strerror or error}."
        ) from error


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a temporary file beside `path`, sync it and rename it into place."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: str | os.PathLike[str], change: AbstractContextManager[None] | None = None) -> Iterator[IO[bytes]]:
    """A temporary file beside `path`, open for writing; synced and renamed at the end, removed after a failure.

    Where `path` is a link, the file that it leads to is replaced. A file that is replaced keeps its permissions. The
    rename happens within `change`, which `changing_with` gives.
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
    """A temporary folder beside `path`; synced and renamed at the end, removed after a failure.

    A folder that is already there is replaced: whoever asks has made sure that it may be lost. The rename happens
    within `change`, which `changing_with` gives.
    """
    target = Path(os.path.realpath(path))
    check_parent(target)
    try:
        # The folder is made inside another, which also takes the old one for the moment of the change.
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

    A folder that is already there is replaced: whoever asks has made sure that it may be lost.
    """
    target = Path(os.path.realpath(path))
    with _temporary(target, tempfile.mkdtemp) as temporary, _aside(target, Path(temporary, "old")):
        os.rename(folder, target)


def is_left_of(target: Path, name: str) -> bool:
    """Whether a name beside `target` is that of a temporary file or folder of some work on it."""
    # As tempfile names them: without a dot, so that what is left of run.zarr is not taken for that of run.
    return re.fullmatch(f"{re.escape(_prefix(target))}[a-z0-9_]+{re.escape(TEMPORARY)}", name) is not None


@contextmanager
def changing_with(
    path: str | os.PathLike[str], write: Callable[[IO[bytes]], object] | None
) -> Iterator[AbstractContextManager[None]]:
    """Give the `change` in which another file or folder is renamed, so that `path` is replaced together with it.

    The old file goes just before that rename and the new one comes just after it: `path` never lies beside what it
    does not belong to. Until then, and after a failure, the old file stays.

    Parameters
    ----------
    path : str or PathLike
    write : callable or None
        Writes the new file, at once; with None there is none afterwards.
    """
    target = Path(os.path.realpath(check_target(path)))
    try:
        with _temporary(target, tempfile.mkdtemp) as temporary:
            # Not named "old": that would be put back after a kill, when it may belong to what is gone.
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
    """Move what is at `target` to `place`; back, if the system refuses what follows."""
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
    """Refuse a folder in which another process is at work, where the system has locks."""
    with _locked(folder) as alone:
        if alone is False:
            raise InputError(f"Another process is at work in {folder}. Wait until it ends, or name another folder.")
        yield


@contextmanager
def held(place: Path, *, alone: bool) -> Iterator[bool]:
    """Wait for whoever holds a folder, then hold it alone or with others; False where the folder is gone by then.

    Where the system has no locks nobody is waited for.
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
    """Whether nobody holds a folder; if so, it is held alone meanwhile. True where there are no locks."""
    with _locked(place) as alone:
        yield alone is not False


@contextmanager
def _temporary(target: Path, make: Callable[..., str]) -> Iterator[str]:
    """A file or folder beside `target`, locked while it is there: one that nobody holds is left of a killed process."""
    _sweep(target)
    with ExitStack() as locks:
        alone: bool | None = False
        # Another process may take it for one that is left, before it is locked, and remove it.
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
    # A name may already have all the letters that the system allows; long names that begin alike stay apart.
    name = target.name
    return f".{name}." if len(name) <= 40 else f".{name[:40]}-{hashlib.sha256(os.fsencode(name)).hexdigest()[:8]}."


def _rights(target: Path) -> int:
    """The permissions of the file that is replaced, or those that a new file gets: a temporary file is private."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _sweep(target: Path) -> None:
    """Remove what processes that were killed have left of their work on `target`."""
    names = glob.glob(f".*{TEMPORARY}", root_dir=target.parent, include_hidden=True)
    for left in (target.parent / name for name in names if is_left_of(target, name)):
        # It may be of another user, or gone by now.
        with suppress(OSError), _locked(left) as abandoned:
            if abandoned:
                _discard(str(left), target)


def _discard(place: str, target: Path) -> None:
    """Remove a temporary file or folder; what it holds of `target` is put back where that is missing."""
    old = Path(place, "old")
    if old.exists() and not target.exists():
        # The work ended between two renames.
        os.rename(old, target)
    if os.path.isdir(place):
        shutil.rmtree(place, ignore_errors=True)
    elif os.path.exists(place):
        os.unlink(place)


@contextmanager
def _locked(place: str | os.PathLike[str]) -> Iterator[bool | None]:
    """Lock a file or folder: True, or False where another process has locked it, or None where there are no locks."""
    if fcntl is None:
        yield None
        return
    # Not waiting: a pipe may have the name.
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
