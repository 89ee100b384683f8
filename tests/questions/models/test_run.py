"""Two models and inputs to an answer: the same as step by step, from the cache the second time."""

import shutil

import numpy as np
import pytest
from torch import nn

import nearid
from nearid.base.errors import InputError
from nearid.questions.extract import passes


@pytest.fixture
def calls(monkeypatch):
    """How many batches went through models."""
    counted = []
    real = passes.Run._rows

    def rows(self, batch):
        counted.append(batch.n)
        return real(self, batch)

    monkeypatch.setattr(passes.Run, "_rows", rows)
    return counted


def quick(*given, **options):
    return nearid.compare_models(*given, permutations=2, **options)


@pytest.mark.parametrize("cache", [True, False])
def test_it_is_what_the_single_steps_give(network, inputs, cache):
    one, two = network(0), network(1)
    comparison = quick(one, two, inputs, measures="r2_rigid,cka", cache=cache)
    x, y = nearid.extract(one, inputs), nearid.extract(two, inputs)
    layers = nearid.compare_layers(x, y, measures="r2_rigid,cka", permutations=2)
    for measure in ("r2_rigid", "cka"):
        np.testing.assert_allclose(comparison.layers[measure], layers[measure], rtol=1e-6, atol=1e-8)
    assert comparison.measure == "r2_rigid"
    i, j = np.unravel_index(np.argmax(layers["r2_rigid"]), layers["r2_rigid"].shape)
    assert (comparison.pair.source, comparison.pair.target) == (list(x)[i], list(y)[j])
    for compared, (a, b) in ((comparison.best, (list(x)[i], list(y)[j])), (comparison.last, ("3", "3"))):
        direct = nearid.compare(x[a], y[b], permutations=2)
        assert compared.names == (f"Sequential 1:{a}", f"Sequential 2:{b}")
        assert compared.verdict.group == direct.verdict.group
        for group, result in direct.groups.items():
            assert compared.groups[group].r2.value == pytest.approx(result.r2.value, abs=1e-6)
    assert comparison.names == ("Sequential 1", "Sequential 2") and comparison.data == "ndarray"


def test_the_second_time_no_model_runs(network, inputs, calls, place):
    first = quick(network(0), network(1), inputs)
    assert sum(calls) == 2 * len(inputs)
    calls.clear()
    second = quick(network(0), network(1), inputs)
    assert not calls
    np.testing.assert_array_equal(first.layers["cka"], second.layers["cka"])
    assert [each["was_there"] for each in first.provenance["cache"]["entries"]] == [False, False]
    assert [each["was_there"] for each in second.provenance["cache"]["entries"]] == [True, True]
    assert len(list(place.iterdir())) == 2


@pytest.mark.parametrize("change", ["weights", "inputs", "ids", "option", "damage", "number"])
def test_other_weights_inputs_or_options_and_damaged_rows_run_again(network, inputs, calls, place, change):
    quick(network(0), network(1), inputs)
    calls.clear()
    model, options = network(0), {}
    match change:
        case "weights":
            model[2].bias.data[0] += 1
        case "inputs":
            inputs = inputs.copy()
            inputs[-1, -1] += 1
        case "ids":
            options["ids"] = np.arange(len(inputs)) + 1
        case "option":
            options["dtype"] = "float64"
        case "number":
            # It stands neither among the weights nor in how the module prints itself.
            model[0].in_features = 5.5
        case "damage":
            file = next(place.glob("*/layers/1.npy"))
            rows = bytearray(file.read_bytes())
            rows[-1] ^= 1
            file.write_bytes(rows)
    quick(model, network(1), inputs, **options)
    both = change in ("inputs", "ids", "option")
    assert sum(calls) == (2 if both else 1) * len(inputs)
    calls.clear()
    quick(model, network(1), inputs, **options)
    assert not calls


