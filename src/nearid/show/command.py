"""Commands from public functions: a signature and its docstring are the one declaration of every option."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from pkgutil import resolve_name
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import typer

from nearid.show.help import COMPUTED, INPUT, MODEL, OUTPUT, PREPARATION, TOGETHER, WHERE, Guide

# Parameters that a command gives itself.
OWN = ("progress",)
# The group of each option in help; the others belong to "What is computed".
GROUPED = {
    INPUT: "key ids features exclude columns_from nonfinite factors_key meta labels batches data layers mask "
    "drop_nonfinite drop_unreadable kinds periods normal width names",
    PREPARATION: "column tokenizer max_length resize crop grey scale mean std channels",
    MODEL: "factory prefix revision carry options_a options_b pool",
    TOGETHER: "blocks",
    WHERE: "engine device batch_size mixed cache dtype",
    OUTPUT: "out format restart overwrite keep_nonfinite drop dry_run",
}
# Parameters with another name on the command line.
SPELT = {"random_state": "seed"}
ENGINE = (
    'Where the passes over the rows run: "local" (this process, the default); "torch" or "torch:cuda" (this process, '
    'with products on a device of torch); "dask" (a Dask cluster of this machine\'s cores); or the address of a Dask '
    "scheduler such as tcp://127.0.0.1:8786. With torch, numbers differ by rounding; otherwise they are the same."
)
# Help of options that mean the same in every command.
TEXTS = {
    "engine": ENGINE,
    "features": 'Columns of tables to use: names or patterns such as "emb_*", separated by commas. '
    "Default: all numeric columns.",
    "exclude": 'Columns of tables to leave out, such as "plate,well_*".',
}
# Options that commands have in common.
JSON = typer.Option("--json", help="Print the result as JSON on stdout.", rich_help_panel=OUTPUT)
REPORT = typer.Option("--report", help="Write an HTML report to this file.", rich_help_panel=OUTPUT)
INTERACTIVE = typer.Option(
    "--interactive", help="Make the figures of --report interactive. The page grows by 5 MB.", rich_help_panel=OUTPUT
)
ALL = typer.Option("--all", help="Print all tables, also those that the page folds.", rich_help_panel=OUTPUT)
QUIET = typer.Option("--quiet", "-q", help="Print only errors on stderr, no progress.", rich_help_panel=OUTPUT)


@dataclass(frozen=True)
class Instead:
    """A function that a command calls instead of its own where an option is given.

    Attributes
    ----------
    option : str
        The parameter that decides, which is the last positional one of the function.
    home : str
        Module and name of the function, as of a `Question`. It takes the same arguments and all of the options.
    others : str
        Module and name of a function whose options it hands on, as its `**options`.
    hidden : sequence of str
        Parameters of both for Python alone.
    """

    option: str
    home: str
    others: str
    hidden: Sequence[str] = ()

    @property
    def functions(self) -> list[Callable[..., Any]]:
        """The function, and the one whose options it hands on."""
        return [resolve_name(self.home), resolve_name(self.others)]


@dataclass(frozen=True)
class Question:
    """How a public function is called from the command line.

    Attributes
    ----------
    home : str
        Module and name of the function, as "nearid.questions.score.run:score". It is imported when the command runs.
    arguments : mapping of str to str
        Parameters that are arguments and how help writes them, in their order; "*" for all positional ones of a
        function that takes any number of them.
    summary : str
        What the command does, in one or two sentences. It stands in the list of commands, and in the help of the
        command in place of the first paragraph of the docstring, which says what the function returns.
    hidden : sequence of str
        Parameters for Python alone.
    choices : mapping of str to callable
        For options that name registered things: a function that lists them for the help.
    paths : str
        The argument whose help says, for all of them, what a path may be.
    short : mapping of str to str
        Short names of options, as {"out": "-o"}.
    required : sequence of str
        Options that must be given although the function has a default.
    makes : str
        Option that names a folder which the command makes: a report may go into it, but not take its name.
    left : callable, optional
        From the options: what an interruption leaves behind, in words.
    done : callable, optional
        From the options: what was written, in words, for the end.
    instead : Instead, optional
        Another function, which is called where a certain option is given.
    page : str
        The page of the documentation, as "guide/compare".
    examples : sequence of str
        Command lines that help shows.
    groups : mapping of str to str
        Titles of the groups of options in help, for options that do not belong to the group of `GROUPED`.
    texts : mapping of str to str
        Help of parameters, where the docstring speaks of what only Python can give.
    """

    home: str
    arguments: Mapping[str, str]
    summary: str = ""
    hidden: Sequence[str] = ()
    choices: Mapping[str, Callable[[], Iterable[str]]] = field(default_factory=dict)
    paths: str = ""
    short: Mapping[str, str] = field(default_factory=dict)
    required: Sequence[str] = ()
    makes: str = ""
    left: Callable[[Mapping[str, Any]], str] | None = None
    done: Callable[[Mapping[str, Any]], str] | None = None
    instead: Instead | None = None
    page: str = ""
    examples: Sequence[str] = ()
    groups: Mapping[str, str] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def command(self) -> Callable[..., None]:
        """A function that Typer makes the command of."""
        return command(resolve_name(self.home), self)


def command(function: Callable[..., Any], question: Question) -> Callable[..., None]:
    """A function for Typer with the arguments and options of a public function.

    `--all`, `--json`, `--report`, `--interactive` and `--quiet` come with every question.
    """
    converters: dict[str, Callable[[str, Any], Any]] = {}
    parameters: list[inspect.Parameter] = []
    variadic = "*" in question.arguments
    if variadic:
        text = {**described(function), **question.texts}.get("*", "") + (
            f" {_paths()}" if question.paths == "*" else ""
        )
        info = typer.Argument(metavar=question.arguments["*"], help=text)
        parameters.append(_parameter("arguments", list[str], info))
    signature, instead = inspect.signature(function), question.instead
    for each in [function, *(instead.functions if instead else [])]:
        hints, texts = (
            get_type_hints(inspect.unwrap(each), include_extras=True),
            {**described(each), **TEXTS, **question.texts},
        )
        for parameter in _options(each, function, question):
            name = parameter.name
            if name not in converters:
                kind, converters[name] = _kind(hints.get(name, Any))
                parameters.append(_made(parameter, kind, texts.get(name, ""), question))
    defaults = {parameter.name: parameter.default for parameter in parameters}
    parameters += [
        _parameter("everything", bool, ALL, False),
        _parameter("as_json", bool, JSON, False),
        _parameter("report", Path | None, REPORT, None),
        _parameter("interactive", bool, INTERACTIVE, False),
        _parameter("quiet", bool, QUIET, False),
    ]

    def run(**given: Any) -> None:
        from nearid.base.interrupt import leaving
        from nearid.base.streams import stdout_to_stderr

        as_json, report, quiet = given.pop("as_json"), given.pop("report"), given.pop("quiet")
        interactive, everything = given.pop("interactive"), given.pop("everything")
        if report is not None:
            _check_report(report, given.get(question.makes))
        positional = given.pop("arguments", [])
        options = {name: converters[name](name, value) for name, value in given.items()}
        for name in question.arguments:
            if name != "*" and signature.parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY:
                positional.append(options.pop(name))
        called = function
        if instead and given[instead.option] is not None:
            called = instead.functions[0]
            positional.append(options.pop(instead.option))
        elif instead:
            _refuse_lonely([n for n in options if given[n] != defaults[n] and n not in signature.parameters], instead)
            options = {name: value for name, value in options.items() if name in signature.parameters}
        if "progress" in inspect.signature(called).parameters:
            options["progress"] = not quiet
        left = leaving(lambda: question.left(given) if question.left else "nothing was written")
        # Models, measures and factories of users may print.
        with left, stdout_to_stderr():
            result = called(*positional, **options)
        # Not before: a refusal needs nothing that draws.
        from nearid.show.deliver import answer

        written = question.done(given) if question.done else ""
        answer(result, as_json, report, written, quiet, interactive, everything)

    run.__name__, run.__doc__ = function.__name__, _text(function, question.summary)
    run.guide = Guide(question.page, question.examples)  # type: ignore[attr-defined]
    # Options without a default come first in Python, but any order is right for Typer's keywords.
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _options(function: Callable[..., Any], own: Callable[..., Any], question: Question) -> Iterable[inspect.Parameter]:
    """Parameters of a function that the command line has: the command's own, or one that is called instead."""
    instead = question.instead
    hidden = (*OWN, *(question.hidden if function is own or instead is None else instead.hidden))
    for parameter in inspect.signature(function).parameters.values():
        positional = parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL)
        if function is own:
            shown = not ("*" in question.arguments and positional)
        else:
            taken = positional or parameter.kind is parameter.VAR_KEYWORD
            shown = not taken or (instead is not None and parameter.name == instead.option)
        if shown and parameter.name not in hidden:
            yield parameter


