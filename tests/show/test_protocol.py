"""Every result that a question returns follows one protocol, in every medium."""

import json
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from copy import deepcopy
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import nearid
from nearid.base.printable import printable
from nearid.show.result import Result
from nearid.show.terminal import text
from nearid.show.view import cell_lines

pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
Z = RNG.laplace(size=(60, 3))
Y = Z @ RNG.normal(size=(3, 3)) + 0.1
# A name that is markup for a page and for a terminal.
NAME = "a<script>alert(1)</script>[bold]&.npy"


def _network():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh())


def _comparison():
    return nearid.compare(Z, Y, names=[NAME, "b"], permutations=1, symmetric=True, in_sample=True)


def _experiment(request):
    pytest.importorskip("torch")
    return request.getfixturevalue("result")


# How to get a small one of each, under the name of its class.
MAKE = {
    "BiLipschitz": lambda request: pytest.importorskip("torch") and nearid.lipschitz(lambda z: 2 * z, Z, name=NAME),
    "Comparison": lambda request: _comparison(),
    "Comparisons": lambda request: nearid.compare(Z, Y, -Z, names=[NAME, "b", "c"], permutations=1),
    "Deconfounding": lambda request: nearid.deconfound(
        Z,
        np.array(["DMSO", NAME])[np.arange(60) % 2],
        np.arange(60) // 10,
        conditions="base,ica",
        classifiers="logistic",
        folds=2,
        min_rows=2,
    ),
    "ExperimentResult": _experiment,
    "Extraction": lambda request: nearid.extract(_network(), Z.astype(np.float32)),
    "HeadComparison": lambda request: nearid.compare_heads(
        RNG.normal(size=(8, 3)), RNG.normal(size=(8, 3)), Z, Y, names=[NAME, "b"], draws=3
    ),
    "ICA": lambda request: nearid.unmix(Z, random_state=0),
    "LayerComparison": lambda request: nearid.compare_layers({NAME: Z}, {"b": Y, "c": Z}, measures="cka,r2"),
    "ModelComparison": lambda request: nearid.compare_models(
        _network(), _network(), Z.astype(np.float32), names=[NAME, "b"], permutations=1, cache=False
    ),
    "Score": lambda request: nearid.score(Z, {NAME: Z[:, 0], "v": Y[:, 1]}, measures="mcc,r2", permutations=1),
}
RESULTS = [
    name
    for name in nearid.__all__
    if isinstance(getattr(nearid, name), type) and issubclass(getattr(nearid, name), Result)
]
kept = {}


@pytest.fixture(params=RESULTS)
def each(request):
    """A result of every public class."""
    if request.param not in kept:
        kept[request.param] = MAKE[request.param](request)
    return kept[request.param]


def test_every_result_class_has_a_maker():
    assert set(RESULTS) == set(MAKE)


def test_alerts_are_alerts_and_provenance_says_what_made_it(each):
    assert all(isinstance(alert, nearid.Alert) and alert.message for alert in each.alerts)
    assert all(re.fullmatch("[a-z][a-z0-9_]*", alert.code) for alert in each.alerts)
    made = each.provenance
    json.dumps(made, allow_nan=False)
    assert made["nearid"] == nearid.__version__ and made["options"]
    assert each.to_dict()["provenance"]["options"] == made["options"]


def test_plain_data_is_json(each):
    plain = each.to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) and "provenance" in plain and "alerts" in plain


def test_a_frame_has_rows_and_named_columns(each):
    frame = each.to_frame()
    assert len(frame) and all(isinstance(column, str) for column in frame.columns)


def test_the_first_figure_is_a_plotly_figure(each):
    plotly = pytest.importorskip("plotly.graph_objects")
    if not any(figure.draws for figure in each.view.all_figures):
        pytest.skip("it has no figures")
    assert isinstance(each.plot(), plotly.Figure)


