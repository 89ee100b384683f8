"""Views in a terminal: what must not get lost in a narrow one."""

from nearid.base.alerts import Alert
from nearid.base.estimate import Estimate
from nearid.show.terminal import text
from nearid.show.view import Column, Row, Table, View


def test_a_column_with_intervals_is_never_left_out():
    columns = [Column("name"), Column("figure", wide=True), Column("other", wide=True)]
    view = View("q", "s", "h", tables=[Table("t", columns, [Row(["a", Estimate(0.5, 0.25, 0.75), 2.0])])])
    assert "[0.250, 0.750]" in text(view, 60) and "Left out: other." in " ".join(text(view, 60).split())


def test_columns_of_one_title_that_do_not_fit_are_set_apart():
    cell = "-0.001 [-0.015, 0.013] p 0.500"
    columns = [Column("conditions"), Column("both\nmost"), Column("both\none")]
    view = View("q", "s", "h", tables=[Table("t", columns, [Row(["PCA - Base", cell, cell])])])
    for width in (50, 60, 80, 120):
        drawn = text(view, width)
        assert drawn.count(cell) == 2 and "PCA - Base" in drawn
    # Where not even one fits in a line, it is broken between its words.
    assert all(text(view, 40).count(word) == 2 for word in cell.split())


def test_alerts_leave_out_the_middle_of_long_names_alone():
    name, columns = f"first-{'x' * 90}-last.npy", ",".join(f"column{k}" for k in range(20))
    alert = Alert("odd", f"{name} and b.npy are alike: leave out --exclude {columns}.")
    shown = text(View("q", "s", "h", alerts=[alert]), 400)
    assert "x" * 60 not in shown and "! first-xxx" in shown and "xxx-last.npy and b.npy" in shown and columns in shown
