"""Progress is silent where nobody looks and never touches stdout."""

import sys

from nearid import progress


def test_silent_without_a_terminal(capsys):
    with progress.reporting() as report:
        tick = report("work", 3)
        tick()
        tick("loss 0.25")
    assert capsys.readouterr() == ("", "")


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
