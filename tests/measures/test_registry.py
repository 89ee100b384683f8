"""Every measure keeps what it declares; a new one is a function with a declaration."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import nearid
from nearid.measures import registry
from nearid.measures.factors import Factors
from nearid.measures.registry import Measured, Part, measure, measures

MEASURES = measures()

CHANGES = {
    "permutation": lambda z, rng: z[:, rng.permutation(z.shape[1])],
    "sign": lambda z, rng: z * rng.choice([-1, 1], z.shape[1]),
    "scale": lambda z, rng: z * 2.0 ** rng.integers(-9, 9, z.shape[1]),
    "shift": lambda z, rng: z + rng.integers(-9, 9, z.shape[1]),
    "linear": lambda z, rng: z @ (rng.normal(size=(z.shape[1],) * 2) + 4 * np.eye(z.shape[1])),
}
KEPT = [(name, change) for name, declared in MEASURES.items() for change in declared.invariances]


@pytest.fixture(autouse=True)
def small_forests(request, monkeypatch):
    """What is declared holds of any number of trees, and a forest of 100 takes longer than all other measures."""
    if "dci_forest" in request.node.name:
        monkeypatch.setattr("nearid.measures.dci.TREES", 20)


def mixed(rng, n=240):
    """Factors of three kinds and latents that share something with each."""
    level, size, kind = rng.integers(0, 3, n), rng.normal(size=n), rng.integers(0, 2, n)
    u = np.column_stack([level, size, kind])
    z = u @ (np.eye(3, 4) + 0.3 * rng.normal(size=(3, 4))) + 0.3 * rng.normal(size=(n, 4))
    return z, {"level": level, "size": size, "kind": np.array(["a", "b"])[kind]}


@pytest.mark.parametrize("name", MEASURES)
@pytest.mark.parametrize("latents", ["mixed", "noise", "constant"])
def test_values_are_in_range_and_the_matrix_has_its_shape(rng, name, latents):
    z, factors = mixed(rng)
    z = {"mixed": z, "noise": rng.normal(size=z.shape), "constant": np.ones(z.shape)}[latents]
    found, declared = MEASURES[name](z, factors), MEASURES[name]
    assert isinstance(found, Measured) and declared.low <= found.value <= declared.high
    assert np.isfinite(found.matrix).all() and found.matrix.shape[1] == len(found.factors) == 3
    assert ("constant_latents" in [alert.code for alert in found.alerts]) == (latents == "constant")


@pytest.mark.parametrize("name, change", KEPT)
def test_declared_invariances_hold(rng, name, change):
    z, factors = mixed(rng)
    assert MEASURES[name](CHANGES[change](z, rng), factors).value == pytest.approx(
        MEASURES[name](z, factors).value, abs=1e-6
    )


@pytest.mark.parametrize("name", MEASURES)
def test_the_order_and_origin_of_factors_do_not_matter(rng, name):
    z, factors = mixed(rng)
    moved = {key: factors[key] for key in ("kind", "size", "level")}
    moved |= {"size": moved["size"] + 8, "level": moved["level"] + 5}
    assert MEASURES[name](z, moved).value == pytest.approx(MEASURES[name](z, factors).value, abs=1e-6)


# Modularity does not ask how much is told: noise may be modular.
@pytest.mark.parametrize("name", [name for name in MEASURES if name != "modularity"])
def test_recovered_factors_score_higher_than_noise(rng, name):
    _, factors = mixed(rng)
    truth = np.column_stack([factors["level"], factors["size"], factors["kind"] == "b"])
    found, noise = (MEASURES[name](z, factors).value for z in (truth, rng.normal(size=truth.shape)))
    assert found > noise + 0.2


@pytest.mark.parametrize("name", MEASURES)
def test_only_declared_measures_let_latents_and_factors_change_places(rng, name):
    u = rng.normal(size=(240, 3))
    z = u @ np.array([[1.0, 0, 0], [0, 1, 0.9], [0.3, 0, 1]]) + [0.2, 0.2, 1.5] * rng.normal(size=u.shape)
    there, back = MEASURES[name](z, u).value, MEASURES[name](u, z).value
    assert (abs(there - back) < 1e-9) == MEASURES[name].symmetric


@pytest.mark.parametrize("name", MEASURES)
def test_declared_parts_are_in_their_ranges(rng, name):
    z, factors = mixed(rng)
    found, declared = MEASURES[name](z, factors), MEASURES[name]
    assert set(found.parts) == set(declared.parts)
    for name, part in declared.parts.items():
        assert part.low <= getattr(found, name) <= part.high
    if declared.each:
        assert np.all(found.per_factor >= declared.each_low) and np.all(found.per_factor <= declared.high)
    assert bool(len(found.per_factor)) == bool(declared.each)


@pytest.fixture
def spread(monkeypatch):
    """A new measure, for one test."""
    monkeypatch.setattr(registry, "MEASURES", dict(registry.MEASURES))

    @measure("Spread", high=np.inf, parts={"least": Part(high=np.inf, title="least spread")}, held_out=False)
    def spread(x, factors: Factors, *, power: int = 1):
        """Mean spread of the latents.

        Parameters
        ----------
        power : int
            Of every latent.

        Returns
        -------
        Measured
            The value alone.
        """
        assert isinstance(factors, Factors)
        sizes = (x**power).std(axis=0)
        return Measured(float(sizes.mean()), np.tile(sizes[:, None], len(factors.names)), factors.names,
                        parts={"least": float(sizes.min())})  # fmt: skip

    return spread


def test_the_maths_alone_make_a_public_function(rng, spread, tmp_path):
    z = rng.normal(size=(50, 2))
    np.save(tmp_path / "z.npy", z)
    found = spread(tmp_path / "z.npy", rng.normal(size=50), power=2)
    assert float(found) == found.value == pytest.approx((z**2).std(axis=0).mean())
    assert found.least == found.parts["least"] and "least" in dir(found)
    z[3] = np.nan
    with pytest.raises(nearid.InputError, match="nan at row 3"):
        spread(z, rng.normal(size=50))
    dropped = spread(z, rng.normal(size=50), drop_nonfinite=True)
    assert [alert.code for alert in dropped.alerts] == ["dropped_rows"]
    with pytest.raises(nearid.InputError, match="power is 'x', but a whole number"):
        spread(z, rng.normal(size=50), power="x")
    with pytest.raises(TypeError, match="engine"):
        spread(z, rng.normal(size=50), engine="local")


def test_signature_and_docstring_hold_the_common_parameters(spread):
    assert list(inspect.signature(spread).parameters) == ["latents", "factors", "power", "drop_nonfinite", "progress"]
    assert "engine" in inspect.signature(nearid.mcc).parameters
    for function in (spread, *(m.function for m in MEASURES.values())):
        for name in inspect.signature(function).parameters:
            (entry,) = [line for line in function.__doc__.splitlines() if line.startswith(f"{name} : ")]
            assert len(entry) > len(f"{name} : ")
        assert function.__doc__.index("Parameters\n") < function.__doc__.index("Returns\n")
    assert "power : int\n    Of every latent." in spread.__doc__


def test_the_order_of_measures_does_not_depend_on_what_was_imported_first(spread):
    names = list(measures())
    assert names[:4] == ["mcc", "mcc_spearman", "mcc_piecewise", "r2"] and names[-1] == "spread"


def test_a_name_belongs_to_one_measure(spread):
    with pytest.raises(ValueError, match=r"named 'mcc' in nearid\.measures\.mcc"):

        @measure("Mine")
        def mcc(x, factors):
            """Mine."""


def test_results_can_be_copied_and_pickled(rng):
    found = nearid.dci(rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), model="l1")
    for again in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert again.completeness == found.completeness and repr(again) == repr(found)
    assert repr(found).startswith("Measured(") and "completeness=" in repr(found)
    with pytest.raises(AttributeError, match="no attribute 'infom'"):
        _ = found.infom


@pytest.mark.parametrize("name", ["cca", "svcca", "linear_cka"])
def test_measures_of_similarity_return_the_same_type(rng, name):
    x = rng.normal(size=(60, 3))
    found = getattr(nearid, name)(x, x + rng.normal(size=x.shape))
    assert isinstance(found, Measured) and 0 < float(found) < 1
