"""Checks of options that somebody gives."""

import inspect
from collections.abc import Iterable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import pytest

import nearid
from nearid.base.errors import InputError
from nearid.base.options import Bound, Folds, Seed, Share, at_least, checked, listed, positive


def test_good_numbers_pass():
    assert positive("kappa", 2) == 2.0 and positive("kappa", 0, zero=True) == 0.0
    assert at_least("n", 3, 3) == 3


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_numbers_that_are_not_positive_are_told(value):
    with pytest.raises(InputError, match=f"kappa is {value}, but a finite number above 0"):
        positive("kappa", value)
    if value:
        with pytest.raises(InputError, match="of at least 0"):
            positive("kappa", value, zero=True)


@pytest.mark.parametrize("value", [1, -3, 2.5])
def test_counts_that_are_too_small_or_not_whole_are_told(value):
    with pytest.raises(InputError, match=f"n is {value}, but a whole number of at least 2"):
        at_least("n", value, 2)


@checked
def asked(
    x: object,
    /,
    *more: object,
    folds: int = 5,
    ridge: float | None = None,
    groups: Iterable[str] | str | None = None,
    form: Literal["pca", "zca"] = "pca",
    scale: bool = True,
    random_state: Seed = 0,
    anything: Any = None,
) -> str:
    return "answered"


@pytest.mark.parametrize(
    "options",
    [
        {"folds": np.int64(3)},
        {"ridge": 1},
        {"ridge": np.float32(0.5)},
        {"groups": "a,b"},
        {"groups": np.array(["a", "b"])},
        {"groups": (name for name in "ab")},
        {"form": "zca"},
        {"scale": np.bool_(False)},
        {"anything": object()},
    ],
)
def test_options_of_the_type_that_is_declared_pass(options):
    assert asked(object(), 3, "x", **options) == "answered"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("folds", 2.5, "a whole number"),
        ("folds", "5", "a whole number"),
        ("folds", True, "a whole number"),
        ("folds", None, "a whole number"),
        ("ridge", "1", "a number or None"),
        ("groups", 3, "a text or None"),
        ("groups", [None], "each item a text"),
        ("form", "nosuch", "'pca' or 'zca'"),
        ("scale", 1, "True or False"),
        ("random_state", -1, "a whole number of at least 0"),
        ("random_state", None, "a whole number of at least 0"),
    ],
)
def test_options_of_another_type_are_refused_by_name(option, value, words):
    with pytest.raises(InputError, match=rf"^{option}( \(--seed\))? is .*{words}"):
        asked(None, **{option: value})


PUBLIC = [name for name in nearid.__all__ if inspect.isfunction(getattr(nearid, name))]


def plain_type(hint):
    """The type of an option that takes a single number or text, or None."""
    parts = (
        [part for part in get_args(hint) if part is not NoneType] if get_origin(hint) in (Union, UnionType) else [hint]
    )
    kind = get_args(parts[0])[0] if get_origin(parts[0]) is Annotated else parts[0]
    return kind if len(parts) == 1 and kind in (int, float, bool, str) else None


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_function_refuses_options_of_another_type(name):
    function = getattr(nearid, name)
    parameters = inspect.signature(function).parameters.values()
    hints = get_type_hints(inspect.unwrap(function), include_extras=True)
    assert hints.get("random_state", Seed) == Seed
    required = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    data = ["digits" if str in (hints[p.name], *get_args(hints[p.name])) else np.zeros((20, 2)) for p in required]
    for parameter in parameters:
        if plain_type(hints[parameter.name]) is not None and parameter not in required:
            with pytest.raises(InputError, match=rf"^{parameter.name}( \(--seed\))? is "):
                function(*data, **{parameter.name: object()})


def test_bounds_stand_in_the_annotation():
    @checked
    def bounded(folds: Folds = 5, share: Share = 0.5, rate: Annotated[float, Bound(0, open_low=True)] = 1.0) -> str:
        return "answered"

    assert bounded(folds=255, share=1, rate=1e-9) == "answered"
    for options, sentence in (
        ({"folds": 1}, "folds is 1, but a whole number between 2 and 255 is expected"),
        ({"share": 1.5}, "share is 1.5, but a number between 0 and 1"),
        ({"share": float("nan")}, "share is nan"),
        ({"rate": 0}, "rate is 0, but a number above 0"),
    ):
        with pytest.raises(InputError, match=sentence):
            bounded(**options)


def test_names_come_with_commas_or_one_by_one():
    assert listed(" a, b,a", "group") == listed(["a", "b"], "group") == listed(np.array(["a", "b"]), "group", "abc")
    assert listed("b,, a,", "group", "abc") == ("b", "a")
    assert listed("all,", "group", ["a", "b"]) == listed("all", "group", ["a", "b"]) == ("a", "b")
    with pytest.raises(InputError, match=r"There is no group named 'rigit'\. Did you mean rigid\?"):
        listed("rigit", "group", ["rigid", "linear"])
    for empty in ("", " ,", []):
        with pytest.raises(InputError, match=r"No group is given\. There are: a"):
            listed(empty, "group", ["a"])


def test_options_that_a_function_lacks_are_named_with_the_nearest():
    @checked
    def measure(x: Any, /, *, symmetric: bool = False) -> bool:
        return symmetric

    with pytest.raises(TypeError, match=r"^measure\(\) has no option 'symetric'\. Did you mean 'symmetric'\?$"):
        measure(1, symetric=True)
    with pytest.raises(TypeError, match=r"^measure\(\) has no option 'zzz'\.$"):
        measure(1, zzz=True)
    with pytest.raises(TypeError, match=r"^measure\(\): missing a required .*'x'"):
        measure()
    with pytest.raises(TypeError, match=r"^measure\(\): too many positional arguments"):
        measure(1, 2)
