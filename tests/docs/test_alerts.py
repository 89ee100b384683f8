"""Every alert that a question can give is explained on its page of the guide, and those of the lab on its page."""

import re

import pytest
from blocks import ROOT

SOURCE, DOCS = ROOT / "src" / "nearid", ROOT / "docs"
# Where the alerts of a page are written.
PAGES = {
    "guide/compare": ("questions/compare", "dependence.py", "arrays/metadata.py"),
    "guide/deconfound": ("questions/deconfound",),
    "guide/extract": ("questions/extract",),
    "guide/heads": ("questions/heads",),
    "guide/lipschitz": ("questions/lipschitz",),
    "guide/models": ("questions/models", "questions/layers"),
    "guide/score": ("questions/score", "measures", "folds.py", "arrays/metadata.py"),
    "guide/unmix": ("ica", "questions/unmix"),
    "reproduce": ("lab",),
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
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    assert sorted(code for code in wanted if f"`{code}`" not in text) == []


def test_every_alert_belongs_to_a_page():
    covered = set().union(*(codes(place) for places in PAGES.values() for place in places))
    assert codes("") <= covered
    assert {"same_input", "single_batch_label", "gaussian", "no_splits", "repeated_rows", "serial_rows"} <= covered
