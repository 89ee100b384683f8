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


@pytest.fixture(scope="module")
def several():
    runs = [np.random.default_rng(k).normal(size=(100, 2)) for k in range(3)]
    return compare(*runs, names=["a<b>.npy", "b.npy", "c.npy"], permutations=1)


def test_in_a_notebook_each_block_names_its_pair(several):
    blocks = several._repr_html_().split('<div class="nearid">')[1:]
    for block, pair in zip(blocks, ("a&lt;b&gt;.npy → b.npy", "a&lt;b&gt;.npy → c.npy", "b.npy → c.npy"), strict=True):
        assert f"<strong>{pair}:" in block


def test_a_matrix_names_its_runs(several):
    matrix = several.matrix("rigid")
    assert matrix["b.npy", "c.npy"] == matrix[1, 2] == several[2].groups["rigid"].epsilon.mean
    np.testing.assert_array_equal(np.asarray(matrix), matrix.values)
    assert np.asarray(matrix, dtype=np.float32).dtype == np.float32 and np.nanmax(matrix) == np.nanmax(matrix.values)
    title, head, first, *_ = repr(matrix).splitlines()
    assert title == "Mean error / diameter, held out, rigid motion"
    assert head.split() == ["source", "\\", "target", "a<b>.npy", "b.npy", "c.npy"]
    assert first.split() == ["a<b>.npy", "0", f"{matrix[0, 1]:.4g}", f"{matrix[0, 2]:.4g}"]
    html = matrix._repr_html_()
    assert html.count("<th>b.npy") == 2 and html.count("<th>a&lt;b&gt;.npy") == 2 and "<b>" not in html
    with pytest.raises(InputError, match=r"No runs are called 'd'.*a<b>.npy, b.npy, c.npy"):
        matrix["d", 0]


def test_a_matrix_as_a_frame(several, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = several.matrix("rigid").to_frame()
    assert isinstance(frame, pandas.DataFrame) and frame.loc["b.npy", "c.npy"] == several.matrix("rigid")[1, 2]
    assert (frame.index.name, frame.columns.name) == ("source", "target")
    monkeypatch.setitem(__import__("sys").modules, "pandas", None)
    with pytest.raises(InputError, match="pip install pandas"):
        several.matrix("rigid").to_frame()
