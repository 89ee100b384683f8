"""Checks of numbers that somebody gives."""

from __future__ import annotations

import math

from nearid.errors import InputError


def positive(name: str, value: float, *, zero: bool = False) -> float:
    """The value, if it is finite and above zero (or zero, where that is allowed)."""
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise InputError(f"{name} is {value}, but a finite number {'of at least' if zero else 'above'} 0 is expected.")
    return float(value)


def at_least(name: str, value: int, least: int) -> int:
    """The value, if it is a whole number of at least `least`."""
    if value != int(value) or value < least:
        raise InputError(f"{name} is {value}, but a whole number of at least {least} is expected.")
    return int(value)
