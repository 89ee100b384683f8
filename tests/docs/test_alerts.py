"""Every alert that a question can give is explained on its page of the guide."""

import re

import pytest
from blocks import ROOT

SOURCE, GUIDE = ROOT / "src" / "nearid", ROOT / "docs" / "guide"
# Where the alerts of a page are written.
PAGES = {
    "compare": ("questions/compare", "dependence.py", "arrays/metadata.py"),
    "deconfound": ("questions/deconfound",),
    "extract": ("questions/extract",),
    "heads": ("questions/heads",),
    "lipschitz": ("questions/lipschitz",),
    "models": ("questions/models", "questions/layers"),
    "score": ("questions/score", "measures", "folds.py", "arrays/metadata.py"),
    "unmix": ("ica", "questions/unmix"),
}
# The code of an alert, or a table of codes and sentences that become alerts.
CODE = re.compile(r'Alert\(\s*"([a-z0-9_]+)"|^        "([a-z_]+)": \(', re.M)


def codes(place):
    """The codes of alerts below a folder, or in a file."""
    files = [SOURCE / place] if place.endswith(".py") else sorted((SOURCE / place).rglob("*.py"))
    return {
        code
        for file in files
        if "Alert(" in (text := file.read_text(encoding="utf-8"))
        for found in CODE.findall(text)
        for code in found
        if code
    }


@pytest.mark.parametrize("page", PAGES)
def test_a_page_explains_the_alerts_of_its_question(page):
    wanted = set().union(*(codes(place) for place in PAGES[page]))
    assert wanted
    text = (GUIDE / f"{page}.md").read_text(encoding="utf-8")
    assert sorted(code for code in wanted if f"`{code}`" not in text) == []


def test_every_alert_belongs_to_a_page():
    covered = set().union(*(codes(place) for places in PAGES.values() for place in places))
    # The experiments of the papers are no question of the guide.
    everywhere = codes("base") | codes("arrays") | codes("measures") | codes("ica") | codes("questions")
    assert everywhere <= covered
    assert {"same_input", "single_batch_label", "gaussian", "no_splits", "repeated_rows", "serial_rows"} <= covered