def _made(parameter: inspect.Parameter, kind: Any, text: str, question: Question) -> inspect.Parameter:
    """An argument or option for Typer."""
    name, default = parameter.name, parameter.default if parameter.default is not parameter.empty else ...
    if name == question.paths:
        text = f"{text} {_paths()}"
    if name in question.choices:
        text = f"{text} Available: {', '.join(question.choices[name]())}.".strip()
    if name in question.arguments:
        info = typer.Argument(metavar=question.arguments[name], help=text)
        return _parameter(name, str if default is ... else str | None, info, default)
    if question.instead is not None and name == question.instead.option:
        kind, default = str | None, None
    elif name in question.required:
        default = ...
    elif default is not ... and kind in (str, str | None) and default is not None and not isinstance(default, str):
        default = ",".join(map(str, default)) if isinstance(default, Iterable) else str(default)
    return _parameter(name, kind, _option(name, kind, default, text, question), default)


def _refuse_lonely(names: Sequence[str], instead: Instead) -> None:
    """Refuse options of the other function where the option that calls it is missing."""
    from nearid.base.errors import InputError

    if names:
        flags = ", ".join(f"--{SPELT.get(name, name).replace('_', '-')}" for name in names)
        raise InputError(f"{flags}: used only with --{instead.option}, which was not given.")


