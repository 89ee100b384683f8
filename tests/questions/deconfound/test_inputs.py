"""Which columns and rows of an embedding are used."""

import numpy as np
import pandas as pd
import pytest

import nearid
from nearid import InputError, open_rows
from nearid.questions.deconfound.design import open_design
from nearid.questions.deconfound.inputs import names_from, usable


@pytest.fixture
def table(rng):
    """120 wells of 4 plates with features, metadata that are numbers, and two broken columns."""
    n = 120
    plate = np.repeat(np.arange(4), 30)
    frame = pd.DataFrame(rng.normal(size=(n, 5)), columns=[f"Cells_Texture_{name}" for name in "abcde"])
    frame["drug"] = np.tile(["DMSO", "x", "y"], 40)
    frame["plate"] = [f"P{p}" for p in plate]
    frame["site"] = np.tile([1, 2, 3, 4], 30)
    frame["ImageNumber"] = np.arange(n) * 7
    frame["Nuclei_Location_Center_X"] = rng.normal(size=n)
    frame["temperature"] = np.array([20.5, 21.25, 19.75, 22.5])[plate]
    frame.loc[frame.index % 2 == 0, "Cells_Texture_d"] = np.nan
    frame.loc[7, "Cells_Texture_e"] = np.inf
    return frame


def test_metadata_and_broken_columns_are_left_out_and_listed(table):
    design = open_design(table, "drug", "plate")
    assert design.rows.columns == ("Cells_Texture_a", "Cells_Texture_b", "Cells_Texture_c", "Cells_Texture_e")
    assert design.n == 119 and design.left_out == ("Cells_Texture_d",) and design.source.shape == (120, 4)
    alerts = {alert.code: alert.message for alert in design.alerts}
    for name in ("site", "ImageNumber", "Nuclei_Location_Center_X", "temperature"):
        assert repr(name) in alerts["metadata_columns"]
    assert "'temperature' (constant within each batch)" in alerts["metadata_columns"]
    assert "'Cells_Texture_d' (60 values)" in alerts["nonfinite"]
    assert alerts["nonfinite"].startswith("nearid leaves out 1 of 5 columns and 1 of 120 rows of ")


def test_features_that_are_named_are_used(table):
    design = open_design(table, "drug", "plate", features="*", nonfinite="columns")
    assert {"site", "ImageNumber", "temperature"} <= set(design.rows.columns or ()) and design.n == 120
    assert "metadata_columns" not in {alert.code for alert in design.alerts}


def test_columns_from_a_file(table, tmp_path):
    path = tmp_path / "columns.txt"
    path.write_text("Cells_Texture_a\n\nCells_Texture_b\n")
    design = open_design(table, "drug", "plate", columns_from=path)
    assert design.rows.columns == ("Cells_Texture_a", "Cells_Texture_b")
    path.write_text("Cells_Texture_a\nCells_Texture_z\n")
    with pytest.raises(InputError, match="Cells_Texture_z"):
        open_design(table, "drug", "plate", columns_from=path)
    with pytest.raises(InputError, match="not both"):
        open_design(table, "drug", "plate", columns_from=path, features="Cells*")


@pytest.mark.parametrize(
    ("content", "sentence"), [(b"", "names no column"), (b"\xff\xfe\x00", "no text in UTF-8"), (None, "is not a file")]
)
def test_lists_of_columns_that_cannot_be_read(tmp_path, content, sentence):
    path = tmp_path / "columns.txt"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=sentence):
        names_from(path)


def test_the_default_keeps_the_most_values(rng):
    """Against all choices of columns, by brute force."""
    for _ in range(20):
        x = rng.normal(size=(12, 5))
        x[rng.random(x.shape) < rng.choice([0.05, 0.3, 0.9], 5)] = np.nan
        try:
            chosen = usable(open_rows(x), "least")
        except InputError:
            continue
        kept = len(chosen.columns) * len(chosen.rows)
        assert np.isfinite(x[np.ix_(chosen.rows, chosen.columns)]).all()
        # Columns in the order of their gaps are what it chooses from.
        order = np.argsort(np.isnan(x).sum(axis=0), kind="stable")
        values = [k * int(np.isfinite(x[:, order[:k]]).all(axis=1).sum()) for k in range(1, 6)]
        assert kept == max(values)


