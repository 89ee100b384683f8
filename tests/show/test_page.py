"""Pages: their size, and what they leave out to keep it."""

import base64
import io
import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from nearid.show.figures import Cloud, Curve, HeatMap, Lines, Panels
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
    assert text.count("On paper and on narrow screens, about 14% of the points are drawn.") == 28
    assert "An interactive page has all" not in text
    drawings = json.loads(re.search(r"const figures = (.*), dark =", text)[1])
    assert len(drawings) == 28 and {len(trace["x"]) for trace in drawings[0]["data"]} == {800}


def test_a_group_of_few_points_stays_whole():
    text = page(many_pairs(200, 60))
    assert NOTE not in text and dots(text) > 0.9 * 200 * 60 * 8


# What the buttons hand over, in place of a folder of downloads: the name of each file and its first letters.
HANDED = """<script>
const made = [], make = URL.createObjectURL;
URL.createObjectURL = blob => { made.push(blob); return make(blob); };
HTMLAnchorElement.prototype.click = function () {
  const reader = new FileReader();
  const told = document.body.appendChild(document.createElement("output"));
  reader.onload = () => { told.textContent = this.download + " " + reader.result; };
  reader.readAsDataURL(made.at(-1));
};
for (const button of document.querySelectorAll(".save button")) button.click();
</script></body>"""


@pytest.mark.browser
@pytest.mark.parametrize(("scheme", "blue"), [("dark", "4aa8e8"), ("light", "0072b2")])
def test_figures_are_saved_by_the_page_itself(tmp_path, chromium, scheme, blue):
    """The policy of the page, which loads nothing, does not stop it."""
    lines = Lines("Some curve", "", "x", "y", {"a": Curve([1, 2], [1, 2])})
    heat = HeatMap("Some map", "", {"": np.eye(40)}, list(map(str, range(40))), list(map(str, range(40))))
    text = page(View("?", "", "Same", figures=[lines, heat]))
    assert "default-src 'none'" in text
    (tmp_path / "page.html").write_text(text.replace("</body>", HANDED))
    preferred = f"--blink-settings=preferredColorScheme={int(scheme == 'light')}"
    dom = chromium(tmp_path / "page.html", "--dump-dom", preferred).stdout
    saved = dict(re.findall(r"<output>(\S+) data:\S+;base64,([^<]*)</output>", dom))
    assert set(saved) == {"some-curve.svg", "some-curve.png", "some-map.svg", "some-map.png"}
    for name, content in saved.items():
        content = base64.b64decode(content)
        if name.endswith("svg"):
            svg = ElementTree.fromstring(content)
            assert svg.tag.endswith("svg") and b"color:" in content
            assert svg[0].tag.endswith("title") and svg[0].text in ("Some curve", "Some map")
        else:
            with Image.open(io.BytesIO(content)) as image:
                # Twice as many pixels as on the screen, and not all of one colour.
                seen = image.convert("RGB").getcolors(1 << 24)
                assert image.width >= 2 * 490 and len(seen) > 2
                # The curve has the blue that is legible in the colours of the reader.
                assert name != "some-curve.png" or tuple(bytes.fromhex(blue)) in {colour for _, colour in seen}
