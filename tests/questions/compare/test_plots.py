"""Figures are plain data that JSON can carry."""

import html
import json

import numpy as np
import pytest

from nearid import compare
from nearid.base.jsonable import finite
from nearid.questions.compare import plots


@pytest.mark.parametrize("name", ["ladder", "distributions", "spectra", "canonical", "matching", "overlay"])
def test_each_figure_is_json(rng, name):
    x = np.hstack([rng.normal(size=(200, 3)), np.zeros((200, 1))])
    figure = getattr(plots, name)(compare(x, rng.normal(size=(200, 2)), groups="all", in_sample=True, permutations=1))
    assert set(figure) == {"data", "layout"} and figure["data"]
    json.dumps(finite(figure), allow_nan=False)


def test_shares_of_rows_add_up(rng):
    figure = plots.distributions(compare(x := rng.normal(size=(200, 3)), x + rng.normal(size=(200, 3))))
    for curve in figure["data"]:
        assert sum(curve["y"]) == pytest.approx(1)


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
    heat = {"z": z.tolist(), "x": [f"x{k}" for k in range(23)], "y": ["a", "b"], "reversescale": is_reversed}
    text = plots.written(heat, 3)
    assert text["text"][:2] == ["0.000", "0.045"] and len(text["text"]) == 45  # what is not defined is not written
    shares = z.ravel()[:45] / 2
    cells = sample_colorscale("Viridis", list(1 - shares if is_reversed else shares))
    names = {"#000": "#000000", "#fff": "#ffffff"}
    for cell, colour in zip(cells, text["textfont"]["color"], strict=True):
        assert _contrast("#" + "".join(f"{round(v):02x}" for v in unlabel_rgb(cell)), names[colour]) >= 4.5


def test_long_names_are_broken_and_nothing_of_them_is_lost():
    name = "runs/a-long-name & more/" + 40 * "x" + "<b>.npy"
    lines = plots.wrapped(name).split("<br>")
    assert all(len(html.unescape(line)) <= 24 for line in lines) and html.unescape("".join(lines)) == name
    assert plots.wrapped("short <b>") == "short &lt;b&gt;"


def test_signs_in_a_legend_do_not_shrink_with_the_points(rng):
    found = compare(x := rng.normal(size=(50, 2)), x, permutations=1)
    assert plots.overlay(found)["layout"]["legend"]["itemsizing"] == "constant"
