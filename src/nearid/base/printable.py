"""Safe text for terminals, because names and labels may come from untrusted files."""

from __future__ import annotations

import re

# Control characters that a terminal would interpret, characters that change the direction of text, and invisible tags.
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def printable(text: str) -> str:
    """Return the text with control characters replaced. Newlines are kept."""
    return OBEYED.sub("\N{REPLACEMENT CHARACTER}", text)


def one_line(text: str) -> str:
    """Return the printable text in one line, so that a name with a newline cannot imitate a line of nearid."""
    return printable(text.replace("\n", "\N{REPLACEMENT CHARACTER}"))


def shortened(name: str, most: int) -> str:
    """Return the name, with dots in place of its middle if it has more than `most` characters.

    Names of runs often differ only at the start or at the end, so both ends are kept.
    """
    if len(name) <= most:
        return name
    end = (most - 3) // 2
    return f"{name[: most - 3 - end]}...{name[-end:]}"
