"""Kinds given and inferred, codes and columns, pairing, and every bad input in words."""

import numpy as np
import pytest

from nearid.base.errors import InputError
from nearid.measures.factors import BINS, binned, load_pair, open_factors


def codes_of(alerts):
    return [alert.code for alert in alerts]


def test_what_looks_like_something_else_is_told():
    angles = np.linspace(-3, 3, 50)
    found = open_factors(
        {"row": np.arange(50), "radians": angles, "turns": 1000 * angles, "fine": 50 * angles},
        periods={"radians": 360, "turns": 360, "fine": 360},
    )
    told = [(alert.code, alert.message.split("'")[1]) for alert in found.alerts]
    assert told == [("looks_like_ids", "row"), ("doubtful_period", "radians"), ("doubtful_period", "turns")]


def test_numbers_written_as_text_are_classes_unless_said_otherwise():
    text = np.array(["1", "2", "1", "3.5"])
    assert open_factors({"a": text}).items[0].kind == "categorical"
    given = open_factors({"a": text}, kinds={"a": "continuous"}).items[0]
    assert given.values.tolist() == [1, 2, 1, 3.5] and not given.inferred


def test_kinds_are_inferred_and_said(rng):
    n = 600
    found = open_factors(
        {
            "text": np.array(["a", "b"])[rng.integers(0, 2, n)],
            "flag": rng.integers(0, 2, n).astype(bool),
            "level": rng.integers(0, 5, n).astype(float),
            "count": np.arange(n),
            "size": rng.normal(size=n),
            "given": rng.integers(0, 5, n),
        },
        kinds={"given": "categorical"},
    )
    kinds = {factor.name: (factor.kind, factor.inferred) for factor in found.items}
    assert kinds == {
        "text": ("categorical", True),
        "flag": ("integer", True),
        "level": ("integer", True),
        "count": ("continuous", True),
        "size": ("continuous", True),
        "given": ("categorical", False),
    }
    assert found.names == tuple(kinds) and codes_of(found.alerts) == ["looks_like_ids"]


