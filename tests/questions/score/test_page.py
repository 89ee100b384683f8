"""The page for a score: complete, escaped, self-contained; and looked at in a real browser."""

import re

import numpy as np
import pytest

from nearid import InputError, score
from nearid.questions.score import page as scoring

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    u = {NASTY: rng.laplace(size=400), "size": rng.laplace(size=400), "shape": rng.choice(["a<b>", "c"], 400)}
    z = np.column_stack([u[NASTY], u["size"], u["shape"] == "c"]) @ rng.normal(size=(3, 4))
    return score(z, u, measures="mcc,r2,infomec,dci,mig", resolve="ica", permutations=2)


def test_all_parts_are_there(found):
    text = scoring.page(found)
    for part in (
        "Both continuous factors are recovered",
        "The categorical factor is scored separately: R2 ",
        "After ICA",
        "Normalised mutual information, after ICA",
        "|Correlation|, held out",
        "Importance to boosted trees",
        "Factors and their latents",
        "Each factor",
        "Up to which group",
        "jackknife",
    ):
        assert part in text, part
    assert text.index('class="verdict"') < text.index("<table") and '"fingerprint"' in text
    for alert in found.alerts:
        assert f'data-code="{alert.code}"' in text


def test_names_are_escaped_and_nothing_is_fetched(found):
    for text in (scoring.page(found), scoring.fragment(found)):
        assert NASTY not in text and "<img src=x" not in text and "&lt;/script&gt;" in text and "<b>" not in text
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[-1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail)


def test_a_notebook_shows_the_tables(found):
    text = found._repr_html_()
    assert "MCC" in text and "after ICA" in text and "shape" in text and "plotly" not in text


def test_reports_are_pages_only(found, tmp_path):
    with pytest.raises(InputError, match="something"):
        found.save_report(tmp_path / "out.npy")


def test_every_figure_is_drawn_and_no_name_runs_as_code(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert f'data-drawn="{len(scoring._figures(found))}"' in dom
    assert "<title>Is this the true representation?</title>" in dom
