"""Damaged files: libraries raise almost anything on them, people get one sentence."""

from collections.abc import Iterator
from contextlib import contextmanager

from nearid.base.errors import InputError


@contextmanager
def damage_told(name: str, kind: str, advice: str = "Write or copy it again.") -> Iterator[None]:
    """Turn whatever is raised while `name`, a `kind` of file, is read into an InputError."""
    try:
        yield
    except (InputError, MemoryError, ImportError):
        raise
    except Exception as error:
        first_line = str(error).strip().partition("\n")[0].rstrip(" .:") or type(error).__name__
        raise InputError(f"{name} is not a whole {kind}: {first_line}. {advice}") from None
