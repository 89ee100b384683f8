"""What a theorem needs of a process, and whether the process has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """One condition of a theorem, as this process meets it or not.

    Attributes
    ----------
    name : str
        Stable name, for programs.
    needed : str
        What the theorem asks for.
    holds : bool
    note : str
        What the process has instead, or in which way it meets the condition.
    """

    name: str
    needed: str
    holds: bool
    note: str


def violated(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Those that do not hold."""
    return tuple(a for a in assumptions if not a.holds)
