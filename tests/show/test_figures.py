"""Figures: values that can be read on any colour, names that are broken into lines."""

import html

import numpy as np
import pytest

from nearid.show.figures import EDGE, Cloud, Curve, HeatMap, Lines, Panels, Scatter, wrapped


def _contrast(one, other):
    """The ratio of luminances of two colours, as WCAG 2 defines it."""
    shares = [np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255 for colour in (one, other)]
    linear = [np.where(s <= 0.04045, s / 12.92, ((s + 0.055) / 1.055) ** 2.4) for s in shares]
    dark, bright = sorted(float(v @ [0.2126, 0.7152, 0.0722]) for v in linear)
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("is_reversed", [False, True])
def test_values_in_a_heat_map_are_legible(is_reversed):
    from plotly.colors import sample_colorscale, unlabel_rgb

    z = np.append(np.linspace(0, 2, 45), np.nan).reshape(2, 23)
    names = [f"x{k}" for k in range(23)]
    drawing = HeatMap("", "", {"": z}, ["a", "b"], names, low=None, high=None, digits=2, reverse=is_reversed).draw()
    text = drawing["data"][1]
    assert text["text"][:2] == ["0.00", "0.05"] and len(text["text"]) == 45  # what is not defined is not written
    shares = z.ravel()[:45] / 2
    cells = sample_colorscale("Viridis", list(1 - shares if is_reversed else shares))
    colours = {"#000": "#000000", "#fff": "#ffffff"}
    for cell, colour in zip(cells, text["textfont"]["color"], strict=True):
        assert _contrast("#" + "".join(f"{round(v):02x}" for v in unlabel_rgb(cell)), colours[colour]) >= 4.5


def test_long_names_are_broken_and_nothing_of_them_is_lost():
    name = "runs/a-long-name & more/" + 40 * "x" + "<b>.npy"
    lines = wrapped(name).split("<br>")
    assert all(len(html.unescape(line)) <= 24 for line in lines) and html.unescape("".join(lines)) == name
    assert wrapped("short <b>") == "short &lt;b&gt;"
    assert wrapped("normal marginal: Laplace -> vMF", 26) == "normal marginal: Laplace <br>-&gt; vMF"


def test_signs_in_a_legend_do_not_shrink_with_the_points():
    points = ([0.0, 1.0], [1.0, 0.0])
    drawing = Panels("", "", [Cloud("", {"target": points, "source": points})], 1).draw()
    assert drawing["layout"]["legend"]["itemsizing"] == "constant"


def test_a_curve_of_one_point_is_a_dot():
    curves = {"one": Curve([1], [0.5]), "gaps": Curve([1, 2, 3], [np.nan, 0.5, np.nan]), "many": Curve([1, 2], [0, 1])}
    one, gaps, many = Lines("", "", "x", "y", curves).draw()["data"]
    assert one["mode"] == gaps["mode"] == "lines+markers" and one["marker"]["size"] == gaps["marker"]["size"] == 8
    assert many["mode"] == "lines" and "marker" not in many


def test_names_and_values_of_a_heat_map_have_room():
    def drawn(columns, name):
        names = [f"{name}{k}" for k in range(columns)]
        chart = HeatMap("", "", {"": np.full((columns, columns), 0.5)}, names, names, digits=2)
        return chart.wide, len(chart.draw()["data"]) == 2, chart.draw()["layout"]["xaxis"]["tickangle"]

    assert drawn(4, "a") == (False, True, 0)
    # Eight layers, whose names overlapped: "layer3.0" beside "layer3.1".
    assert drawn(8, "layer3.") == (False, True, -45)
    # Values of twelve collide in half of the page, of forty also in the whole.
    assert drawn(12, "h.") == (True, True, 0)
    assert drawn(40, "h.") == (True, False, -45)


def _placed(drawing, axis=""):
    """All points of a drawing, the ends of both axes, and how many points lie at the edge."""
    traces = [t for t in drawing["data"] if t.get("xaxis", "x") == f"x{axis}"]
    points = [(x, y) for t in traces for x, y in zip(t["x"], t["y"], strict=True) if x is not None]
    edge = sum(len(t["x"]) for t in traces if t.get("meta") == EDGE)
    return points, [drawing["layout"][f"{d}axis{axis}"].get("range") for d in "xy"], edge


def test_outliers_do_not_squash_a_scatter(rng):
    x, y = rng.normal(size=(2, 500))
    x[:2], y[3] = (1e4, -300), 1e5
    points, (across, up), edge = _placed(
        Scatter("", "", "x", "y", {"a": (x[:400], y[:400]), "b": (x[400:], y[400:])}).draw()
    )
    assert edge == 3 and len(points) == 500
    assert all(across[0] < a < across[1] and up[0] < b < up[1] for a, b in points)
    # The middle of the points has at least half of either axis.
    for ends, values in ((across, x), (up, y)):
        low, high = np.quantile(values, [0.01, 0.99])
        assert high - low > 0.4 * (ends[1] - ends[0])
    # In a panel too; one without outliers keeps its own axes.
    panels = Panels("", "", [Cloud("far", {"": (x, y)}), Cloud("near", {"": (x[10:], y[10:])})], 2).draw()
    assert _placed(panels)[2] == 3 and _placed(panels)[1] == [across, up]
    assert _placed(panels, "2")[1:] == ([None, None], 0)
    assert panels["layout"]["showlegend"]


def test_clouds_that_are_merely_wide_are_drawn_whole(rng):
    for x in (
        rng.normal(size=2000),
        rng.uniform(size=400),
        np.repeat([0.0, 1.0], 60),
        np.zeros(90),
        np.arange(9.0) ** 9,
    ):
        drawing = Scatter("", "", "x", "y", {"a": (x, x)}).draw()
        assert len(drawing["data"]) == 1 and "range" not in drawing["layout"]["xaxis"]
    # A curve may lead to the point that lies far away.
    far = np.append(rng.normal(size=99), 1e6)
    assert "range" not in Scatter("", "", "x", "y", {"a": (far, far)}, {"theory": (far, far)}).draw()["layout"]["xaxis"]
