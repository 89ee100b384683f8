"""Help as plain text: nothing in it is read as markup, and nothing of it is cut off."""

from __future__ import annotations

import inspect
import re
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# What stands for a value of an option, by the name that Typer gives to its type.
VALUES = {"str": "TEXT", "int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER", "path": "PATH"}


class _Listed:
    help: str | None

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first paragraph of the help, which a list of commands shows. Typer would cut it at `limit`."""
        return " ".join(inspect.cleandoc(self.help or "").partition("\n\n")[0].split())


class Command(_Listed, TyperCommand):
    """A command whose help names arguments as they were declared, and values of options by common words."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS]`, then every argument, without the braces and second brackets that Typer puts around them."""
        return ["[OPTIONS]", *(_metavar(p) for p in self.params if _is_argument(p))]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice: the first value would be lost without a word."""
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for at, parameter in enumerate(order):
            single = not (_is_argument(parameter) or parameter.multiple or getattr(parameter, "is_flag", False))
            if single and parameter in order[:at]:
                name = parameter.opts[0]
                ctx.fail(f"{name} is given twice. Give it once; where it takes several names, with commas: {name} a,b.")
        return list(super().parse_args(ctx, args))

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and options."""
        arguments, options = [], []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:  # hidden
                continue
            name, text = record
            if _is_argument(parameter):
                arguments.append((_metavar(parameter), text))
            else:
                options.append((re.sub("<(.+)>", lambda found: VALUES.get(found[1], found[1]), name), text))
        for title, entries in (("Arguments", arguments), ("Options", options)):
            if entries:
                with formatter.section(title):
                    formatter.write_dl(entries)


class Group(_Listed, TyperGroup):
    """A group of commands, each listed with a whole sentence."""


def plain(name: str, text: str, cls: type[TyperGroup] = Group, *, add_completion: bool = False) -> typer.Typer:
    """A Typer app for commands of class `Command`, with help of up to 120 columns."""
    return typer.Typer(
        name=name,
        cls=cls,
        help=text,
        no_args_is_help=True,
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
    )


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())
