"""Static pictures: the same information as the interactive figures, in well-formed SVG of few bytes."""

import base64
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.base.estimate import Estimate
from nearid.show import figures
from nearid.show.figures import (
    Bars,
    Cloud,
    Curve,
    Dots,
    HeatMap,
    Lines,
    Panels,
    Pictures,
    Scatter,
    Text,
    scatter_matrix,
)
from nearid.show.svg import Axis, Picture, picture, points, svg

EVIL = "<b>&\"'\x00\x1b\udcff\ufffe\uffff"
SPACE = "{http://www.w3.org/2000/svg}"


def elements(drawn, tag):
    return list(ElementTree.fromstring(drawn).iter(f"{SPACE}{tag}"))


def words(drawn):
    return ["".join(element.itertext()) for element in elements(drawn, "text")]


def tips(drawn):
    return [element.text for element in elements(drawn, "title")]


def test_dots_have_values_intervals_and_chance_levels():
    estimates = [Estimate(1.0, 0.5, 1.5, 0.25), Estimate(2.0, np.nan, np.nan), None]
    drawn = picture(Dots("Title", "", "value", ["one", "two", "none"], {"g": estimates})).svg
    assert {"one, g: 1 [0.5, 1.5]", "two, g: 2", "one, chance: 0.25"} <= set(tips(drawn))
    assert {"Title", "one", "two", "none", "value", "g", "chance"} <= set(words(drawn))
    # One interval, a line with two caps, from 0.5 to 1.5.
    (bar,) = [p.get("d") for p in elements(drawn, "path") if p.get("stroke-width") == "1.5"]
    left, right = (float(v) for v in re.match(r"M([\d.]+) [\d.]+H([\d.]+)", bar).groups())
    at = {"".join(t.itertext()): float(t.get("x")) for t in elements(drawn, "text") if t.get("x")}
    unit = at["2.0"] - at["1.0"]
    assert left == pytest.approx(at["1.0"] - unit / 2, abs=0.3) and right - left == pytest.approx(unit, abs=0.3)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (-3, 7, ["-2", "0", "2", "4", "6"]),
        (1e6, 3e6, ["1e+06", "1.5e+06", "2e+06", "2.5e+06", "3e+06"]),
    ],
)
def test_ticks_are_round_numbers(low, high, ticks):
    axis = Axis({"range": [low, high]}, [], 0)
    assert [text for _, (text,) in axis.ticks(300, 60)] == ticks


@pytest.mark.parametrize(("low", "high", "ticks"), [(1e-6, 1, ["10⁻⁶", "0.001", "1"]), (2, 9, ["2", "5"])])
def test_logarithmic_ticks_are_powers_or_a_few_between(low, high, ticks):
    axis = Axis({"type": "log"}, [low, high, -1.0], 0)
    placed = axis.ticks(200, 60)
    assert [text for _, (text,) in placed] == ticks and axis.share(-1.0) is None
    steps = {round(b - a, 9) for (a, _), (b, _) in pairwise(placed)}
    assert len(steps) == 1


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (5.5, 9, ["6", "8"]),
        (0.21, 0.49, ["0.3", "0.4"]),
        (1.5, 4.5, ["2", "3", "4"]),
        (2.1e-7, 4.9e-7, ["3e-07", "4e-07"]),
    ],
)
def test_a_narrow_logarithmic_axis_has_steps(low, high, ticks):
    axis = Axis({"type": "log"}, [low, high], 0)
    placed = axis.ticks(200, 60)
    assert [text for _, (text,) in placed] == ticks
    assert [share for share, _ in placed] == pytest.approx([axis.share(float(text)) for text in ticks])


def test_curves_keep_gaps_dashes_and_steps():
    curves = {
        "gap": Curve([1, 2, 3, 4, 5], [0, 1, np.nan, 1, 0], dash="dot"),
        "steps": Curve([1, 2, 3], [1, 2, 1], steps=True),
        "plain": Curve([1, 2], [1, 2], hover="what it is"),
    }
    drawn = svg(Lines("", "", "x", "y", curves).draw(), 500)
    gap, steps = [p for p in elements(drawn, "path") if p.get("stroke") != "currentColor"][:2]
    assert gap.get("d").count("M") == 2 and gap.get("stroke-dasharray")
    assert (
        re.sub(r"[-\d. ]", "", steps.get("d")) == "MHVHVHVHz"
        and steps.get("fill-opacity")
        and not steps.get("stroke-dasharray")
    )
    assert "what it is" in tips(drawn)


