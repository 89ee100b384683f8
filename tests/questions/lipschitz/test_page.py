"""The page for bi-Lipschitz constants: complete, escaped, drawn in a real browser."""

import numpy as np
import pytest
import torch

from nearid import InputError, bilipschitz
from nearid.questions.lipschitz import page as lipschitz

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def found():
    z = np.random.default_rng(0).normal(size=(50, 3))
    return bilipschitz(lambda x: torch.cat([x.sinh(), x], 1), z, name=NASTY)


def test_all_parts_are_there(found):
    text = lipschitz.page(found)
    for part in (
        "Local constants",
        "Singular values",
        "Dynamical isometry",
        "Theorem 1",
        "random directions",
        "of half",
    ):
        assert part in text, part
    assert text.index('class="verdict"') < text.index("<table") and '"fingerprint"' in text
    assert all(f'data-code="{a.code}"' in text for a in found.alerts)


def test_names_are_escaped(found):
    for text in (lipschitz.page(found), found._repr_html_()):
        assert NASTY not in text and "<img src=x" not in text and "&lt;/script&gt;" in text


def test_a_notebook_shows_the_table_alone(found):
    text = found._repr_html_()
    assert "all directions" in text and "<table>" in text and "plotly" not in text


def test_shares_add_up_and_infinite_constants_are_not_drawn():
    z = np.array([[0.0, 1.0], [1.0, 0.0], [30.0, 0.0], [0.5, 0.5]])
    found = bilipschitz(torch.tanh, z)
    sampled, exact = lipschitz.histogram(found)["data"]
    assert sum(sampled["y"]) == pytest.approx(1) and sum(exact["y"]) == pytest.approx(0.75)
    band = lipschitz.spectrum(found.isometry)["data"]
    assert band[1]["y"][1] is None or band[1]["y"][1] > 0


def test_a_page_of_random_directions_alone_promises_nothing():
    z = np.random.default_rng(0).normal(size=(20, 3))
    found = bilipschitz(lambda x: 1.01 * x, z, exact=False)
    for text in (lipschitz.page(found), found._repr_html_()):
        assert "near enough" not in text.replace("cannot tell whether that is near enough", "")
        assert "L is at least" in text and "exceed it" not in text
    text = lipschitz.page(found)
    assert f"--mark: var(--{lipschitz.MARKS['careful']})" in text and ", and over all of them." not in text
    exact = lipschitz.page(bilipschitz(lambda x: 1.01 * x, z))
    assert f"--mark: var(--{lipschitz.MARKS['good']})" in exact and ", and over all of them." in exact


def test_reports_are_pages_only(found, tmp_path):
    with pytest.raises(InputError, match="something"):
        found.save_report(tmp_path / "out.npy")


def test_every_figure_is_drawn_and_no_name_runs_as_code(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert 'data-drawn="2"' in dom and "<title>Does this decoder preserve distances?</title>" in dom
