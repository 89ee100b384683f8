"""Figures of experiments: a line for each cell, a panel for each pair, matrices side by side, points with curves."""

from nearid.lab.framework.figures import Dots, HeatMaps, ImageGrid, Scatter, ScatterMatrix
from nearid.lab.framework.plots import drawn, training


def test_a_line_for_each_cell_and_a_legend_for_each_row(result):
    lines = training(result, result.experiment.curves[0])["data"]
    assert len(lines) == 6 and sum(line["showlegend"] for line in lines) == 2
    assert len({line["line"]["color"] for line in lines}) == 2
    curve = result.cells[1].data["curves"]["walk"]
    assert any(line["y"] == curve["y"] for line in lines)


def test_a_scatter_matrix_pairs_every_column_with_every_other():
    made = drawn(ScatterMatrix("t", "c", {"a": [1, 2], "b": [3, 4], "c": [5, 6]}, {"u": [7, 8], "v": [9, 10]}))
    panels = [(d["x"], d["y"], d["xaxis"], d["yaxis"]) for d in made["data"]]
    assert panels[0] == ([1, 2], [7, 8], "x", "y") and panels[5] == ([5, 6], [9, 10], "x6", "y6") and len(panels) == 6
    assert made["layout"]["xaxis4"]["title"]["text"] == "a" and made["layout"]["yaxis4"]["title"]["text"] == "v"
    assert made["layout"]["xaxis"]["title"]["text"] == "" and made["layout"]["yaxis2"]["title"]["text"] == ""


def test_heat_maps_share_a_scale():
    made = drawn(HeatMaps("t", "c", {"before": [[0.1, 0.2]], "after": [[0.3, 1.0]]}, ["r"], ["c1", "c2"]))
    assert [d["z"] for d in made["data"]] == [[[0.1, 0.2]], [[0.3, 1.0]]]
    assert {(d["zmin"], d["zmax"]) for d in made["data"]} == {(0, 1)}
    assert [d["showscale"] for d in made["data"]] == [False, True]
    assert [a["text"] for a in made["layout"]["annotations"]] == ["before", "after"]


def test_a_plot_keeps_its_height_whatever_its_legend_takes():
    def plot(groups):
        layout = drawn(Scatter("t", "c", "x", "y", {name: ([0], [0]) for name in groups}, {}))["layout"]
        return layout["height"] - layout["margin"]["t"] - layout["margin"]["b"], layout["margin"]["b"]

    few, many = plot(["a", "b"]), plot([f"sphere, normal marginal, setting {k}" for k in range(16)])
    # Four rows of three and a rest, against one row.
    assert few[0] == many[0] == 340 and many[1] - few[1] >= 4 * 20


def test_names_of_rows_stand_beside_the_first_panel_alone():
    made = drawn(HeatMaps("t", "c", {"a": [[1], [0]], "b": [[0], [1]]}, ["long name", "other"], ["c"]))["layout"]
    assert made["yaxis"]["showticklabels"] and not made["yaxis2"]["showticklabels"]
    tall = drawn(HeatMaps("t", "c", {"a": [[1]] * 40}, [f"row {k}" for k in range(40)], ["c"]))["layout"]
    assert tall["height"] - made["height"] >= 40 * 20 - 300


def test_a_picture_lies_under_the_names_of_its_rows_and_columns():
    made = drawn(ImageGrid("t", "c", "data:image/png;base64,AAAA", ["original", "found"], ["a", "b", "c"]))
    layout = made["layout"]
    (image,) = layout["images"]
    assert image["source"].endswith("AAAA") and (image["sizex"], image["sizey"]) == (3, 2)
    assert (layout["xaxis"]["range"], layout["xaxis"]["tickvals"]) == ([0, 3], [0.5, 1.5, 2.5])
    # The first row is on top.
    assert layout["yaxis"]["range"] == [2, 0] and layout["yaxis"]["ticktext"] == ["original", "found"]


def test_a_scatter_has_points_and_curves():
    groups = {f"leak {k}": ([1.0, 1.1], [0.0, 0.2]) for k in range(9)}
    made = drawn(Scatter("t", "c", "L", "error", groups, {"fitted": ([1.0, 2.0], [0.0, 1.0])}))
    *points, curve = made["data"]
    assert [d["name"] for d in points] == list(groups) and {d["mode"] for d in points} == {"markers"}
    assert len({(d["marker"]["color"], d["marker"]["symbol"]) for d in points}) == 9
    assert (curve["mode"], curve["name"], curve["x"], curve["y"]) == ("lines", "fitted", [1.0, 2.0], [0.0, 1.0])
    assert made["layout"]["xaxis"]["title"]["text"] == "L" and made["layout"]["yaxis"]["title"]["text"] == "error"


def test_dots_stand_on_the_line_of_their_row():
    nan = float("nan")
    groups = {"rigid": [(0.2, 0.1, 0.4), (nan, nan, nan)], "linear": [(0.1, nan, nan), (0.3, 0.25, 0.35)]}
    made = drawn(Dots("t", "c", "error", ["first pair", "second pair"], groups))
    rigid, linear = made["data"]
    assert (rigid["y"], rigid["x"]) == (["first pair"], [0.2])
    assert rigid["error_x"]["array"] == [0.2] and rigid["error_x"]["arrayminus"] == [0.1]
    # What has no interval has bars of no length.
    assert linear["y"] == ["first pair", "second pair"] and linear["error_x"]["array"] == [0.0, 0.05]
    layout = made["layout"]
    assert layout["xaxis"]["title"]["text"] == "error" and layout["yaxis"]["autorange"] == "reversed"


def test_points_with_names_tell_them():
    points = {"one": ([0.0, 1.0, 2.0], [0.0, 1.0, 2.0]), "two": ([0.0], [1.0])}
    one, two = drawn(Scatter("t", "c", "x", "y", points, {}, {"one": ["a", "b", "c"]}, 2))["data"]
    assert one["customdata"] == ["a", "b", "c"] and one["text"] == ["a", "b"] and one["mode"] == "markers+text"
    assert "customdata" not in two and two["mode"] == "markers"
    assert "text" not in drawn(Scatter("t", "c", "x", "y", points, {}, {"one": ["a", "b", "c"]}))["data"][0]
