"""Deconfounding as tables and as a page: complete, escaped, self-contained."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nearid import InputError, deconfound
from nearid.questions.deconfound import page as deconfounding
from nearid.questions.deconfound import plots as plots
from nearid.questions.deconfound.paired import Mean
from nearid.questions.deconfound.table import as_text, figure, headline

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    labels = rng.choice(["DMSO", NASTY, "b"], 400)
    batches = rng.integers(0, 6, 400)
    x = rng.laplace(size=(400, 6))
    x[:, 0] += 2.0 * (labels == NASTY)
    x[:, 1] += 2.0 * (labels == "b")
    x[:, 2] += 3.0 * batches
    x = x @ rng.normal(size=(6, 6))
    return deconfound(x, labels, batches, control="DMSO", classifiers="logistic", folds=3, drop=0.1)


def test_all_parts_are_there(found):
    text = deconfounding.page(found)
    for part in (
        headline(found),
        "AUROC (logistic regression, train on most batches)",
        "AUROC (logistic regression, train on one batch)",
        "Sparsity (logistic",
        "Concentration, k = 1",
        "Differences of AUROC, over 2 perturbations [95% interval]",
        "Differences of sparsity, over 2 perturbations [95% interval]",
        "Differences of concentration, k = 1, over 2",
        "<th>logistic regression,<br>train on one batch",
        "ICA: 6 components of 400 rows, 27 for each angle of the rotation",
        "Nadeau",
        "technical / biological / neither",
        "replicate mAP",
        "Paired differences",
        "What components follow: PCA + ICA",
        "the two most biological components",
        "the two leading components",
        "technical dropped",
        '"fingerprint"',
    ):
        assert part in text, part
    for alert in found.alerts:
        assert f'data-code="{alert.code}"' in text


def test_names_are_escaped_and_nothing_is_fetched(found):
    for text in (deconfounding.page(found), found._repr_html_()):
        assert NASTY not in text and "<img src=x" not in text and "&lt;/script&gt;" in text
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[-1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail)


def test_figures_of_every_row(found):
    drawn = deconfounding._figures(found)
    by_title = {f["title"]: f["figure"] for f in drawn}
    gaps = by_title["Paired differences"]["data"]
    assert [t["name"] for t in gaps] == [
        f"{n} less Base" for n in ("PCA", "PCA + Rand", "PCA + ICA", "technical dropped")
    ]
    assert all(len(t["x"]) == 3 and t["y"][-1] == "all" for t in gaps)
    heat = by_title["What components follow: PCA + ICA"]["data"][0]
    assert np.shape(heat["z"]) == (2, 6)
    planes = [f for f in drawn if "components" in f["title"] and "the two" in f["title"]]
    assert len(planes) == 4 and all(sum(len(t["x"]) for t in f["figure"]["data"]) == 400 for f in planes)


def test_what_is_not_defined_is_not_drawn_as_zero(found):
    c = found.conditions["ica"]
    gone = replace(c, components=replace(c.components, batch=np.where(np.arange(6) == 2, np.nan, c.components.batch)))
    heat = plots.component_map(gone)["data"][0]
    assert heat["z"][0][heat["x"].index("2")] is None and heat["z"][1].count(None) == 0
    assert sum(len(t["x"]) for t in plots.component_scatter(gone)["data"]) == 5


def test_means_of_unlike_splits_say_so():
    assert figure(Mean.of([0.5, np.nan, 0.7])) == "0.600 ±0.100 (2 of 3 splits)"
    assert figure(Mean.of([0.5, 0.7])) == "0.600 ±0.100"


@pytest.mark.parametrize("width", [80, 140])
def test_tables_for_a_terminal(found, width):
    text = as_text(found, width)
    assert "PCA + ICA" in text and "DMSO" in text and "all" in text and str(found) == as_text(found)
    assert max(map(len, text.splitlines())) <= width


def test_reports_are_pages_only(found, tmp_path):
    found.save_report(tmp_path / "out.html")
    assert (tmp_path / "out.html").stat().st_size > 10_000
    with pytest.raises(InputError, match="something"):
        found.save_report(tmp_path / "out.npy")


def test_every_figure_is_drawn_and_no_name_runs_as_code(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert f'data-drawn="{len(deconfounding._figures(found))}"' in dom
    assert "<title>Biology or batch?</title>" in dom
