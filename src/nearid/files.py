"""Writing files and folders so that a reader sees the old one or the whole new one, never a half."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from nearid.errors import InputError


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to; asked before long work, so that nothing is computed in vain."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a regular file, and would be replaced; give the name of a file to write.")
    check_parent(target)
    return target


def check_parent(target: Path) -> None:
    """Refuse a path whose folder does not exist or cannot be written into."""
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to write {target.name} into; make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"The folder {target.parent} does not allow writing {target.name}.")


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a temporary file beside `path`, sync it and rename it into place."""
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A temporary file beside `path`, open for writing; synced and renamed at the end, removed after a failure."""
    target = check_target(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            temporary = file.name
            yield file
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is private; what is written is for sharing, with the rights that a new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)


@contextmanager
def alone_in(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Refuse a folder in which another process is at work, where the system has locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(
                f"Another process is at work in {folder}; wait for its end, or name another folder."
            ) from None
        yield
    finally:
        os.close(handle)


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary folder beside `path`; synced and renamed at the end, removed after a failure.

    A folder that is already there is replaced: whoever asks has made sure that it may be lost.
    """
    target = Path(path)
    check_parent(target)
    temporary = None
    try:
        # The folder is made inside another, which also takes the old one for the moment of the change.
        temporary = tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.")
        new, old = Path(temporary, "new"), Path(temporary, "old")
        new.mkdir()
        yield new
        _sync(new)
        if target.exists():
            os.rename(target, old)
        try:
            os.rename(new, target)
        except OSError:
            if old.exists():
                os.rename(old, target)
            raise
    except OSError as error:
        raise _unwritable(target, error) from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def _sync(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                os.fsync(file.fileno())


def _unwritable(target: Path, error: OSError) -> InputError:
    return InputError(f"Could not write {target}: {error.strerror or error}.")
