"""One view in every medium: nothing lost, nothing executed, nothing wider than the terminal."""

import json
import re
from dataclasses import dataclass, field

import numpy as np
import pytest

from nearid.base.alerts import Alert
from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.show.figures import (
    Cloud,
    Curve,
    Dots,
    HeatMap,
    Lines,
    Panels,
    Pictures,
    Scatter,
    Text,
    scatter_matrix,
)
from nearid.show.page import check_report, fragment, page
from nearid.show.result import Result
from nearid.show.terminal import text
from nearid.show.view import Column, Row, Table, View, counted, fixed, number, span, with_intervals

HALF = Estimate(0.5, np.nan, np.nan)
EVIL = "<script>alert(1)</script>&<b>"
FIGURES = [
    Lines(
        "Curves", "c", "x", "y", {"a": Curve([1, 2], [0.1, np.nan]), "b": [Curve([1], [2]), Curve([1], [3])]}, log=True
    ),
    Scatter("Points", "c", "x", "y", {EVIL: ([1, 2], [3, 4])}, {"theory": ([1, 2], [3, 4])}, {EVIL: ["p", "q"]}, 1),
    Dots("Dots", "c", "x", ["r1", EVIL], {"g": [Estimate(1.0, 0.5, 1.5, 0.2), None]}),
    HeatMap("Heat", "c", {"p": [[0, 1], [np.nan, 0.5]], "q": [[0, 1], [1, 0.5]]}, ["a", "b"], ["c", EVIL], digits=2),
    Panels("Panels", "c", [Cloud("one", {"s": ([1, 2], [3, 4])}), Cloud("two", {"s": (["k", "l"], [3, 4])})], 2),
    scatter_matrix("Matrix", "c", {"u": [1, 2]}, {"v": [1, 2], "w": [2, 3]}),
    Pictures("Pictures", "c", "data:image/png;base64,AAAA", ["r"], ["a", "b"]),
    Text("Listing", "c", EVIL),
]


def table(columns=3, **options):
    heads = [Column("name"), *(Column(f"value {k}\nmeasured") for k in range(columns))]
    cells = [Estimate(0.123456, 0.1, 0.2)] * columns
    return Table("A table", heads, [Row([EVIL, *cells], strong=True), Row(["none", *[None] * columns])], **options)


@dataclass(frozen=True, repr=False)
class Answer(Result):
    value: Estimate = HALF
    alerts: tuple = (Alert("odd", f"Look at {EVIL}."),)
    provenance: dict = field(default_factory=lambda: {"options": {"seed": EVIL}})
    views: object = None

    def _view(self):
        part = View("q", "part", "A part", tables=[table(1)], figures=FIGURES[:1])
        return View(
            "Is it so?",
            EVIL,
            "Yes, it is",
            "Because of 3 rows.",
            alerts=self.alerts,
            tables=[table(), table(1, folded=True)],
            facts={"rows": "3"},
            figures=FIGURES,
            method="By hand.",
            provenance=self.provenance,
            parts=[part],
        )

    def _records(self):
        return [{"name": "a", "value": float(self.value)}]


def test_the_page_has_everything_and_nothing_of_it_is_markup():
    html = page(Answer().view)
    before_scripts = html.split("<script>")[0]
    for shown in ("Is it so?", "Yes, it is", "Because of 3 rows.", "0.123", "[0.100, 0.200]", "By hand.", "A part"):
        assert shown in before_scripts
    assert "alert(1)</script>" not in html and html.count("<script>") == 1
    assert before_scripts.count('class="plot"') == len(FIGURES)  # text is written, the part has one more
    assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", before_scripts)


def test_an_interactive_page_has_a_drawing_for_every_picture():
    html = page(Answer().view, interactive=True)
    drawings = json.loads(re.search(r"const figures = (.*), dark = ", html)[1])
    assert len(drawings) == html.count('<div class="plot">') == len(FIGURES)
    assert html.count("<script>") == 3 and "alert(1)</script>" not in html


@pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.title)
def test_figures_are_plain_plotly(figure):
    go = pytest.importorskip("plotly.graph_objects")
    drawing = figure.draw()
    json.dumps(drawing, allow_nan=False)
    # Validates every name.
    go.Figure(drawing["data"], drawing["layout"])
    assert "<script>" not in json.dumps(drawing)


