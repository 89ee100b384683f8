"""Every public name has a page in the reference."""

import re

from blocks import ROOT

import nearid


def test_the_reference_lists_every_public_name_once():
    page = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^   (\w+)$", page, re.M)
    assert sorted(listed) == sorted(set(nearid.__all__) - {"__version__"})
    assert "`nearid.__version__`" in page
