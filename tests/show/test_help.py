"""The help of every command, at the widths of common terminals."""

import inspect
import re
import shlex
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from nearid.arrays.formats.registry import writable_names
from nearid.cli.commands import COMMANDS as BY_NAME, app, reference
from nearid.show.help import DOCS, single

# Absent where only the package and its tests are, as in an sdist.
PAGES = Path(__file__).parents[2] / "docs"


def _below(command):
    """The commands of a group, which it may load only when they are called, by name."""
    if not hasattr(command, "list_commands"):
        return {}
    ctx = command.context_class(command)
    return {name: command.get_command(ctx, name) for name in command.list_commands(ctx)}


def _walk(command, path=()):
    """Every command and group below one, with the words that call it."""
    yield path, command
    for name, below in _below(command).items():
        yield from _walk(below, (*path, name))


COMMANDS = dict(_walk(get_command(app)))


def _letters(text):
    """The text without whitespace: where lines are broken does not matter."""
    return re.sub(r"\s", "", text)


def _declared(command):
    """All that a command has to show: its own help, that of its parameters with their values, and that of commands."""
    yield from inspect.cleandoc(command.help).split("\n\n")
    for parameter in command.params:
        yield from (*parameter.opts[: parameter.param_type_name == "option"], *parameter.secondary_opts)
        yield from filter(None, (parameter.help, parameter.metavar))
        yield from map(str, getattr(parameter.type_descriptor, "choices", None) or ())
    for name, below in _below(command).items():
        yield name + " ".join(inspect.cleandoc(below.help).split("\n\n")[0].split())


@pytest.fixture
def shown(monkeypatch, capsys):
    """Call `nearid` in this process, in a terminal of some width; gives what it prints."""

    def run(*args, columns=80):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit):
            app(args, prog_name="nearid")
        return "".join(capsys.readouterr())

    return run


@pytest.mark.parametrize("command", ["unmix", "extract", "apply"])
def test_help_names_every_format_that_is_written(command, shown):
    text = shown(command, "--help", columns=120)
    assert writable_names() == ["npy", "safetensors", "parquet", "zarr"]
    assert [form for form in writable_names() if not re.search(rf"\b{form}\b", text.split("Arguments")[-1])] == []


def test_every_command_is_tried():
    assert {path[0] for path in COMMANDS if path} == set(BY_NAME) and ("data", "fetch") in COMMANDS


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "nearid")
def test_help_is_whole_and_plain(path, columns, shown):
    text = shown(*path, "--help", columns=columns)
    letters = _letters(text)
    assert not [part for part in _declared(COMMANDS[path]) if _letters(part) not in letters]
    assert not re.search(r"…|\[\[|\{|<\w+[\w |]*>|\blist\[", text)
    # A command line or an address that is broken cannot be copied. All fit into 80 columns.
    whole = {f"  {example}" for example in COMMANDS[path].guide.examples} | {text.splitlines()[-1]}
    assert max(len(line) for line in text.splitlines() if columns >= 80 or line not in whole) <= columns


def test_a_wide_terminal_is_used(shown):
    assert max(map(len, shown("compare", "--help", columns=120).splitlines())) > 100


@pytest.mark.parametrize(
    "usage",
    [
        "nearid compare [OPTIONS] A B [C ...]",
        "nearid lipschitz [OPTIONS] MODEL [LATENTS]",
        "nearid reproduce [OPTIONS] [NAME]",
        "nearid data fetch [OPTIONS] NAME",
    ],
)
def test_usage_is_what_to_type(usage, shown):
    path = usage.removeprefix("nearid ").split(" [OPTIONS]")[0].split()
    assert f"Usage: {usage}\n" in shown(*path, "--help")
    assert f"Usage: {usage}\n" in shown(*path, "--unknown")


@pytest.mark.parametrize("command", ["compare", "score", "unmix", "heads"])
def test_what_a_path_may_be_is_said_once(command, shown):
    text = " ".join(shown(command, "--help", columns=120).split())
    assert text.count("A path is FILE, FILE:ENTRY or FOLDER:LAYER") == 1
    assert ".npz" in text and ".parquet" in text and ".safetensors" in text


