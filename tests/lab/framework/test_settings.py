"""Parameters: presets over defaults, what is typed over both, and a sentence for what is wrong."""

import math
from dataclasses import dataclass, replace

import pytest

from nearid.base.errors import InputError
from nearid.lab.framework.experiment import Row, experiment
from nearid.lab.framework.settings import (
    Checked,
    as_dict,
    assignments,
    described,
    overriding_rows,
    parameter,
    parameters_for,
    parsed,
    set_by_user,
    shown,
)


def test_layers(toy):
    experiment, _ = toy
    assert parameters_for(experiment, "cpu").steps == 5 and parameters_for(experiment, "smoke").steps == 2
    found = parameters_for(
        experiment, "smoke", {"steps": "7", "level": "1e-1", "high": "no", "sizes": "3,4,5", "kind": "odd"}
    )
    assert (found.steps, found.level, found.high, found.sizes, found.kind) == (7, 0.1, False, (3, 4, 5), "odd")
    assert as_dict(found)["sizes"] == [3, 4, 5]
    assert ("steps", 7, "points of the curve") in described(found)


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [
        ("1e5", 1, 100_000),
        ("-3", 1, -3),
        ("123456789123456789", 1, 123456789123456789),
        (4.0, 1, 4),
        ("inf", 1.0, float("inf")),
        (2, 1.0, 2.0),
        ("YES", False, True),
        ("0", True, False),
        ("1", "x", "1"),
        (6, (1, 2), (6,)),
        ("0.5,1", (1.0,), (0.5, 1.0)),
    ],
)
def test_text_becomes_the_type_of_the_default(value, default, expected):
    found = parsed("p", value, default)
    assert found == expected and type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "default", "kind"),
    [
        ("ten", 1, "a whole number"),
        ("1.5", 1, "a whole number"),
        ("inf", 1, "a whole number"),
        (True, 1, "a whole number"),
        ("", 1.0, "a number"),
        ("nan", 1.0, "a number"),
        ("maybe", True, "true or false"),
        (2, True, "true or false"),
        (3, "x", "a word"),
        ("1,b", (1, 2), "a whole number"),
    ],
)
def test_another_type_gets_a_sentence(value, default, kind):
    with pytest.raises(InputError, match=rf"The parameter p must be {kind} \(default: .*\), not "):
        parsed("p", value, default)


def test_unknown_names_get_near_ones(toy):
    experiment, _ = toy
    with pytest.raises(InputError, match=r"no parameter of toy named 'step'\. Did you mean steps\? There are: level, "):
        parameters_for(experiment, "cpu", {"step": "3"})
    with pytest.raises(InputError, match=r"no preset of toy named 'gpu'\. Did you mean cpu\? There are: smoke, cpu"):
        parameters_for(experiment, "gpu")


def test_what_differs_from_the_preset(toy):
    experiment, _ = toy
    # What is set to the preset's own value is no change.
    found = parameters_for(experiment, "smoke", {"steps": "2", "sizes": "3", "high": "no"})
    assert set_by_user(experiment, "smoke", found) == {"high": (False, True), "sizes": ((3,), (1, 2))}
    assert [shown(v) for v in (False, (0.5, 1.0), 3, "word")] == ["false", "0.5,1.0", "3", "word"]


def test_rows_that_do_not_heed_a_parameter(toy):
    def rows(p):
        doubled, own = Row("doubled", "", {"steps": 2 * p.steps}), Row("own", "", {"steps": 7, "kind": "odd"})
        by_size = [Row(f"size-{n}", "", {"sizes": (n,), "kind": "even"}) for n in p.sizes]
        return [doubled, own, Row("plain", ""), *by_size]

    p = toy[0].defaults
    assert overriding_rows(p, rows, "steps") == ["own"] and overriding_rows(p, rows, "noise") == []
    # Also where it is set to what the preset has; not where the rows agree with it.
    assert overriding_rows(replace(p, kind="odd"), rows, "kind") == ["own", "size-1", "size-2"]
    assert overriding_rows(replace(p, kind="odd", sizes=()), rows, "kind") == []
    # What decides which rows there are is heeded.
    assert overriding_rows(p, rows, "sizes") == []


def test_assignments():
    assert assignments(["a=1", " b = x=y "]) == {"a": "1", "b": "x=y"}
    for wrong in ("a", "=1"):
        with pytest.raises(InputError, match="--set takes key=value"):
            assignments([wrong])


@dataclass(frozen=True)
class Bounded(Checked):
    side: int = parameter(48, "a multiple", multiple=16)
    share: float = parameter(0.5, "from 0 to 1", least=0, most=1)
    rate: float = parameter(0.1, "above 0", positive=True)
    rows: int = parameter(100, "more than the side", least=lambda p: 2 * p.side)
    word: str = parameter("one", "one of three", choices=("one", "two", "three"))
    sizes: tuple[int, ...] = parameter((2, 3), "each at least 2", least=2, smoke=())


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"side": 0}, "side must be a multiple of 16, not 0"),
        ({"side": -16}, "side must be a multiple of 16, not -16"),
        ({"side": 50}, "side must be a multiple of 16, not 50"),
        ({"share": -0.1}, "share must be at least 0, not -0.1"),
        ({"share": 1.5}, "share must be at most 1, not 1.5"),
        ({"share": math.nan}, "share must be at least 0, not nan"),
        ({"rate": 0.0}, "rate must be positive, not 0.0"),
        ({"rate": math.inf}, "rate must be positive, not inf"),
        ({"rows": 95}, "rows must be at least 96, not 95"),
        ({"side": 64}, "rows must be at least 128, not 100"),
        ({"word": "four"}, "word must be one, two or three, not 'four'"),
        ({"sizes": (5, 1)}, "sizes must be at least 2, not 1"),
    ],
)
def test_what_is_out_of_bounds_gets_a_sentence(wrong, sentence):
    assert Bounded(sizes=()).rows == 100
    with pytest.raises(InputError, match=f"The parameter {sentence}\\."):
        Bounded(**wrong)


@pytest.mark.parametrize("name", ["disentanglement", "dislib", "masks-contrastive", "3dident"])
def test_sides_are_checked_before_the_first_cell(name):
    with pytest.raises(InputError, match="side must be a multiple of"):
        parameters_for(experiment(name), "cpu", {"side": "50"})
