"""The commands of `nearid`: those of the questions and of the lab, each loaded when it is called."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from typing import Any

import typer

from nearid import __version__
from nearid.base.errors import InputError, unknown
from nearid.show.command import Question
from nearid.show.help import CommandHelp, Group, Guide, described_commands, plain, single

# In the order in which help lists them; each module has a Question, a Typer app or a function of the command's name.
COMMANDS = {
    "compare": "nearid.questions.compare.command",
    "layers": "nearid.questions.layers.command",
    "extract": "nearid.questions.extract.command",
    "heads": "nearid.questions.heads.command",
    "score": "nearid.questions.score.command",
    "unmix": "nearid.questions.unmix.command",
    "apply": "nearid.questions.unmix.apply",
    "lipschitz": "nearid.questions.lipschitz.command",
    "deconfound": "nearid.questions.deconfound.command",
    "reproduce": "nearid.lab.framework.command",
    "demo": "nearid.cli.demo",
    "data": "nearid.lab.data.command",
}


def _declared(name: str) -> Any:
    module = import_module(COMMANDS[name])
    return getattr(module, "QUESTION", None) or getattr(module, name)


@cache
def _command(name: str) -> Any:
    declared = _declared(name)
    if isinstance(declared, typer.Typer):
        return typer.main.get_command(declared)
    return single(name, declared.command() if isinstance(declared, Question) else declared)


class _Commands(Group):
    """Commands that are loaded when they are called. Listing them imports none of the questions."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise InputError(unknown("command", name, COMMANDS))
        return super().resolve_command(ctx, args)

    def summaries(self, ctx: Any) -> dict[str, str]:
        declared = {name: _declared(name) for name in COMMANDS}
        return {
            name: each.summary if isinstance(each, Question) else _command(name).get_short_help_str()
            for name, each in declared.items()
        }


app = plain(
    "nearid",
    "Are learned representations the same? Are they the true ones? Up to which maps, and how closely?",
    Guide("index", ("nearid demo", "nearid compare run1.npy run2.npy", "nearid compare --help")),
    cls=_Commands,
    add_completion=True,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nearid {__version__}")
        raise typer.Exit


def reference() -> Iterable[CommandHelp]:
    """The help of every command as data, for the documentation."""
    return described_commands(typer.main.get_command(app), "nearid")


@app.callback()
def _common(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    pass
