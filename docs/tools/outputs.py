"""Comparison of two printed outputs: words exactly, numbers nearly."""

import re

# A number that stands alone: "layer2" and "5.1.2" are words.
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d[\d,]*)?\.?\d+(?:e[-+]?\d+)?(?![\w])(?!\.\d)", re.I)
RELATIVE, ABSOLUTE = 0.02, 0.005


def difference(stored: str, printed: str) -> str | None:
    """The first line that differs, as a sentence; None if the outputs agree.

    Numbers agree within 2% or .005. Spaces, and the lines of tables, do not count: columns move with their numbers.
    """
    before, now = _lines(stored), _lines(printed)
    for old, new in zip(before, now, strict=False):
        if not _agree(old, new):
            return f"{old!r} is stored, {new!r} is printed"
    if len(before) != len(now):
        return f"{len(before)} lines are stored, {len(now)} are printed"
    return None


def _lines(text: str) -> list[str]:
    squeezed = (" ".join(re.sub("[─━]+", " ", line).split()) for line in text.splitlines())
    return [line for line in squeezed if line]


def _agree(old: str, new: str) -> bool:
    if NUMBER.sub("#", old) != NUMBER.sub("#", new):
        return False
    pairs = zip(_numbers(old), _numbers(new), strict=True)
    return all(abs(a - b) <= max(ABSOLUTE, RELATIVE * max(abs(a), abs(b))) + 1e-12 for a, b in pairs)


def _numbers(line: str) -> list[float]:
    return [float(found.replace(",", "")) for found in NUMBER.findall(line)]