def test_values_that_are_not_finite_are_refused_by_name(table):
    with pytest.raises(InputError, match=r"2 of 5 columns \('Cells_Texture_d' \(60 values\)"):
        open_design(table, "drug", "plate", nonfinite="refuse")
    with pytest.raises(InputError, match="nonfinite='columns'"):
        broken = table.assign(Cells_Texture_a=np.nan)
        open_design(broken, "drug", "plate", nonfinite="rows")


def test_advice_on_values_that_are_not_finite_is_one_that_helps(table):
    nothing = np.full((5, 3), np.nan)
    with pytest.raises(InputError, match=r"rows are left\. Fill them in\."):
        usable(open_rows(nothing), "least")
    some = np.where(np.arange(3) == 1, np.nan, np.ones((5, 3)))
    with pytest.raises(InputError, match=r"Try nonfinite='columns'"):
        usable(open_rows(some), "rows")


def test_a_finite_table_is_used_as_a_whole(rng):
    chosen = usable(open_rows(rng.normal(size=(30, 3)) * 1e300), "least")
    assert len(chosen.rows) == 30 and len(chosen.columns) == 3 and not chosen.alerts


@pytest.fixture
def cells():
    anndata = pytest.importorskip("anndata", reason="the extra `anndata` is not installed")
    sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    labels, batches = rng.choice(["DMSO", "a"], 120), rng.integers(0, 4, 120).astype(str)
    x = rng.laplace(size=(120, 4)) + np.outer(labels == "a", [3, 0, 0, 0])
    obs = pd.DataFrame({"drug": labels, "plate": batches}, index=[f"cell {k}" for k in range(120)])
    entries = {"obsm": {"X_emb": x, "X_other": 2 * x}, "layers": {"dense": x, "counts": sparse.csr_matrix(x)}}
    return anndata.AnnData(X=sparse.csr_matrix(x), obs=obs, **entries)


QUICK = {"control": "DMSO", "classifiers": "logistic", "directions": "most", "folds": 2, "conditions": "base,ica"}


def test_annotated_cells_transform_without_their_key_again(cells, tmp_path):
    found = nearid.deconfound(cells, "drug", "plate", key="X_emb", **QUICK)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    expected = found.transform(cells, key="X_emb")
    for source in (cells, tmp_path / "cells.h5ad"):
        np.testing.assert_array_equal(found.transform(source), expected)
    # Another entry may still be named.
    assert not np.allclose(found.transform(cells, key="X_other"), expected)


def test_layers_are_named_and_sparse_matrices_refused_with_what_to_type(cells, tmp_path):
    import anndata

    cells.write_h5ad(tmp_path / "cells.h5ad")
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    expected = nearid.deconfound(cells, "drug", "plate", key="X_emb", **QUICK).mean("base").mean
    for source in (cells, backed, tmp_path / "cells.h5ad"):
        assert nearid.deconfound(source, "drug", "plate", key="dense", **QUICK).mean("base").mean == expected
        for key in ("X", "counts"):
            with pytest.raises(InputError, match=r"is a sparse matrix.*Name a dense entry instead: key='\w+' \(--key"):
                nearid.deconfound(source, "drug", "plate", key=key, **QUICK)
    backed.file.close()


def test_apply_finds_the_entry_of_the_cleaned_cells(cells, tmp_path):
    from typer.testing import CliRunner

    from nearid.cli.commands import app

    cells.write_h5ad(tmp_path / "cells.h5ad")
    nearid.deconfound(cells, "drug", "plate", key="X_emb", out=tmp_path / "clean.npy", drop=1, **QUICK)
    applied = ["apply", str(tmp_path / "clean.model"), str(tmp_path / "cells.h5ad"), "-o", str(tmp_path / "new.npy")]
    done = CliRunner().invoke(app, [*applied, "--quiet"])
    assert done.exit_code == 0, done.output
    np.testing.assert_allclose(np.load(tmp_path / "new.npy"), np.load(tmp_path / "clean.npy"))
