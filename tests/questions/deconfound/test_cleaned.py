"""The cleaned embedding in every format, and the model that cleans other rows."""

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid import InputError

QUICK = {"classifiers": "logistic", "directions": "most", "conditions": "base,ica", "folds": 3, "top": ()}


@pytest.fixture(scope="module")
def drawn():
    """600 wells: a batch effect in one direction, two drugs in two others, mixed."""
    rng = np.random.default_rng(0)
    n = 600
    drug, plate = rng.integers(0, 3, n), rng.integers(0, 6, n)
    s = rng.laplace(size=(n, 6))
    s[:, 0] += 3 * (drug == 1)
    s[:, 1] += 3 * (drug == 2)
    shift = 3 * np.array([-1.5, -1, -0.5, 0.5, 1, 1.5])[plate]
    mixing = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return (s + np.outer(shift, np.eye(6)[2])) @ mixing, drug, plate, mixing


@pytest.fixture
def table(drawn):
    x, drug, plate, _ = drawn
    frame = pd.DataFrame(x.copy(), columns=list("abcdef"))
    frame.insert(0, "well", [f"{k:04d}" for k in range(len(x))])
    frame["drug"], frame["plate"] = np.array(["DMSO", "x", "y"])[drug], [f"P{p}" for p in plate]
    frame["site"] = np.tile([1, 2, 3], 200)
    return frame


def planted(clean, drawn):
    """Share of the variance of batch means along the planted direction that is left."""
    x, _, plate, mixing = drawn
    before, after = (np.var([(z @ mixing[2])[plate == p].mean() for p in range(6)]) for z in (x, clean))
    return after / before


def test_the_batch_goes_and_the_label_stays(drawn, tmp_path):
    x, drug, plate, mixing = drawn
    result = nearid.deconfound(x, drug, plate, control=0, out=tmp_path / "clean.npy", **QUICK)
    clean = np.load(tmp_path / "clean.npy")
    assert planted(clean, drawn) < 0.1
    # What is not dropped stays where it was.
    left = [0, 1, 3, 4, 5]
    np.testing.assert_allclose(
        np.corrcoef((clean @ mixing.T)[:, left].T, (x @ mixing.T)[:, left].T)[:5, 5:].diagonal(), 1, atol=0.05
    )
    cleaning = result.cleaning
    assert len(cleaning.dropped) == 1 and cleaning.dropped[0].batch > 0.5
    assert cleaning.cost.batch_before > 0.75 and cleaning.cost.batch_after < 0.6
    assert abs(float(cleaning.cost.label_change)) < 0.05 and cleaning.cost.label_before > 0.85
    assert (
        "Cleaned (ridge regression): without this component the batch" in result.view.reason
        and "kept_base" in result.conditions
    )


@pytest.mark.parametrize("suffix", [".csv", ".tsv.gz", ".parquet"])
def test_a_table_keeps_ids_metadata_and_columns(table, drawn, tmp_path, suffix):
    given, out = tmp_path / f"wells{suffix}", tmp_path / f"clean{suffix}"
    table.loc[3, "b"] = np.nan
    separator = "\t" if ".tsv" in suffix else ","
    table.to_parquet(given) if suffix == ".parquet" else table.to_csv(given, index=False, sep=separator)
    nearid.deconfound(given, "drug", "plate", control="DMSO", out=out, **QUICK)
    read = pd.read_parquet(out) if suffix == ".parquet" else pd.read_csv(out, sep=separator, dtype={"well": str})
    assert list(read.columns) == list(table.columns)
    assert read["well"].tolist() == table["well"].tolist() and read["site"].tolist() == table["site"].tolist()
    assert read.loc[3, list("abcdef")].isna().all() and read.drop(index=3)[list("abcdef")].notna().all(axis=None)
    clean = read[list("abcdef")].to_numpy()
    kept = np.arange(len(clean)) != 3
    x, drug, plate, mixing = drawn
    assert planted(clean[kept], (x[kept], drug[kept], plate[kept], mixing)) < 0.1


