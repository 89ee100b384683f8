"""Cautions that results carry."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Alert:
    """One caution: a stable code for programs and a sentence for people."""

    code: str
    message: str
