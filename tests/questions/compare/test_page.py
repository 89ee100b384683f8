"""The report: self-contained, escaped, atomic; and looked at in a real browser."""

import re

import numpy as np
import pytest

from nearid import compare
from nearid.questions.compare.page import page

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(300, 5))
    y = 2 * x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.1 * rng.normal(size=(300, 5))
    return compare(x, y, names=[NASTY, "target & co"], groups="all", in_sample=True, symmetric=True)


def test_the_verdict_comes_first_and_all_parts_are_there(found):
    text = page([found])
    parts = ("The same representation", "signed permutation", "How nearly", "Error of each row", "Spectra")
    parts += ("Canonical correlations", "Matched columns", "before and after alignment", "How this was made")
    assert all(p in text for p in parts)
    assert text.index('class="verdict"') < text.index("<table")
    assert '"fingerprint"' in text
    assert "ICA of each side, matched" in text and text.count("of the error that a rigid motion removes") == 2


def test_names_are_escaped_everywhere(found):
    text = page([found])
    assert NASTY not in text and "<img src=x" not in text
    assert "&lt;/script&gt;" in text and "target &amp; co" in text
    assert NASTY not in found._repr_html_() and found.efficiency.reason in found._repr_html_()


def test_nothing_is_fetched_from_anywhere(found):
    text = page([found])
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail)
    assert "default-src 'none'" in text


def test_alerts_are_shown(rng):
    x = rng.normal(size=(30, 9))
    assert 'data-code="few_rows"' in page([compare(x, x + rng.normal(size=(30, 9)), permutations=1)])


def test_all_pairs_have_an_overview(rng):
    runs = [rng.normal(size=(80, 3)) for _ in range(3)]
    found = compare(*runs, permutations=1, groups="all", names=["r0", "r1", "r2"])
    text = page(list(found))
    assert text.count('class="pairsection"') == 3 and "Mean epsilon, rigid" in text and "Mean epsilon, ica" in text


def test_saved_whole_and_alone(found, tmp_path):
    found.save_report(tmp_path / "out.html")
    assert [p.name for p in tmp_path.iterdir()] == ["out.html"]
    assert (tmp_path / "out.html").read_text(encoding="utf-8").rstrip().endswith("</html>")


@pytest.mark.browser
def test_every_figure_is_drawn_and_no_name_runs_as_code(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert 'data-drawn="6"' in dom
    assert dom.count('class="main-svg"') >= 6
    assert "<title>Are these the same representation?</title>" in dom


@pytest.mark.browser
def test_it_looks_like_something_in_light_and_dark(found, tmp_path, chromium):
    from PIL import Image

    found.save_report(tmp_path / "out.html")
    brightness = {}
    for scheme, switch in (
        ("light", "--blink-settings=preferredColorScheme=1"),
        ("dark", "--blink-settings=preferredColorScheme=0"),
    ):
        shot = tmp_path / f"{scheme}.png"
        chromium(tmp_path / "out.html", switch, f"--screenshot={shot}", "--window-size=1100,2600")
        with Image.open(shot) as image:
            pixels = np.asarray(image.convert("L"), dtype=float)
        assert pixels.shape == (2600, 1100) and pixels.std() > 10
        brightness[scheme] = np.median(pixels)
    assert brightness["light"] > 200 and brightness["dark"] < 60


@pytest.mark.browser
def test_it_prints(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html")
    chromium(tmp_path / "out.html", f"--print-to-pdf={tmp_path / 'out.pdf'}")
    assert (tmp_path / "out.pdf").read_bytes().startswith(b"%PDF") and (tmp_path / "out.pdf").stat().st_size > 20_000
