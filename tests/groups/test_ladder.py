"""The ladder as data."""

from dataclasses import replace

import pytest

import nearid.questions.compare.ica_rung  # noqa: F401, registers the group beside the ladder
from nearid.base.errors import InputError
from nearid.groups.ladder import GROUPS, ladder, register


def names(groups):
    return [g.name for g in groups]


@pytest.fixture
def registry():
    kept = dict(GROUPS)
    yield GROUPS
    GROUPS.clear()
    GROUPS.update(kept)


def test_each_rung_comes_after_the_ones_it_contains():
    assert list(GROUPS) == ["permutation", "scaled_permutation", "rigid", "linear", "ica"]
    assert {g.name: g.contains for g in GROUPS.values()} == {
        "permutation": (),
        "scaled_permutation": ("permutation",),
        "rigid": ("permutation",),
        "linear": ("permutation", "scaled_permutation", "rigid"),
        "ica": (),
    }


def test_degrees_of_freedom_grow_along_the_ladder():
    spent = [GROUPS[name].degrees_of_freedom(5, 5) for name in ("permutation", "scaled_permutation", "rigid", "linear")]
    # Signs and order are discrete: a shift and a scale, or 5; a rotation of 5 dimensions has 10; a matrix 25.
    assert spent == [5 + 1, 5 + 5, 10 + 5 + 1, 25 + 5]


def test_named_groups_come_in_ladder_order():
    assert names(ladder("linear, permutation")) == ["permutation", "linear"]
    assert names(ladder(["rigid", "scaled_permutation"])) == ["scaled_permutation", "rigid"]
    assert names(ladder("linear,,permutation,")) == ["permutation", "linear"]
    assert names(ladder()) == ["permutation", "rigid", "linear"]


def test_ica_stands_beside_the_ladder_on_request():
    assert names(ladder("ica,rigid")) == ["rigid", "ica"]
    assert names(ladder("all")) == [*GROUPS]
    # Pairs of rows decide what they decide in a signed permutation.
    assert GROUPS["ica"].degrees_of_freedom(5, 4) == GROUPS["permutation"].degrees_of_freedom(5, 4)
    with pytest.raises(InputError, match="gives no verdict"):
        ladder("ica")


@pytest.mark.parametrize("wrong", ["rotation", "rigid,affine", "", "all,rigid"])
def test_unknown_groups_are_refused_with_the_known_ones(wrong):
    with pytest.raises(InputError, match="There are: permutation, scaled_permutation, rigid, linear, ica"):
        ladder(wrong)


def test_contains_puts_a_new_group_in_its_place(registry):
    # As many parameters as a linear map has, and smaller all the same.
    register(replace(GROUPS["linear"], name="upper", contains=("rigid",)))
    register(replace(GROUPS["linear"], contains=("scaled_permutation", "upper")))
    assert list(GROUPS) == ["permutation", "scaled_permutation", "rigid", "upper", "linear", "ica"]
    assert GROUPS["upper"].contains == ("permutation", "rigid")
    # Fewer parameters than any, and nothing says that others contain it.
    register(replace(GROUPS["permutation"], name="shift", degrees_of_freedom=lambda p, q: q))
    assert list(GROUPS)[:2] == ["shift", "permutation"]


def test_a_registry_stays_as_it_was_when_a_group_is_refused(registry):
    before = dict(GROUPS)
    with pytest.raises(InputError, match="contains affine, which is not registered"):
        register(replace(GROUPS["linear"], contains=("affine",)))
    with pytest.raises(InputError, match="contain each other: permutation"):
        register(replace(GROUPS["permutation"], contains=("rigid",)))
    assert before == GROUPS
