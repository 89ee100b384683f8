"""The experiment's page: table, claims, curves and figures; escaped, and drawn in a real browser."""

import re

import pytest

from nearid.lab.framework.page import page, write_report


def test_all_parts_are_there(result):
    text = page(result)
    parts = ("toy: Table 0", "2 claims reproduced, 1 claim not testable here, 1 claim not reproduced", "Nowhere 2020")
    parts += ("0.87*", "High is high.", "The walk", "true against recovered", "correlation", "How this was made")
    assert all(p in text for p in parts)
    # The colour of the whole is that of the worst claim.
    assert re.search(r'class="verdict" style="--mark: var\(--none\)"', text)


def test_everything_is_escaped(result, failing):
    for found in (result, failing):
        assert "<script>document.title" not in page(found)
    assert "seed 1 is &lt;/script&gt;" in page(failing)


def test_nothing_is_fetched_from_anywhere(result):
    text = page(result)
    head, tail = text.split("<script>", 1)[0], text.rsplit("<script>", 1)[1]
    assert not re.search(r'(src|href)\s*=\s*"?(https?:)?//', head + tail)


@pytest.mark.browser
def test_every_figure_is_drawn(result, tmp_path, chromium):
    write_report(result, tmp_path / "out.html")
    dom = chromium(tmp_path / "out.html", "--dump-dom").stdout
    assert 'data-drawn="3"' in dom and dom.count('class="main-svg"') >= 3
    assert "<title>toy: Table 0</title>" in dom
