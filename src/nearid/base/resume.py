"""Long work that an interruption does not undo: what was done is noted, and only the same work goes on from it."""

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
# More than any note takes.
MOST_BYTES = 64 << 20


class Resumable:
    """The note of how far some work has come, beside the files that the work itself writes.

    Parameters
    ----------
    folder : Path
    identity : mapping
        What the work is of: inputs and options, as plain data. A note of other work is refused.
    what : str
        What the work is called in messages, as "an unfinished fit".
    again : str
        What to do where a note cannot be used, as "Begin anew with --restart, or write to another folder."
    seconds : float
        Least time between two notes.
    """

    def __init__(self, folder: Path, identity: Mapping[str, Any], what: str, again: str, seconds: float = 1.0) -> None:
        self.folder, self.what, self.again = folder, what, again
        # As it will be read: tuples are lists then, and keys are text.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity))
        self._seconds, self._noted = seconds, -float("inf")

    @property
    def path(self) -> Path:
        """The file of the note."""
        return self.folder / NAME

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes that do the same work away from the folder."""
        with alone_in(self.folder):
            yield

    def read(self) -> dict[str, Any] | None:
        """What the last note says, or None where there is none; a note of other work is refused."""
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
        """Refuse the identity of other work, by what differs."""
        differ = differences(identity, self.identity)
        if differ:
            raise InputError(f"{self.folder} holds {self.what} of something else: {'; '.join(differ)}. {self.again}")

    def due(self) -> bool:
        """Whether enough time has passed for another note; asking begins the next wait."""
        now = time.monotonic()
        if now - self._noted < self._seconds:
            return False
        self._noted = now
        return True

    def keep(self, state: Mapping[str, Any], *, now: bool = False) -> bool:
        """Note how far the work has come, unless a note was just made; whether it was noted."""
        if not now and not self.due():
            return False
        write_text(self.path, json.dumps({"identity": self.identity, "state": dict(state)}) + "\n")
        return True

    def done(self) -> None:
        """Remove the note."""
        self.path.unlink(missing_ok=True)


def load_note(path: Path) -> Any:
    """What is in the file of a note; ValueError, OSError or RecursionError where it cannot be one."""
    # A pipe would be waited for.
    if not path.is_file() or path.stat().st_size > MOST_BYTES:
        raise ValueError("not a file, or too large")
    return json.loads(path.read_text(encoding="utf-8"))


def differences(theirs: Any, mine: Mapping[str, Any], name: str = "") -> list[str]:
    """How two identities differ, an entry each."""
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
