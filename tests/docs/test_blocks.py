"""Every block of code of README.md and docs/*.md runs as written, in order, in a folder of its page.

Commands run in this process. A block that is not to run stands below a comment, `<!-- not run: reason -->`; its
commands are parsed and its Python is compiled all the same.
"""

import glob
import re
import shlex
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import typer

import nearid.questions.compare.ica_rung  # noqa: F401, registers a group
from nearid.arrays.formats.registry import FORMATS, Format, register as register_format
from nearid.cli import commands
from nearid.cli.commands import app
from nearid.engines.base import register_engine
from nearid.engines.local import ENGINES, LOCAL
from nearid.groups.ladder import GROUPS, register as register_group
from nearid.measures import registry

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"(?:^<!-- not run: (?P<reason>[^\n]+) -->\n\n?)?^```(?P<kind>\w*)\n(?P<code>.*?)^```$", re.M | re.S)
# Extras that the examples of a page use.
NEEDS = {
    "README": ("torch", "pandas", "pyarrow", "anndata", "lightgbm"),
    "blocks": ("torch", "pandas", "pyarrow", "anndata"),
    "callbacks": ("transformers", "accelerate", "lightning", "PIL"),
    "deconfound": ("pandas", "pyarrow", "anndata", "lightgbm"),
    "engines": ("distributed",),
    "extract": ("torch", "onnx", "onnxruntime", "PIL", "transformers"),
    "heads": ("torch",),
    "lipschitz": ("torch", "pandas", "pyarrow"),
    "models": ("torch",),
    "score": ("pandas", "pyarrow"),
    "train": ("torch",),
    "unmix": ("zarr",),
}


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    kind: str
    code: str
    reason: str | None

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def program(self):
        # Padded so that a traceback has the page's own lines.
        return compile("\n" * self.line + self.code, self.page, "exec")

    @property
    def commands(self):
        lines = self.code.replace("\\\n", " ").splitlines()
        return [words for line in lines if (words := shlex.split(line, comments=True))]


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    name = str(page.relative_to(ROOT))
    return [
        Block(name, text[: found.start("code")].count("\n"), found["kind"], found["code"], found["reason"])
        for found in BLOCK.finditer(text)
        if found["kind"] in ("python", "sh")
    ]


BLOCKS = {page: blocks_of(page) for page in PAGES}
RUN = {page: run for page, blocks in BLOCKS.items() if (run := [b for b in blocks if not b.reason])}
NOT_RUN = [block for blocks in BLOCKS.values() for block in blocks if block.reason]


@contextmanager
def registries_kept():
    """Measures, groups, formats and engines that a page registers are taken back."""
    # Those of nearid are all there from now on.
    registry.measures()
    mappings = (registry.MEASURES, GROUPS, ENGINES)
    kept, formats = [dict(mapping) for mapping in mappings], list(FORMATS)
    try:
        yield
    finally:
        for mapping, before in zip(mappings, kept, strict=True):
            mapping.clear()
            mapping.update(before)
        FORMATS[:] = formats


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to be in; what is imported from it or registered is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEARID_CACHE", str(tmp_path / ".cache"))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with registries_kept():
        yield tmp_path
    for name in [n for n in sys.modules if n.split(".")[0] == "mycode"]:
        del sys.modules[name]


def call(command, words):
    arguments = [part for word in words for part in (sorted(glob.glob(word)) or [word])]
    assert arguments[0] == "nearid", f"{words[0]} is no command that this test can run"
    assert command(arguments[1:], standalone_mode=False) in (None, 0)


def only_parsed(command):
    """The same command line with commands that do nothing."""
    names = command.list_commands(None) if hasattr(command, "list_commands") else ()
    for name in names:
        only_parsed(command.get_command(None, name))
    if not names:
        command.callback = lambda **_: None
    return command


@pytest.fixture(autouse=True)
def whole_commands():
    """Commands are kept once they are loaded: those that do nothing are forgotten after each test."""
    yield
    commands._command.cache_clear()


@pytest.mark.filterwarnings("ignore")  # as a reader's terminal shows them; other tests hold the warnings of each part
@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_the_blocks_of_a_page_run_as_written(page, folder):
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module)
    if "torch" in NEEDS.get(page.stem, ()):
        import torch

        # With two threads for each of two workers every small step waits: it took over five minutes on a busy machine.
        torch.set_num_threads(1)
    names = {"__name__": page.stem}
    for block in RUN[page]:
        try:
            if block.kind == "python":
                exec(block.program, names)
            for words in block.commands if block.kind == "sh" else ():
                call(app, words)
        except Exception as error:
            told = error.format_message() if hasattr(error, "format_message") else error
            raise AssertionError(f"{block.place} does not run as written: {told}") from error


@pytest.mark.parametrize("block", NOT_RUN, ids=lambda block: block.place)
def test_a_block_that_is_not_run_is_valid(block):
    if block.kind == "python":
        assert block.program
    for words in block.commands if block.kind == "sh" else ():
        if words[0] == "nearid":
            call(only_parsed(typer.main.get_command(app)), words)
    pytest.skip(block.reason)


def test_what_a_page_registers_is_taken_back():
    def state():
        return list(registry.measures()), dict(GROUPS), list(ENGINES), list(FORMATS)

    before = state()
    with registries_kept():
        registry.measure("Nothing")(lambda x, factors: registry.Measured(0.0))
        register_group(replace(GROUPS["rigid"], name="of_a_page"))
        register_engine("of_a_page", lambda address: nullcontext(LOCAL))
        register_format(Format((".page",)))
        assert not any(now == then for now, then in zip(state(), before, strict=True))
    assert state() == before


def test_a_wrong_option_in_a_block_that_is_not_run_is_found():
    with pytest.raises(Exception, match="--no-such-option"):
        call(only_parsed(typer.main.get_command(app)), ["nearid", "compare", "a.npy", "b.npy", "--no-such-option"])


def test_every_fence_of_a_page_is_seen():
    for page, blocks in BLOCKS.items():
        fences = re.findall(r"^```(?:python|sh)$", page.read_text(encoding="utf-8"), re.M)
        assert len(blocks) == len(fences), page
        assert all("```" not in (block.reason or "") for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_of_the_project_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []
