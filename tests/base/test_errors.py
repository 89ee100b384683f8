"""Words that errors share."""

import numpy as np
import pytest

from nearid.base.errors import near_names, type_of, unknown


@pytest.mark.parametrize(
    ("value", "words"),
    [(3, "an int"), (np.zeros(2), "an ndarray"), (None, "None"), ({}, "a dict"), (np.uint8(3), "a uint8")],
)
def test_a_type_has_its_article(value: object, words: str) -> None:
    assert type_of(value) == words


@pytest.mark.parametrize(
    ("wanted", "known", "near"),
    [
        ("MOA", ["moa", "MOB"], ["moa"]),
        ("dmso", ["DMSO", "demo"], ["DMSO"]),
        ("0.0", ["0", "0.03", "0.3"], ["0"]),
        ("1e3", ["1000", "10"], ["1000"]),
        ("Plat", ["plate", "well"], ["plate"]),
        ("moa", ["moa ", "week"], ["moa "]),
        ("nonsense", ["plate", "well"], []),
    ],
)
def test_names_that_differ_by_case_or_are_the_same_number_come_first(wanted, known, near):
    assert near_names(wanted, known) == near
    assert (f"Did you mean {near[0]}?" in unknown("column", wanted, known)) if near else True
