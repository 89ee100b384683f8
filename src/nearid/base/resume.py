"""Long work that can be resumed after an interruption: its state is saved, and only the same work continues from it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from nearid.base.errors import InputError
from nearid.base.files import alone_in, write_text

NAME = "progress.json"
# Maximum size of a note in bytes, larger than any real note.
MOST_BYTES = 64 << 20


class Resumable:
    """A note in a file that records the progress of some work, next to the files that the work writes.

    Parameters
    ----------
    folder : Path
    identity : mapping
        Inputs and options of the work, as plain data. A note with another identity raises an error.
    what : str
        Name of the work in messages, such as "an unfinished fit".
    again : str
        Advice if a note cannot be used, such as "Begin anew with --restart, or write to another folder."
    seconds : float
        Minimum time between two notes.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], what: str, again: str, seconds: float = 1.0) -> None:
        self.folder, self.what, self.again = folder, what, again
        # In the form in which JSON returns it: tuples become lists, and keys become strings.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._seconds, self._noted = seconds, -float("inf")

    @property
    def path(self) -> Path:
        """Path of the file that holds the note."""
        return self.folder / NAME

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Raise an error if another process does the same work in the folder, and lock the folder meanwhile."""
        with alone_in(self.folder):
            yield

    def read(self) -> dict[str, Any] | None:
        """Return the state in the last note, or None without a note. A note of other work raises an error."""
        if not self.path.exists():
            return None
        try:
            note = load_note(self.path)
            identity, state = note["identity"], dict(note["state"])
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            raise InputError(f"{self.path} cannot be read as the note of {self.what}. {self.again}") from None
        self.refuse_other(identity)
        return state

    def refuse_other(self, identity: Any) -> None:
        """Raise an error that lists the differences if the identity is that of other work."""
        differ = differences(identity, self.identity)
        if differ:
            raise InputError(f"{self.folder} holds {self.what} of something else: {'; '.join(differ)}. {self.again}")

    def due(self) -> bool:
        """Return whether enough time has passed for another note. If so, the waiting time starts again."""
        now = time.monotonic()
        if now - self._noted < self._seconds:
            return False
        self._noted = now
        return True

    def keep(self, state: Mapping[str, Any], *, now: bool = False) -> bool:
        """Save the state of the work, unless a note was just written. Return whether it was saved."""
        if not now and not self.due():
            return False
        write_text(self.path, json.dumps({"identity": self.identity, "state": dict(state)}) + "\n")
        return True

    def done(self) -> None:
        """Remove the note."""
        self.path.unlink(missing_ok=True)


def load_note(path: Path) -> Any:
    """Return the contents of a note file. Other files raise ValueError, OSError or RecursionError."""
    # Reading from a pipe could wait forever.
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError("not a file, or too large")
    return json.loads(path.read_text(encoding="utf-8"))


def differences(theirs: Any, mine: Mapping[str, Any], name: str = "") -> list[str]:
    """Return the differences of two identities, one sentence for each entry."""
    if not isinstance(theirs, Mapping):
        return [f"{name or 'it'} was {theirs!r}, now {mine!r}" if name else "it does not say of what"]
    differ: list[str] = []
    for key in dict.fromkeys((*mine, *theirs)):
        full = f"{name} {key}".strip()
        if key not in theirs or key not in mine:
            differ.append(f"{full} was {'not ' if key not in theirs else ''}given")
        elif isinstance(mine[key], Mapping):
            differ += differences(theirs[key], mine[key], full)
        elif theirs[key] != mine[key]:
            differ.append(f"{full} was {theirs[key]!r}, now {mine[key]!r}")
    return differ
