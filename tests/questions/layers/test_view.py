"""What a person sees of layers against layers."""

import re
from dataclasses import replace

import numpy as np
import pytest

from nearid import compare_layers
from nearid.base.estimate import Estimate
from nearid.show.page import page
from nearid.show.terminal import text


@pytest.fixture
def comparison(rng):
    z = rng.normal(size=(60, 3))
    y = {f"layer{k}": z + k for k in range(12)}
    return compare_layers({"<b>": z, "2": z**2, "dead": z * 0}, y, measures="cka,r2", permutations=3)


def test_a_heat_map_has_every_value(comparison):
    heat = comparison.view.figures[0].draw()["data"][0]
    np.testing.assert_allclose(np.array(heat["z"], float), comparison["cka"], atol=1e-4)
    assert heat["y"] == ["&lt;b&gt;", "2", "dead"] and len(heat["x"]) == 12
    # Names that look like numbers are names all the same.
    assert comparison.view.figures[0].draw()["layout"]["yaxis"]["type"] == "category"


def test_the_page_shows_every_measure_and_escapes_names(comparison):
    whole = page(comparison.view)
    assert "linear CKA, debiased" in whole and "R2 of a linear map" in whole and "constant" in whole
    assert "<b>" not in comparison._repr_html_() and "&lt;b&gt;" in comparison._repr_html_()


def test_tables_for_wide_and_narrow_terminals(comparison):
    wide, narrow = text(comparison.view, 120), text(comparison.view, 60)
    assert "11 layer11" in wide and wide.count("1.000") >= 24 and str(comparison) == wide
    assert "nearest" in narrow and max(map(len, narrow.splitlines())) <= 60
    assert "3 x 12 layers" in repr(comparison)
    z = np.random.default_rng(1).normal(size=(60, 2))
    many = compare_layers({"a": z}, {f"layer{k}": z + k for k in range(13)})
    # So many columns are on the page alone; the terminal names the nearest.
    assert "12 layer12" not in str(many) and "12 layer12" in page(many.view) and "nearest" in str(many)


def test_errors_are_drawn_the_other_way_round(rng):
    z = rng.normal(size=(60, 3))
    comparison = compare_layers({"a": z}, {"b": z + 0.1 * rng.normal(size=(60, 3)), "c": z}, measures="epsilon,r2")
    error, share = (figure.draw()["data"][0] for figure in comparison.view.figures)
    assert error["reversescale"] and error["zmax"] == pytest.approx(comparison["epsilon"].max(), abs=1e-4)
    assert not share["reversescale"] and share["zmax"] == 1
    assert "0 means full agreement" in page(comparison.view)
    assert "a of x and c of y: error of a linear map" in comparison.view.headline


def test_the_nearest_layers_are_named(rng):
    z = rng.normal(size=(60, 3))
    comparison = compare_layers({"a": z, "b": z**2}, {"c": z**2, "d": z}, measures="cka")
    cells = [[row.cells[1], round(row.cells[2], 3)] for row in comparison.view.tables[1].rows]
    assert cells == [["d", 1.0], ["c", 1.0]]
    # A layer beside itself says nothing.
    within = compare_layers({"a": z, "b": z**2, "c": 2 * z}, names=["m", "m"])
    # Both ways they are alike to the last digit.
    pair = "(a of m and c of m|c of m and a of m)"
    # Chance is named where it is above a tenth of the figure, about what it is for so few rows.
    chance = "(, where chance alone reaches 0[.]1..)?"
    assert re.fullmatch(
        f"The most similar layers are {pair}: linear CKA, debiased, 1.000{chance}", within.view.headline
    )
    assert within.best["cka"].value.low <= within.best["cka"].value.value <= within.best["cka"].value.high <= 1


def test_no_pair_is_named_most_similar_where_none_is_more_alike_than_chance(rng):
    noise = compare_layers({"a": rng.normal(size=(80, 3))}, {"b": rng.normal(size=(80, 3))}, measures="cka")
    best = noise.best["cka"]
    # Noise has a p-value below 1 in 20 in one of 20 draws: the words follow the figure.
    words = "The most similar" if best.p_value <= 0.05 else "No pair of layers is more similar than chance"
    assert noise.view.headline.startswith(words)
    lost = replace(noise, best={"cka": replace(best, p_value=0.98)}).view.headline
    assert lost.startswith("No pair of layers is more similar than chance") and lost.endswith("p = 0.98")
    clear = replace(noise, best={"cka": replace(best, value=Estimate(0.361, chance=0.35), p_value=0.01)}).view
    assert clear.headline.endswith("0.361, where chance alone reaches 0.350")


def test_intervals_are_named_where_there_are_some(rng):
    z = rng.normal(size=(80, 3))
    few, none = (compare_layers({"a": z}, {"b": 2 * z}, measures=m, permutations=3) for m in ("cka", "mcc"))
    assert few.view.tables[0].title.endswith("[95% interval]") and "Each interval" in few.view.tables[0].note
    assert "interval" not in none.view.tables[0].title + none.view.tables[0].note


def test_layers_without_variance_have_no_headline_of_numbers(rng):
    z = np.ones((30, 2))
    assert compare_layers({"a": z}, {"b": z}).view.headline == "No two layers could be compared"


def test_layers_that_are_all_alike_have_no_winner(rng):
    z = rng.normal(size=(80, 4))
    layers = {f"layer{k}": z + 1e-3 * k for k in range(3)}
    found = compare_layers(layers, {name: 2 * layer for name, layer in layers.items()}, measures="cka", permutations=19)
    assert "All 9 pairs of layers are equally similar (cka 1.000 to 1.000)" in found.view.headline
    apart = compare_layers({**layers, "other": rng.normal(size=(80, 4))}, layers, measures="cka", permutations=19)
    assert "The most similar layers are" in apart.view.headline
