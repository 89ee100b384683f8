"""Help as plain text and as data: options in groups, examples, and where to read more."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup

# Where the documentation is; `project.urls` of pyproject.toml has the same address.
DOCS = "https://nearid.github.io/nearid/"
# What stands for a value of an option, by the name that Typer gives to its type.
VALUES = {"str": "TEXT", "int": "N", "int range": "N", "float": "NUMBER", "float range": "NUMBER", "path": "PATH"}

# Titles under which help lists options, in this order.
INPUT, PREPARATION, MODEL = "Input", "Texts and images", "Model"
COMPUTED, TOGETHER, WHERE, OUTPUT = "What is computed", "Rows that belong together", "Where it runs", "Output"
# Those of every command, such as --help.
GENERAL = "General"
TITLES = (INPUT, PREPARATION, MODEL, COMPUTED, TOGETHER, WHERE, OUTPUT, GENERAL)

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Guide:
    """What help adds to the options of a command.

    Attributes
    ----------
    page : str
        The page of the documentation, as "guide/compare".
    examples : sequence of str
        Whole command lines.
    """

    page: str
    examples: Sequence[str]

    @property
    def address(self) -> str:
        """Where the page is on the web."""
        return f"{DOCS}{self.page}.html"


@dataclass(frozen=True)
class Entry:
    """An argument or option as help shows it.

    Attributes
    ----------
    name : str
        As "-o, --out", "--scale / --no-scale" or "MODEL".
    value : str
        What stands for the value, as "N"; empty for flags and arguments.
    default : str
        Empty where there is none.
    required : bool
    text : str
    """

    name: str
    value: str
    default: str
    required: bool
    text: str


@dataclass(frozen=True)
class CommandHelp:
    """All that the help of a command says.

    Attributes
    ----------
    name : str
        The words that call it, as "nearid data fetch".
    usage : str
        As "nearid compare [OPTIONS] A B [C ...]".
    summary : str
        One sentence or two.
    text : str
        Further paragraphs.
    arguments : sequence of Entry
    groups : mapping of str to sequence of Entry
        Options by the title of their group.
    commands : mapping of str to str
        Names and summaries of the commands below; none for a command of its own.
    guide : Guide
    """

    name: str
    usage: str
    summary: str
    text: str
    arguments: Sequence[Entry]
    groups: Mapping[str, Sequence[Entry]]
    commands: Mapping[str, str]
    guide: Guide


def guided(page: str, *examples: str) -> Callable[[F], F]:
    """Decorator that gives a command the examples of its help and its page in the documentation."""

    def decorate(function: F) -> F:
        function.guide = Guide(page, examples)  # type: ignore[attr-defined]
        return function

    return decorate


class _AsGiven:
    """Takes values that already have the type of a parameter, and gives all others to Typer.

    Typer loads pydantic to convert any value, even one that is missing, which takes longer than to refuse a path.
    """

    def __init__(self, parameter: Any) -> None:
        self._parameter, self._conversion = parameter, parameter.get_runtime_param

    def coerce(self, value: Any, **where: Any) -> Any:
        """The value as its type, or Typer's refusal of it."""
        kind = self._parameter.type_descriptor.annotation
        several = self._parameter.multiple or self._parameter.nargs == -1
        if value is None:
            return () if several else None
        if several and kind == list[str] and all(isinstance(each, str) for each in value):
            return list(value)
        if not several and not self._parameter.type_descriptor.is_ranged:
            if type(value) is kind:
                return value
            if kind in (int, float) and isinstance(value, str) and value.isascii() and value.isdecimal():
                return kind(value)
        return self._conversion().coerce(value, **where)


