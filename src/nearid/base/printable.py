"""Text for terminals: names and labels come from files of others."""

from __future__ import annotations

import re

# What a terminal obeys rather than shows, what turns the order of letters, and letters that are never seen (tags).
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def printable(text: str) -> str:
    """The text with a replacement character for each one that a terminal would obey. Newlines stay."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """The text as `printable` gives it, in one line: a name with a newline cannot pass for a line of nearid's own."""
    return printable(text.replace("\n", "\N{REPLACEMENT CHARACTER}"))


def shortened(name: str, most: int) -> str:
    """The name, with dots for the middle of one that has more than `most` characters.

    Names of runs often begin alike and end alike, so both ends stay.
    """
    if len(name) <= most:
        return name
    end = (most - 3) // 2
    return f"{name[: most - 3 - end]}...{name[-end:]}"
