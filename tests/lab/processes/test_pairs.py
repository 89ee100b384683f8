"""Pairs: marginals and conditionals, stored latents, and what is said about the theorems."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import ive

from nearid.base.errors import InputError
from nearid.lab.processes.mixing import draw_mixing
from nearid.lab.processes.noise import GeneralisedNormal, Laplace, Normal, VonMisesFisher
from nearid.lab.processes.pairs import PairProcess, StoredPairs
from nearid.lab.processes.spaces import Box, Sphere, Unbounded, violated

PROCESSES = [
    PairProcess(Sphere(4), "uniform", VonMisesFisher(10)),
    PairProcess(Sphere(4), Normal(1.0), Laplace(0.05)),
    PairProcess(Box(4), "uniform", Normal(0.05)),
    PairProcess(Box(4, -1, 1), Laplace(0.5), GeneralisedNormal(0.05, 3)),
    PairProcess(Unbounded(4), Laplace(1.0), Normal(1.0)),
]


def names(assumptions):
    return {a.name for a in violated(assumptions)}


@pytest.mark.parametrize("process", PROCESSES, ids=lambda p: f"{p.space.label}, {p.conditional.label}")
def test_pairs_have_their_shape_stay_inside_and_repeat(process):
    z, positive = process.pairs(200, np.random.default_rng(1))
    assert z.shape == positive.shape == (200, 4) and not np.array_equal(z, positive)
    for points in (z, positive):
        if isinstance(process.space, Sphere):
            np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-12)
        if isinstance(process.space, Box):
            assert process.space.low <= points.min() and points.max() <= process.space.high
    again, other = (process.pairs(200, np.random.default_rng(seed)) for seed in (1, 2))
    assert np.array_equal((z, positive), again) and not np.array_equal((z, positive), other)
    np.testing.assert_array_equal(process.sample(200, np.random.default_rng(1)), z)


def test_positives_on_the_sphere_have_the_cosine_of_their_kappa(rng):
    z, positive = PROCESSES[0].pairs(20_000, rng)
    assert np.sum(z * positive, axis=1).mean() == pytest.approx(ive(2, 10) / ive(1, 10), abs=0.003)
    # With a uniform marginal positives are uniform too.
    assert stats.kstest(positive[:, 0] ** 2, stats.beta(0.5, 1.5).cdf).pvalue > 1e-3


def test_positives_in_the_box_are_cut_off_noise(rng):
    z, positive = PROCESSES[2].pairs(20_000, rng)
    assert stats.kstest(z.ravel(), stats.uniform.cdf).pvalue > 1e-3
    # The place of each positive in its own law is uniform.
    law = stats.truncnorm(-z / 0.05, (1 - z) / 0.05, loc=z, scale=0.05)
    assert stats.kstest(law.cdf(positive).ravel(), stats.uniform.cdf).pvalue > 1e-3


def test_marginal_noise_lies_about_the_centre(rng):
    assert PROCESSES[1].sample(5_000, rng).mean(axis=0)[0] > 0.3
    z = PROCESSES[3].sample(20_000, rng)[:, 0]
    law = stats.laplace(scale=0.5)
    assert stats.kstest(z, lambda t: (law.cdf(t) - law.cdf(-1)) / (law.cdf(1) - law.cdf(-1))).pvalue > 1e-3
    assert stats.kstest(PROCESSES[4].sample(20_000, rng)[:, 0], stats.laplace.cdf).pvalue > 1e-3


def test_observations_go_through_the_mixing(rng):
    mixing = draw_mixing(4, 3, rng, draws=50)
    process = PairProcess(Box(4), "uniform", Normal(0.05), mixing)
    z = process.sample(50, rng)
    x = process.observe(z)
    assert x.dtype == np.float64
    np.testing.assert_allclose(mixing.inverse(x), z, atol=1e-10)
    small = process.observe(z, np.float32)
    assert small.dtype == np.float32
    np.testing.assert_array_equal(small, x.astype(np.float32))
    np.testing.assert_array_equal(PROCESSES[2].observe(z), z)


def test_the_matching_similarity():
    assert [p.similarity for p in PROCESSES] == ["dot", None, 2.0, 3, 2.0]


def test_matched_processes_violate_nothing():
    assert not names(PROCESSES[0].assumptions(temperature=0.1))
    assert names(PROCESSES[0].assumptions()) == {"matching conditional"}
    assert not names(PairProcess(Box(3), "uniform", Laplace(0.05)).assumptions())
    assert not names(PairProcess(Box(3), "uniform", GeneralisedNormal(0.05, 3)).assumptions(3))


@pytest.mark.parametrize(
    ("process", "similarity", "expected"),
    [
        (PROCESSES[1], None, {"uniform marginal", "matching conditional"}),
        (PROCESSES[2], None, {"exponent other than 2"}),
        (PROCESSES[2], 1.0, {"matching conditional"}),
        (PROCESSES[2], "dot", {"sphere", "matching conditional"}),
        (PROCESSES[3], None, {"uniform marginal"}),
        (PROCESSES[4], None, {"bounded convex body", "uniform marginal", "exponent other than 2"}),
        (PROCESSES[0], 3.0, {"bounded convex body", "matching conditional"}),
        (PairProcess(Sphere(3), "uniform", VonMisesFisher(0)), None, {"matching conditional"}),
        (PairProcess(Box(3), "uniform", GeneralisedNormal(1, 0.5)), None, {"exponent other than 2"}),
    ],
)
def test_what_is_violated_is_named(process, similarity, expected):
    found = process.assumptions(similarity)
    assert names(found) == expected
    assert "injective mixing" in {a.name for a in found} and all(a.needed and a.note for a in found)


def test_processes_that_cannot_be_are_told(rng):
    with pytest.raises(InputError, match=r"R\^3 has no uniform distribution"):
        PairProcess(Unbounded(3), "uniform", Normal(1))
    with pytest.raises(InputError, match="is defined on the sphere, not in the box"):
        PairProcess(Box(3), "uniform", VonMisesFisher(1))
    with pytest.raises(InputError, match="The marginal is 'cauchy'"):
        PairProcess(Box(3), "cauchy", Normal(1))
    with pytest.raises(InputError, match="The marginal is VonMisesFisher"):
        PairProcess(Sphere(3), VonMisesFisher(1), VonMisesFisher(1))
    with pytest.raises(InputError, match="takes 2 latents, but the space has 3"):
        PairProcess(Box(3), "uniform", Normal(1), draw_mixing(2, 1, rng, draws=5))
    with pytest.raises(InputError, match="size is 0"):
        PROCESSES[0].pairs(0, rng)
    with pytest.raises(InputError, match="exponent of the similarity is -1"):
        PROCESSES[0].assumptions(-1.0)


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
