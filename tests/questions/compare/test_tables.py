"""Figures for people."""

import math

import pytest

from nearid.questions.compare.tables import number, span


@pytest.mark.parametrize(
    ("value", "shown"), [(0.12345, "0.123"), (1.0, "1.000"), (0.0, "0.000"), (2e-5, "2.0e-05"), (math.nan, "-")]
)
def test_number(value, shown):
    assert number(value) == shown


def test_span():
    assert span(0.1, 0.25) == "[0.100, 0.250]" and span(math.nan, 1) == ""