def test_codes_and_columns_of_every_kind():
    found = open_factors(
        {"cat": ["b", "a", "b", "c"], "int": [7, 3, 7, 9], "ang": [0.0, 90.0, 450.0, 359.99], "num": [0.5, 1, 2, 4.5]},
        kinds={"int": "integer"},
        periods={"ang": 360},
    )
    cat, whole, angle, number = found.items
    assert cat.codes().tolist() == [1, 0, 1, 2] and cat.labels.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(cat.columns, [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    assert whole.codes().tolist() == [1, 0, 1, 2] and whole.columns.tolist() == [[7], [3], [7], [9]]
    assert angle.codes(4).tolist() == [0, 1, 1, 3]
    np.testing.assert_allclose(angle.columns[:3], [[1, 0], [0, 1], [0, 1]], atol=1e-12)
    assert number.codes(4).tolist() == [0, 0, 1, 3] and number.columns.shape == (4, 1)


def test_bins_are_those_of_a_histogram(rng):
    values = rng.normal(size=500)
    np.testing.assert_array_equal(np.bincount(binned(values, BINS)), np.histogram(values, BINS)[0])
    assert not binned(np.ones(3), BINS).any()


def test_constant_factors_are_left_out_and_told(rng):
    still = {"still": np.full(9, 0.1), "one": ["x"] * 9, "turn": [0, 360, 720] * 3}
    found = open_factors({"a": rng.normal(size=9), **still}, periods={"turn": 360})
    assert found.names == ("a",) and codes_of(found.alerts) == ["constant_factor"] * 3
    assert "'still'" in found.alerts[0].message
    with pytest.raises(InputError, match="Every factor of factors is constant"):
        open_factors(np.ones((5, 2)))


def test_a_column_may_be_no_factor():
    columns = {"cell": [f"c{k}" for k in range(600)], "x": np.arange(600) / 7, "pan": np.arange(600) % 7}
    with pytest.raises(InputError, match=r"leave it out: kinds=\{'cell': 'none'\} \(--kinds cell=none\)"):
        open_factors(columns)
    assert open_factors(columns, kinds={"cell": "none"}).names == ("x", "pan")
    with pytest.raises(InputError, match="given as none and with a period"):
        open_factors(columns, kinds={"pan": "none"}, periods={"pan": 7})
    with pytest.raises(InputError, match="No column of factors is a factor"):
        open_factors(columns, kinds=dict.fromkeys(columns, "none"))


def test_singleton_classes_are_told():
    found = open_factors({"a": ["x", "x", "y", "y", "z"]})
    assert codes_of(found.alerts) == ["singleton_classes"] and "1 classes of the factor 'a'" in found.alerts[0].message


@pytest.mark.parametrize(
    "columns, options, message",
    [
        ({"a": [1, np.nan, 2]}, {}, r"'a' has nan at row 1"),
        ({"a": ["x", None, "y"]}, {}, r"'a' has None at row 1"),
        ({"a": [1, 2, 3]}, {"kinds": {"a": "ordinal"}}, r"must be one of continuous, .* not 'ordinal'"),
        ({"a": [1, 2, 3]}, {"kinds": {"b": "integer"}}, r"nothing named 'b' \(given as kinds\)"),
        (
            {"a": [1, 2, 3]},
            {"kinds": {"a": "circular"}},
            r"its period is needed, for example periods=\{'a': 360\} .*--periods a=360",
        ),
        ({"a": [1, 2, 3]}, {"periods": {"a": 0}}, r"positive number such as 360, not 0"),
        ({"a": [1, 2, 3]}, {"periods": {"a": 3}, "kinds": {"a": "integer"}}, r"integer and with a period"),
        ({"a": [1, 2.5, 3]}, {"kinds": {"a": "integer"}}, r"has 2.5 at row 1"),
        ({"a": ["x", "y", "x"]}, {"kinds": {"a": "continuous"}}, r"has the text 'x' at row 0"),
        ({"a": np.array([1j, 2, 3])}, {}, r"dtype complex128"),
    ],
)
def test_refused(columns, options, message):
    with pytest.raises(InputError, match=message):
        open_factors({name: np.asarray(values) for name, values in columns.items()}, **options)


def test_open_factors_are_kept_as_they_are(rng):
    found = open_factors(rng.normal(size=(9, 2)))
    assert open_factors(found) is found
    with pytest.raises(InputError, match="already open"):
        open_factors(found, kinds={"0": "integer"})


def test_rows_are_paired_by_id_or_refused(rng):
    pd = pytest.importorskip("pandas")
    latents = pd.DataFrame({"z": [1.0, 2, 3, 4]}, index=list("abcd"))
    x, found, alerts = load_pair(latents, open_factors({"u": [30.5, 10, 20]}, ids=["c", "a", "b"]))
    assert x.tolist() == [[1], [2], [3]] and found.items[0].values.tolist() == [10, 20, 30.5]
    assert (
        codes_of(alerts) == ["input"] and "are left out: the other side has no row with the same" in alerts[0].message
    )
    with pytest.raises(InputError, match="latents has 5 rows and factors has 4"):
        load_pair(rng.normal(size=(5, 2)), rng.normal(size=(4, 2)))


def test_rows_with_nan_are_refused_or_dropped_and_told(rng):
    z, u = rng.normal(size=(6, 2)), rng.normal(size=(6, 1))
    z[3, 1] = np.nan
    with pytest.raises(InputError, match="latents has nan at row 3, column 1"):
        load_pair(z, u)
    x, found, alerts = load_pair(z, u, drop_nonfinite=True)
    assert len(x) == 5 and found.items[0].values.tolist() == np.delete(u, 3).tolist()
    assert codes_of(alerts) == ["dropped_rows"]


def test_constant_latents_are_told(rng):
    z = np.column_stack([rng.normal(size=9), np.full(9, 0.3)])
    assert codes_of(load_pair(z, rng.normal(size=(9, 1)))[2]) == ["constant_latents"]


@pytest.mark.parametrize("unit", [1e200, 1e-200])
def test_factors_whose_squares_leave_float64_are_refused(rng, unit):
    with pytest.raises(InputError, match="'u' leave the range of float64"):
        open_factors({"u": rng.normal(size=30) * unit})


def test_numbered_columns_may_be_named_by_their_numbers(rng):
    factors = open_factors(rng.integers(0, 5, size=(40, 2)), kinds={0: "categorical"}, periods={1: 5})
    assert [factor.kind for factor in factors.items] == ["categorical", "circular"]


@pytest.mark.parametrize("period", ["360", None, True, 1j, -1])
def test_a_period_that_is_no_positive_number_is_refused(rng, period):
    with pytest.raises(InputError, match="The period of 'u' must be a positive number"):
        open_factors({"u": rng.normal(size=30)}, periods={"u": period})


def test_numbers_of_a_pandas_categorical_are_classes():
    pd = pytest.importorskip("pandas")
    given = pd.Categorical([3, 1, 2] * 10)
    for source in ({"b": given}, {"b": pd.Series(given)}, pd.DataFrame({"b": given}), pd.Series(given, name="b")):
        (factor,) = open_factors(source).items
        assert factor.kind == "categorical" and factor.labels.tolist() == ["1", "2", "3"]
    (factor,) = open_factors(pd.DataFrame({"b": given}), kinds={"b": "integer"}).items
    assert factor.values[:3].tolist() == [3, 1, 2]
    assert open_factors(given).items[0].kind == "categorical"


def test_numpy_booleans_among_objects_are_read():
    flags = np.array([np.True_, np.False_] * 10, dtype=object)
    assert open_factors({"f": flags}).items[0].labels.tolist() == ["False", "True"]


def test_a_tensor_of_one_dimension_is_one_factor():
    torch = pytest.importorskip("torch")
    (factor,) = open_factors(torch.arange(40) % 4).items
    assert factor.kind == "integer" and factor.values[:5].tolist() == [0, 1, 2, 3, 0]


def test_text_of_a_missing_value_is_reported():
    found = open_factors({"drug": np.array(["a", "b", "nan", "b"] * 5)})
    assert [a.code for a in found.alerts] == ["missing_as_text"] and "'nan' in 5 rows" in found.alerts[0].message


def test_factors_whose_names_are_equal_as_text_are_refused():
    with pytest.raises(InputError, match="several columns named '1'"):
        open_factors({1: np.arange(9), "1": np.arange(9)})


def test_kinds_of_names_that_are_equal_as_text_are_refused(rng):
    for option, values in (("kinds", ("continuous", "circular")), ("periods", (2.0, 3.0))):
        with pytest.raises(InputError, match=f"{option} has several columns named '0'"):
            open_factors(rng.normal(size=(20, 2)), **{option: dict(zip((0, "0"), values, strict=True))})