def test_a_column_with_gaps_is_not_in_the_cleaned_table(table, tmp_path):
    table.insert(3, "broken", np.where(np.arange(600) % 2, np.nan, table["a"]))
    table.to_parquet(tmp_path / "wells.parquet")
    nearid.deconfound(tmp_path / "wells.parquet", "drug", "plate", control="DMSO", out=tmp_path / "c.parquet", **QUICK)
    assert "broken" not in pd.read_parquet(tmp_path / "c.parquet").columns


def test_annotated_data_get_an_entry_and_the_model(drawn, tmp_path):
    anndata = pytest.importorskip("anndata")
    x, drug, plate, _ = drawn
    obs = pd.DataFrame({"drug": drug.astype(str), "plate": plate.astype(str)}, index=[f"c{k}" for k in range(len(x))])
    cells = anndata.AnnData(obs=obs, obsm={"X_model": x.astype(np.float32)})
    cells.write_h5ad(tmp_path / "cells.h5ad")
    for given, out in ((tmp_path / "cells.h5ad", "a.h5ad"), (cells, "b.h5ad")):
        nearid.deconfound(given, "drug", "plate", control="0", out=tmp_path / out, **QUICK)
        read = anndata.read_h5ad(tmp_path / out)
        assert planted(read.obsm["X_nearid_cleaned"], drawn) < 0.1
        assert read.uns["nearid_cleaning"]["mixing"].shape == (6, 1)
        np.testing.assert_array_equal(read.obsm["X_model"], x.astype(np.float32))


def test_the_model_cleans_other_rows(nearid_command, table, tmp_path, drawn):
    first, second = table.iloc[:400], table.iloc[400:]
    first.to_csv(tmp_path / "old.csv", index=False)
    second[["site", "f", "e", "d", "c", "b", "a", "well"]].to_csv(tmp_path / "new.csv", index=False)
    nearid.deconfound(tmp_path / "old.csv", "drug", "plate", control="DMSO", out=tmp_path / "clean.csv", **QUICK)
    done = nearid_command("apply", "clean.model", "new.csv", "-o", "new-clean.csv")
    assert done.returncode == 0, done.stderr
    read = pd.read_csv(tmp_path / "new-clean.csv", dtype={"well": str})
    assert list(read.columns) == ["site", "f", "e", "d", "c", "b", "a", "well"]
    x, drug, plate, mixing = drawn
    assert planted(read[list("abcdef")].to_numpy(), (x[400:], drug[400:], plate[400:], mixing)) < 0.15


@pytest.fixture
def nearid_command(tmp_path):
    import subprocess
    import sys

    def run(*words):
        return subprocess.run([sys.executable, "-m", "nearid", *words], cwd=tmp_path, capture_output=True, text=True)

    return run


def test_a_dry_run_writes_nothing(drawn, tmp_path):
    x, drug, plate, _ = drawn
    result = nearid.deconfound(x, drug, plate, control=0, out=tmp_path / "clean.npy", dry_run=True, **QUICK)
    assert result.cleaning is not None and result.cleaning.written is None and not list(tmp_path.iterdir())


def test_a_number_drops_as_many(drawn):
    x, drug, plate, _ = drawn
    result = nearid.deconfound(x, drug, plate, control=0, drop=3, **QUICK)
    shares = [d.batch for d in result.cleaning.dropped]
    assert len(shares) == 3 and shares == sorted(shares, reverse=True)


def test_places_and_rules_that_are_refused(drawn, tmp_path):
    x, drug, plate, _ = drawn
    args = (x, drug, plate)
    for options, sentence in (
        ({"out": tmp_path / "c.parquet"}, "is a table, but the input is none"),
        ({"out": tmp_path / "c.h5ad"}, "is an AnnData file"),
        ({"out": tmp_path / "no" / "c.npy"}, "no folder"),
        ({"drop": "most"}, "drop .--drop. takes 'auto'"),
        ({"drop": 1.5}, "takes 'auto'"),
        ({"drop": -1}, "takes 'auto'"),
    ):
        with pytest.raises(InputError, match=sentence):
            nearid.deconfound(*args, **options, **QUICK)
    (tmp_path / "c.npy").write_bytes(b"kept")
    with pytest.raises(InputError, match="already exists"):
        nearid.deconfound(*args, out=tmp_path / "c.npy", **QUICK)
    assert (tmp_path / "c.npy").read_bytes() == b"kept"


