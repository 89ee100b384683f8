"""What a person sees of a comparison: what is drawn, the words, the page; looked at in a real browser."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nearid import InputError, compare, compare_layers
from nearid.base.estimate import Estimate
from nearid.groups.fits import DenseMap
from nearid.groups.ladder import GROUPS, Group, register
from nearid.show.page import page
from nearid.show.terminal import text as terminal

NASTY = '</script><script>document.title="owned"</script><img src=x onerror="document.title=1">'


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    x = rng.laplace(size=(300, 5))
    y = 2 * x @ np.linalg.qr(rng.normal(size=(5, 5)))[0] + 0.1 * rng.normal(size=(300, 5))
    return compare(x, y, names=[NASTY, "target & co"], groups="all", in_sample=True, symmetric=True)


def test_the_verdict_comes_first_and_all_parts_are_there(found):
    text = page(found.view)
    parts = ("The same representation", "signed permutation", "How nearly", "Epsilon of each row", "Spectra")
    parts += ("Canonical correlations", "Matched columns", "before and after alignment", "How this was made")
    assert all(p in text for p in parts)
    assert text.index('class="verdict"') < text.index("<table")
    assert '"fingerprint"' in text
    assert "ICA of each side, matched" in text and "of the error that a rigid motion removes" in text


def test_names_are_escaped_everywhere(found):
    text = page(found.view)
    assert NASTY not in text and "<img src=x" not in text
    assert "&lt;/script&gt;" in text and "target &amp; co" in text
    assert NASTY not in found._repr_html_() and found.efficiency.reason in found._repr_html_()


def test_nothing_is_fetched_from_anywhere(found):
    text = page(found.view)
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail)
    assert "default-src 'none'" in text


def test_alerts_are_shown(rng):
    x = rng.normal(size=(30, 9))
    assert 'data-code="few_rows"' in page(compare(x, x + rng.normal(size=(30, 9)), permutations=1).view)


def test_unequal_folds_are_called_a_mean(rng):
    x = rng.normal(size=(300, 3))
    y = x + 0.1 * rng.normal(size=(300, 3))
    equal = compare(x, y, blocks=np.arange(300) // 10, permutations=1)
    assert equal.view.tables[0].note.startswith(
        "Intervals are for a fit on 240 rows, judged on new blocks of rows (30 here)."
    )
    # The largest block makes a fold of its own, of 100 rows; the others have 50.
    unequal = compare(x, y, blocks=np.maximum(np.arange(300), 99) // 2, permutations=1)
    assert unequal.view.tables[0].note.startswith(
        "Intervals are for a fit on 240 rows (the mean over folds), judged on new"
    )


def test_all_pairs_have_an_overview(rng):
    runs = [rng.normal(size=(80, 3)) for _ in range(3)]
    found = compare(*runs, permutations=1, groups="all", names=["r0", "r1", "r2"])
    text = page(found.view)
    assert text.count('class="pairsection"') == 3 and "Mean epsilon, rigid" in text and "Mean epsilon, ica" in text


@pytest.mark.browser
def test_every_figure_is_drawn_and_no_name_runs_as_code(found, tmp_path, chromium):
    found.save_report(tmp_path / "out.html", interactive=True)
    # Figures are drawn as they come into view. On a busy machine virtual time may end before Chromium's first frame.
    for _ in range(6):
        dom = chromium(tmp_path / "out.html", "--dump-dom", "--window-size=1100,6000").stdout
        if 'class="main-svg"' in dom:
            break
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


def test_views_are_small_and_consistent(rng):
    x = rng.laplace(size=(5000, 100))
    order = rng.permutation(100)
    v = compare(x, -2 * x[:, order] + 1, permutations=1).views
    assert v.correlation.shape == (64, 64) and len(v.matched) == 64
    np.testing.assert_allclose(np.diag(v.correlation), 1)
    assert all(order[t] == s for s, t in v.matched)
    assert all(c.sum() == 5000 for c in v.epsilon_counts.values())
    np.testing.assert_allclose(v.spectrum_x.sum(), 1)
    assert v.overlay["rigid"].shape == (800, 2)
    np.testing.assert_allclose(v.overlay["permutation"], v.overlay["target"], atol=1e-9)


def test_one_column_is_drawn_on_a_line(rng):
    x = rng.normal(size=(50, 1))
    v = compare(x, 3 * x, permutations=1).views
    assert v.overlay["target"].shape == (50, 2) and not v.overlay["target"][:, 1].any()


def test_shares_of_rows_add_up(rng):
    x = rng.normal(size=(200, 3))
    figures = {f.title: f for f in compare(x, x + rng.normal(size=(200, 3))).view.figures}
    for curve in figures["Epsilon of each row"].curves.values():
        assert sum(curve.y) == pytest.approx(1)


@pytest.fixture
def shift():
    """A group that a test registers: a translation and nothing else."""
    kept = dict(GROUPS)

    def fit(moments):
        return DenseMap(moments.mean_x, moments.mean_y, np.eye(*moments.xy.shape))

    register(Group("shift", "shift", "#123456", (), fit, (), lambda p, q: q))
    yield
    GROUPS.clear()
    GROUPS.update(kept)


def test_a_new_group_is_in_the_ladder_the_verdict_and_the_report_after_one_registration(rng, shift):
    x = rng.normal(size=(300, 3))
    moved = compare(x, x + 5 + 0.01 * rng.normal(size=(300, 3)), permutations=1)
    assert list(moved.groups) == ["shift", "permutation", "rigid", "linear"] and moved.verdict.group == "shift"
    for written in (page(moved.view), terminal(moved.view), moved._repr_html_()):
        assert "The same representation, nearly exactly, up to a shift" in written
    assert "#123456" in page(moved.view) and list(moved.views.overlay)[2] == "shift"
    assert compare(x, -x, permutations=1).verdict.group == "permutation"
    assert list(compare_layers({"a": x}, {"b": x + 1}, measures="r2_shift,epsilon_shift").values) == [
        "r2_shift",
        "epsilon_shift",
    ]
    with pytest.raises(InputError, match="There are: shift, permutation"):
        compare(x, x, groups="turn")


def test_a_verdict_on_near_copies_says_what_it_assumes(rng):
    image = rng.permutation(np.repeat(np.arange(100), 5))
    x, y = (rng.normal(size=(100, 8))[image] + 0.2 * rng.normal(size=(500, 8)) for _ in range(2))
    found = compare(x, y, permutations=99)
    assert "clustered_rows" in {alert.code for alert in found.alerts} and found.verdict.group != "none"
    assert "This assumes independent rows, but many rows are near copies" in found.view.reason
    assert "near copies" not in compare(x, y, blocks=image, permutations=99).view.reason


def test_alerts_of_both_runs_that_differ_in_names_alone_are_one_line(rng):
    x, y = (np.hstack([rng.normal(size=(200, 3)), np.ones((200, 1))]) for _ in range(2))
    found = compare(x, y, names=["a.npy", "b.npy"], permutations=1)
    assert [a.message for a in found.view.alerts if a.code == "constant_columns"] == [
        "a.npy and b.npy: column '3' of each run is constant and cannot be aligned."
    ]
    assert len([a for a in found.alerts if a.code == "constant_columns"]) == 2
    # Their own figures are told apart.
    y[:, 2] = 1
    found = compare(x, y, names=["a.npy", "b.npy"], permutations=1)
    assert len([a for a in found.view.alerts if a.code == "constant_columns"]) == 2


def test_the_ladder_is_one_table_at_120_columns(rng):
    x = rng.normal(size=(100, 3))
    drawn = terminal(compare(x, x + 0.1, permutations=1).view, 120)
    (head,) = (line for line in drawn.splitlines() if line.startswith("  group "))
    assert head.rstrip().endswith(" p")


def test_headline_and_reason_have_the_same_figure(rng):
    found = compare(*rng.normal(size=(2, 300, 1)), permutations=19)
    assert found.verdict.group == "none"
    tiny = {name: replace(g, r2=Estimate(-2.2e-05, np.nan, np.nan)) for name, g in found.groups.items()}
    assert replace(found, groups=tiny).view.headline.endswith("(best R2 0.000)")
    (figure,) = re.findall(r"best R2 ([-\d.]+)", found.view.headline)
    assert f"reaches R2 = {figure}." in found.view.reason