def test_values_stand_in_cells_that_have_room_for_them():
    values = np.linspace(0, 1, 12).reshape(3, 4)
    values[0, 0] = np.nan
    chart = HeatMap("", "", {"": values}, list("abc"), list("efgh"), digits=2, hover={"": [list("pqrs")] * 3})
    wide, narrow = svg(chart.draw(), 500), svg(chart.draw(), 150)
    cells = [text for text in words(wide) if re.fullmatch(r"\d\.\d\d", text)]
    assert len(cells) == 11 and not [text for text in words(narrow) if re.fullmatch(r"\d\.\d\d", text)]
    assert "c, h: 1.000 (s)" in tips(narrow) and "a, e" not in str(tips(wide))
    # The ends of Viridis: dark purple is small, yellow is large.
    colours = [cell.get("fill") for cell in elements(wide, "rect")]
    assert colours[10] == "#fde725" and int(colours[0][1:3], 16) < 0x48


def test_a_large_heat_map_is_one_image_of_its_colours(tmp_path):
    image = pytest.importorskip("PIL.Image")
    values = np.random.default_rng(0).random((40, 50))
    values[0, 0], values[0, 1], values[39, 49] = np.nan, 0, 1
    drawn = svg(HeatMap("", "", {"": values}, list(map(str, range(40))), list(map(str, range(50)))).draw(), 1000)
    source = elements(drawn, "image")[0].get("href")
    (tmp_path / "map.png").write_bytes(base64.b64decode(source.partition(",")[2]))
    with image.open(tmp_path / "map.png") as read:
        pixels = np.asarray(read.convert("RGBA"))
    assert pixels.shape == (40, 50, 4) and pixels[0, 0, 3] == 0 and (pixels[1:, :, 3] == 255).all()
    assert pixels[0, 1, :3].tolist() == [0x44, 1, 0x54] and pixels[39, 49, :3].tolist() == [0xFD, 0xE7, 0x25]
    assert len(drawn) < 20_000


def test_many_points_take_few_bytes_and_none_is_moved():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3000))
    drawn = svg(Scatter("", "", "x", "y", {"g": (x, y)}).draw(), 500)
    assert len(drawn) < 8 * 3000
    few = svg(Scatter("", "", "x", "y", {"g": (x[:60], y[:60])}).draw(), 500)
    (path,) = [p.get("d") for p in elements(few, "path") if p.get("stroke-linecap")]
    assert 'transform="scale(.5)"' in few
    at = (
        np.cumsum(
            [[float(v) for v in re.findall(r"-?[\d.]+", step)] for step in re.findall(r"[Mm]([-\d. ]+)h0", path)],
            axis=0,
        )
        / 2
    )
    known = np.unique(at.round(1), axis=0)
    # Places are linear in the values, to half a pixel.
    slope = (at[:, 0].max() - at[:, 0].min()) / (x[:60].max() - x[:60].min())
    expected = np.sort(at[:, 0].min() + slope * (x[:60] - x[:60].min()))
    assert len(known) == 60 and np.abs(np.sort(at[:, 0]) - expected).max() <= 0.6


def test_named_points_tell_their_names():
    points = {"g": ([1.0, 2.0], [3.0, 4.0])}
    drawn = svg(Scatter("", "", "x", "y", points, names={"g": ["first", EVIL]}, labels=1).draw(), 500)
    assert "first (g)" in tips(drawn) and "first" in words(drawn) and tips(drawn)[1].startswith("<b>&\"'")


def test_panels_stand_in_two_columns_on_a_telephone():
    clouds = [Cloud(f"panel {k}", {"a": ([0, 1], [0, 1]), "b": ([0, 2], [0, 1])}) for k in range(4)]
    chart = Panels("", "", clouds, 4)
    for width, columns in ((1000, 4), (400, 2)):
        titles = [t for t in elements(svg(chart.draw(), width), "text") if t.get("font-weight") == "600"]
        assert [t.text for t in titles] == [cloud.title for cloud in clouds]
        assert len({t.get("x") for t in titles}) == columns


