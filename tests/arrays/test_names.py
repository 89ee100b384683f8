"""Patterns of dotted names."""

import pytest

from nearid.arrays.names import chosen, is_exact, matches, nearest, patterns_of, split_part
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


def test_names_may_hold_letters_of_patterns():
    names = ["[CLS]", "C", "heads.[CLS]", "heads.C", "/enc/layer.0/MatMul:0", "a*"]
    assert chosen("m", "[CLS]", names) == ["[CLS]"] and chosen("m", "a*", names) == ["a*"]
    assert chosen("m", "heads.[CLS]", names) == ["heads.[CLS]"] and chosen("m", "*.[CLS]", names) == names[2:4]
    assert chosen("m", "[A-D]", names) == ["C"]
    # Points and slashes separate parts; a slash in front does not matter.
    assert chosen("m", "enc/*/0/*", names) == chosen("m", "/enc.**", names) == names[4:5]


@pytest.mark.parametrize(
    ("pattern", "names", "found"),
    [
        ("lstm:1.0", ["lstm"], ("lstm", "1.0")),
        ("conv", [], ("conv", None)),
        ("a:b", ["a:b", "a"], ("a:b", None)),
        ("a:b:0", ["a:b", "a"], ("a:b", "0")),
        ("a:0", ["a:b", "a"], ("a", "0")),
        ("[CLS]:0", ["[CLS]"], ("[CLS]", "0")),
        ("*:*", ["a:b"], ("*:*", None)),
    ],
)
def test_a_part_follows_the_last_colon_that_leaves_a_name(pattern, names, found):
    assert split_part(pattern, names) == found


def test_a_colon_without_a_part_is_told():
    for names in ((), ("lstm",)):
        with pytest.raises(InputError, match="LAYER:PART"):
            split_part("lstm:", names)


def test_patterns_as_text_or_list():
    assert patterns_of(" a.*, b ") == ["a.*", "b"] and patterns_of(["a,b"]) == ["a,b"] and patterns_of(None) is None
    for nothing in ("", ",", []):
        with pytest.raises(InputError, match="No layer is given"):
            patterns_of(nothing)


def test_the_nearest_names_do_not_depend_on_case():
    assert nearest("MOA", ["plate", "moa"]) == "Did you mean 'moa'?"
    assert nearest("0.0", ["0.03", "0"]) == "Did you mean '0'?"
