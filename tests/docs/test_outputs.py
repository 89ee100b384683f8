"""Outputs are compared: words exactly, numbers nearly, as far as their digits are shown."""

import pytest
from outputs import difference, picture_difference

SHOWN = """
╭── a.npy ──╮
│ The same up to a rigid motion, epsilon 0.51 [0.50, 0.53] of 1,000 rows │
 group    error
 ───────
 rigid    0.510
 linear  -0.002
"""


def changed(old, new):
    assert old in SHOWN
    return SHOWN.replace(old, new)


@pytest.mark.parametrize(
    "printed",
    [
        SHOWN,
        changed("0.51 [0.50", "0.5102 [0.4962"),
        changed("1,000", "1,019"),
        changed("-0.002", "-0.001"),
        changed(" rigid    0.510", " rigid          0.519   "),
        changed("───────", "────"),
    ],
)
def test_outputs_agree_within_tolerance(printed):
    assert difference(SHOWN, printed) is None


@pytest.mark.parametrize(
    "printed",
    [
        changed("rigid motion", "linear map"),
        changed("0.53]", "0.55]"),
        changed("1,000", "1,021"),
        changed("-0.002", "0.000"),
        changed(" rigid    0.510\n", ""),
        changed(" linear ", " ica 0.3\n linear "),
        SHOWN + "! an alert\n",
        changed("error", ""),
        "",
    ],
)
def test_outputs_that_differ_are_found(printed):
    assert difference(SHOWN, printed)


def test_three_dots_stand_for_any_lines():
    dotted = changed(" group    error\n", "...\n")
    assert difference(dotted, SHOWN) is None
    assert difference("...\n rigid 0.510\n...\n", SHOWN) is None
    assert difference("...", SHOWN) is None
    assert "rigid 0.6" in difference("...\n rigid 0.6\n...\n", SHOWN)
    # In their order, and none of them twice.
    assert difference("...\n linear -0.002\n...\n rigid 0.510\n...", SHOWN)
    assert difference("...\n rigid 0.510\n...\n rigid 0.510\n...", SHOWN)
    assert difference("...\n rigid 0.510\n linear -0.002", "rigid 0.510\n linear 5")
    assert difference("a\n...\na", "a")


@pytest.mark.parametrize(
    ("stored", "printed", "agree"),
    [
        ("R2 0.500 [0.4, 0.6]", "R2   0.505 [0.4, 0.6]", True),
        ("R2 0.500", "R2 0.52", False),
        ("n = 10,000", "n = 10,150", True),
        ("n = 10,000", "n = 11,000", False),
        ("layer2 5.1.2", "layer3 5.1.2", False),
        ("a map", "no map", False),
        ("a\n──\nb", "a\n────\nb", True),
        ("a\nb", "a", False),
        ("-0.001", "-0.000", True),
        ("-0.001", "0.001", False),
        ("epsilon 0.004", "epsilon 0.005", True),
        ("epsilon 0.004", "epsilon 0.008", False),
        ("epsilon 0.04", "epsilon 0.05", True),
        ("epsilon 0.04", "epsilon 0.06", False),
        ("by chance 6.0e-04", "by chance 6.1e-04", True),
        ("by chance 6.0e-04", "by chance 9.0e-04", False),
        ("misfit 9.9e-16", "misfit 2e-15", True),
        ("3 of 8 runs", "4 of 8 runs", False),
        ("after 99.5%.", "after 99.7%.", True),
        ("\u22120.51", "-0.51", True),
        ("\u22120.51", "0.51", False),
    ],
)
def test_words_are_compared_exactly_and_numbers_nearly(stored, printed, agree):
    assert (difference(stored, printed) is None) == agree


def test_pictures_are_compared_by_size_and_words():
    stored = '<svg viewBox="0 0 720 300"><text x="1"><tspan>R2</tspan><tspan>0.510</tspan></text><title>a</title></svg>'
    assert picture_difference(stored, stored.replace('x="1"', 'x="2"').replace("0.510", "0.511")) is None
    assert "R2 0.610" in picture_difference(stored, stored.replace("0.510", "0.610"))
    assert "printed is\n  b" in picture_difference(stored, stored.replace(">a<", ">b<"))
    assert "0 0 720 310" in picture_difference(stored, stored.replace("720 300", "720 310"))
    assert "not printed: a" in picture_difference(stored, stored.replace("<title>a</title>", ""))