def test_pixels_of_pictures_are_square():
    source = "data:image/png;base64,AAAA"
    drawn = svg(Pictures("", "", source, ["r1", "r2"], ["a", "b", "c"]).draw(), 1000)
    (image,) = elements(drawn, "image")
    assert image.get("href") == source and float(image.get("width")) / 3 == float(image.get("height")) / 2
    assert {"r1", "r2", "a", "b", "c"} <= set(words(drawn))


def test_no_name_is_markup_and_every_name_is_there():
    drawn = picture(Scatter(EVIL, "", EVIL, EVIL, {EVIL: ([1], [2])}, {EVIL + "2": ([1], [2])})).svg
    assert "<b>" not in drawn and len([text for text in words(drawn) if text.startswith("<b>&\"'")]) == 5
    assert drawn == picture(Scatter(EVIL, "", EVIL, EVIL, {EVIL: ([1], [2])}, {EVIL + "2": ([1], [2])})).svg


def test_a_picture_is_saved_as_svg_alone(tmp_path):
    Picture("<svg/>").save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text() == "<svg/>"
    with pytest.raises(InputError, match=r"something\.svg, not x\.png.*plot\(\)"):
        Picture("<svg/>").save(tmp_path / "x.png")
    (tmp_path / "link.svg").symlink_to(tmp_path / "rows.npy")
    with pytest.raises(InputError, match=r"not rows\.npy"):
        Picture("<svg/>").save(tmp_path / "link.svg")


EMPTY = [
    Lines("t", "", "x", "y", {}),
    Lines("t", "", "x", "y", {"a": Curve([], [], markers=True), "b": Curve([], [], steps=True)}),
    Lines("t", "", "x", "y", {"a": Curve([1.0], [np.nan])}, log=True, log_x=True),
    Scatter("t", "", "x", "y", {}),
    Scatter("t", "", "x", "y", {"a": ([], [])}, {"b": ([], [])}, names={"a": []}, labels=1),
    Bars("t", "", "x", [], {}),
    Bars("t", "", "x", ["r"], {"a": [np.nan]}),
    Dots("t", "", "x", [], {}),
    Dots("t", "", "x", ["r"], {"a": [None]}),
    HeatMap("t", "", {}, [], []),
    HeatMap("t", "", {"": np.empty((0, 0))}, [], [], digits=2),
    HeatMap("t", "", {"a": np.empty((2, 0)), "b": np.empty((2, 0))}, list("rs"), [], low=None, high=None),
    HeatMap("t", "", {"": np.full((1, 2), np.nan)}, ["r"], list("ab"), digits=2, low=None, high=None),
    Panels("t", "", [], 1),
    Panels("t", "", [Cloud("c", {}), Cloud("d", {"a": ([], [])})], 2),
    scatter_matrix("t", "", {"a": []}, {}),
    Pictures("t", "", "data:image/png;base64,AAAA", [], []),
    Text("t", "", ""),
]


def test_every_kind_of_figure_is_tried_without_data():
    kinds = {kind for kind in figures.Figure.__subclasses__() if kind.__module__ == figures.__name__}
    assert {type(figure) for figure in EMPTY} == kinds


@pytest.mark.parametrize("figure", EMPTY, ids=lambda figure: type(figure).__name__)
def test_a_figure_without_data_has_its_title_and_axes(figure):
    for width in (400, 1000):
        assert words(svg(figure.draw(), width, figure.title))[0] == "t"


