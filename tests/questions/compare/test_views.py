"""What the report draws."""

import numpy as np

from nearid import compare


def test_views_are_small_and_consistent(rng):
    x = rng.laplace(size=(5000, 100))
    order = rng.permutation(100)
    v = compare(x, -2 * x[:, order] + 1, permutations=1).views
    assert v.correlation.shape == (64, 64) and len(v.matched) == 64
    np.testing.assert_allclose(np.diag(v.correlation), 1)
    assert all(order[t] == s for s, t in v.matched)
    assert all(c.sum() == 5000 for c in v.epsilon_counts.values())
    np.testing.assert_allclose(v.spectrum_x.sum(), 1)
    assert v.overlay["rigid"].shape == (800, 2)
    np.testing.assert_allclose(v.overlay["permutation"], v.overlay["target"], atol=1e-9)


def test_one_column_is_drawn_on_a_line(rng):
    x = rng.normal(size=(50, 1))
    v = compare(x, 3 * x, permutations=1).views
    assert v.overlay["target"].shape == (50, 2) and not v.overlay["target"][:, 1].any()
