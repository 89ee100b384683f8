"""A public function as a command: its signature and docstring are all that is declared."""

import contextlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import pytest

from nearid.base.errors import InputError
from nearid.base.options import Count, Seed, checked
from nearid.show.command import Question, described
from nearid.show.help import single
from nearid.show.result import Result
from nearid.show.view import View


@dataclass(frozen=True, repr=False)
class Echo(Result):
    options: dict
    alerts: tuple = ()

    @property
    def provenance(self):
        return {}

    def _view(self):
        return View("Echo?", "x", "As it was given")

    def _records(self):
        return [self.options]


@checked
def echo(
    x: object,
    /,
    *more: object,
    names: Iterable[str] | str | None = None,
    conditions: Sequence[str] | str = ("base", "ica"),
    folds: Count = 5,
    tol: float | None = None,
    kind: Literal["a", "b"] = "a",
    scale: bool = True,
    exact: bool | None = None,
    symmetric: bool = False,
    top: Sequence[int] | None = None,
    most: Sequence[str] | str | int | None = None,
    periods: Mapping[str, Any] | None = None,
    random_state: Seed = 0,
    secret: Any = None,
    progress: bool = False,
) -> Echo:
    """Echo what is given.

    A second paragraph with `code`.

    Parameters
    ----------
    x, *more : arrays
        Things to echo.
    names : names, optional
        Names, with commas or one
        by one.
    folds, tol : numbers
        Numbers.

    Returns
    -------
    Echo
        Not for the help.
    """
    return Echo({k: v for k, v in locals().items() if k != "x"} | {"x": x})


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command; gives what stands on stdout and stderr."""
    module = ModuleType("echoes")
    module.echo = echo
    monkeypatch.setitem(sys.modules, "echoes", module)
    question = Question(
        "echoes:echo",
        {"*": "A [B ...]"},
        hidden=("secret",),
        choices={"names": lambda: ["one", "two"]},
        short={"tol": "-t"},
        done=lambda options: f"tol was {options['tol']}",
    )

    def run(*arguments):
        with contextlib.suppress(SystemExit):
            single("echo", question.command())(list(arguments), standalone_mode=False, prog_name="echo")
        return capsys.readouterr()

    return run


def options(call, *arguments):
    return json.loads(call(*arguments, "--json").out)["options"]


def test_defaults_are_those_of_the_function(call):
    given = options(call, "a")
    assert given == {
        "x": "a",
        "more": [],
        "names": None,
        "conditions": "base,ica",
        "folds": 5,
        "tol": None,
        "kind": "a",
        "scale": True,
        "exact": None,
        "symmetric": False,
        "top": None,
        "most": None,
        "periods": None,
        "random_state": 0,
        "secret": None,
        "progress": True,
    }


def test_every_kind_of_option_arrives_as_the_function_takes_it(call):
    given = options(
        call, "a", "b", "c", "--names", "n,m", "-t", "0.5", "--kind", "b", "--no-scale", "--no-exact", "--symmetric",
        "--top", "5,10", "--most", "3", "--periods", "pan=360", "--periods", "tilt=1.5", "--seed", "7", "--quiet",
    )  # fmt: skip
    assert given["more"] == ["b", "c"] and given["names"] == "n,m" and given["tol"] == 0.5 and given["kind"] == "b"
    assert (given["scale"], given["exact"], given["symmetric"]) == (False, False, True)
    assert given["top"] == [5, 10] and given["most"] == 3 and given["periods"] == {"pan": 360, "tilt": 1.5}
    assert given["random_state"] == 7 and given["progress"] is False
    assert options(call, "a", "--most", "x,y")["most"] == "x,y"
    assert options(call, "a", "--most", "²")["most"] == "²"
    assert options(call, "a", "--top", "")["top"] == [] and options(call, "a", "--top", "5,")["top"] == [5]


def test_help_is_the_docstring(call):
    text = call("--help").out
    assert "Usage: echo [OPTIONS] A [B ...]" in text and "A second paragraph with code." in text
    assert "Names, with commas or one by one. Available: one, two." in " ".join(text.split())
    assert "--seed N" in text and "--no-scale" in text and "--json" in text and "--quiet" in text
    assert "secret" not in text and "Returns" not in text and "--progress" not in text


def test_the_result_is_printed_and_notes_go_to_stderr(call):
    out, err = call("a", "--tol", "2")
    assert "As it was given" in out and err == "tol was 2.0\n"
    assert call("a", "--quiet").err == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--top", "x"], "--top takes numbers separated by commas, not 'x'"),
        (["--periods", "pan"], "--periods takes a name and a value, as NAME=VALUE"),
        (["--periods", "a="], "--periods takes a name and a value, as NAME=VALUE"),
        (["--periods", "a=1", "--periods", "a=2"], "gives 'a' twice"),
        (["--periods", "=1", "--periods", "=2"], "gives '' twice"),
        (["--folds", "0"], "folds is 0, but a whole number of at least 1 is expected"),
        (["--seed", "-1"], "random_state \\(--seed\\) is -1"),
        (["--report", "x.npy"], "A report is an HTML page"),
    ],
)
def test_what_cannot_be_used_gets_a_sentence(call, arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        call("a", *arguments)


def test_the_words_of_the_command_line_come_before_those_of_the_docstring(monkeypatch, capsys):
    module = ModuleType("echoes")
    module.echo = echo
    monkeypatch.setitem(sys.modules, "echoes", module)
    question = Question("echoes:echo", {"*": "A"}, summary="Print it.", texts={"folds": "Folds.", "*": "Files."})
    with contextlib.suppress(SystemExit):
        single("echo", question.command())(["--help"], prog_name="echo")
    text = " ".join(capsys.readouterr().out.split())
    assert "] A Print it. A second paragraph with code. Arguments: A Files." in text
    assert "Folds. [default: 5]" in text and "Echo what is given" not in text and "Things" not in text


def test_parameters_are_described_one_by_one():
    texts = described(echo)
    assert texts["*"] == texts["x"] == "Things to echo." and texts["folds"] == texts["tol"] == "Numbers."
