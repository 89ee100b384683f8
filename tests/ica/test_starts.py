"""Kinds of starts, and the race between them."""

import numpy as np

from nearid.ica.starts import race, several


def test_the_kinds_of_starts_take_turns(rng):
    eigenvectors = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    starts = several(5, eigenvectors, 3)
    assert [start.stage for start in starts] == ["fixed point", "fixed point", "climb", "fixed point", "climb"]
    for start in starts:
        np.testing.assert_allclose(start.rotation @ start.rotation.T, np.eye(5), atol=1e-12)
    # The first is near the eigenvectors, the others are anywhere, and another seed has others.
    near = [np.abs(np.diag(start.rotation @ eigenvectors.T)).min() for start in starts]
    assert near[0] > 0.5 and np.mean(near[1:]) < near[0]
    assert not np.allclose(starts[1].rotation, several(5, eigenvectors, 4)[1].rotation)
    # More starts do not change those that were there.
    np.testing.assert_array_equal(starts[2].rotation, several(3, eigenvectors, 3)[2].rotation)


class Runner:
    """A search whose contrast is known after each call."""

    def __init__(self, contrasts):
        self.contrasts, self.calls = iter(contrasts), []
        self.state = type("State", (), {"rotation": np.eye(2)})

    def advance(self, tol, gain):
        self.calls.append(gain)
        self.state.rotation = next(self.contrasts) * np.eye(2)


def test_starts_that_are_behind_are_given_up():
    runners = [Runner([1.0, 1.01]), Runner([0.9, 5.0]), Runner([0.99, 1.02])]
    searches, contrasts = race(3, lambda place: runners[place], lambda state: float(state.rotation[0, 0]), 1e-4)
    assert searches == runners
    assert [len(runner.calls) for runner in runners] == [2, 1, 2]
    np.testing.assert_allclose(contrasts, [1.01, 0.9, 1.02])
