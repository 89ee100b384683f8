"""Pages: their size, and what they leave out to keep it."""

import json
import re

import numpy as np

from nearid.show.figures import Cloud, Panels
from nearid.show.page import POINTS, page
from nearid.show.view import View

NOTE = "of the points are drawn"


def many_pairs(pairs, rows):
    """A page with a picture of two clouds in four panels for each pair."""
    rng = np.random.default_rng(0)
    clouds = [
        Cloud(f"{k}", {"target": rng.normal(size=(2, rows)), "source": rng.normal(size=(2, rows))}) for k in "abcd"
    ]
    part = View("?", "a -> b", "Same", figures=[Panels("Clouds", "Two runs.", clouds, 4)])
    return View("?", "all", "Same", parts=[part] * pairs)


def dots(text):
    return len(re.findall("h0", text))


def test_a_page_of_few_points_has_all_of_them():
    text = page(many_pairs(1, 800))
    # Two pictures, for the whole page and for a telephone; points of one half pixel are one.
    assert 0.8 * 12_800 < dots(text) <= 12_800 and NOTE not in text


def test_a_page_of_many_pairs_draws_a_share_of_the_points_and_says_so():
    text = page(many_pairs(28, 800))
    assert POINTS < dots(text) < 2.2 * POINTS and len(text) < 800_000
    assert text.count("about 14% of the points are drawn") == 28


def test_an_interactive_page_has_all_points():
    text = page(many_pairs(28, 800), interactive=True)
    drawings = json.loads(re.search(r"const figures = (.*), dark =", text)[1])
    assert len(drawings) == 28 and {len(trace["x"]) for trace in drawings[0]["data"]} == {800}


def test_a_group_of_few_points_stays_whole():
    text = page(many_pairs(200, 60))
    assert NOTE not in text and dots(text) > 0.9 * 200 * 60 * 8