def test_bars_begin_where_the_part_before_them_ends():
    chart = Bars("t", "", "share", ["whole", "<b>"], {"batch": [0.25, 0.5], "label": [0.5, -0.5]}, ends=(-1, 1))
    drawn = svg(chart.draw(), 1000, "t")
    bars = [(float(r.get("x")), float(r.get("width")), r.get("y")) for r in elements(drawn, "rect")]
    whole, other = bars[0::2], bars[1::2]
    assert whole[1][0] == pytest.approx(sum(whole[0][:2]), abs=0.2) and whole[1][1] == pytest.approx(
        2 * whole[0][1], 0.01
    )
    # To the left of zero, where the other part begins.
    assert sum(other[1][:2]) == pytest.approx(other[0][0], abs=0.2) and other[0][1] == pytest.approx(other[1][1], 0.01)
    assert {"whole", "<b>", "batch", "label", "share"} <= set(words(drawn))
    assert len({y for *_, y in bars}) == 2
    # Nothing is drawn beyond the ends of the axis.
    cut = svg(Bars("t", "", "x", ["r"], {"a": [3.0]}, ends=(0, 1)).draw(), 1000)
    (bar,) = elements(cut, "rect")
    assert float(bar.get("x")) + float(bar.get("width")) <= 1000


def test_a_single_group_names_the_crosses_at_the_edge():
    x = np.append(np.linspace(-1, 1, 99), 1e6)
    drawn = svg(Scatter("", "", "x", "y", {"": (x, x)}).draw(), 500)
    assert "1 point beyond the edge" in words(drawn)
    assert "beyond" not in svg(Scatter("", "", "x", "y", {"": (x[:99], x[:99])}).draw(), 500)


def test_rows_of_dots_are_never_thinned():
    estimates = [Estimate(float(k), k - 1.0, k + 1.0, 0.0) for k in range(150)]
    drawing = Dots("", "", "x", [f"row {k}" for k in range(150)], {"g": estimates}).draw()
    assert points(drawing) == 0 and svg(drawing, 1000, share=0.1) == svg(drawing, 1000)


@pytest.mark.parametrize(
    ("low", "high"), [(100_000, 100_900), (-1e5 - 3, -1e5), (1.23456e8, 1.23457e8), (1e-7, 1.0001e-7), (0, 1e300)]
)
def test_labels_of_ticks_are_their_numbers(low, high):
    axis = Axis({"range": [low, high]}, [], 0)
    ticks = axis.ticks(500, 60)
    assert len({text for _, (text,) in ticks}) == len(ticks) >= 4 and all(len(text) < 12 for _, (text,) in ticks)
    assert [axis.share(float(text)) for _, (text,) in ticks] == pytest.approx([share for share, _ in ticks], abs=1e-6)


def test_a_level_line_may_turn_back():
    drawn = svg(Lines("", "", "x", "y", {"a": Curve([0, 5, -5, 0], [1, 1, 1, 1])}).draw(), 500)
    (line,) = [p.get("d") for p in elements(drawn, "path") if p.get("stroke") != "currentColor"]
    start, right, left, end = map(float, re.fullmatch(r"M([\d.]+) [\d.]+H([\d.]+)H([\d.]+)H([\d.]+)", line).groups())
    assert left < start == end < right


@pytest.mark.parametrize("values", [[-1e308, 1e308], [0, 5e-324], [1e-310, 2e-310], [np.finfo(float).max, 0]])
def test_numbers_at_the_ends_of_floats_can_be_drawn(values):
    for figure in (
        Lines("", "", "x", "y", {"a": Curve(values, values, markers=True)}),
        Dots("", "", "x", list("ab"), {"g": [Estimate(v, np.nan, np.nan) for v in values]}),
        HeatMap("", "", {"": np.array([values])}, ["r"], list("ab"), low=None, high=None, digits=2),
    ):
        drawn = svg(figure.draw(), 500)
        ElementTree.fromstring(drawn)
        assert not re.search(r"\b(inf|nan)\b", drawn)


def test_cells_of_lines_with_one_name_have_their_own_values():
    chart = HeatMap("", "", {"": np.array([[0.1, 0.2], [0.3, 0.4]])}, ["r", "r"], ["c", "c"], digits=1)
    drawn = svg(chart.draw(), 500)
    cells = [t for t in elements(drawn, "text") if t.text in ("0.1", "0.2", "0.3", "0.4") and t.get("fill")]
    assert len({(t.get("x"), t.get("y")) for t in cells}) == 4 and {"r", "r (2)", "c", "c (2)"} <= set(words(drawn))
