"""The other direction: known, settled by what is known, or reported as not computed."""

import numpy as np
import pytest

import nearid
from nearid.questions.compare.page import page
from nearid.questions.compare.tables import headline


@pytest.fixture
def skewed(rng):
    """A rigid motion and noise that drowns the small directions: rigid one way, linear the other, R2 alike."""
    x = rng.normal(size=(500, 6)) * [10, 3, 1, 0.3, 0.1, 0.03]
    return x, x @ np.linalg.qr(rng.normal(size=(6, 6)))[0] + 0.3 * rng.normal(size=(500, 6))


def test_argument_order_does_not_change_the_verdict_silently(skewed):
    x, y = skewed
    there, back = nearid.compare(x, y, permutations=1), nearid.compare(y, x, permutations=1)
    assert (there.verdict.group, back.verdict.group) == ("rigid", "linear")
    for c in (there, back):
        assert c.other_direction.status == c.to_dict()["other_direction"]["status"] == "not computed"
        for text in (headline(c), " ".join(str(c).split()), c._repr_html_(), page([c])):
            assert "The other direction was not computed and may differ" in text and "--symmetric" in text


def test_both_directions_are_named_where_they_differ(skewed):
    x, y = skewed
    for sides, names in (((x, y), "xy"), ((y, x), "yx")):
        found = nearid.compare(*sides, symmetric=True, names=list(names), permutations=1)
        assert found.verdict.group == "linear" and found.other_direction.status == "differs"
        assert "up to a rigid motion from x to y" in headline(found)
        assert "up to a linear map from y to x" in headline(found)
        plain = found.to_dict()
        assert plain["other_direction"]["status"] == "differs" and "other_direction" not in plain["reverse"]
        assert "was not computed" not in str(found) + found._repr_html_() + page([found])


@pytest.mark.parametrize("relation", ["permutation", "rigid", "linear", "none"])
def test_nothing_is_added_where_the_direction_cannot_matter(rng, relation):
    x = rng.normal(size=(2000, 4))
    y = {
        "permutation": -x[:, ::-1],
        "rigid": x @ np.linalg.qr(rng.normal(size=(4, 4)))[0],
        "linear": x @ np.diag([1.0, 2.0, 3.0, 4.0]),
        "none": rng.normal(size=(2000, 4)),
    }[relation]
    there, back = nearid.compare(x, y, permutations=1), nearid.compare(y, x, permutations=1)
    assert there.verdict.group == back.verdict.group == relation
    assert there.other_direction.status == "cannot differ" and "direction" not in headline(there)
    assert nearid.compare(x, y, symmetric=True, permutations=1).other_direction.status == "same"


def test_a_map_that_loses_a_direction_may_not_be_invertible(rng):
    x = rng.normal(size=(300, 3))
    assert nearid.compare(x, x @ np.diag([1.0, 1.0, 0.0]), permutations=1).other_direction.status == "not computed"
    assert nearid.compare(x, x[:, :2], permutations=1).other_direction.status == "not computed"


def test_several_pairs_have_one_line(rng, skewed):
    x, y = skewed
    text = " ".join(str(nearid.compare(x, y, x[:, ::-1], permutations=1)).split())
    assert "The other direction of 2 of 3 pairs was not computed and may differ: use --symmetric" in text


def test_a_verdict_of_the_other_direction_names_it(rng):
    x = rng.laplace(size=(400, 8))
    y = x[:, :3] @ rng.normal(size=(3, 3))
    found = nearid.compare(x, y, symmetric=True, names=["A", "B"], permutations=1)
    # B follows from A exactly, A from B in part.
    assert found.groups["linear"].r2 > 0.999 and found.verdict.strength != "nearly exactly"
    assert headline(found).startswith("From B to A, the worse direction: the target is contained in the source, ")
    assert "nearly exactly up to a linear map from A to B" in headline(found)
    assert "widths_differ" not in {alert.code for alert in found.alerts}
    assert ", back" in str(nearid.compare(x, y, x[:, :5], symmetric=True, permutations=1))
