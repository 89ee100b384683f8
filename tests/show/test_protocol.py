"""Every result that a question returns follows one protocol, in every medium."""

import json
import re
from copy import deepcopy
from html.parser import HTMLParser

import numpy as np
import pytest

import nearid
from nearid.show.result import Result

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
    "BiLipschitz": lambda request: nearid.lipschitz(lambda z: 2 * z, Z, name=NAME),
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


def test_repr_is_short(each):
    assert "\n" not in repr(each) and type(each).__name__ in repr(each) and len(repr(each)) < 400


def test_it_can_be_compared_with_a_copy(each):
    # Of two results with arrays nothing else can be answered by True or False.
    assert each == each and (each == deepcopy(each)) in (True, False)
    assert each != 1.0


class _Tags(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.addresses = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href") and v and not v.startswith(("#", "data:"))]


def test_a_notebook_shows_it_without_scripts(each):
    shown = _Tags()
    shown.feed(each._repr_html_())
    assert "table" in shown.tags or "dl" in shown.tags
    assert "script" not in shown.tags and "b" not in shown.tags and not shown.addresses


def test_the_report_is_one_page_that_fetches_nothing(each, tmp_path):
    each.save_report(tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    seen = _Tags()
    # What the drawing library and its data hold is no markup of the page.
    seen.feed(text.split("<script>")[0])
    assert text.count("<script>") == 2 and "script" not in seen.tags and not seen.addresses
    assert each.view.question in text
