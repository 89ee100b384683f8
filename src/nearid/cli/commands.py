"""The commands of `nearid`: those of the questions and of the lab, each loaded when it is called."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import typer

from nearid import __version__
from nearid.base.errors import InputError, unknown
from nearid.show.command import Question
from nearid.show.help import Command, Group, plain

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
    app = plain(name, "")
    app.command(name, cls=Command)(declared.command() if isinstance(declared, Question) else declared)
    return typer.main.get_command(app)


class _Commands(Group):
    """Commands that are loaded when they are called; the list of them loads none of what they run."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _command(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            raise InputError(unknown("command", name, COMMANDS))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        entries = []
        for name in COMMANDS:
            declared = _declared(name)
            is_question = isinstance(declared, Question)
            entries.append((name, declared.summary if is_question else _command(name).get_short_help_str()))
        with formatter.section("Commands"):
            formatter.write_dl(entries)


app = plain(
    "nearid",
    "Are learned representations the same, are they the true ones? Up to what, and how nearly?",
    cls=_Commands,
    add_completion=True,
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"nearid {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Show the version."),
) -> None:
    pass
