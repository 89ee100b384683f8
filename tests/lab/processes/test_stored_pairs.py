"""Positive pairs among stored latents: the nearest stored one, never the latent itself."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.lab.processes.noise import Laplace, Normal
from nearid.lab.processes.spaces import Box
from nearid.lab.processes.stored_pairs import StoredPairs


@pytest.mark.parametrize("noise", [Normal(0.1), Laplace(0.4)])
def test_a_positive_is_the_nearest_other_latent_by_brute_force(noise):
    space = Box(4, -1, 1)
    latents = np.random.default_rng(0).uniform(-1, 1, (300, 4))
    first, second = StoredPairs(latents, space, noise).draw(500, np.random.default_rng(1))
    rng = np.random.default_rng(1)
    assert np.array_equal(first, rng.integers(0, 300, 500))
    wanted = space.around(latents[first], noise, rng)
    distances = np.linalg.norm(wanted[:, None] - latents, axis=2)
    distances[np.arange(500), first] = np.inf
    np.testing.assert_array_equal(second, distances.argmin(axis=1))
    assert len(set(first)) > 200 and not np.any(first == second)


def test_among_many_latents_positives_have_the_law_of_the_conditional():
    latents = np.random.default_rng(0).uniform(0, 1, (200_000, 1))
    first, second = StoredPairs(latents, Box(1), Normal(0.05)).draw(20_000, np.random.default_rng(1))
    inside = np.abs(latents[first] - 0.5) < 0.2
    steps = (latents[second] - latents[first])[inside]
    assert steps.std() == pytest.approx(0.05, rel=0.02) and abs(steps.mean()) < 0.002


def test_few_latents_spread_positives_wider_than_the_conditional():
    latents = np.random.default_rng(0).uniform(-1, 1, (2000, 10))
    first, second = StoredPairs(latents, Box(10, -1, 1), Normal(0.01)).draw(500, np.random.default_rng(1))
    assert (latents[second] - latents[first]).std() > 0.2


@pytest.mark.parametrize("latents", [np.zeros((5, 3)), np.zeros((1, 2)), np.zeros(4)])
def test_what_is_no_table_of_latents_gets_a_sentence(latents):
    with pytest.raises(InputError, match="at least two rows of 2"):
        StoredPairs(latents, Box(2), Normal(0.1))


def test_latents_outside_the_box_get_a_sentence():
    with pytest.raises(InputError, match="outside the box"):
        StoredPairs(np.full((3, 2), 1.5), Box(2), Normal(0.1)).draw(2, np.random.default_rng(0))
