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


def test_a_brief_view_has_the_first_sentences_and_says_how_to_see_the_rest():
    names = ", ".join(f"'Cells_Texture_{k}'" for k in range(200))
    alerts = [
        Alert("long", f"Columns with NaN are left out: {names}. Choose otherwise with --nonfinite rows."),
        Alert("short", "3 of 4 batches (v1.2) have one label. Name another column."),
        *(Alert(f"more{k}", f"Alert {k}. What to do.") for k in range(20)),
    ]
    tables = [Table("open", [Column("a")], [Row(["seen"])]), Table("closed", [Column("a")], [Row(["x"])], folded=True)]
    view = View("q", "s", "h", alerts=alerts, tables=tables, facts={"fact": "of it"}, brief=True)
    short, whole = text(view, 100), text(view, 100, everything=True)
    lines = [line for line in short.splitlines() if line.startswith(("!", "'"))]
    assert lines[0].startswith("! Columns with NaN are left out: 'Cells_Texture_0'") and len(lines) <= 8
    assert "..." in short and "! 3 of 4 batches (v1.2) have one label.\n" in short and "Name another" not in short
    assert "closed" not in short and "fact" not in short and "1 more table, " in short and ": --all." in short
    assert all(part in whole for part in ("closed", "fact: of it", "'Cells_Texture_199'", "Name another", "Alert 19"))


def test_alerts_of_a_brief_view_leave_it_at_40_lines():
    """A long answer leaves room for fewer alerts; the last line counts those that are not shown."""
    alerts = [Alert(f"a{k}", f"Alert {k} is a sentence of its own.") for k in range(20)]
    for rows in (2, 20, 23, 40):
        table = Table("t", [Column("a", left=True), Column("b")], [Row([f"r{k}", 0.5]) for k in range(rows)])
        reason = "\n".join(f"Sentence {k}." for k in range(4))
        drawn = text(View("q", "s", "h", reason=reason, alerts=alerts, tables=[table], brief=True), 100)
        shown, lines = drawn.count("! Alert"), len(drawn.splitlines())
        assert f"{20 - shown} more alerts" in drawn
        # Two lines are kept for the last sentence, which may need only one.
        assert (shown == 8 and lines <= 40) if rows == 2 else lines in (39, 40) if rows < 40 else shown == 0
