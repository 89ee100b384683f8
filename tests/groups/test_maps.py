"""Maps: units, precision, and both kinds the same map."""

import numpy as np
import pytest

from nearid.groups.fits import fit_permutation, fit_rigid
from nearid.groups.maps import apply
from nearid.moments import PairMoments


@pytest.mark.parametrize("fit", [fit_permutation, fit_rigid])
def test_a_rescaled_map_acts_on_rescaled_rows(rng, fit):
    x, y = rng.normal(size=(40, 3)), rng.normal(size=(40, 3))
    fitted = fit(PairMoments.of(x, y))
    small = fitted.rescaled(np.full(3, 4.0), 2.0, np.dtype(np.float32))
    turned = small.turn((x / 4.0).astype(np.float32))
    assert turned.dtype == np.float32
    np.testing.assert_allclose(turned * 2.0, fitted.turn(x), rtol=1e-5, atol=1e-5)


def test_apply_agrees_with_the_matrix(rng):
    x, y = rng.normal(size=(40, 3)) + 5, rng.normal(size=(40, 4))
    for fit in (fit_permutation, fit_rigid):
        f = fit(PairMoments.of(x, y))
        np.testing.assert_allclose(apply(f, x), (x - f.source_centre) @ f.matrix + f.target_centre, atol=1e-12)
