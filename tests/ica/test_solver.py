"""The solver on an oracle held in memory: every stage, the same stationary points; checkpoints."""

from dataclasses import replace

import numpy as np
import pytest

from nearid.groups.fits import polar
from nearid.ica import solver
from nearid.ica.contrast import CONTRASTS


def oracle(z):
    def at(rotation, with_values=True, with_seconds=False):
        y = z @ rotation.T
        found = CONTRASTS["logcosh"].evaluate(y.copy(), True)
        products = found.g.T @ y / len(z)
        seconds = None
        if with_seconds:
            seconds = CONTRASTS["logcosh"].slope(y).T @ y**2 / len(z) - np.diag(products)[:, None]
        return solver.State(rotation, products, found.slopes / len(z), found.values / len(z), seconds)

    return at


@pytest.fixture
def white(rng):
    s = np.hstack([rng.laplace(size=(5000, 3)), rng.uniform(-1, 1, size=(5000, 3))])
    s = s - s.mean(axis=0)
    values, vectors = np.linalg.eigh(s.T @ s / len(s))
    return s @ (vectors / np.sqrt(values)), s


# With a share above 1 the climb is over at once; without gain or fall asked for, so is the fixed point.
STAGES = {
    "all": {},
    "no climb": {"CLIMB_ENDS_AT": 2.0},
    "climb only": {"CLIMB_ENDS_AT": 0.0},
    "descent only": {"CLIMB_ENDS_AT": 2.0, "STEPS_WITHOUT_FLIP": 0, "SLOW_DESCENT": 0.0, "GAIN": np.inf},
}


@pytest.mark.parametrize("stages", STAGES)
def test_every_stage_finds_the_sources(white, monkeypatch, stages):
    for name, value in STAGES[stages].items():
        monkeypatch.setattr(solver, name, value)
    z, s = white
    seen = []
    start = polar(np.random.default_rng(0).normal(size=(6, 6)))
    gaussian = CONTRASTS["logcosh"].gaussian
    found = solver.solve(
        oracle(z), start, tol=1e-7, max_passes=300, n=len(z), gaussian=gaussian, keep=lambda c: seen.append(c.stage)
    )
    assert found.converged and found.gradients[-1] <= 1e-7
    rho = np.abs(np.corrcoef(s.T, (z @ found.state.rotation.T).T)[:6, 6:])
    assert rho.max(axis=0).min() > 0.99
    np.testing.assert_allclose(found.state.rotation @ found.state.rotation.T, np.eye(6), atol=1e-9)
    assert len(seen) == len(found.gradients)
    assert ("fixed point" in seen) == (stages in ("all", "no climb")) and ("descend" in seen) == ("descent" in stages)


@pytest.mark.parametrize("stop", [1, 3, 8])
def test_a_checkpoint_goes_on_to_the_same_place(white, stop):
    z, _ = white
    start = polar(np.random.default_rng(1).normal(size=(6, 6)))
    kept, options = [], {"tol": 1e-9, "max_passes": 300, "n": len(z), "gaussian": CONTRASTS["logcosh"].gaussian}
    whole = solver.solve(oracle(z), start, **options, keep=kept.append)
    assert len(whole.gradients) > stop
    again = solver.solve(oracle(z), kept[stop - 1], **options)
    # What was kept is not touched by the passes that follow.
    assert len(kept[stop - 1].gradients) == stop
    assert again.converged and again.gradients[:stop] == pytest.approx(whole.gradients[:stop], rel=1e-6)
    np.testing.assert_allclose(again.state.rotation, whole.state.rotation, atol=1e-7)