@pytest.mark.parametrize(
    ("words", "value"),
    [
        ([], (3, 0.5, False, None, "auto", [])),
        (
            ["--count", "12", "--share", "2", "--flag", "--path", "a/b", "--word", "7", "--each", "x", "--each", "y"],
            ...,
        ),
        (["--count", "-1", "--share", "1e-3"], (-1, 1e-3, False, None, "auto", [])),
    ],
)
def test_values_have_the_types_of_their_options(words, value):
    """Values that need no conversion are taken as they are, without pydantic; Typer converts all others."""
    given = []

    def take(
        count: int = 3,
        share: float = 0.5,
        flag: Annotated[bool, typer.Option("--flag")] = False,
        path: Path | None = None,
        word: str = "auto",
        each: list[str] | None = None,
    ):
        given.append((count, share, flag, path, word, list(each or [])))

    command = single("take", take)
    command(words, standalone_mode=False)
    assert given == [(12, 2.0, True, Path("a/b"), "7", ["x", "y"]) if value is ... else value]
    assert [type(each) for each in given[0][:3]] == [int, float, bool]


@pytest.mark.parametrize("words", [["--count", "x"], ["--count", "2.5"], ["--count", "9"], ["--share", "one"]])
def test_values_of_another_type_are_refused(words):
    def take(count: Annotated[int, typer.Option(max=8)] = 3, share: float = 0.5):
        raise AssertionError

    with pytest.raises(typer.BadParameter) as refused:
        single("take", take)(words, standalone_mode=False)
    assert refused.value.exit_code == 2 and f"Invalid value for '{words[0]}'" in refused.value.format_message()


def test_an_option_given_twice_is_refused():
    """The first value would be lost without a word."""
    for arguments, takes_names in (
        (["compare", "x", "y", "--groups", "rigid", "--groups", "linear"], True),
        (["compare", "x", "y", "--seed", "1", "--seed", "2"], False),
        (["unmix", "x", "-o", "a", "--out", "b"], False),
        (["unmix", "x", "-o", "a", "--contrast", "exp", "--contrast", "cube"], False),
    ):
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 2 and "is given twice" in done.stderr
        assert ("by commas" in done.stderr) == takes_names
    assert "twice" not in CliRunner().invoke(app, ["score", "x", "y", "--kinds", "a=none", "--kinds", "b=none"]).stderr


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "nearid")
def test_help_has_examples_that_can_be_read_and_a_page_that_exists(path, shown):
    text, guide = shown(*path, "--help"), COMMANDS[path].guide
    assert not PAGES.exists() or (PAGES / f"{guide.page}.md").is_file()
    assert len(guide.examples) >= 2 and guide.address.startswith(DOCS) and text.endswith(f"{guide.address}\n")
    for example in guide.examples:
        assert f"  {example}\n" in text
        command, words = get_command(app), shlex.split(re.search("nearid [^)]*", example)[0])
        if "--help" in words:
            continue
        # Options and arguments are read as on the command line; nothing is run.
        ctx = command.make_context("nearid", words[1:])
        while _below(command):
            name, command, rest = command.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
            ctx = command.make_context(name, rest, parent=ctx)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: " ".join(path) or "nearid")
def test_the_reference_is_what_help_shows(path, shown):
    (found,) = [each for each in reference() if each.name == " ".join(("nearid", *path))]
    text = " ".join(shown(*path, "--help", columns=120).split())
    assert f"Usage: {found.usage}" in text and found.summary in text
    options = [(title, option) for title, listed in found.groups.items() for option in listed]
    assert [title for title in found.groups if f" {title}: " not in text] == []
    for _, option in options:
        assert f"{option.name} {option.value}".strip() in text and " ".join(option.text.split()) in text
        assert not option.default or f"[default: {option.default}]" in text
    declared = {
        name for p in COMMANDS[path].params if p.param_type_name == "option" and not p.hidden for name in p.opts
    }
    assert declared <= {name.split()[0] for _, option in options for name in option.name.split(", ")}


def test_options_of_one_group_stand_together():
    groups = {each.name: each.groups for each in reference()}
    assert list(groups["nearid compare"]) == [
        "Input", "What is computed", "Rows that belong together", "Where it runs", "Output", "General",
    ]  # fmt: skip
    # An option with two meanings stands where it belongs.
    assert "--scale" in " ".join(o.name for o in groups["nearid compare"]["What is computed"])
    assert "--scale" in " ".join(o.name for o in groups["nearid extract"]["Texts and images"])
    assert {o.name for o in groups["nearid unmix"]["Output"]} >= {"-o, --out", "--json", "--report", "-q, --quiet"}


def test_every_option_has_a_group():
    """Under "General" stand those that every command has, and those of `nearid` itself."""
    general = {option.name for each in reference() for option in each.groups["General"]}
    assert general == {"-h, --help", "--version", "--install-completion", "--show-completion"}
