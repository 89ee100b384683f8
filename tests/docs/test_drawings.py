"""The drawings of the pages on concepts are what their script draws, and every page shows those that exist."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts"
SPEC = importlib.util.spec_from_file_location("drawings", CONCEPTS / "drawings.py")
drawings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(drawings)


@pytest.mark.parametrize("name", drawings.DRAWINGS)
def test_a_committed_picture_is_what_the_script_draws(name):
    drawn = drawings.DRAWINGS[name]()
    assert (drawings.DRAWN / f"{name}.svg").read_text(encoding="utf-8") == drawn
    picture = ElementTree.fromstring(drawn)
    assert picture.find("{http://www.w3.org/2000/svg}title").text.endswith(".") and "prefers-color-scheme" in drawn


def test_every_picture_is_drawn_by_the_script_and_shown_on_a_page():
    committed = {path.stem for path in drawings.DRAWN.glob("*.svg")}
    assert committed == set(drawings.DRAWINGS)
    pages = "".join(path.read_text(encoding="utf-8") for path in CONCEPTS.glob("*.md"))
    assert all(f"](drawings/{name}.svg)" in pages for name in committed)
