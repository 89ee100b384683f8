"""Printing, whatever the terminal."""

import pytest
from rich.text import Text

from nearid.base.interrupt import Interrupted
from nearid.show.deliver import WIDTH, deliver, show


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
    class Found:
        def save_report(self, path):
            path.write_text("page")

    def interrupted(found, width):
        raise Interrupted

    with pytest.raises(Interrupted) as stop:
        deliver(Found(), interrupted, False, tmp_path / "r.html")
    assert stop.value.left == f"the report is in {tmp_path / 'r.html'}"
