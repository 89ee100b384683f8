import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import mutual_info_score

import nearid
from nearid.base.errors import InputError
from nearid.measures.factors import open_factors
from nearid.measures.mig import gaps, mig


def test_a_small_table_by_hand():
    u = np.array([0, 0, 1, 1])[:, None]
    z = np.array([[0, 0], [0, 0], [1, 0], [1, 1]])
    found = mig(z, u, bins=2)
    # The first latent is the factor; the second tells it but for one row: H(1/4, 3/4) - H(1/2)/2 nats.
    second = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75)) - np.log(2) / 2
    np.testing.assert_allclose(found.matrix[:, 0], [1, second / np.log(2)])
    assert found.value == pytest.approx(1 - second / np.log(2))


def test_it_is_the_definition(rng):
    u = rng.integers(0, 4, size=(800, 2))
    z = u @ rng.normal(size=(2, 3)) + 0.1 * rng.normal(size=(800, 3))
    cut = [np.digitize(column, np.histogram(column, 20)[1][:-1]) for column in z.T]
    table = np.array([[mutual_info_score(a, b) / mutual_info_score(b, b) for b in u.T] for a in cut])
    ordered = np.sort(table, axis=0)
    found = mig(z, u)
    np.testing.assert_allclose(found.matrix, table, atol=1e-12)
    np.testing.assert_allclose(found.per_factor, ordered[-1] - ordered[-2], atol=1e-12)


@given(seed=st.integers(0, 1000))
def test_permutations_signs_scales_and_shifts_change_nothing(seed):
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(300, 2))
    z = u @ rng.normal(size=(2, 3)) + rng.normal(size=(300, 3))
    moved = (z * [4, 0.5, 2])[:, rng.permutation(3)]
    assert mig(moved, u[:, ::-1]).value == pytest.approx(mig(z, u).value, abs=1e-12)
    # A value at the edge of a bin may change sides.
    assert mig(-z, u + 5).value == pytest.approx(mig(z, u).value, abs=0.02)


def test_sources_are_near_one_rotations_and_noise_near_nothing(rng):
    u = rng.integers(0, 5, size=(5000, 2))
    half = np.array([[1, -1], [1, 1]]) / np.sqrt(2)
    assert mig(u * [-3, 2.0], u).value > 0.99
    assert mig(u @ half, u).value < 0.1
    assert mig(rng.normal(size=(5000, 6)), u).value < 0.01


def test_circular_factors_are_binned_around_the_circle(rng):
    angle = rng.uniform(0, 360, 4000)
    z = np.column_stack([angle, rng.normal(size=4000)])
    wrapped = open_factors({"a": angle + 360 * rng.integers(0, 5, 4000)}, periods={"a": 360})
    assert mig(z, wrapped).value > 0.95


def test_few_rows_and_one_latent_are_told(rng):
    found = mig(rng.normal(size=(100, 1)), rng.normal(size=(100, 1)))
    assert [alert.code for alert in found.alerts] == ["few_rows", "one_latent"]
    assert gaps(np.array([[0.5, 0.2]]))[0].tolist() == [0.5, 0.2]


def test_constant_latents_tell_nothing(rng):
    found = mig(np.ones((500, 2)), rng.integers(0, 2, size=(500, 1)))
    assert found.value == 0 and not found.matrix.any()
    assert [alert.code for alert in found.alerts] == ["constant_latents"]


def test_refused(rng):
    with pytest.raises(InputError, match=r"bins is 1, .*at least 2"):
        mig(rng.normal(size=(9, 2)), rng.normal(size=(9, 2)), bins=1)


@pytest.mark.parametrize("measure", [nearid.mig, nearid.modularity, nearid.infomec, nearid.explicitness])
def test_more_bins_than_rows_are_refused(rng, measure):
    with pytest.raises(InputError, match="bins must be at most 50"):
        measure(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), bins=10**9)