class _Plain:
    """Help of commands and groups without markup, and values of parameters without slow imports."""

    help: str | None
    callback: Any

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, which take plain values as they are; only new versions of Typer convert by pydantic."""
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if hasattr(parameter, "get_runtime_param") and "get_runtime_param" not in vars(parameter):
                own = _AsGiven(parameter)
                parameter.get_runtime_param = lambda own=own: own
        return parameters

    @property
    def guide(self) -> Guide:
        """The examples of the command and its page in the documentation."""
        found: Guide = self.callback.guide
        return found

    def get_short_help_str(self, limit: int = 45) -> str:
        """The whole first paragraph of the help, which a list of commands shows. Typer would cut it at `limit`."""
        return " ".join(inspect.cleandoc(self.help or "").partition("\n\n")[0].split())

    def entries(self, ctx: Any) -> tuple[list[Entry], dict[str, list[Entry]]]:
        """Arguments, and options by the title of their group."""
        arguments: list[Entry] = []
        groups: dict[str, list[Entry]] = {title: [] for title in TITLES}
        for parameter in self.get_params(ctx):  # type: ignore[attr-defined]
            if getattr(parameter, "hidden", False):
                continue
            entry = _entry(parameter, ctx)
            if _is_argument(parameter):
                arguments.append(entry)
            else:
                groups[getattr(parameter, "rich_help_panel", None) or GENERAL].append(entry)
        return arguments, {title: options for title, options in groups.items() if options}

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of arguments and of options, group by group."""
        arguments, groups = self.entries(ctx)
        if arguments:
            with formatter.section("Arguments"):
                formatter.write_dl([(entry.name, entry.text) for entry in arguments])
        sections = {title: [_line(entry) for entry in options] for title, options in groups.items()}
        # The texts of all groups begin in one column. Longer names have a line to themselves.
        width = min(max((len(name) for lines in sections.values() for name, _ in lines), default=0), NAMES)
        for title, lines in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), text) for name, text in lines], col_max=NAMES)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples and the address of the documentation."""
        with formatter.section("Examples"):
            for example in self.guide.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
        formatter.write_paragraph()
        formatter.write(f"Documentation: {self.guide.address}\n")


# Characters of the names of options beside which their texts stand.
NAMES = 26


class Command(_Plain, TyperCommand):
    """A command whose help names arguments as they were declared, and values of options by common words."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """`[OPTIONS]`, then every argument, without the braces and second brackets that Typer puts around them."""
        return ["[OPTIONS]", *(_metavar(p) for p in self.params if _is_argument(p))]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuse an option that is given twice: nobody would notice that its first value is lost."""
        order = [] if ctx.resilient_parsing else self.make_parser(ctx).parse_args(args=list(args))[2]
        for at, parameter in enumerate(order):
            single = not (_is_argument(parameter) or parameter.multiple or getattr(parameter, "is_flag", False))
            if single and parameter in order[:at]:
                name = parameter.opts[0]
                is_text = _entry(parameter, ctx).value == VALUES["str"]
                is_output = getattr(parameter, "rich_help_panel", None) == OUTPUT
                several = f" If it takes several names, separate them by commas: {name} a,b."
                ctx.fail(f"{name} is given twice. Give it once.{several if is_text and not is_output else ''}")
        return list(super().parse_args(ctx, args))


class Group(_Plain, TyperGroup):
    """A group of commands, each listed with a whole sentence."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the lists of options and of commands."""
        super().format_options(ctx, formatter)
        self.format_commands(ctx, formatter)

    def summaries(self, ctx: Any) -> dict[str, str]:
        """What each command does, by name."""
        below = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        return {name: command.get_short_help_str() for name, command in below.items() if command is not None}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self.summaries(ctx).items()))


def plain(
    name: str, text: str, guide: Guide, cls: type[TyperGroup] = Group, *, add_completion: bool = False
) -> typer.Typer:
    """A Typer app for commands of class `Command`, with help of up to 120 columns."""
    return typer.Typer(
        name=name,
        cls=type(cls.__name__, (cls,), {"guide": guide}),
        help=text,
        no_args_is_help=True,
        add_completion=add_completion,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"max_content_width": 120, "help_option_names": ["-h", "--help"]},
    )


def single(name: str, function: Callable[..., None]) -> Any:
    """The command of one function, without a group around it."""
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
    app.command(name, cls=Command)(function)
    return typer.main.get_command(app)


def described_commands(command: Any, name: str, parent: Any = None) -> Iterable[CommandHelp]:
    """The help of a command and of all commands below it, as data."""
    ctx = command.context_class(command, info_name=name, parent=parent, **command.context_settings)
    arguments, groups = command.entries(ctx)
    below = command.summaries(ctx) if isinstance(command, Group) else {}
    paragraphs = inspect.cleandoc(command.help or "").split("\n\n")
    usage = " ".join([ctx.command_path, *command.collect_usage_pieces(ctx)])
    summary, text = command.get_short_help_str(), "\n\n".join(paragraphs[1:])
    yield CommandHelp(ctx.command_path, usage, summary, text, arguments, groups, below, command.guide)
    for each in below:
        yield from described_commands(command.get_command(ctx, each), each, ctx)


def _is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def _metavar(argument: Any) -> str:
    return str(argument.metavar or argument.name.upper())


def _entry(parameter: Any, ctx: Any) -> Entry:
    text = parameter.help or ""
    if _is_argument(parameter):
        return Entry(_metavar(parameter), "", "", parameter.required, text)
    # Typer writes the value after the names. After the text it writes the default and "required" in brackets.
    written, after = parameter.get_help_record(ctx)
    written = re.sub("<(.+)>", lambda found: VALUES.get(found[1], found[1]), written)
    names, value = (written, "") if parameter.is_flag else written.rsplit(" ", 1)
    default = re.search(r"\[default: ([^];]*)", after.removeprefix(text))
    return Entry(names, value, default[1] if default else "", parameter.required, text)


def _line(entry: Entry) -> tuple[str, str]:
    """An option as a line of help."""
    more = "  [required]" if entry.required else f"  [default: {entry.default}]" if entry.default else ""
    return f"{entry.name} {entry.value}".rstrip(), entry.text + more
