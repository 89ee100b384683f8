"""Results as data."""

import numpy as np
import pytest

from nearid import InputError, compare


def test_results_are_immutable(rng):
    found = compare(x := rng.normal(size=(60, 2)), x + 1, permutations=1)
    with pytest.raises(AttributeError):
        found.n = 3


def test_matrix_of_other_figures(rng):
    runs = [rng.normal(size=(100, 2)) for _ in range(3)]
    found = compare(*runs, permutations=1)
    assert np.diag(found.matrix("rigid", "r2")).tolist() == [1, 1, 1]
    assert found.matrix("rigid", "chance")[0, 1] == found[0].groups["rigid"].chance
    assert [c.names for c in found] == [("array 1", "array 2"), ("array 1", "array 3"), ("array 2", "array 3")]
    assert repr(found[0]) == "<Comparison array 1 -> array 2: none (not at all), n=100, d=2 -> 2>"
    assert repr(found).startswith("<Comparisons of 3 runs: none")
    for wrong in ({"group": "affine"}, {"group": "rigid", "what": "p"}):
        with pytest.raises(InputError, match=r"compared|shows"):
            found.matrix(**wrong)
