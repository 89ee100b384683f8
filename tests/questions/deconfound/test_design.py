"""Labels and batches from arrays, tables and AnnData, paired by id; what cannot be used is told in a sentence."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest

from nearid import InputError
from nearid.questions.deconfound.design import Categories, open_design, text_codes

X = np.random.default_rng(0).normal(size=(6, 3))
LABELS, BATCHES = list("ababab"), [1, 1, 2, 2, 3, 3]


def codes(column):
    return [column.names[c] for c in column.codes]


def test_arrays():
    d = open_design(X, LABELS, BATCHES, control="a")
    assert codes(d.labels) == LABELS and codes(d.batches) == list("112233")
    assert d.control == 0 and d.blocks is None and d.alerts == ()
    assert Categories.of(np.array(["z", "y", "z"], dtype=object)).counts().tolist() == [1, 2]
    mixed = Categories.of(np.array([2.0, None, np.nan, "", 10.0, 2], dtype=object))
    assert mixed.names == ("10", "2") and mixed.codes.tolist() == [1, -1, -1, -1, 0, 1]
    assert Categories.of(np.array([3.0, np.nan, 3.0])).codes.tolist() == [0, -1, 0]


def test_columns_of_a_table_are_paired_by_id(tmp_path):
    np.savez(tmp_path / "x.npz", rows=X, well=np.array(list("uvwxyz")))
    table = pd.DataFrame({"well": list("zyxwvu"), "drug": LABELS[::-1], "plate": BATCHES[::-1]})
    table.to_csv(tmp_path / "meta.csv", index=False)
    d = open_design(tmp_path / "x.npz", "drug", "plate", meta=tmp_path / "meta.csv", key="rows", ids="well")
    assert codes(d.labels) == LABELS and codes(d.batches) == list("112233")
    table[1:].to_parquet(tmp_path / "part.parquet", index=False)
    d = open_design(tmp_path / "x.npz", "drug", "plate", meta=tmp_path / "part.parquet", key="rows", ids="well")
    assert codes(d.labels) == LABELS[:5] and np.array_equal(d.rows.read(0, 5), X[:5])
    assert any("no row with the same" in a.message for a in d.alerts)


def test_one_table_holds_everything(tmp_path):
    table = pd.DataFrame(X, columns=["f1", "f2", "f3"]).assign(drug=LABELS, week=BATCHES, Metadata_dose=1.0)
    for source in (table, tmp_path / "all.csv"):
        if source is not table:
            table.to_csv(source, index=False)
        d = open_design(source, "drug", "week")
        assert d.rows.columns == ("f1", "f2", "f3") and codes(d.batches) == list("112233")
        assert np.allclose(d.rows.read(0, 6), X)


def test_metadata_are_no_features_wherever_labels_come_from():
    table = pd.DataFrame(X, columns=["f1", "f2", "f3"]).assign(week=BATCHES, Metadata_code=[0, 1] * 3)
    meta = pd.DataFrame({"drug": LABELS, "week": BATCHES})
    for given in ({"labels": "drug", "batches": "week", "meta": meta}, {"labels": LABELS, "batches": table["week"]}):
        assert open_design(table, **given).rows.columns == ("f1", "f2", "f3")
    # Arrays have no name, but the column that they are is seen.
    d = open_design(table, LABELS, BATCHES)
    assert d.rows.columns == ("f1", "f2", "f3") and "leaves them out: 'week'" in d.alerts[0].message
    assert np.allclose(d.rows.read(0, 6), X)


def test_series_are_paired_by_their_index():
    wells = [f"w{i}" for i in range(6)]
    meta = pd.DataFrame({"drug": LABELS, "plate": BATCHES}, index=wells).iloc[[3, 0, 5, 1, 4, 2]]
    table = pd.DataFrame(X, columns=["f1", "f2", "f3"], index=wells)
    d = open_design(table, meta["drug"], meta["plate"])
    assert codes(d.labels) == LABELS and codes(d.batches) == list("112233")
    d = open_design(table, meta["drug"][1:], meta["plate"])
    assert codes(d.labels) == list("abaab")
    assert [a.code for a in d.alerts[:2]] == ["input", "missing_metadata"] and "no row with the same index" in d.alerts[
        0
    ].message
    counted = meta.set_axis([3, 0, 5, 1, 4, 2])
    assert codes(open_design(table.reset_index(drop=True), counted["drug"], BATCHES).labels) == LABELS
    # An array names no rows.
    d = open_design(X, counted["drug"], BATCHES)
    assert codes(d.labels) == list(meta["drug"]) and "paired by position" in d.alerts[0].message
    assert open_design(X, pd.Series(LABELS), BATCHES).alerts == ()
    with pytest.raises(InputError, match=r"such as 'w0'\) is in the index of labels \(such as 'u'\)"):
        open_design(table, meta["drug"].set_axis(list("uvwxyz")), BATCHES)


@pytest.mark.parametrize(
    "index",
    [
        pd.RangeIndex(6),
        pd.date_range("2020-01-01", periods=6, tz="UTC"),
        pd.MultiIndex.from_product([[1, 2, 3], ["a", "b"]]),
        pd.CategoricalIndex(list("uvwxyz")),
    ],
    ids=["range", "dates", "two levels", "categories"],
)
def test_frames_of_metadata_are_paired_by_their_index(index):
    order = [3, 0, 5, 1, 4, 2]
    table = pd.DataFrame(X, columns=["f1", "f2", "f3"], index=index)
    meta = pd.DataFrame({"drug": LABELS, "plate": BATCHES}, index=index).iloc[order]
    for given in ({"labels": "drug", "batches": "plate", "meta": meta}, {"labels": meta["drug"], "batches": BATCHES}):
        d = open_design(table, **given)
        assert codes(d.labels) == LABELS and codes(d.batches) == list("112233") and d.alerts == ()
    other = meta.set_axis(pd.Index(range(100, 106)))
    with pytest.raises(InputError, match="is in the index of metadata"):
        open_design(table, "drug", "plate", meta=other)


def test_series_in_different_orders_are_refused_beside_an_array():
    labels, batches = pd.Series(LABELS), pd.Series(BATCHES)
    with pytest.raises(InputError, match="labels and batches are Series with different indexes"):
        open_design(X, labels, batches.sample(frac=1, random_state=1))


def test_a_statistic_of_the_label_is_not_a_feature():
    """It would tell the label by itself, in every batch."""
    rng = np.random.default_rng(0)
    drug, plate = np.repeat(["a", "b", "c"], 20), np.tile(["1", "2", "3", "4"], 15)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["f1", "f2", "f3"]).assign(drug=drug, plate=plate)
    table["p_value"] = table["drug"].map({"a": 0.013, "b": 0.21, "c": 0.5})
    opened = open_design(table, "drug", "plate")
    assert opened.rows.columns == ("f1", "f2", "f3")
    assert any("'p_value' (constant within each label)" in alert.message for alert in opened.alerts)


def test_columns_that_look_like_metadata_are_told_and_can_be_left_out():
    table = pd.DataFrame(X, columns=["f1", "f2", "f3"]).assign(drug=LABELS, plate=BATCHES, site=[1, 2] * 3, well_row=1)
    d = open_design(table, "drug", "plate")
    (alert,) = [a for a in d.alerts if a.code == "metadata_columns"]
    assert "left out: 'site', 'well_row' (their names)." in alert.message
    assert "plate" not in alert.message
    assert d.rows.columns == ("f1", "f2", "f3")
    for chosen in ({"exclude": "site,well_*"}, {"features": ["f?"]}, {"exclude": ["site", "well_row", "plate"]}):
        d = open_design(table, "drug", "plate", **chosen)
        assert d.rows.columns == ("f1", "f2", "f3") and codes(d.batches) == list("112233")
        assert "metadata_columns" not in [a.code for a in d.alerts]


@pytest.fixture
def cells():
    anndata = pytest.importorskip("anndata")
    obs = pd.DataFrame({"drug": LABELS, "plate": BATCHES}, index=[f"c{i}" for i in range(6)])
    return anndata.AnnData(np.zeros((6, 2), np.float32), obs=obs, obsm={"emb": X})


def test_anndata(cells):
    d = open_design(cells, "drug", "plate", key="emb")
    assert codes(d.labels) == LABELS and np.array_equal(d.rows.read(0, 6), X)
    assert codes(open_design(cells, cells.obs["drug"][::-1], "plate", key="emb").labels) == LABELS


def test_anndata_and_a_table_without_ids_are_not_paired(cells):
    table = pd.DataFrame({"cell": cells.obs_names, "drug": LABELS, "plate": BATCHES})[::-1].reset_index(drop=True)
    with pytest.raises(InputError, match=r"such as 'c0'\) is in the index of metadata \(such as 0\)"):
        open_design(cells, "drug", "plate", meta=table)
    with pytest.raises(InputError, match="nothing says that both are in the same order"):
        open_design(cells, "drug", "plate", meta={"drug": LABELS, "plate": BATCHES})
    assert codes(open_design(cells, "drug", "plate", meta=table, ids="cell").labels) == LABELS
    with pytest.raises(InputError, match="no meta"):
        open_design(cells, "drug", "plate", ids="nonsense")


def test_rows_without_metadata_are_left_out_and_told():
    d = open_design(X, ["a", None, "b", "", "a", "b"], [1, 1, 1, 2.0, np.nan, 2])
    assert codes(d.labels) == ["a", "b", "b"] and codes(d.batches) == ["1", "1", "2"]
    assert np.array_equal(d.rows.read(0, 3), X[[0, 2, 5]])
    assert [a.code for a in d.alerts] == ["missing_metadata", "single_label_batch"]


def test_missing_values_of_any_kind_of_table():
    table = pd.DataFrame({"drug": pd.array(["a", pd.NA, "b", "b", "a", "b"], dtype="string")})
    table["plate"] = pd.Categorical(["p", "p", "p", "q", None, "q"])
    d = open_design(X, "drug", "plate", meta=table)
    assert codes(d.labels) == ["a", "b", "b", "b"] and codes(d.batches) == ["p", "p", "q", "q"]
    for text in (["a", np.nan, "b", "b", "a", "b"], np.array(["a", None, "b", "b", "a", "b"], dtype=object)):
        assert open_design(X, text, BATCHES).labels.names == ("a", "b")
        assert open_design(X, "drug", BATCHES, meta={"drug": text}).labels.names == ("a", "b")
    given = pd.Series(["a", pd.NA, "b", "b", "a", "b"], dtype=object)
    assert codes(open_design(X, given, BATCHES).labels) == ["a", "b", "b", "a", "b"]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"labels": None}, "labels are needed"),
        ({"labels": "drug"}, "no table beside"),
        ({"labels": "drgu", "meta": {"drug": LABELS}}, "Did you mean 'drug'"),
        ({"labels": LABELS[:4]}, r"shape \(4,\)"),
        ({"labels": ["a"] * 6}, "nothing to classify"),
        ({"batches": [7] * 6}, "nothing can be held out"),
        ({"batches": list("pqpqpq")}, "Every batch has one label"),
        ({"control": "c"}, "nothing named 'c'"),
        ({"labels": "drug", "meta": {"drug": LABELS[:3]}}, "cannot be paired by position"),
        (
            {"labels": "drug", "meta": {"drug": LABELS}, "ids": (list("uvwxyz"), list("mnopqr"))},
            "is an id of metadata",
        ),
    ],
)
def test_what_cannot_be_used_is_told(changes, told):
    with pytest.raises(InputError, match=told):
        open_design(X, **{"labels": LABELS, "batches": BATCHES, **changes})


@pytest.mark.parametrize("text", ["nan", "None", "NA"])
def test_text_of_a_missing_value_is_reported(text):
    d = open_design(X, ["a", "b", text, "a", "b", text], BATCHES)
    assert [a.code for a in d.alerts] == ["missing_as_text"]
    assert f"The column of labels has the text {text!r} in 2 rows" in d.alerts[0].message


def test_labels_that_differ_by_type_alone_are_refused():
    with pytest.raises(InputError, match="labels holds both 1 and '1'"):
        open_design(X, [1, "1", 2, 1, "1", 2], BATCHES)


def test_true_is_another_label_than_one():
    found = Categories.of(np.array([True, 1, 0, True], dtype=object))
    assert found.names == ("0", "1", "True") and found.codes.tolist() == [2, 1, 0, 2]


@pytest.fixture
def shuffled(tmp_path):
    """An embedding without names of rows, and metadata whose rows have names; 40 rows."""
    np.save(tmp_path / "emb.npy", np.random.default_rng(1).normal(size=(40, 3)))
    return pd.DataFrame({"drug": list("abbaa") * 8, "plate": [1, 2] * 20}, index=[f"w{at}" for at in range(40)])


@pytest.mark.parametrize("form", ["index.csv", "well.csv", "index.parquet", "id.csv", "frame"])
def test_pairing_by_position_is_told_where_the_table_names_its_rows(shuffled, tmp_path, form):
    table, column = {
        "index.csv": (shuffled, ""),
        "index.parquet": (shuffled, "__index_level_0__"),
        "well.csv": (shuffled.reset_index(names="well"), "well"),
        "id.csv": (shuffled.assign(cell_id=np.arange(40)[::-1] + 100), "cell_id"),
        "frame": (shuffled.reset_index(names="well"), "well"),
    }[form]
    meta = tmp_path / form
    if form == "frame":
        meta = table
    elif form == "index.parquet":
        table.to_parquet(meta)
    else:
        table.to_csv(meta, index=form == "index.csv")
    notes = [alert.message for alert in open_design(tmp_path / "emb.npy", "drug", "plate", meta=meta).alerts]
    (told,) = (note for note in notes if "paired by position" in note)
    assert f"names its rows by {column!r}" in told and f"(--ids {column or chr(39) * 2})" in told


def test_a_table_that_names_no_rows_has_no_alert(shuffled, tmp_path):
    shuffled.assign(size=np.arange(40) / 7, id=np.arange(40)).to_csv(tmp_path / "m.csv", index=False)
    assert open_design(tmp_path / "emb.npy", "drug", "plate", meta=tmp_path / "m.csv").alerts == ()


def test_columns_in_use_are_not_called_ignored(shuffled):
    table = shuffled.assign(plate=list("uv") * 20, note="x", f1=np.arange(40) / 7, f2=1 / np.arange(1, 41))
    (alert,) = open_design(table, "drug", "plate").alerts
    assert "'note'" in alert.message and "'drug'" not in alert.message and "'plate'" not in alert.message
    assert open_design(table.drop(columns="note"), "drug", "plate").alerts == ()


@pytest.mark.parametrize("stored", [False, True])
def test_metadata_of_anndata_are_its_obs(cells, tmp_path, stored):
    source = tmp_path / "cells.h5ad" if stored else cells
    cells.write_h5ad(tmp_path / "cells.h5ad")
    d = open_design(X, "drug", "plate", meta=source)
    assert codes(d.labels) == LABELS and any("paired by position" in alert.message for alert in d.alerts)


@pytest.mark.parametrize(
    "values",
    [
        ["b", "a", "B", "", "a"],
        [None, np.nan, "x", float("nan"), None, "nan"],
        [2, 10, 2.0, True, "2"],
        ["é", "z", "日"],
    ],
)
def test_codes_of_text_are_those_of_numpy(values):
    values = np.array(values, dtype=object)
    assert text_codes(values).tolist() == np.unique(values.astype(str), return_inverse=True)[1].tolist()
    assert text_codes(values.astype(str)).tolist() == text_codes(values).tolist()


def test_one_long_text_takes_little_memory(rng):
    """Not rows x the longest text: 5,000 x 3,000 characters are 60 MB."""
    n = 5000
    frame = pd.DataFrame({"x": rng.normal(size=n), "drug": ["a", "b"] * (n // 2), "plate": rng.choice(["p", "q"], n)})
    frame["comment"] = np.array(["x" * 3000, "z", *["ok"] * (n - 2)], dtype=object)
    tracemalloc.start()
    try:
        open_design(frame, "drug", "plate")
        assert tracemalloc.get_traced_memory()[1] < 10e6
    finally:
        tracemalloc.stop()
