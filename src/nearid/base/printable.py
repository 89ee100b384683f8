"""Text for terminals: names and labels come from files of others."""

from __future__ import annotations

import re

# What a terminal obeys rather than shows, and what turns the order of letters. Lines may be broken.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Text without what a terminal would obey."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)
