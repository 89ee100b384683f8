"""Patterns of dotted names."""

import pytest

from nearid.arrays.names import chosen, is_exact, matches, nearest, patterns_of
from nearid.base.errors import InputError

NAMES = ["conv1", "layer1.0", "layer1.0.conv1", "layer1.1", "layer2.0", "head.layer1"]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("layer1.*", ["layer1.0", "layer1.1"]),
        ("layer?.0", ["layer1.0", "layer2.0"]),
        ("layer1.**", ["layer1.0", "layer1.0.conv1", "layer1.1"]),
        ("**.conv1", ["conv1", "layer1.0.conv1"]),
        ("*", ["conv1"]),
        ("**", NAMES),
        ("layer[2-9].*", ["layer2.0"]),
        ("conv1", ["conv1"]),
    ],
)
def test_stars_stay_within_a_part_and_two_span_parts(pattern, found):
    assert chosen("m", pattern, NAMES) == found
    assert is_exact(pattern) == (pattern == "conv1")


def test_what_matches_nothing_is_told_with_near_names():
    with pytest.raises(InputError, match=r"The net has nothing named 'layer1\.9' .*Did you mean 'layer1\."):
        chosen("The net", "layer1.9", NAMES)
    with pytest.raises(InputError, match=r"nothing named 'layer9\.\*' .*Did you mean 'layer[12]\.\*'"):
        chosen("The net", "layer9.*", NAMES)
    assert not matches("layer1", "layer1.0") and not matches("layer1.0.conv1.*", "layer1.0.conv1")


def test_patterns_as_text_or_list():
    assert patterns_of(" a.*, b ") == ["a.*", "b"] and patterns_of(["a,b"]) == ["a,b"] and patterns_of(None) is None
    for nothing in ("", ",", []):
        with pytest.raises(InputError, match="No layer is given"):
            patterns_of(nothing)


def test_the_nearest_names_do_not_depend_on_case():
    assert nearest("MOA", ["plate", "moa"]) == "Did you mean 'moa'?"
    assert nearest("0.0", ["0.03", "0"]) == "Did you mean '0'?"
