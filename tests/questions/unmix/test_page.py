"""The page for an unmixing: complete, escaped, self-contained; and looked at in a real browser."""

import json
import re

import numpy as np
import pytest

from nearid import ICA, InputError
from nearid.arrays import open_rows
from nearid.base.jsonable import finite
from nearid.ica.estimators import IdentifiabilityWarning
from nearid.questions.unmix import page as unmixing

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def ica():
    rng = np.random.default_rng(0)
    s = np.hstack([rng.laplace(size=(8000, 3)), rng.uniform(-1, 1, size=(8000, 2)), rng.normal(size=(8000, 2))])
    with pytest.warns(IdentifiabilityWarning, match="2 of 7 components"):
        return ICA(n_components=7).fit(open_rows(s @ rng.normal(size=(7, 7)), name=NASTY))


def test_all_parts_are_there(ica):
    text = unmixing.page(ica)
    for part in ("7 components, found in", "How far from Gaussian", "Convergence", "Spectrum", "relative gradient"):
        assert part in text
    assert text.index('class="verdict"') < text.index("<table") and '"fingerprint"' in text
    for caution in ica.diagnostics_.cautions:
        assert f'data-code="{caution.kind}"' in text


def test_names_are_escaped_and_nothing_is_fetched(ica):
    text = unmixing.page(ica)
    assert NASTY not in text and "<img src=x" not in text and "&lt;/script&gt;" in text
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail) and "default-src 'none'" in text


def test_bars_are_the_diagnostics_with_gaussian_ones_apart(ica):
    bars = {bar["name"]: bar for bar in unmixing.nongaussianity(ica)["data"]}
    assert {name: len(bar["x"]) for name, bar in bars.items()} == {
        "super-Gaussian": 3,
        "sub-Gaussian": 2,
        "Gaussian": 2,
    }
    assert bars["Gaussian"]["x"] == np.flatnonzero(ica.diagnostics_.gaussian).tolist()
    for bar in bars.values():
        np.testing.assert_array_equal(bar["y"], ica.diagnostics_.nongaussianity[bar["x"]])


@pytest.mark.parametrize("contrast", ["logcosh", "exp", "cube"])
def test_kinds_do_not_depend_on_the_contrast(contrast):
    rng = np.random.default_rng(1)
    x = np.hstack([rng.laplace(size=(8000, 2)), rng.uniform(-1, 1, size=(8000, 3))])
    bars = unmixing.nongaussianity(ICA(contrast=contrast, dtype="float64").fit(x))["data"]
    assert {bar["name"]: len(bar["x"]) for bar in bars} == {"super-Gaussian": 2, "sub-Gaussian": 3}


def test_curves_are_those_of_the_fit(ica):
    curve, stop = unmixing.convergence(ica)["data"]
    assert curve["y"] == ica.gradients_ and stop["y"] == [ica.tol, ica.tol]
    narrowed = ICA(n_components=2).fit(np.random.default_rng(0).laplace(size=(500, 5)))
    kept, rest = unmixing.spectrum(narrowed)["data"]
    assert len(kept["y"]) == 2 and kept["y"] + rest["y"] == narrowed.variances_.tolist()


@pytest.mark.parametrize("name", ["nongaussianity", "convergence", "spectrum"])
def test_each_figure_is_json(ica, name):
    json.dumps(finite(getattr(unmixing, name)(ica)), allow_nan=False)


def test_a_report_is_html(ica, tmp_path):
    with pytest.raises(InputError, match=r"something\.html"):
        ica.save_report(tmp_path / "out.npy")


@pytest.mark.browser
def test_every_figure_is_drawn_and_no_name_runs_as_code(ica, tmp_path, chromium):
    ica.save_report(tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert 'data-drawn="3"' in dom and dom.count('class="main-svg"') >= 3
    assert "<title>What are the independent components?</title>" in dom