def test_what_was_interrupted_goes_on_to_the_same_bytes(network, inputs, calls, place, monkeypatch):
    quick(network(0), network(1), inputs, batch_size=20)
    whole = {p.relative_to(place): p.read_bytes() for p in place.rglob("*") if p.is_file()}
    shutil.rmtree(place)
    real, seen = passes.Run._write, []

    def interrupted(self, store, batch, *rows):
        seen.append(batch.start)
        if len(seen) == 6:
            raise KeyboardInterrupt
        real(self, store, batch, *rows)

    with monkeypatch.context() as patch:
        patch.setattr(passes.Run, "_write", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick(network(0), network(1), inputs, batch_size=20)
    assert list(place.glob("*/layers.partial"))
    calls.clear()
    quick(network(0), network(1), inputs, batch_size=20)
    # Of the first model the batches that were written are not run again.
    assert sum(calls) == 2 * len(inputs) - 100
    assert {p.relative_to(place): p.read_bytes() for p in place.rglob("*") if p.is_file()} == whole


def test_a_part_that_cannot_be_gone_on_from_is_begun_anew(network, inputs, place, monkeypatch):
    def interrupted(self, store, batch, *rows):
        if batch.start:
            raise KeyboardInterrupt
        real(self, store, batch, *rows)

    real = passes.Run._write
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(passes.Run, "_write", interrupted)
        quick(network(0), network(1), inputs, batch_size=20)
    (note,) = place.glob("*/layers.partial/progress.json")
    note.write_text("{")
    assert quick(network(0), network(1), inputs, batch_size=20).layers.n == len(inputs)


def test_without_a_cache_nothing_is_written(network, inputs, place):
    comparison = quick(network(0), network(1), inputs, cache=False)
    assert not place.exists() and comparison.provenance["cache"] is None


def test_a_small_cache_is_emptied_after_use(network, inputs, place, monkeypatch):
    monkeypatch.setenv("NEARID_CACHE_GB", "0")
    assert quick(network(0), network(1), inputs).layers.n == len(inputs)
    assert not list(place.iterdir())


def test_what_has_no_key_is_not_kept(network, inputs, place):
    half = len(inputs) // 2
    batches = [{"x": inputs[:half], "ids": np.arange(half)}, {"x": inputs[half:], "ids": np.arange(half, 2 * half)}]

    class Named(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network(0)

        def forward(self, x):
            return self.inner(x)

    class Loader:
        def __iter__(self):
            return iter(batches)

    comparison = quick(Named(), Named(), Loader())
    assert comparison.layers.n == len(inputs) and not place.exists()
    hooked = network(0)
    hooked[0].register_forward_hook(lambda module, given, output: output + 1)
    quick(hooked, network(0), inputs)
    assert len(list(place.iterdir())) == 1


def test_what_the_first_model_would_use_up_is_refused(network, inputs, calls):
    with pytest.raises(InputError, match="The data is a generator, which can be read only once"):
        quick(network(0), network(1), (inputs[at : at + 60] for at in range(0, 240, 60)))
    assert not calls


def test_each_model_may_have_options_of_its_own(network, inputs):
    comparison = quick(network(0), network(1), inputs, layers="0,2", options_b={"layers": "1"})
    assert comparison.layers.layers == (("0", "2"), ("1",))


def test_a_layer_that_does_not_vary_has_no_ladder(network, inputs):
    dead = network(0)
    dead[3].weight.data.zero_()
    comparison = quick(dead, network(1), inputs)
    assert comparison.last is None and comparison.best is not None
    assert "3" in str([a.message for a in comparison.alerts if a.code == "constant_layer"])
    assert "last" not in str(comparison.view.tables[0].rows)


def test_the_same_model_twice_is_known_as_the_same(network, inputs):
    comparison = quick(network(0), network(0), inputs)
    # A layer beside itself says nothing.
    assert comparison.pair.source != comparison.pair.target
    assert "same_input" in [alert.code for alert in comparison.alerts]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pool": "men"}, "pool is 'men', but"),
        ({"options_b": {"batch_size": 0}}, "batch_size is 0, but"),
        ({"poll": "mean"}, "no option of extract named 'poll'. Did you mean pool"),
        ({"out": "folder"}, "out is not an option here, because layers go to the cache"),
        ({"options_b": {"overwrite": True}}, "overwrite is not an option here"),
        ({"names": ["one"]}, "1 names were given for 2 models"),
        ({"folds": 1}, "folds is 1"),
        ({"measures": "ckaa"}, "no measure between layers named 'ckaa'"),
    ],
)
def test_wrong_options_are_refused_before_a_model_runs(network, inputs, options, message, calls):
    with pytest.raises(InputError, match=message):
        quick(network(0), network(1), inputs, **options)
    assert not calls
