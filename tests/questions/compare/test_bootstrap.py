"""Bootstrap intervals against theory, for few rows and for many."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from nearid.questions.compare.bootstrap import bootstrap, interval


@pytest.mark.parametrize("n", [300, 50_000])
def test_the_spread_of_replicates_is_the_standard_error(rng, n):
    errors = rng.exponential(size=(2, n))
    found = bootstrap(errors, np.full(n, 3.0), 0)
    np.testing.assert_allclose(found.error.mean(axis=0), errors.mean(axis=1), rtol=0.02)
    np.testing.assert_allclose(found.error.std(axis=0), errors.std(axis=1) / np.sqrt(n), rtol=0.15)
    np.testing.assert_allclose(found.unexplained.mean(axis=0), (errors**2).mean(axis=1) / 9, rtol=0.05)


def test_replicates_are_paired(rng):
    errors = rng.exponential(size=500)
    found = bootstrap(np.stack([errors, errors + 1]), np.ones(500), 0)
    np.testing.assert_allclose(found.error[:, 1] - found.error[:, 0], 1)


def test_huge_units(rng):
    errors = rng.exponential(size=(1, 100))
    np.testing.assert_allclose(
        bootstrap(errors * 1e200, np.full(100, 1e200), 0).unexplained, bootstrap(errors, np.ones(100), 0).unexplained
    )


def test_interval_is_central():
    assert interval(np.arange(1001) / 1000) == pytest.approx((0.025, 0.975))


def test_threads_of_blas_change_no_digit(rng):
    errors, spread = rng.exponential(size=(3, 20_000)), rng.exponential(size=20_000)
    found = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            found.append(bootstrap(errors, spread, 0))
    for other in found[1:]:
        np.testing.assert_array_equal(other.error, found[0].error)
        np.testing.assert_array_equal(other.unexplained, found[0].unexplained)
