"""Views in a terminal: what must not get lost in a narrow one."""

import pytest

from nearid.arrays.metadata import typed_exclude
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


def test_the_middle_of_endless_names_is_left_out():
    names = [f"first-{'x' * 90}-last.npy", f"run=first-{'y' * 900}-last.npy"]
    shown = text(View("q", "s", "h", alerts=[Alert("odd", f"{names[0]} and {names[1]} are alike.")]), 2000)
    assert f"! {names[0]} and run=first-yyy" in shown and "yyy-last.npy are alike." in shown and "y" * 200 not in shown


@pytest.mark.parametrize("columns", [["z" * 300], ["a b", "z" * 300], ["it's", "z" * 300], ["a", "z" * 300, "c"]])
def test_what_can_be_copied_is_never_shortened(columns):
    remedy = f"To leave them out: {typed_exclude(columns)}."
    assert remedy in text(View("q", "s", "h", alerts=[Alert("odd", remedy)]), 2000)
