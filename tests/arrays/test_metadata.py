"""Columns chosen by patterns, and those that look like metadata."""

import numpy as np
import pytest

import nearid
from nearid.arrays import open_rows, pair_rows
from nearid.arrays.metadata import choose_columns, input_alerts, metadata_alerts, suspects
from nearid.base.errors import InputError

pd = pytest.importorskip("pandas")
N = 400


def table(rng, **columns):
    return pd.DataFrame(rng.normal(size=(N, 4)), columns=[f"emb_{k}" for k in range(4)]).assign(**columns)


def names(frame):
    return [suspect.name for suspect in suspects(open_rows(frame))]


@pytest.mark.parametrize("name", ["cell_id", "wellRow", "WELL", "Metadata.Site", "fold number", "index", "imageID"])
def test_names_are_evidence_where_values_are_not(rng, name):
    # Neither few values nor all different.
    assert names(table(rng, **{name: rng.integers(0, N // 2, N)})) == [name]


@pytest.mark.parametrize("name", ["colour", "identity", "sitting", "refractive_index", "rowdy", "label_smoothing_loss"])
def test_measured_columns_are_not_named(rng, name):
    assert names(table(rng, **{name: rng.normal(size=N)})) == []


def test_values_are_evidence(rng):
    frame = table(
        rng,
        counter=np.arange(N),
        shuffled=rng.permutation(N) * 7,
        gapped=pd.array([None, *rng.integers(0, 5, N - 1)], dtype="Int64"),
        many=rng.integers(0, N // 2, N),
        dead=0.0,
        constant=3,
        large=rng.normal(size=N) * 1e300,
    ).assign(**{f"more_{k}": rng.normal(size=N) for k in range(4)})
    assert names(frame) == ["counter", "shuffled", "gapped"]
    # In few rows values say little.
    assert names(frame[:15]) == []


def test_what_most_columns_have_in_common_is_no_evidence(rng):
    counts = pd.DataFrame(rng.poisson(2, size=(N, 30)))
    assert names(counts) == [] and names(counts > 1) == []
    assert names(pd.DataFrame(rng.integers(0, 60, size=(N, 30)))) == []
    assert names(counts.assign(cell=np.arange(N), batch=1)) == ["cell", "batch"]
    assert names(pd.DataFrame(rng.integers(0, 9, (N, 5)), columns=[f"col{k}" for k in range(5)])) == []
    # Numbers beyond the precision are whole in any case.
    assert names((table(rng) * 1e9).astype(np.float32).assign(x=rng.normal(size=N).astype(np.float32))) == []


@pytest.mark.parametrize("suffix", ["csv", "tsv", "parquet"])
def test_one_alert_says_what_to_type(rng, tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    frame = table(rng, cell_id=np.arange(N), **{"a,b [*]": rng.integers(0, 3, N)})
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False, sep="\t" if suffix == "tsv" else ",")
    rows = open_rows(path)
    (alert,) = metadata_alerts(rows)
    assert alert.code == "metadata_columns" and rows.shape[1] == 6
    assert alert.message == (
        f"Columns of t.{suffix} that look like metadata are used as features: 'cell_id' (its name, a different whole "
        "number in each row), 'a,b [*]' (3 different whole numbers). To leave them out: exclude='cell_id,a?b [[][*]]' "
        "(--exclude 'cell_id,a?b [[][*]]'). If 'cell_id' holds the ids of the rows: ids='cell_id' (--ids cell_id)."
    )
    chosen = open_rows(path, exclude="cell_id,a?b [[][*]]")
    assert chosen.columns == ("emb_0", "emb_1", "emb_2", "emb_3") and metadata_alerts(chosen) == []
    np.testing.assert_array_equal(chosen.read(3, 9), rows.read(3, 9)[:, :4])
    np.testing.assert_array_equal(chosen.take(np.array([7, 2])), rows.take(np.array([7, 2]))[:, :4])


def test_a_table_without_names_is_named_by_place(rng, tmp_path):
    np.savetxt(tmp_path / "t.csv", np.column_stack([np.arange(N), rng.normal(size=(N, 2))]), delimiter=",")
    rows = open_rows(tmp_path / "t.csv")
    (alert,) = metadata_alerts(rows)
    assert "--exclude 0)" in alert.message and "--ids" not in alert.message
    assert open_rows(tmp_path / "t.csv", exclude="0").shape == (N, 2)
    # An array is no table, but its columns can be chosen.
    array = open_rows(np.column_stack([np.arange(N), np.ones(N)]))
    assert metadata_alerts(array) == [] and open_rows(array, features=["1"]).shape == (N, 1)


def test_many_columns_are_not_typed_one_by_one(rng):
    frame = pd.DataFrame(rng.normal(size=(N, 80))).assign(**{f"{'x' * k}_id": np.arange(N) for k in range(60)})
    (alert,) = metadata_alerts(open_rows(frame))
    assert "--features 'emb_*'" in alert.message and len(alert.message) < 2000


def test_a_big_table_is_read_once_at_its_beginning(rng, monkeypatch):
    rows = open_rows(pd.DataFrame(np.zeros((10_000, 3)), columns=list("abc")))
    asked = []
    read = rows.read
    monkeypatch.setattr(rows, "read", lambda start, stop: asked.append((start, stop)) or read(start, stop))
    metadata_alerts(rows)
    assert asked == [(0, 4096)]


def test_patterns_hold_for_the_sources_that_they_fit(rng):
    one, two = open_rows(table(rng, plate=1), name="a"), open_rows(table(rng), name="b")
    assert [rows.shape[1] for rows in choose_columns([one, two], exclude="plate, emb_3")] == [3, 4 - 1]
    assert choose_columns([one], None, None)[0] is one
    array = open_rows(rng.normal(size=(N, 2)))
    assert [rows.shape[1] for rows in choose_columns([one, array], features="emb_[01]")] == [2, 2]
    with pytest.raises(InputError, match=r"No column of a or b matches exclude='plat'. Did you mean"):
        choose_columns([one, two], exclude="emb_0,plat")
    with pytest.raises(InputError, match=r"features=.* leaves no column of b"):
        choose_columns([one, two], features="plate")
    for nothing in ("", ",", []):
        with pytest.raises(InputError, match="No column of exclude is given"):
            choose_columns([one], exclude=nothing)
    for wrong in ([3], 5):
        with pytest.raises(InputError, match="exclude is "):
            open_rows(one, exclude=wrong)


def test_columns_that_are_the_same_in_both_tables_are_named(rng):
    shared = {"size": rng.normal(size=200)}
    a, b = (pd.DataFrame(rng.normal(size=(200, 3)), columns=list("uvw")).assign(**shared, zero=0.0) for _ in "ab")
    alerts = {alert.code: alert.message for alert in nearid.compare(a, b, permutations=1).alerts}
    assert "so they may be metadata: 'size'. " in alerts["shared_columns"]
    assert "--exclude size" in alerts["shared_columns"]
    assert "shared_columns" not in {x.code for x in nearid.compare(a, b, permutations=1, exclude="size").alerts}


@pytest.mark.parametrize("option, kept", [("exclude", ("x1", "y")), ("features", ("x[1]",))])
def test_an_exact_name_is_no_pattern(rng, option, kept):
    frame = pd.DataFrame(rng.normal(size=(N, 3)), columns=["x[1]", "x1", "y"])
    assert open_rows(frame, **{option: "x[1]"}).columns == kept
    # Where no column has this name, it is a pattern.
    assert open_rows(frame.drop(columns="x[1]"), exclude="x[1]").columns == ("y",)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "polars"])
def test_columns_that_are_no_features_may_be_left_out_too(rng, tmp_path, kind):
    frame = table(rng, plate=["p"] * N, well_row=["A"] * N, cell=[f"c{k}" for k in range(N)])
    source = tmp_path / f"t.{kind}"
    if kind == "csv":
        frame.to_csv(source, index=False)
    elif kind == "parquet":
        frame.to_parquet(source)
    else:
        source = frame if kind == "frame" else pytest.importorskip("polars").from_pandas(frame)
    rows = open_rows(source, ids="cell", exclude="plate,well_*,cell,emb_3")
    assert rows.columns == ("emb_0", "emb_1", "emb_2") and open_rows(source, exclude="plate").shape[1] == 4
    assert open_rows(rows, exclude="plate,emb_0").columns == ("emb_1", "emb_2")
    with pytest.raises(InputError, match=r"No column of .* matches exclude='plat'. Did you mean 'plate'"):
        open_rows(source, exclude="plat")
    with pytest.raises(InputError, match=r"No numeric column of .* matches features='plate'"):
        open_rows(source, features="plate")


def test_vectors_in_a_column_stay_whole_beside_a_column_that_is_left_out(rng, tmp_path):
    frame = pd.DataFrame({"emb": list(rng.normal(size=(N, 4))), "plate": ["p"] * N})
    frame.to_parquet(tmp_path / "t.parquet")
    assert open_rows(tmp_path / "t.parquet", exclude="plate").shape == (N, 4)


@pytest.mark.parametrize("column", ["file", "id"])
@pytest.mark.parametrize("write", ["csv", "parquet", "frame"])
def test_rows_that_are_named_in_another_order_are_told(rng, tmp_path, column, write):
    names = [f"{k}.png" for k in range(N)] if column == "file" else 7 * np.arange(N)
    a, b = table(rng, **{column: names}), table(rng, **{column: names})
    order = rng.permutation(N)

    def opened(frame, name):
        if write == "frame":
            return open_rows(frame)
        getattr(frame, f"to_{write}")(tmp_path / f"{name}.{write}", index=False)
        return open_rows(tmp_path / f"{name}.{write}")

    def told(second):
        return [a.message for a in input_alerts(pair_rows(opened(a, "a"), second)) if a.code == "order_differs"]

    (message,) = told(opened(b.iloc[order].reset_index(drop=True), "b"))
    assert f"--ids {column}" in message and "paired by position" in message
    # The same order, other names, and names that repeat say nothing.
    assert not told(opened(b, "b"))
    assert not told(opened(b.assign(**{column: [f"{name}x" for name in names]}), "b"))
    repeated = b.assign(**{column: [*names[:-1], names[0]]})
    assert not told(opened(repeated.iloc[::-1].reset_index(drop=True), "b"))


def test_ids_that_are_named_pair_the_rows(rng):
    a, b = (table(rng, file=[f"{k}.png" for k in range(N)]) for _ in "ab")
    pair = pair_rows(open_rows(a, ids="file"), open_rows(b.iloc[::-1], ids="file"))
    assert "order_differs" not in {alert.code for alert in input_alerts(pair)}


@pytest.mark.parametrize("name", ["Metadata_Concentration", "Image_Metadata_Dose", "Metadata_gene_dosage"])
def test_columns_that_a_pipeline_marks_are_metadata_whatever_they_hold(rng, name):
    import pandas as pd

    table = pd.DataFrame(rng.normal(size=(30, 3)), columns=["f_a", "f_b", name])
    (alert,) = metadata_alerts(open_rows(table))
    assert (
        f"{name!r} (its name)" in alert.message and f"--exclude {name}" in alert.message and "f_a" not in alert.message
    )
