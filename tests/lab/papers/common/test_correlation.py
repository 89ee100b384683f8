"""CCA of the papers beside nearid's own."""

import numpy as np

from nearid import cca
from nearid.lab.papers.common.correlation import plain_cca


def test_many_rows_have_the_cca_of_nearid(rng):
    x = rng.normal(size=(600, 4)) * [1, 10, 100, 0.1]
    y = x @ rng.normal(size=(4, 4)) + rng.normal(size=(600, 4))
    np.testing.assert_allclose(plain_cca(x, y).correlations, cca(x, y).correlations, atol=1e-9)


def test_few_rows_keep_all_directions(rng):
    x, y = rng.normal(size=(90, 12)), rng.normal(size=(90, 12))
    # All that both share are the first four principal components.
    x[:, :4] = y[:, :4] = 10 * y[:, :4]
    found = plain_cca(x, y)
    assert found.correlations.shape == (12,) and set(found.ranks) == {12}
    assert set(cca(x, y).ranks) != {12} and found.value < 0.6 < cca(x, y).value
