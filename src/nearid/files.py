"""Writing files so that a reader sees the old one or the whole new one, never a half."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from nearid.errors import InputError


def check_target(path: str | os.PathLike[str]) -> Path:
    """Refuse a path that cannot be written to; asked before long work, so that nothing is computed in vain."""
    target = Path(path)
    if target.is_dir():
        raise InputError(f"{target} is a folder; give the name of a file to write.")
    if target.exists() and not target.is_file():
        raise InputError(f"{target} is not a regular file, and would be replaced; give the name of a file to write.")
    if not target.parent.is_dir():
        raise InputError(f"There is no folder {target.parent} to write {target.name} into; make it first.")
    if not os.access(target.parent, os.W_OK):
        raise InputError(f"The folder {target.parent} does not allow writing {target.name}.")
    return target


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write text to a temporary file beside `path`, sync it and rename it into place."""
    target = check_target(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=target.parent, prefix=f".{target.name}.", delete=False
        ) as file:
            temporary = file.name
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # A temporary file is private; a report is for sharing, with the rights that a new file would have.
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, target)
        temporary = None
    except OSError as error:
        raise InputError(f"Could not write {target}: {error.strerror or error}.") from error
    finally:
        if temporary is not None and os.path.exists(temporary):
            os.unlink(temporary)
