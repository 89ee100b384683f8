"""Words that errors share."""

import numpy as np
import pytest

from nearid.base.errors import type_of


@pytest.mark.parametrize(
    ("value", "words"),
    [(3, "an int"), (np.zeros(2), "an ndarray"), (None, "None"), ({}, "a dict"), (np.uint8(3), "a uint8")],
)
def test_a_type_has_its_article(value: object, words: str) -> None:
    assert type_of(value) == words
