"""Layers against layers: how they are opened, paired and named; what cannot be compared is refused."""

import json

import numpy as np
import pytest

import nearid
from nearid import InputError, compare_layers
from nearid.questions.layers.result import measures

ALL = list(measures())


def test_within_one_model_with_a_measure_of_ones_own(sides):
    def widths(a, b):
        return a.shape[1] / b.shape[1]

    x, _ = sides
    found = compare_layers(x, measures=["cka", widths], layers="[ab]")
    np.testing.assert_allclose(np.diag(found["cka"]), 1, atol=1e-9)
    np.testing.assert_allclose(found["widths"], [[1, 5 / 4], [4 / 5, 1]])
    only = compare_layers(x, measures=widths)
    assert list(only.values) == ["widths"] and only.n == 400


def test_provenance_has_both_sides_and_all_options(sides):
    x, y = sides
    made = compare_layers(x, y, layers="[abpq]", names=["one", "two"], svcca_k=2).provenance
    assert made["options"] == {
        "measures": ["cka"], "layers": ["[abpq]"], "folds": 5, "svcca_k": 2, "random_state": 0
    }  # fmt: skip
    assert [side["name"] for side in made["inputs"]] == ["one", "two"]
    width = sum(x[layer].shape[1] for layer in "ab")
    assert made["inputs"][0]["shape"] == [400, width] and made["inputs"][0]["source"] == "dict"
    assert made["inputs"][0]["fingerprint"] != made["inputs"][1]["fingerprint"]


def test_measures_are_named_as_everywhere(sides):
    x, _ = sides
    assert list(compare_layers({"a": x["a"]}, measures="all").values) == ALL
    assert list(compare_layers({"a": x["a"]}, measures=["mcc, cka,", " cka"]).values) == ["mcc", "cka"]


def test_ids_pair_the_rows(sides):
    x, y = sides
    order = np.random.default_rng(1).permutation(400)
    left = {k: nearid.arrays.open_rows(v, ids=np.arange(400)) for k, v in x.items()}
    right = {k: nearid.arrays.open_rows(v[order][:390], ids=order[:390]) for k, v in y.items()}
    found = compare_layers(left, right, measures="r2")
    assert found.n == 390 and found["r2"][0, 0] > 0.99 and "found no partner" in found.alerts[0].message

    def distance(a, b):
        return np.abs(a[:, :2] - b[:, :2]).max()

    # A function of one's own gets them paired, too.
    shuffled = {k: nearid.arrays.open_rows(v[order], ids=order) for k, v in x.items()}
    assert np.diag(compare_layers(left, shuffled, measures=distance)["distance"]).max() == 0


def test_a_layer_that_does_not_vary(sides):
    x, y = sides
    found = compare_layers({**x, "dead": np.ones((400, 3))}, y, measures=ALL)
    for matrix in found.values.values():
        assert np.isnan(matrix[3]).all() and np.isfinite(matrix[:3]).all()
    assert found.alerts[-1].code == "constant_layer" and "dead" in found.alerts[-1].message
    json.dumps(found.to_dict(), allow_nan=False)
    assert found.nearest("cka")["a"][0] == "p" and "dead" not in found.nearest("cka")
    # Of errors the least is nearest.
    assert found.nearest("epsilon")["a"][0] == "p" and "dead" not in found.nearest("epsilon")
    only = compare_layers({**x, "dead": np.ones((400, 3))}, y, measures="epsilon")
    assert only.alerts[-1].code == "constant_layer" and "dead is constant" in only.alerts[-1].message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"measures": "ckaa"}, r"no measure between layers named 'ckaa'. Did you mean cka"),
        ({"measures": []}, "No measure between layers is given. There are: cka"),
        ({"measures": [lambda a, b: 0, lambda a, b: 1]}, "Two measures are called <lambda>"),
        ({"folds": 1}, "folds is 1, but a whole number between 2 and 255"),
        ({"svcca_k": 0}, "svcca_k"),
        ({"layers": "z*"}, "nothing named 'z\\*'"),
        ({"names": ["a"]}, "1 names were given"),
    ],
)
def test_what_cannot_be_compared_is_told(sides, options, message):
    with pytest.raises(InputError, match=message):
        compare_layers(*sides, **options)


def test_what_has_no_layers_is_told(sides, tmp_path):
    with pytest.raises(InputError, match="x is an ndarray; an extraction"):
        compare_layers(np.zeros((4, 2)), sides[1])
    with pytest.raises(InputError, match=r"no folder of extracted layers"):
        compare_layers(tmp_path, sides[1])
    with pytest.raises(InputError, match="was not measured"):
        compare_layers(*sides)["cca"]


def test_a_measure_of_your_own_that_gives_no_number_is_refused_by_the_layers(rng):
    x = rng.normal(size=(50, 2))
    with pytest.raises(InputError, match=r"gave 'no' for .* but a number is expected"):
        compare_layers({"a": x}, {"b": x}, measures=lambda a, b: "no")


def test_layers_with_and_without_an_index_are_paired_in_one_way(rng):
    pd = pytest.importorskip("pandas")
    x, order = rng.normal(size=(200, 2)), rng.permutation(200)
    left = {"b": x, "a": pd.DataFrame(x, index=np.arange(200) + 7)}
    right = {"c": pd.DataFrame(x[order], index=order + 7)}
    found = compare_layers(left, right, measures="r2,epsilon")
    assert found["r2"].min() > 0.999 and found["epsilon"].max() < 1e-6
    assert [a.message for a in found.alerts] == ["x:b has no index: its rows are taken to be in the order of x:a."]


def test_layers_whose_names_are_equal_as_text_are_refused(rng):
    x = rng.normal(size=(40, 2))
    with pytest.raises(InputError, match="several layers named '1'"):
        compare_layers({1: x, "1": x})


@pytest.mark.parametrize("measure", ["r2", "epsilon", "mcc"])
def test_repeated_and_few_rows_of_layers_are_reported(rng, measure):
    x = np.repeat(rng.normal(size=(10, 6)), 4, axis=0)
    found = {a.code for a in compare_layers({"a": x}, {"b": x[:, ::-1]}, measures=measure).alerts}
    assert {"repeated_rows", "few_rows"} <= found and ("few_rows_per_fold" in found) == (measure == "mcc")
    assert not compare_layers({"a": x}, {"b": x}, measures="cka").alerts