def _paths() -> str:
    """What a path may be, for help."""
    from nearid.arrays.formats.registry import suffixes

    return f"A path is FILE, FILE:ENTRY or FOLDER:LAYER (a folder of extract). Formats: {', '.join(suffixes())}."


def _check_report(report: Path, made: str | None) -> None:
    """Refuse a page that cannot be written, before anything else is done; it may go into a folder to be made."""
    from nearid.base.errors import InputError
    from nearid.show.page import check_report

    if made is not None and report.resolve() == Path(made).resolve():
        raise InputError(f"{made} is a folder to be written; give the report another name.")
    inside = made is not None and not Path(made).exists() and report.resolve().parent == Path(made).resolve()
    check_report(Path(str(made)).parent / report.name if inside else report)


def described(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of each parameter, by name; "*" for those of any number."""
    sections = re.split(r"^(\w[\w ]*)\n-+$", inspect.getdoc(function) or "", flags=re.MULTILINE)
    entries = sections[sections.index("Parameters") + 1] if "Parameters" in sections else ""
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=\S)", entries.strip("\n")):
        head, _, body = entry.partition("\n")
        text = " ".join(inspect.cleandoc(body).split())
        # What marks code in Python's documentation is no mark in a terminal.
        text = text.replace("``", "").replace("`", "")
        for name in head.split(" : ")[0].split(","):
            texts["*" if name.strip().startswith("*") else name.strip()] = text
    return texts


def _text(function: Callable[..., Any], summary: str) -> str:
    """The docstring up to its sections, with another first paragraph where a summary is given."""
    text = re.split(r"^\w[\w ]*\n-+$", inspect.getdoc(function) or "", maxsplit=1, flags=re.MULTILINE)[0]
    first, *others = text.replace("``", "").replace("`", "").strip().split("\n\n")
    return "\n\n".join([summary or first, *others])


def _parameter(name: str, kind: Any, info: Any, default: Any = ...) -> inspect.Parameter:
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is ... else default,
        annotation=Annotated[kind, info],
    )


def _option(name: str, kind: Any, default: Any, text: str, question: Question) -> Any:
    flag = SPELT.get(name, name).replace("_", "-")
    names = [f"--{flag}/--no-{flag}" if kind in (bool, bool | None) and default is not False else f"--{flag}"]
    if name in question.short:
        names.append(question.short[name])
    metavar = "NAME=VALUE" if get_origin(kind) is list else None
    group = question.groups.get(name) or next((t for t, listed in GROUPED.items() if name in listed.split()), COMPUTED)
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=group)


def _kind(hint: Any) -> tuple[Any, Callable[[str, Any], Any]]:
    """The type that Typer reads an option as, and what makes the function's own of it."""
    if get_origin(hint) is Annotated:
        return _kind(get_args(hint)[0])
    if get_origin(hint) in (Union, UnionType):
        parts = [part for part in get_args(hint) if part is not NoneType]
        if len(parts) == 1:
            kind, convert = _kind(parts[0])
            optional = kind if get_origin(kind) is list else kind | None
            return optional, lambda n, v: None if v is None else convert(n, v)
        if any(_plain(part) is int for part in parts):
            # A number, or names.
            return str | None, lambda n, v: int(v) if isinstance(v, str) and v.isdecimal() else v
        if any(_plain(part) is float for part in parts):
            return str | None, _number
        numbers = [p for p in parts if get_origin(p) in (Sequence, Iterable) and get_args(p)[0] in (int, float)]
        return str | None, (_numbers if numbers else lambda n, v: v)
    if hint in (int, float, bool) or get_origin(hint) is Literal:
        return hint, lambda n, v: v
    if get_origin(hint) is Mapping or hint is dict or get_origin(hint) is dict:
        return list[str], _settings
    if get_origin(hint) in (Sequence, Iterable, list, tuple) and get_args(hint)[0] in (int, float):
        return str | None, _numbers
    return str, lambda n, v: v


def _plain(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def _number(name: str, text: str | None) -> float | str | None:
    """A number where the text is one; else a word, which the function knows or refuses."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def _numbers(name: str, text: str | None) -> list[float] | None:
    """Numbers from a text with commas; none from an empty one."""
    from nearid.base.errors import InputError

    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--{name.replace('_', '-')} takes numbers separated by commas, not {text!r}.") from None
    return [int(value) if value.is_integer() else value for value in values]


def _settings(name: str, given: Sequence[str] | None) -> dict[str, Any] | None:
    """Values by name, from texts such as pan=360."""
    from nearid.base.errors import InputError

    settings: dict[str, Any] = {}
    for text in given or []:
        key, sign, value = text.rpartition("=")
        # The name may be empty, as that of the index which pandas writes to a .csv file.
        if not sign or not value:
            raise InputError(f"--{name.replace('_', '-')} takes a name and a value, as NAME=VALUE, not {text!r}.")
        if key in settings:
            raise InputError(f"--{name.replace('_', '-')} gives {key!r} twice. Leave out one.")
        settings[key] = _value(value)
    return settings or None


def _value(text: str) -> Any:
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() and re.fullmatch(r"[+-]?\d+", text) else number
