"""Rows that repeat others."""

import numpy as np
import pytest

from nearid.repeats import pair_traits, repeated_rows


@pytest.mark.parametrize("size", [1.0, 1e-308, 1e-310, 5e-324, 1e307])
def test_rows_of_any_size_have_traits_of_their_own(size, rng):
    """Denormal columns overflowed where their spread was divided by."""
    x = np.round(rng.normal(size=(200, 3)), 2) * size
    with np.errstate(all="raise", under="ignore"):
        found = pair_traits(x, x)
    assert np.isfinite(found).all()
    copies = pair_traits(np.vstack([x, x[:20]]), np.vstack([x, x[:20]]))
    if size != 5e-324:
        assert not repeated_rows(found) and repeated_rows(copies)
