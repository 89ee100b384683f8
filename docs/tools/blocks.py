"""The code blocks of a Markdown page: find them and run them in order.

A fence ```python or ```sh is run. A fence ```text right after it holds what the block prints on stdout. A block below
a comment `<!-- not run: reason -->` is not run. One below `<!-- output not shown: reason -->` prints what the page
leaves out. The tests of the pages and `docs/tools/pages.py` share this module.
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
    r"(?:^<!-- (?:not run: (?P<reason>[^\n]+)|output not shown: (?P<unseen>[^\n]+)) -->\n\n?)?"
    r"^```(?P<kind>python|sh)\n(?P<code>.*?)^```$"
    r"(?:\n+^```text\n(?P<expected>.*?)^```$)?",
    re.M | re.S,
)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]*pictures/[^)\s/]+\.svg)\)")


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
    unseen : str or None
        Why the page does not show what it prints.
    """

    page: str
    line: int
    kind: str
    code: str
    reason: str | None = None
    expected: str | None = None
    span: tuple[int, int] = (-1, -1)
    unseen: str | None = None

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
            found["unseen"],
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
