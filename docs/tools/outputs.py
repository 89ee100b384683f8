"""Comparison of a printed output or a picture with the one that a page shows: words exactly, numbers nearly."""

import re

# A number that stands alone: "layer2" and "5.1.2" are words.
NUMBER = re.compile(
    r"(?<![\w.])[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?(?!\w|\.\d)", re.I
)
# Rules of tables and frames are as long as the widest number needs them.
RULE = re.compile(r"[-=\u2500\u2501\u2550]+")
# What a picture says.
WORDS = re.compile(r"<(text|title)\b[^>]*>(.*?)</\1>", re.S)
# Numbers agree to 2%, or to one unit of the last decimal that is shown. What is smaller than .0001 is left to rounding.
RELATIVE, ABSOLUTE = 0.02, 1e-4


def difference(expected: str, printed: str) -> str | None:
    """Where printed lines differ from those that a page shows, in words; None where they agree.

    Words must be the same. Numbers must agree to 2% or to one unit of the last decimal that is shown; counts have no
    decimals. Numbers of spaces and lengths of rules do not matter. A line `...` of the page stands for any lines.
    """
    lines = _lines(printed)
    parts: list[list[str]] = [[]]
    for line in _lines(expected):
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        for want, line in zip(first, lines, strict=False):
            if not same_line(want, line):
                return _differ(want, line)
        if len(first) == len(lines):
            return None
        more = lines[len(first) :] or first[len(lines) :]
        return f"{'printed, but not in the page' if len(lines) > len(first) else 'not printed'}: {more[0]}"
    if len(first) + len(last) > len(lines):
        return f"only {len(lines)} lines are printed"
    for want, line in [*zip(first, lines, strict=False), *zip(last, lines[len(lines) - len(last) :], strict=True)]:
        if not same_line(want, line):
            return _differ(want, line)
    rest = lines[len(first) : len(lines) - len(last)]
    for part in parts[1:-1]:
        starts = (at for at in range(len(rest) - len(part) + 1) if all(map(same_line, part, rest[at:])))
        at = next(starts, None)
        if at is None:
            return "not printed: " + " / ".join(part)
        rest = rest[at + len(part) :]
    return None


def picture_difference(stored: str, drawn: str) -> str | None:
    """Where the size or the words of a drawn SVG differ from those of a stored one, in words; None where they agree."""
    boxes = [re.findall(r'<svg\b[^>]*\bviewBox="([^"]*)"', svg) for svg in (stored, drawn)]
    if boxes[0] != boxes[1]:
        return _differ(*(f"viewBox {box}" for box in boxes))
    return difference(_words(stored), _words(drawn))


def _words(svg: str) -> str:
    """The texts and titles of a picture, a line each."""
    return "\n".join(" ".join(re.sub(r"<[^>]*>", " ", found[2]).split()) for found in WORDS.finditer(svg))


def same_line(wanted: str, line: str) -> bool:
    """Whether two lines have the same words, and numbers that nearly agree."""
    if NUMBER.sub("0", wanted) != NUMBER.sub("0", line):
        return False
    return all(map(_near, NUMBER.findall(wanted), NUMBER.findall(line)))


def _near(first: str, second: str) -> bool:
    a, b = _value(first), _value(second)
    allowed = max(RELATIVE * max(abs(a), abs(b)), min(_unit(first), _unit(second)), ABSOLUTE)
    return abs(a - b) <= allowed * (1 + 1e-9)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("\u2212", "-"))


def _unit(number: str) -> float:
    """One unit of the last decimal: .001 of 0.514, 1e-5 of 6.0e-04, nothing of a count."""
    mantissa, _, power = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(power or 0) - decimals) if decimals or power else 0.0


def _lines(text: str) -> list[str]:
    lines = [" ".join(RULE.sub(lambda rule: rule[0][0], line).split()) for line in text.strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _differ(wanted: str, line: str) -> str:
    return f"the page has\n  {wanted}\nprinted is\n  {line}"
