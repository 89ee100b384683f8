"""Heat maps and tables of layers."""

import numpy as np
import pytest

from nearid import InputError, compare_layers
from nearid.questions.layers.page import heat_map, page
from nearid.questions.layers.table import as_text


@pytest.fixture
def found(rng):
    z = rng.normal(size=(60, 3))
    return compare_layers(
        {"<b>": z, "2": z**2, "dead": z * 0}, {f"layer{k}": z + k for k in range(12)}, measures="cka,r2"
    )


def test_a_heat_map_has_every_value(found):
    drawn = heat_map(found, "cka")["data"][0]
    np.testing.assert_allclose(np.array(drawn["z"], float), found["cka"], atol=1e-4)
    assert [name.strip() for name in drawn["y"]] == ["&lt;b&gt;", "2", "dead"] and len(drawn["x"]) == 12


def test_the_page_and_the_fragment_escape_names(found, tmp_path):
    found.save_report(tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text()
    assert text == page(found) and "linear CKA, debiased" in text and "R2 of a linear map" in text
    assert "<b>" not in found._repr_html_() and "&lt;b&gt;" in found._repr_html_()
    assert "constant" in text
    with pytest.raises(InputError, match=r"something\.html"):
        found.save_report(tmp_path / "out.npy")


def test_tables_for_wide_and_narrow_terminals(found):
    wide, narrow = as_text(found, 120), as_text(found, 60)
    assert "11 layer11" in wide and wide.count("1.000") >= 24
    assert "nearest" in narrow and max(map(len, narrow.splitlines())) <= 60
    assert str(found) == wide and "3 x 12 layers" in repr(found)


def test_errors_are_drawn_the_other_way_round(rng):
    z = rng.normal(size=(60, 3))
    found = compare_layers({"a": z}, {"b": z + 0.1 * rng.normal(size=(60, 3)), "c": z}, measures="epsilon,r2")
    error, share = (heat_map(found, name)["data"][0] for name in ("epsilon", "r2"))
    assert error["reversescale"] and error["zmax"] == pytest.approx(found["epsilon"].max(), abs=1e-4)
    assert not share["reversescale"] and share["zmax"] == 1
    assert "0 is full agreement" in page(found)


def test_the_page_names_the_nearest_layers(rng):
    z = rng.normal(size=(60, 3))
    found = compare_layers({"a": z, "b": z**2}, {"c": z**2, "d": z}, measures="cka")
    assert "Nearest: a → d (1.000), b → c (1.000)." in page(found)
