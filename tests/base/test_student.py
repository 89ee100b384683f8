"""Quantiles of Student's t, beside scipy's."""

import math

import pytest
from hypothesis import given, strategies as st
from scipy.special import stdtrit
from scipy.stats import t

from nearid.base.student import NEARLY_NORMAL, student


@given(st.floats(1, NEARLY_NORMAL), st.floats(0.01, 0.9999))
def test_it_is_scipys(freedom, confidence):
    assert student(freedom, confidence) == pytest.approx(float(stdtrit(freedom, (1 + confidence) / 2)), rel=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_one_and_two_degrees_of_freedom_have_closed_forms(confidence):
    assert student(1, confidence) == pytest.approx(math.tan(math.pi / 2 * confidence), rel=1e-12)
    assert student(2, confidence) == pytest.approx(confidence * math.sqrt(2 / (1 - confidence**2)), rel=1e-12)


def test_many_degrees_of_freedom_join_the_normal_distribution():
    assert student(NEARLY_NORMAL + 1, 0.95) == pytest.approx(student(NEARLY_NORMAL, 0.95), abs=1e-5)
    assert student(math.inf, 0.95) == pytest.approx(1.959963984540054, rel=1e-12)


@pytest.mark.parametrize("freedom", [1.0, 3.7, 999.0, 1001.0, 1e5, math.inf])
def test_the_expansion_is_close_enough(freedom):
    assert student(freedom, 0.95) == pytest.approx(t.ppf(0.975, freedom), abs=2e-5)
    assert student(freedom, 0.999) == pytest.approx(t.ppf(0.9995, freedom), abs=5e-5)
