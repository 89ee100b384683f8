"""Results as data; the other direction: known, settled by what is known, or reported as not computed."""

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid import InputError, compare
from nearid.show.page import page


def test_results_are_immutable(rng):
    found = compare(x := rng.normal(size=(60, 2)), x + 1, permutations=1)
    with pytest.raises(AttributeError):
        found.n = 3


def test_matrix_of_other_figures(rng):
    runs = [rng.normal(size=(100, 2)) for _ in range(3)]
    found = compare(*runs, permutations=1)
    assert np.diag(found.matrix("rigid", "r2")).tolist() == [1, 1, 1]
    assert found.matrix("rigid", "chance")[0, 1] == found[0].groups["rigid"].epsilon.chance
    assert [c.names for c in found] == [("array 1", "array 2"), ("array 1", "array 3"), ("array 2", "array 3")]
    assert repr(found[0]).startswith("<Comparison array 1 -> array 2: Not the same representation: no map explains")
    assert repr(found) == "<Comparisons array 1, array 2, array 3: 3 pairs of runs: 3 agree up to no group>"
    with pytest.raises(InputError, match=r"compared|shows"):
        found.matrix("affine")
    with pytest.raises(InputError, match=r"There is no matrix of 'p'\. Choose epsilon, r2 or chance"):
        found.matrix("rigid", "p")


@pytest.fixture(scope="module")
def several():
    runs = [np.random.default_rng(k).normal(size=(100, 2)) for k in range(3)]
    return compare(*runs, names=["a<b>.npy", "b.npy", "c.npy"], permutations=1)


def test_several_results_share_alerts_and_provenance(several):
    assert [run["name"] for run in several.provenance["inputs"]] == list(several.names)
    assert len(set(several.alerts)) == len(several.alerts)
    written = several.to_dict()
    assert written["verdicts"] == [[0, 1, "none"], [0, 2, "none"], [1, 2, "none"]] and len(written["pairs"]) == 3
    pytest.importorskip("pandas")
    frame = several.to_frame()
    assert len(frame) == 9 and frame.loc[0, "epsilon"] == several[0].groups["permutation"].epsilon.value


def test_a_frame_of_both_directions(rng):
    pytest.importorskip("pandas")
    x = rng.normal(size=(60, 2))
    frame = compare(x, -x, symmetric=True, permutations=1, names=["a", "b"]).to_frame()
    assert frame[["source", "group"]].values.tolist()[2:4] == [["a", "linear"], ["b", "permutation"]]
    assert frame.is_verdict.tolist() == [True, False, False] * 2


def test_a_matrix_names_its_runs(several):
    matrix = several.matrix("rigid")
    assert matrix["b.npy", "c.npy"] == matrix[1, 2] == several[2].groups["rigid"].epsilon.value
    np.testing.assert_array_equal(np.asarray(matrix), matrix.values)
    assert np.asarray(matrix, dtype=np.float32).dtype == np.float32 and np.nanmax(matrix) == np.nanmax(matrix.values)
    title, head, first, *_ = repr(matrix).splitlines()
    assert title == "Mean epsilon, held out, rigid motion"
    assert head.split() == ["source", "\\", "target", "a<b>.npy", "b.npy", "c.npy"]
    assert first.split() == ["a<b>.npy", "0", f"{matrix[0, 1]:.4g}", f"{matrix[0, 2]:.4g}"]
    html = matrix._repr_html_()
    assert html.count("<td>b.npy") == 2 and html.count("<td>a&lt;b&gt;.npy") == 2 and "<b>" not in html
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
        # The headline is the answer with the figure that decided; the line below it names what was left out.
        words, r2 = "rigid motion" if c is there else "linear map", c.groups[c.verdict.group].r2.value
        assert c.view.headline.endswith(f"up to a {words} (R2 {r2:.3f})")
        assert c.view.reason == f"{c.verdict.reason}\n{c.other_direction.text}."
        for text in (" ".join(str(c).split()), c._repr_html_(), page(c.view)):
            assert "The other direction was not computed and may differ" in text and "--symmetric" in text


def test_both_directions_are_named_where_they_differ(skewed):
    x, y = skewed
    for sides, names in (((x, y), "xy"), ((y, x), "yx")):
        found = nearid.compare(*sides, symmetric=True, names=list(names), permutations=1)
        assert found.verdict.group == "linear" and found.other_direction.status == "differs"
        assert "up to a rigid motion from x to y" in found.view.headline
        assert "up to a linear map from y to x" in found.view.headline
        plain = found.to_dict()
        assert plain["other_direction"]["status"] == "differs" and "other_direction" not in plain["reverse"]
        assert "was not computed" not in str(found) + found._repr_html_() + page(found.view)


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
    assert there.other_direction.status == "cannot differ" and "other direction" not in str(there)
    assert nearid.compare(x, y, symmetric=True, permutations=1).other_direction.status == "same"