def test_a_notebook_shows_tables_and_alerts():
    html = fragment(Answer().view)
    assert "Yes, it is" in html and "[0.100, 0.200]" in html and "Look at" in html
    assert "<script" not in html and 'class="plot"' not in html


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_terminal_is_not_exceeded_and_no_column_is_lost(width):
    view = View("q", "s", "h", tables=[table(9)])
    drawn = text(view, width)
    assert max(map(len, drawn.splitlines())) <= width
    for k in range(9):
        assert f"value {k}" in drawn
    assert drawn.count("0.123") == 9


def test_a_title_is_as_wide_as_the_terminal_not_as_its_table():
    title = "linear CKA, debiased: x (rows) -> y (columns) [bold]"
    drawn = text(View("q", "s", "h", tables=[Table(title, [Column("n"), Column("v")], [Row(["a", 1.0])])]), 80)
    assert title in drawn.splitlines()


def test_names_are_neither_styles_nor_pictures():
    name = "cells.h5ad:X: [bold]:smile:"
    drawn = text(View("q", name, "h", tables=[Table("t", [Column(name), Column(":x:")], [Row([name, ":x:"])])]), 80)
    assert drawn.count(name) == 3 and drawn.count(":x:") == 2


def test_columns_of_a_wide_terminal_are_left_out_of_a_narrow_one():
    columns = [Column("name"), Column("kept"), Column("dropped", wide=True)]
    view = View("q", "s", "h", tables=[Table("t", columns, [Row(["a", 1.0, 2.0])])])
    wide, narrow = text(view, 120), text(view, 80)
    assert "dropped" in wide and "Left out" not in wide and "2.000" not in narrow and "kept" in narrow
    # A narrow one says so.
    assert "Left out: dropped." in narrow and "--json" in narrow


def test_no_figure_fills_a_line():
    assert number(-2.2e253) == "-2.200e+253" and number(1234567.0) == "1.235e+06" and number(999999.0) == "999999.000"


def test_a_title_names_intervals_where_there_are_some():
    some = [None, 1.0, Estimate(1.0)]
    assert with_intervals("R2", some) == "R2"
    assert with_intervals("R2", [*some, Estimate(1.0, 0.9, 1.1)], "\n") == "R2\n[95% interval]"


def test_folded_tables_and_parts_are_on_the_page_alone():
    drawn = text(Answer().view)
    assert drawn.count("A table") == 1 and "A part" not in drawn
    assert "! Look at <script>" in drawn and "rows: 3" in drawn


def test_a_result_is_plain_data_a_frame_and_a_picture():
    pytest.importorskip("pandas")
    answer = Answer()
    plain = json.loads(json.dumps(answer.to_dict(), allow_nan=False))
    assert plain["value"] == {"value": 0.5, "low": None, "high": None} and plain["alerts"][0]["code"] == "odd"
    assert "views" not in plain
    assert answer.to_frame().iloc[0]["value"] == 0.5
    assert answer.plot().layout.title.text == "Curves" and answer.plot("heat").layout.title.text == "Heat"
    with pytest.raises(InputError, match="Curves, Points"):
        answer.plot("nothing of this name")
    assert repr(answer) == f"<Answer {EVIL}: Yes, it is>" and "Yes, it is" in str(answer)


def test_a_report_is_a_page(tmp_path):
    Answer().save_report(tmp_path / "x.html")
    assert (tmp_path / "x.html").read_text() == page(Answer().view)
    with pytest.raises(InputError, match=r"something\.html"):
        check_report(tmp_path / "x.npy")


def test_words_of_numbers():
    assert (number(0.12345), number(1e-5), number(float("nan")), number(0.0)) == ("0.123", "1.0e-05", "-", "0.000")
    assert span(float("nan"), 1.0) == "" and span(0, 1, 1) == "[0.0, 1.0]"
    assert counted(1, "row") == "1 row" and counted(2000, "pass", "passes") == "2,000 passes"


def test_nothing_in_a_view_is_obeyed_by_the_terminal():
    evil = "a\x1b[2J\x1b]0;t\x07\x9b31m\r\x08\u202eb"
    view = View(
        evil,
        evil,
        evil,
        evil,
        alerts=[Alert("odd", evil)],
        tables=[Table(evil, [Column(evil), Column(f"{evil}\nx", left=True)], [Row([evil, f"{evil}\n{evil}"])], evil)],
        facts={evil: evil},
    )
    shown = text(view, 120)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", shown) is None
    assert shown.count("a\N{REPLACEMENT CHARACTER}[2J") == 13


@pytest.mark.parametrize(("value", "shown"), [(-2.2e-05, "0.000"), (0.98765, "0.988"), (-2e7, "-20000000.000")])
def test_figures_of_headlines_are_never_scientific(value, shown):
    assert fixed(value) == shown