def test_sources_lost_in_the_noise_of_a_random_start_are_found():
    rng = np.random.default_rng(0)
    n, k = 13_800, 96
    s = np.hstack([rng.laplace(size=(n, k // 2)) / np.sqrt(2), rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, k // 2))])
    s -= s.mean(axis=0)
    values, vectors = np.linalg.eigh(s.T @ s / n)
    z = s @ (vectors / np.sqrt(values)) @ np.linalg.qr(rng.normal(size=(k, k)))[0]
    found = solver.solve(oracle(z), np.eye(k), tol=1e-6, max_passes=100, n=n, gaussian=CONTRASTS["logcosh"].gaussian)
    assert found.converged and np.sum(found.signs < 0) == k // 2
    rho = np.abs(found.state.rotation @ (z.T @ s / n))
    assert rho.max(axis=1).min() > 0.95 and len(set(rho.argmax(axis=1))) == k


def test_the_gradient_is_the_derivative_along_rotations(white, rng):
    z, _ = white
    at, signs = oracle(z), np.array([1.0, 1, 1, -1, -1, -1])
    state = at(polar(rng.normal(size=(6, 6))))
    a = rng.normal(size=(6, 6))
    skew, h = a - a.T, 1e-5
    there, back = (at(solver._cayley(t * skew) @ state.rotation) for t in (h, -h))
    slope = (signs @ there.values - signs @ back.values) / (2 * h)
    assert slope == pytest.approx(np.sum(state.gradient(signs) * skew) / 2, rel=1e-5)


def test_measured_curvature_is_the_second_derivative_of_pairs(white, rng):
    z, s = white
    at, signs = oracle(z), np.array([1.0, 1, 1, -1, -1, -1])
    # A little off the sources, in their order.
    state = at(polar(np.linalg.lstsq(z, s)[0].T + 0.01 * rng.normal(size=(6, 6))), True, True)
    found = solver._curvature(state, 10**12, state.seconds, signs)
    h = 1e-3
    for i, j in [(0, 1), (0, 4), (3, 5)]:
        skew = np.zeros((6, 6))
        skew[i, j], skew[j, i] = 2 * np.tan(h / 2), -2 * np.tan(h / 2)
        there, here, back = (signs @ at(solver._cayley(t * skew) @ state.rotation).values for t in (1, 0, -1))
        assert found[i, j] == pytest.approx((there - 2 * here + back) / h**2, rel=1e-4)


def test_components_that_depend_on_each_other_need_fewer_passes_with_measured_curvature(rng):
    # Sources in two groups, each of a common size, as those of images have.
    n, k = 6000, 16
    passes = {True: 0, False: 0}
    for _ in range(4):
        s = rng.laplace(size=(n, k)) * np.exp(np.repeat(rng.normal(size=(n, 2)), k // 2, axis=1))
        s -= s.mean(axis=0)
        values, vectors = np.linalg.eigh(s.T @ s / n)
        at = oracle(s @ (vectors / np.sqrt(values)))
        first = solver.Checkpoint(polar(rng.normal(size=(k, k))), np.ones(k), [1.0], "descend")
        for measured in passes:
            found = solver.solve(
                lambda rotation, with_values, with_seconds, at=at, measured=measured: at(
                    rotation, with_values, with_seconds and measured
                ),
                first,
                tol=1e-5,
                max_passes=500,
                n=n,
                gaussian=CONTRASTS["logcosh"].gaussian,
            )
            assert found.converged
            passes[measured] += len(found.gradients)
    assert passes[True] < 0.9 * passes[False]


@pytest.mark.parametrize("most", [2, 100])
def test_second_derivatives_are_those_of_a_point_that_was_accepted(white, rng, most):
    """The first trial of a step is refused; with two passes the search ends there."""
    z, _ = white
    at, refused = oracle(z), []

    def refusing(rotation, with_values, with_seconds):
        state = at(rotation, with_values, with_seconds)
        if refused != [False]:
            return state
        refused.append(True)
        return replace(state, values=state.values + 1e3)

    first = solver.Checkpoint(polar(rng.normal(size=(6, 6))), np.ones(6), [1.0], "descend")
    gaussian = CONTRASTS["logcosh"].gaussian
    search = solver.Search(refusing, first, max_passes=most, n=len(z), gaussian=gaussian)
    search._age = solver.STEPS_OF_CURVATURE
    refused.append(False)
    search._descend()
    assert refused == [False, True] and len(search.gradients) >= 2
    np.testing.assert_array_equal(search._seconds, at(search.state.rotation, True, True).seconds)
    assert (search._age == 0) == (most > 2)


def whitened(s):
    s = s - s.mean(axis=0)
    values, vectors = np.linalg.eigh(s.T @ s / len(s))
    return s @ (vectors / np.sqrt(values))


def counted(at, sizes):
    def pass_over(rotation, with_values, with_seconds):
        sizes.append(len(rotation))
        return at(rotation, with_values, with_seconds)

    return pass_over


def test_components_at_rest_are_set_aside_and_come_back(rng):
    """Strong sources rest long before weak ones are found; the end is the same, and the last passes are of all."""
    n, k = 9000, 48
    v = rng.normal(size=(n, k // 3))
    weak = np.sign(v) * np.abs(v) ** 1.2
    z = whitened(np.hstack([rng.laplace(size=(n, k // 3)), rng.uniform(-1, 1, size=(n, k // 3)), weak]))
    gaussian, start = CONTRASTS["logcosh"].gaussian, polar(rng.normal(size=(k, k)))
    ends = []
    for aside in (False, True):
        sizes, kept = [], []
        search = solver.Search(
            counted(oracle(z), sizes),
            start,
            max_passes=300,
            n=n,
            gaussian=gaussian,
            set_aside=aside,
            keep=kept.append,
        )
        search.advance(1e-7)
        assert search.gradients[-1] <= 1e-7 and len(sizes) == len(search.gradients) == len(kept)
        assert sizes[-1] == len(search.state.rotation) == len(search.signs) == k
        assert all(c.rotation.shape == (k, k) and len(c.signs) == k for c in kept)
        for checkpoint in kept:
            np.testing.assert_allclose(checkpoint.rotation @ checkpoint.rotation.T, np.eye(k), atol=1e-8)
        ends.append(search.state.rotation)
        assert (min(sizes) < k) == aside
    assert np.abs(ends[0] @ ends[1].T).max(axis=1).min() > 0.999


def test_a_search_that_runs_out_of_passes_ends_with_all_components(rng):
    """Whichever pass is the last one."""
    gaussian = CONTRASTS["logcosh"].gaussian
    for _ in range(3):
        z = whitened(np.hstack([rng.laplace(size=(2000, 6)), rng.normal(size=(2000, 6))]))
        start = polar(np.eye(12) + 0.05 * rng.normal(size=(12, 12)))
        for most in range(1, 16):
            search = solver.Search(
                oracle(z), start, max_passes=most, n=2000, gaussian=gaussian, stage="fixed point", set_aside=True
            )
            search.advance(0.0)
            assert len(search.gradients) == most and search.state.rotation.shape == (12, 12)
            assert search.checkpoint().rotation.shape == (12, 12) and len(search.signs) == 12


def test_a_climb_within_groups_does_not_end_the_search(rng):
    """The gradient within groups may be small where that of all pairs is not."""
    n, k = 3000, 40
    z = whitened(np.hstack([rng.laplace(size=(n, k // 2)), rng.uniform(-1, 1, size=(n, k // 2))]))
    gaussian = CONTRASTS["logcosh"].gaussian
    for most in range(1, 8):
        search = solver.Search(
            oracle(z), polar(rng.normal(size=(k, k))), max_passes=most, n=n, gaussian=gaussian, groups=10
        )
        search.advance(1e-9)
        assert search.gradients[-1] == pytest.approx(search.state.relative_gradient(search.signs), rel=1e-9)


def test_a_climb_begins_within_groups(rng):
    """Only components of one group are turned into each other as long as the climb is in the noise."""
    n, k = 3000, 40
    z = whitened(np.hstack([rng.laplace(size=(n, k // 2)), rng.uniform(-1, 1, size=(n, k // 2))]))
    turn = [polar(rng.normal(size=(k // 2, k // 2))) for _ in range(2)]
    start = np.block([[turn[0], np.zeros((k // 2, k // 2))], [np.zeros((k // 2, k // 2)), turn[1]]])
    seen, gaussian = [], CONTRASTS["logcosh"].gaussian
    search = solver.Search(
        oracle(z), start, max_passes=300, n=n, gaussian=gaussian, groups=2, keep=lambda c: seen.append(c)
    )
    search.advance(1e-6)
    assert search.gradients[-1] <= 1e-6
    climbing = [c.rotation for c in seen if c.stage == "climb"]
    assert 1 < len(climbing) <= len(seen) - 2
    within = [rotation @ start.T for rotation in climbing[: solver.PASSES_IN_GROUPS]]
    assert max(np.abs(w[: k // 2, k // 2 :]).max() for w in within) < 1e-9
    # Afterwards all pairs are turned.
    assert np.abs((search.state.rotation @ start.T)[: k // 2, k // 2 :]).max() > 1e-3


def test_a_start_out_of_the_noise_needs_no_groups(white):
    z, s = white
    start = polar(np.linalg.lstsq(z, s, rcond=None)[0].T)
    gaussian = CONTRASTS["logcosh"].gaussian
    # Each component is a group of its own: nothing could move, and the search would end at once.
    search = solver.Search(oracle(z), start[::-1], max_passes=100, n=len(z), gaussian=gaussian, groups=6)
    search.advance(1e-7)
    assert len(search.gradients) > 1 and search.gradients[-1] <= 1e-7