def test_a_damaged_model_is_refused(drawn, tmp_path):
    from nearid.questions.deconfound.cleaned import is_cleaning, read_cleaning

    x, drug, plate, _ = drawn
    nearid.deconfound(x, drug, plate, control=0, out=tmp_path / "c.npy", **QUICK)
    folder = tmp_path / "c.model"
    assert is_cleaning(folder)
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-8] + bytes(255 - byte for byte in data[-8:]))
    with pytest.raises(InputError, match="is not the file that"):
        read_cleaning(folder)
    (folder / "model.safetensors").unlink()
    with pytest.raises(InputError, match="Copy the whole folder"):
        read_cleaning(folder)


def test_the_input_is_never_written_over(table, tmp_path, nearid_command):
    table.to_csv(tmp_path / "wells.csv", index=False)
    before = (tmp_path / "wells.csv").read_bytes()
    options = ["--labels", "drug", "--batches", "plate", "-o", "wells.csv", "--overwrite"]
    done = nearid_command("deconfound", "wells.csv", *options)
    assert done.returncode == 2 and "would damage the input" in done.stderr
    assert (tmp_path / "wells.csv").read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["wells.csv"]


def test_a_folder_that_cannot_be_written_is_refused_before_work(drawn):
    x, drug, plate, _ = drawn
    # /proc refuses everybody; permissions alone do not stop an administrator.
    with pytest.raises(InputError, match=r"c\.npy cannot be written into the folder /proc"):
        nearid.deconfound(x, drug, plate, out="/proc/c.npy", **QUICK)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_killed_run_leaves_the_old_file(table, tmp_path, suffix):
    """The process dies (SIGKILL) after it has written a part of the table."""
    import signal
    import subprocess
    import sys

    table.to_csv(tmp_path / "wells.csv", index=False)
    (tmp_path / f"clean{suffix}").write_bytes(b"old")
    script = f"""
import os, signal, pyarrow.csv, pyarrow.parquet, nearid
def die(table, file, *rest):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
pyarrow.csv.write_csv = pyarrow.parquet.write_table = die
nearid.deconfound("wells.csv", "drug", "plate", control="DMSO", out="clean{suffix}", overwrite=True, **{QUICK!r})
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert (tmp_path / f"clean{suffix}").read_bytes() == b"old" and not (tmp_path / "clean.model").exists()


def test_a_table_that_lacks_a_column_is_refused_by_its_name(table, tmp_path, nearid_command):
    table.to_csv(tmp_path / "wells.csv", index=False)
    table.drop(columns="c").to_csv(tmp_path / "new.csv", index=False)
    nearid.deconfound(tmp_path / "wells.csv", "drug", "plate", control="DMSO", out=tmp_path / "clean.csv", **QUICK)
    done = nearid_command("apply", "clean.model", "new.csv", "-o", "out.csv")
    assert done.returncode == 2 and "lacks 1 of the 6 columns" in done.stderr and "'c'" in done.stderr
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"conditions": "base"}, "kept_base"),
        ({"conditions": "pca"}, "kept_pca"),
        ({"conditions": "pca,ica"}, "kept"),
        ({"conditions": "random"}, None),
        ({"conditions": "base", "directions": "one"}, None),
    ],
)
def test_cleaning_needs_no_condition(drawn, tmp_path, options, condition):
    x, drug, plate, _ = drawn
    found = nearid.deconfound(x, drug, plate, control=0, out=tmp_path / "clean.npy", **{**QUICK, **options})
    clean = np.load(tmp_path / "clean.npy")
    assert planted(clean, drawn) < 0.1 and [name for name in found.conditions if "kept" in name] == [condition] * bool(
        condition
    )
    if condition is None:
        return
    first = options["conditions"].rpartition(",")[2]
    # Under the map of all rows, which is the same for cleaned rows.
    rows = found.conditions[condition].condition.map(x)
    assert ("of cleaned rows from PCA + ICA." in found.view.tables[0].note) == (condition == "kept")
    np.testing.assert_allclose(rows, found.conditions[first].condition.map(clean), atol=1e-4)
    text = str(found)
    title = {"base": "Base", "pca": "PCA", "ica": "PCA + ICA"}[first]
    assert f"{title}, cleaned" in text and "ropping batch components (" in text
    # Named where it is not the first condition that cleaned rows are compared with.
    against = "against" in text.split("ropping batch components (")[1].partition(")")[0]
    assert against == (condition == "kept")


@pytest.mark.parametrize("fixed", [True, False])
def test_vectors_in_a_column_beside_labels_are_cleaned_in_place(drawn, tmp_path, fixed, nearid_command):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    x, drug, plate, _ = drawn
    kind = pa.list_(pa.float64(), 6 if fixed else -1)
    vectors = pa.array(x.tolist(), kind)
    labels = {"drug": drug.astype(str), "plate": plate, "site": np.tile([1, 2, 3], 200)}
    table = pa.table({"embedding": vectors, **labels})
    pq.write_table(table, tmp_path / "wells.parquet", row_group_size=170)
    found = nearid.deconfound(
        tmp_path / "wells.parquet", "drug", "plate", control="0", out=tmp_path / "clean.parquet", **QUICK
    )
    same = nearid.deconfound(x, drug.astype(str), plate, control="0", **QUICK)
    assert found.mean("base").mean == same.mean("base").mean and found.provenance["options"]["key"] == "embedding"
    assert any("column 'embedding'. Not used: 'site'." in alert.message for alert in found.alerts)
    read = pq.read_table(tmp_path / "clean.parquet")
    assert read.schema.types == table.schema.types and read.drop(["embedding"]).equals(table.drop(["embedding"]))
    clean = np.array(read.column("embedding").to_pylist())
    assert planted(clean, drawn) < 0.1
    # The model finds the column again.
    done = nearid_command("apply", "clean.model", "wells.parquet", "-o", "again.parquet")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(
        np.array(pq.read_table(tmp_path / "again.parquet").column("embedding").to_pylist()), clean
    )
    with pytest.raises(InputError, match=r"into a text table.*clean2\.parquet or clean2\.npy"):
        nearid.deconfound(tmp_path / "wells.parquet", "drug", "plate", out=tmp_path / "clean2.csv", **QUICK)


def test_outputs_without_a_format_are_refused_with_those_of_the_input(table, tmp_path):
    table.to_csv(tmp_path / "wells.csv", index=False)
    for out, sentence in (
        ("clean", r"are written as \.parquet, \.csv, .*\.zarr, but the output is clean\. Name it clean\.csv\."),
        ("clean.xlsx", r"Name it clean\.csv\."),
        (".", r"is a folder\. Give the name of a file, such as .*cleaned\.csv\."),
    ):
        with pytest.raises(InputError, match=sentence):
            nearid.deconfound(tmp_path / "wells.csv", "drug", "plate", out=tmp_path / out, **QUICK)


def test_a_table_of_vectors_or_at_an_address_is_refused_before_work(drawn, tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet

    x, labels, batches, _ = drawn
    vectors = tmp_path / "vectors.parquet"
    pyarrow.parquet.write_table(pa.table({"embedding": x.tolist()}), vectors)
    monkeypatch.setattr("nearid.questions.deconfound.run.evaluate", lambda *_, **__: pytest.fail("worked first"))
    with pytest.raises(InputError, match=r"vectors in one column.*clean\.npy"):
        nearid.deconfound(vectors, labels, batches, out=tmp_path / "clean.csv", drop=1)
    with pytest.raises(InputError, match="is at an address"):
        nearid.deconfound("s3://bucket/x.parquet", "a", "b", out=tmp_path / "clean.parquet", drop=1)


def test_a_mistyped_path_is_refused_before_the_cluster_is_reached(tmp_path):
    with pytest.raises(InputError, match=r"There is no file named 'x\.npy'"):
        nearid.deconfound(tmp_path / "x.npy", "a", "b", engine="tcp://127.0.0.1:1")


def test_a_table_of_statistics_of_the_label_is_refused(table):
    frame = table.drop(columns="site")
    means = frame.assign(**{name: frame.groupby("drug")[name].transform("mean") for name in "abcdef"})
    with pytest.raises(InputError, match=r"All columns of .* describe the rows.*within each"):
        nearid.deconfound(means, "drug", "plate", **QUICK)