def test_a_scale_for_each_column_may_hide_a_small_one(rng):
    x = rng.normal(size=(500, 3))
    y = x * [1.0, 1.0, 1e-5] + 1e-5 * rng.normal(size=(500, 3))
    found = nearid.compare(x, y, groups="scaled_permutation,linear", permutations=1)
    assert found.verdict.group == "scaled_permutation" and found.other_direction.status == "not computed"


def test_a_map_that_loses_a_direction_may_not_be_invertible(rng):
    x = rng.normal(size=(300, 3))
    assert nearid.compare(x, x @ np.diag([1.0, 1.0, 0.0]), permutations=1).other_direction.status == "not computed"
    assert nearid.compare(x, x[:, :2], permutations=1).other_direction.status == "not computed"


def test_several_pairs_have_one_line(rng, skewed):
    x, y = skewed
    text = " ".join(str(nearid.compare(x, y, x[:, ::-1], permutations=1)).split())
    assert "It was not computed for 2 of 3 pairs and may differ: use --symmetric" in text


def test_alerts_of_several_pairs_name_their_pairs(rng):
    x, few = rng.normal(size=(300, 2)), rng.normal(size=(12, 2))
    frames = [pd.DataFrame(rows) for rows in (np.repeat(x[:150], 2, axis=0), np.repeat(x[:100], 3, axis=0), few)]
    alerts = compare(*frames, names=["a", "b", "c"], permutations=1).alerts
    assert [a.message.split(":")[0] for a in alerts if a.code == "few_rows"] == ["a -> c, b -> c"]
    twice = np.repeat(x[:150], 2, axis=0)
    alerts = compare(twice, -twice, x, names=["a", "b", "c"], permutations=1).alerts
    assert [a.message[:35] for a in alerts if a.code == "repeated_rows"] == ["a -> b: about 150 of 300 rows repea"]
    # What all pairs share, and what names its run, needs no pair.
    alerts = compare(twice, -twice, 2 * twice, names=["a", "b", "c"], permutations=1).alerts
    assert [a.message[:9] for a in alerts if a.code == "repeated_rows"] == ["About 150"]
    alerts = compare(np.column_stack([x, np.ones(300)]), x, -x, names=["a", "b", "c"], permutations=1).alerts
    assert [a.message[:15] for a in alerts if a.code == "constant_columns"] == ["Column '2' of a"]


def test_two_runs_have_a_matrix_too(rng):
    x = rng.normal(size=(100, 2))
    found = compare(x, -x, names=["a", "b"], permutations=1)
    assert found.matrix("rigid", "r2")["a", "b"] == found.groups["rigid"].r2.value
    assert np.isnan(found.matrix("rigid")["b", "a"]) and found.matrix("rigid").values.shape == (2, 2)
    with pytest.raises(InputError, match="'affine' was not compared"):
        found.matrix("affine")


def test_a_verdict_of_the_other_direction_names_it(rng):
    x = rng.laplace(size=(400, 8))
    y = x[:, :3] @ rng.normal(size=(3, 3))
    found = nearid.compare(x, y, symmetric=True, names=["A", "B"], permutations=1)
    # B follows from A exactly, A from B in part.
    assert found.groups["linear"].r2.value > 0.999 and found.verdict.strength != "nearly exactly"
    assert found.view.headline.startswith("From B to A, the worse direction: the target is contained in the source, ")
    assert "nearly exactly up to a linear map from A to B" in found.view.headline
    assert "widths_differ" not in {alert.code for alert in found.alerts}
    assert ", back" in str(nearid.compare(x, y, x[:, :5], symmetric=True, permutations=1))


def test_alerts_of_both_directions_are_told_once(rng):
    x = np.cumsum(rng.normal(size=(400, 3)), axis=0)
    y = x @ rng.normal(size=(3, 3))
    found = nearid.compare(x, y, symmetric=True, names=["A", "B"], permutations=1)
    codes = [alert.code for alert in found.alerts]
    assert codes.count("serial_rows") == 1 and len(set(codes)) == len(codes)
    (told,) = (alert.message for alert in found.alerts if alert.code == "serial_rows")
    assert told.index(" in A ") < told.index(" in B")


def test_alerts_that_differ_in_figures_are_one_line_and_each_pair_keeps_its_own(rng):
    x = rng.normal(size=(300, 2))
    frames = [pd.DataFrame(np.repeat(x[: 300 // k], k, axis=0)) for k in (2, 3, 4)]
    found = compare(*frames, names=["a", "b", "c"], blocks="none", permutations=1)
    (line,) = (alert.message for alert in found.view.alerts if alert.code == "repeated_rows")
    copies = [a.message for c in found for a in c.alerts if a.code == "repeated_rows"]
    assert len(copies) == 3 and len(set(copies)) == 2
    assert [a["message"] for a in found.to_dict()["alerts"] if a["code"] == "repeated_rows"] == [line]
    counts = sorted(int(message.split()[1]) for message in copies)
    assert line.startswith(f"All 3 pairs: about {counts[0]} to {counts[-1]} of 300 rows repeat others: ")
