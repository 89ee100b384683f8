"""Progress is silent where nobody looks and never touches stdout."""

import sys

import numpy as np
import pytest

from nearid.base import progress
from nearid.base.errors import InputError


def test_silent_without_a_terminal(capsys):
    with progress.reporting() as report:
        tick = report("work", 3)
        tick()
        tick("loss 0.25")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("off", [False, np.False_, None, 0])
def test_nothing_is_drawn_where_it_is_off(off, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    with progress.reporting(off) as report:
        report("counting", 1)()
    assert capsys.readouterr() == ("", "")


def test_a_function_is_handed_on_and_anything_else_refused():
    with progress.reporting(progress.silent) as report:
        assert report is progress.silent
    with (
        pytest.raises(InputError, match=r"progress must be True, False or a function .* not 'yes'"),
        progress.reporting("yes"),
    ):
        pass


def test_bars_appear_on_stderr_after_patience(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.reporting() as report:
        tick = report("counting", 2)
        tick()
        tick("loss 0.25")
    out, err = capsys.readouterr()
    assert out == "" and "counting" in err and "loss 0.25" in err


def test_names_of_stages_are_neither_styles_nor_obeyed(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(progress, "PATIENCE", -1.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress.reporting() as report:
        report("[red]layer[/] :smile:\x1b]0;t\x07\x9b2J\n", 2)("[bold]\x1b]0;t\x07")
    err = capsys.readouterr().err
    assert "[red]layer[/] :smile:" in err
    assert not [mark for mark in ("\x1b]", "\x07", "\x9b") if mark in err]
