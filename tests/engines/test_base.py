"""The tree of merges: which one it is, and how little of it is held."""

import pytest

from nearid.engines.base import FAN_IN, held_nodes, merge_parts, merge_tree


def plain(leaves):
    """The tree level by level, as nested tuples."""
    while len(leaves) > 1:
        leaves = [tuple(leaves[i : i + FAN_IN]) for i in range(0, len(leaves), FAN_IN)]
        leaves = [node[0] if len(node) == 1 else node for node in leaves]
    return leaves[0]


def as_tuple(children):
    return children[0] if len(children) == 1 else tuple(children)


def tree(leaves, fan_in=FAN_IN):
    return merge_tree(leaves, lambda leaf: [leaf], lambda node, leaf: [*node, leaf], as_tuple, fan_in)


@pytest.mark.parametrize("n", [*range(1, 140), 448, 449, 511, 512, 513, 4097])
def test_the_tree_is_that_of_whole_levels(n):
    assert tree(range(n)) == plain(list(range(n)))


def test_without_a_fan_in_all_are_merged_in_order():
    assert tree(range(100), None) == tuple(range(100))


@pytest.mark.parametrize("n", [1, 8, 9, 64, 65, 512, 600])
def test_only_one_node_a_level_is_held(n):
    held, most = 0, 0

    def begin(leaf):
        nonlocal held, most
        held += 1
        most = max(most, held)
        return leaf

    def end(node):
        nonlocal held
        held -= 1
        return node

    assert merge_tree(range(n), begin, lambda node, leaf: node + leaf, end) == sum(range(n))
    assert most <= held_nodes(n)


def test_nothing_to_merge_is_an_error():
    with pytest.raises(ValueError, match="nothing to merge"):
        tree([])


def test_parts_are_merged_place_by_place():
    assert merge_parts([1, "a"], iter([2, "b"]), lambda into, part: into + part) == [3, "ab"]