def test_text_fits_the_terminal_and_answers_first(each):
    lines = str(each).splitlines()
    assert max(map(len, lines)) <= 120
    assert each.view.headline.split()[0] in "".join(lines[:3])


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_a_narrow_terminal_loses_no_interval_and_names_what_it_leaves_out(each, width):
    drawn = text(each.view, width)
    assert max(map(len, drawn.splitlines())) <= width
    letters = re.sub(r"\s", "", drawn)
    tables = [table for table in each.view.tables if not table.folded]
    wanted = Counter(
        re.sub(r"\s", "", cell_lines(cell, column)[1])
        for table in tables
        for row in table.rows
        for cell, column in zip(row.cells, table.columns, strict=True)
    )
    del wanted[""]
    assert [interval for interval, times in wanted.items() if letters.count(interval) < times] == []
    # Words of titles and of cells, but for long names, which are broken anywhere.
    texts = [printable(column.title) for table in tables for column in table.columns]
    texts += [
        printable(cell)
        for table in tables
        for row in table.rows
        for cell, column in zip(row.cells[1:], table.columns[1:], strict=True)
        if isinstance(cell, str) and not column.wide
    ]
    assert [word for words in texts for word in words.split() if len(word) < 16 and word not in drawn] == []


def test_repr_is_short(each):
    assert "\n" not in repr(each) and type(each).__name__ in repr(each) and len(repr(each)) < 400


def test_it_can_be_compared_with_a_copy(each):
    # Of two results with arrays nothing else can be answered by True or False.
    assert each == each and (each == deepcopy(each)) in (True, False)
    assert each != 1.0


class _Tags(HTMLParser):
    """Elements of a page, the addresses that it has, and whether all that is opened is closed."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses, self.open = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("#", "data:"))]
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_a_notebook_shows_it_without_scripts(each):
    shown = _Tags(each._repr_html_())
    assert "table" in shown.tags or "dl" in shown.tags
    assert "script" not in shown.tags and "b" not in shown.tags and not shown.addresses


@pytest.fixture
def saved(each, tmp_path):
    """The page of each result."""
    each.save_report(tmp_path / "report.html")
    return tmp_path / "report.html"


def test_the_report_is_one_small_page_that_fetches_nothing(each, saved):
    text = saved.read_text(encoding="utf-8")
    seen = _Tags(text)
    assert seen.open == [] and not seen.addresses and "default-src 'none'" in text
    # One script offers figures for download; names run as none.
    assert seen.tags.count("script") == 1 and "alert(1)</script>" not in text
    assert each.view.question in text and len(text) < 300_000
    drawn = [figure for figure in each.view.all_figures if figure.draws]
    pictures = re.findall("<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == sum(2 if figure.wide else 1 for figure in drawn)
    for picture in pictures:
        ElementTree.fromstring(picture)


@pytest.mark.browser
def test_on_paper_no_column_is_lost(each, saved, chromium):
    if shutil.which("pdftotext") is None:
        pytest.skip("no pdftotext here: the printed page is not read (apt-get install poppler-utils)")
    paper = saved.with_suffix(".pdf")
    chromium(saved, f"--print-to-pdf={paper}")
    # In the order of the page, cell after cell.
    printed = subprocess.run(["pdftotext", "-raw", paper, "-"], capture_output=True, text=True, check=True).stdout
    printed = _letters(printed)
    for table in (table for view in (each.view, *each.view.parts) for table in view.tables):
        head = _letters(*(column.title for column in table.columns))
        assert head in printed, table.title
        if table.rows:
            cells = zip(table.rows[0].cells, table.columns, strict=True)
            row = _letters(*(line for cell, column in cells for line in cell_lines(cell, column)))
            assert row in printed[printed.index(head) + len(head) :], table.title


def _letters(*texts):
    """Texts without spaces, since lines of cells are broken anywhere, and without ligatures."""
    return "".join(unicodedata.normalize("NFKC", "".join(texts)).split())


def test_a_picture_is_drawn_and_saved(each, tmp_path):
    if not any(figure.draws for figure in each.view.all_figures):
        pytest.skip("it has no figures")
    each.picture().save(tmp_path / "first.svg")
    text = (tmp_path / "first.svg").read_text(encoding="utf-8")
    assert text == each.picture()._repr_svg_() and ElementTree.fromstring(text).tag.endswith("svg")
