"""Every measure keeps what it declares."""

import numpy as np
import pytest

from nearid.measures.declarations import DECLARATIONS, load
from nearid.measures.recovery import Recovery

CHANGES = {
    "permutation": lambda z, rng: z[:, rng.permutation(z.shape[1])],
    "sign": lambda z, rng: z * rng.choice([-1, 1], z.shape[1]),
    "scale": lambda z, rng: z * 2.0 ** rng.integers(-9, 9, z.shape[1]),
    "shift": lambda z, rng: z + rng.integers(-9, 9, z.shape[1]),
    "linear": lambda z, rng: z @ (rng.normal(size=(z.shape[1],) * 2) + 4 * np.eye(z.shape[1])),
}
KEPT = [(name, change) for name, declared in DECLARATIONS.items() for change in declared.invariances]


def mixed(rng, n=240):
    """Factors of three kinds and latents that share something with each."""
    level, size, kind = rng.integers(0, 3, n), rng.normal(size=n), rng.integers(0, 2, n)
    u = np.column_stack([level, size, kind])
    z = u @ (np.eye(3, 4) + 0.3 * rng.normal(size=(3, 4))) + 0.3 * rng.normal(size=(n, 4))
    return z, {"level": level, "size": size, "kind": np.array(["a", "b"])[kind]}


@pytest.mark.parametrize("name", DECLARATIONS)
@pytest.mark.parametrize("latents", ["mixed", "noise", "constant"])
def test_values_are_in_range_and_the_matrix_has_its_shape(rng, name, latents):
    z, factors = mixed(rng)
    z = {"mixed": z, "noise": rng.normal(size=z.shape), "constant": np.ones(z.shape)}[latents]
    found, declared = load(name)(z, factors), DECLARATIONS[name]
    assert isinstance(found, Recovery) and declared.low <= found.value <= declared.high
    assert np.isfinite(found.matrix).all() and found.matrix.shape[1] == len(found.factors) == 3
    assert ("constant_latents" in [alert.code for alert in found.alerts]) == (latents == "constant")


@pytest.mark.parametrize("name, change", KEPT)
def test_declared_invariances_hold(rng, name, change):
    z, factors = mixed(rng)
    assert load(name)(CHANGES[change](z, rng), factors).value == pytest.approx(load(name)(z, factors).value, abs=1e-6)


@pytest.mark.parametrize("name", DECLARATIONS)
def test_the_order_and_origin_of_factors_do_not_matter(rng, name):
    z, factors = mixed(rng)
    moved = {key: factors[key] for key in ("kind", "size", "level")}
    moved |= {"size": moved["size"] + 8, "level": moved["level"] + 5}
    assert load(name)(z, moved).value == pytest.approx(load(name)(z, factors).value, abs=1e-6)


# Modularity does not ask how much is told: noise may be modular.
@pytest.mark.parametrize("name", [name for name in DECLARATIONS if name != "modularity"])
def test_recovered_factors_score_higher_than_noise(rng, name):
    _, factors = mixed(rng)
    truth = np.column_stack([factors["level"], factors["size"], factors["kind"] == "b"])
    found, noise = (load(name)(z, factors).value for z in (truth, rng.normal(size=truth.shape)))
    assert found > noise + 0.2 if DECLARATIONS[name].larger_is_better else found < noise - 0.2


@pytest.mark.parametrize("name", DECLARATIONS)
def test_only_declared_measures_let_latents_and_factors_change_places(rng, name):
    u = rng.normal(size=(240, 3))
    z = u @ np.array([[1.0, 0, 0], [0, 1, 0.9], [0.3, 0, 1]]) + [0.2, 0.2, 1.5] * rng.normal(size=u.shape)
    there, back = load(name)(z, u).value, load(name)(u, z).value
    assert (abs(there - back) < 1e-9) == DECLARATIONS[name].symmetric


@pytest.mark.parametrize("name", DECLARATIONS)
def test_declared_parts_are_in_their_ranges(rng, name):
    z, factors = mixed(rng)
    found, declared = load(name)(z, factors), DECLARATIONS[name]
    for part, (low, high) in declared.parts.items():
        assert low <= getattr(found, part) <= high
    if declared.each:
        assert np.all(found.per_factor >= declared.each_low) and np.all(found.per_factor <= declared.high)
    assert hasattr(found, "per_factor") == bool(declared.each)
