"""Hoyer's sparsity against its closed forms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nearid.measures.sparsity import hoyer


@pytest.mark.parametrize("d", [2, 7, 384])
def test_one_of_all_and_all_alike(d):
    assert hoyer(np.eye(d)[0]) == pytest.approx(1)
    assert hoyer(np.full(d, 1 / d)) == pytest.approx(0, abs=1e-12)


def test_m_equal_shares_of_d():
    # (sqrt(d) - sqrt(m)) / (sqrt(d) - 1)
    assert hoyer([0.25] * 4 + [0] * 12) == pytest.approx((4 - 2) / (4 - 1))


@given(st.lists(st.floats(0.01, 10), min_size=2, max_size=20), st.floats(0.1, 100))
def test_a_common_factor_changes_nothing(weights, factor):
    found = hoyer(weights)
    assert -1e-9 <= found <= 1 + 1e-9
    assert hoyer(factor * np.array(weights)) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize("weights", [[0, 0, 0], [1.0]])
def test_undefined(weights):
    assert np.isnan(hoyer(weights))
