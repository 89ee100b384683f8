"""The ladder as data."""

import pytest

from nearid.base.errors import InputError
from nearid.groups.ladder import LADDER, UNMIXED, rungs


def test_each_rung_contains_the_ones_below():
    names = list(LADDER)
    for k, group in enumerate(LADDER.values()):
        assert list(group.contains) == names[:k]


def test_degrees_of_freedom_grow_along_the_ladder():
    spent = [g.degrees_of_freedom(5, 5) for g in LADDER.values()]
    # signs and order are discrete: a shift and a scale; a rotation of 5 dimensions has 10; a matrix 25.
    assert spent == [5 + 1, 10 + 5 + 1, 25 + 5]


def test_rungs_come_in_ladder_order():
    assert [g.name for g in rungs("linear, permutation")] == ["permutation", "linear"]
    assert [g.name for g in rungs()] == list(LADDER)


def test_ica_stands_beside_the_ladder_on_request():
    assert [g.name for g in rungs("ica,rigid")] == ["rigid", "ica"]
    assert [g.name for g in rungs("all")] == [*LADDER, "ica"]
    # Pairs of rows decide what they decide in a signed permutation.
    spent = LADDER["permutation"].degrees_of_freedom(5, 4)
    assert UNMIXED.degrees_of_freedom(5, 4) == spent
    assert not UNMIXED.contains and not any("ica" in g.contains for g in LADDER.values())
    with pytest.raises(InputError, match="gives no verdict"):
        rungs("ica")


@pytest.mark.parametrize("wrong", ["rotation", "rigid,affine", "", "all,rigid"])
def test_unknown_groups_are_refused_with_the_known_ones(wrong):
    with pytest.raises(InputError, match="the groups are permutation, rigid, linear, ica"):
        rungs(wrong)
