"""Every block of code of README.md and of the pages in docs/ runs as written and prints what its page shows.

Blocks run in order, in an empty folder for each page. Commands run in this process. A block that is not run stands
below a comment, `<!-- not run: reason -->`; its commands are parsed and its Python is compiled all the same. A block
whose output is left out stands below `<!-- output not shown: reason -->`.
"""

import re
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
import typer
from blocks import ROOT, blocks_of, call, inside, pages, pictures_of, run
from outputs import difference, picture_difference

import nearid.questions.compare.ica_rung  # noqa: F401, registers a group
from nearid.arrays.formats.registry import FORMATS, Format, register as register_format
from nearid.cli import commands
from nearid.cli.commands import app
from nearid.engines.base import register_engine
from nearid.engines.local import ENGINES, LOCAL
from nearid.groups.ladder import GROUPS, register as register_group
from nearid.measures import registry

PAGES = pages()
# Extras that the examples of a page use.
NEEDS = {
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


TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
BLOCKS = {page: blocks_of(text, str(page.relative_to(ROOT))) for page, text in TEXTS.items()}
RUN = {page: blocks for page, blocks in BLOCKS.items() if any(not block.reason for block in blocks)}
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
def folder(tmp_path):
    """A folder to be in; what is imported from it or registered is forgotten afterwards."""
    with inside(tmp_path), registries_kept():
        yield tmp_path
    for name in [n for n in sys.modules if n.split(".")[0] == "mycode"]:
        del sys.modules[name]


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
def test_the_blocks_of_a_page_run_and_print_what_it_shows(page, folder):
    for module in NEEDS.get(page.stem, ()):
        pytest.importorskip(module)
    if "torch" in NEEDS.get(page.stem, ()):
        import torch

        # With two threads for each of two workers every small step waits: it took over five minutes on a busy machine.
        torch.set_num_threads(1)
    for block, printed in run(RUN[page], page.stem):
        if block.expected is not None:
            different = difference(block.expected, printed)
            assert different is None, f"{block.place} prints something else: {different}"
        else:
            hidden = f"{block.place}: show the output, or write <!-- output not shown: reason --> above, if it prints"
            assert bool(printed.strip()) == (block.unseen is not None), hidden
    missing = [link for link in pictures_of(TEXTS[page]) if not (folder / Path(link).name).exists()]
    assert missing == [], f"{page.name} shows pictures that none of its blocks saves"
    for link in pictures_of(TEXTS[page]):
        drawn = (folder / Path(link).name).read_text(encoding="utf-8")
        different = picture_difference((page.parent / link).read_text(encoding="utf-8"), drawn)
        assert different is None, f"{link}: run python docs/tools/pages.py {page.relative_to(ROOT)}. {different}"


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
        fences = re.findall(r"^```(?:python|sh)$", TEXTS[page], re.M)
        assert len(blocks) == len(fences), page
        assert all("```" not in (block.reason or "") for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_files_of_the_project_lead_somewhere(page):
    text = re.sub(r"^```.*?^```$", "", TEXTS[page], flags=re.M | re.S)
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_what_a_page_shows_belongs_to_the_block_above_it():
    page = "```sh\nnearid demo\n```\n\n```text\nfirst\n```\n\nWords.\n"
    page += "\n```python\nx = 1\n```\nWords.\n```text\nnone\n```\n"
    shown, silent = blocks_of(page, "page.md")
    assert (shown.expected, silent.expected) == ("first\n", None)
    assert page[slice(*shown.span)] == "first\n"
    assert (shown.line, silent.line) == (1, 11)


def test_why_an_output_is_left_out_is_read():
    hidden, shown = blocks_of("<!-- output not shown: long -->\n```python\n1\n```\n\n```python\n2\n```\n", "page.md")
    assert (hidden.unseen, hidden.reason, shown.unseen) == ("long", None, None)


def test_a_block_that_fails_is_named(folder):
    failing = blocks_of("```python\nx = 1\n1 / 0\n```\n", "page.md")
    with pytest.raises(AssertionError, match=r"page\.md:1 does not run as written: division"):
        list(run(failing, "page"))


def test_pictures_and_outputs_of_a_page_are_refreshed(tmp_path, monkeypatch):
    # By its path: tests/pages.py has the same name.
    spec = spec_from_file_location("docs_tools_pages", ROOT / "docs" / "tools" / "pages.py")
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    monkeypatch.setattr(tool, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```python\nfrom pathlib import Path\nPath('page-one.svg').write_text('<svg/>')\nprint('two')\n```\n\n"
        "```text\none\n```\n\n![One](pictures/page-one.svg)\n![Two](pictures/page-two.svg)\n"
    )
    wrong = tool.refresh(page, write=False)
    assert [sentence.split(":")[0] for sentence in wrong] == ["page.md", "page.md"]
    assert "two" in wrong[0] and "page-two.svg" in wrong[1]
    assert (tmp_path / "pictures" / "page-one.svg").read_text() == "<svg/>"
    assert len(tool.refresh(page, write=True)) == 1
    assert "```text\ntwo\n```\n\n![One]" in page.read_text()
    assert len(tool.refresh(page, write=False)) == 1
