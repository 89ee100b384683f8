"""The code blocks of a Markdown page: find them, run them in order, compare what they print with what the page shows.

A fence ```python or ```sh is run. A fence ```text right after it holds what the block prints on stdout. A block below
a comment `<!-- not run: reason -->` is not run. The tests of the pages and `docs/tools/pages.py` share this module.
"""

import glob
import io
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# Folders of docs/ whose pages are made by the build.
MADE = ("_build", "generated")
# Pages that others run: docs/tools/gallery.py runs the examples of the gallery.
ELSEWHERE = ("gallery",)

BLOCK = re.compile(
    r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?^```(?P<kind>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n+^```text\n(?P<expected>.*?)^```$)?",
    re.M | re.S,
)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]*pictures/[^)\s/]+\.svg)\)")
NUMBER = re.compile(r"[-+\u2212]?(?:\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?", re.I)
# Rules of tables and frames are as long as the widest number needs them.
RULE = re.compile(r"[-=\u2500\u2501\u2550]{2,}")
RELATIVE, ABSOLUTE = 0.02, 0.005


@dataclass(frozen=True)
class Block:
    """A fence of code.

    Attributes
    ----------
    page : str
        Path of its page, from the root of the project.
    line : int
        Line of the opening fence.
    kind : str
        "python" or "sh".
    code : str
    reason : str or None
        Why it is not run.
    expected : str or None
        What the page shows below it.
    span : tuple of int
        Where the expected text stands in the page; (-1, -1) where there is none.
    """

    page: str
    line: int
    kind: str
    code: str
    reason: str | None = None
    expected: str | None = None
    span: tuple[int, int] = (-1, -1)

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def program(self) -> CodeType:
        # Padded so that a traceback has the page's own lines.
        return compile("\n" * self.line + self.code, self.page, "exec")

    @property
    def commands(self) -> list[list[str]]:
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def pages() -> list[Path]:
    """The pages whose blocks are run: README, CONTRIBUTING, the paper and all of docs/ that is written by hand."""
    written = [
        path
        for path in (ROOT / "docs").rglob("*.md")
        if not {*MADE, *ELSEWHERE} & set(path.relative_to(ROOT / "docs").parts[:-1])
    ]
    others = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "paper" / "paper.md"]
    return sorted([*(path for path in others if path.exists()), *written])


def blocks_of(text: str, page: str) -> list[Block]:
    """The blocks of a page, in order."""
    return [
        Block(
            page,
            text[: found.start("code")].count("\n"),
            found["kind"],
            found["code"],
            found["reason"],
            found["expected"],
            found.span("expected"),
        )
        for found in BLOCK.finditer(text)
    ]


def pictures_of(text: str) -> list[str]:
    """The links of a page to pictures of results: pictures/NAME.svg, in a folder beside it or below another."""
    return [found["path"] for found in PICTURE.finditer(text)]


@contextmanager
def inside(folder: Path) -> Iterator[None]:
    """Work in a folder, as a reader in a terminal of 100 columns; modules of that folder can be imported."""
    kept, before, path = os.getcwd(), dict(os.environ), list(sys.path)
    os.chdir(folder)
    sys.path.append(str(folder))
    os.environ.update(COLUMNS="100", NEARID_CACHE=str(folder / ".cache"))
    try:
        yield
    finally:
        os.chdir(kept)
        sys.path[:] = path
        os.environ.clear()
        os.environ.update(before)


def run(blocks: list[Block], name: str) -> Iterator[tuple[Block, str]]:
    """Run blocks in order in the present folder and give each one with what it printed on stdout.

    Parameters
    ----------
    blocks : list of Block
    name : str
        `__name__` of the Python blocks, which share their variables.

    Yields
    ------
    tuple of Block and str
    """
    from nearid.cli.commands import app

    names: dict[str, Any] = {"__name__": name}
    for block in blocks:
        if block.reason:
            continue
        printed = io.StringIO()
        try:
            with redirect_stdout(printed):
                if block.kind == "python":
                    exec(block.program, names)
                else:
                    for words in block.commands:
                        call(app, words)
        except Exception as error:
            message = error.format_message() if hasattr(error, "format_message") else error
            raise AssertionError(f"{block.place} does not run as written: {message}") from error
        yield block, printed.getvalue()


def call(command: Callable[..., Any], words: list[str]) -> None:
    """Call a command line of nearid in this process; wildcards stand for the files of the present folder."""
    arguments = [part for word in words for part in (sorted(glob.glob(word)) or [word])]
    assert arguments[0] == "nearid", f"{words[0]} is not a command that can be run here. Only nearid can."
    assert command(arguments[1:], standalone_mode=False) in (None, 0)


def difference(expected: str, printed: str) -> str | None:
    """Where printed lines differ from those that a page shows, in words; None where they agree.

    Words must be the same. Numbers must agree to 2% or .005. Numbers of spaces and lengths of rules do not matter. A
    line `...` of the page stands for any lines.
    """
    wanted, lines = _lines(expected), _lines(printed)
    parts: list[list[str]] = [[]]
    for line in wanted:
        if line == "...":
            parts.append([])
        else:
            parts[-1].append(line)
    first, last = parts[0], parts[-1]
    if len(parts) == 1:
        if len(first) != len(lines):
            for want, line in zip(first, lines, strict=False):
                if not same_line(want, line):
                    return _differ(want, line)
            more = lines[len(first) :] or first[len(lines) :]
            return f"{'printed, but not in the page' if len(lines) > len(first) else 'not printed'}: {more[0]}"
        return next((_differ(w, line) for w, line in zip(first, lines, strict=True) if not same_line(w, line)), None)
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


def same_line(wanted: str, line: str) -> bool:
    """Whether two lines have the same words, and numbers that agree to 2% or .005."""
    if NUMBER.sub("0", wanted) != NUMBER.sub("0", line):
        return False
    pairs = zip(NUMBER.findall(wanted), NUMBER.findall(line), strict=True)
    return all(abs(_value(a) - _value(b)) <= max(RELATIVE * abs(_value(a)), ABSOLUTE) for a, b in pairs)


def _value(number: str) -> float:
    return float(number.replace(",", "").replace("\u2212", "-"))


def _lines(text: str) -> list[str]:
    lines = [" ".join(RULE.sub(lambda rule: rule[0][:2], line).split()) for line in text.strip("\n").splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return lines


def _differ(wanted: str, line: str) -> str:
    return f"the page has\n  {wanted}\nprinted is\n  {line}"
