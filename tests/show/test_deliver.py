"""Printing, whatever the terminal."""

import pytest
from rich.text import Text

from nearid.base.alerts import Alert
from nearid.base.interrupt import Interrupted
from nearid.show.deliver import WIDTH, answer, show


@pytest.mark.parametrize(
    ("columns", "width"),
    [
        (None, WIDTH),
        ("", WIDTH),
        ("wide", WIDTH),
        ("0", WIDTH),
        ("-5", WIDTH),
        ("9" * 30, WIDTH),
        ("1", 40),
        ("80", 80),
    ],
)
def test_the_width_is_that_of_columns_where_it_is_a_number(monkeypatch, capsys, columns, width):
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    seen = []
    show(lambda width: Text(str(seen.append(width))))
    assert seen == [width] and capsys.readouterr().out


def test_an_interruption_of_the_printing_tells_of_the_report(tmp_path):
    class Stopped:
        alerts = ()

        def save_report(self, path, interactive):
            path.write_text("page")

        @property
        def view(self):
            raise Interrupted

    with pytest.raises(Interrupted) as stop:
        answer(Stopped(), False, tmp_path / "r.html", "Layers written to out")
    assert stop.value.left == f"Layers written to out; report written to {tmp_path / 'r.html'}"


def test_work_that_was_taken_up_is_said_on_stderr(capsys):
    class Resumed:
        alerts = (Alert("resumed", "Went on from 3 inputs."), Alert("odd", "Something is odd."))

        def to_dict(self):
            return {}

    answer(Resumed(), True, None)
    assert capsys.readouterr() == ("{}\n", "Went on from 3 inputs.\n")
    answer(Resumed(), True, None, quiet=True)
    assert capsys.readouterr().err == ""
