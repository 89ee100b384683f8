"""The second pass: errors by blocks and threads are those of whole arrays."""

import numpy as np
import pytest

import nearid.engines.local as local
from nearid import compare


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_change_nothing(rng, monkeypatch, dtype):
    x = rng.normal(size=(3000, 7)).astype(dtype)
    y = (x @ rng.normal(size=(7, 7)) + rng.normal(size=(3000, 7))).astype(dtype)
    whole = compare(x, y)
    monkeypatch.setattr(local, "BLOCK_BYTES", 1)
    cut = compare(x, y)
    for name, g in whole.groups.items():
        e = cut.groups[name].epsilon
        assert (e.mean, e.max) == pytest.approx((g.epsilon.mean, g.epsilon.max), rel=1e-6)
    assert cut.similarity.cka == pytest.approx(whole.similarity.cka, rel=1e-6)
    assert cut.diameter.lower == pytest.approx(whole.diameter.lower, rel=1e-12)


def test_inputs_are_left_as_they_are(rng):
    x, y = rng.normal(size=(500, 3)) + 5, rng.normal(size=(500, 3))
    before = x.copy(), y.copy()
    compare(x, y, in_sample=True)
    np.testing.assert_array_equal(x, before[0])
    np.testing.assert_array_equal(y, before[1])


def test_mixed_precision_uses_the_higher(rng):
    x = rng.normal(size=(500, 3)).astype(np.float32)
    found = compare(x, x.astype(np.float64) * 2 + 1)
    assert found.groups["permutation"].epsilon.max < 1e-12
