"""AnnData, in memory and as a file."""

import numpy as np
import pytest

from nearid import InputError
from nearid.arrays import open_rows, pair_rows
from nearid.arrays.formats.annotated import is_annotated, open_annotated

anndata = pytest.importorskip("anndata", reason="the extra `anndata` is not installed")


@pytest.fixture
def cells():
    import pandas as pd

    rng = np.random.default_rng(0)
    obs = pd.DataFrame({"drug": list("abab"), "plate": [1, 1, 2, 2]}, index=["w1", "w2", "w3", "w4"])
    made = anndata.AnnData(rng.normal(size=(4, 3)).astype(np.float32), obs=obs)
    made.obsm["emb"] = rng.normal(size=(4, 2)).astype(np.float32)
    return made


@pytest.mark.parametrize("stored", [False, True])
def test_the_embedding_and_its_table(cells, tmp_path, stored):
    source = cells
    if stored:
        source = tmp_path / "cells.h5ad"
        cells.write_h5ad(source)
    assert is_annotated(source)
    rows, table = open_annotated(source)
    assert np.array_equal(rows.read(0, 4), cells.obsm["emb"])
    assert rows.ids.tolist() == ["w1", "w2", "w3", "w4"] == table.ids.tolist()
    assert list(table.values["drug"]) == list("abab") and list(table.values["plate"]) == [1, 1, 2, 2]
    assert np.array_equal(open_annotated(source, "X")[0].read(0, 4), cells.X)


def test_several_embeddings_must_be_told_apart(cells):
    cells.obsm["other"] = np.zeros((4, 2))
    with pytest.raises(InputError, match="Name one"):
        open_annotated(cells)
    with pytest.raises(InputError, match="Did you mean 'emb'"):
        open_annotated(cells, "embb")
    assert not is_annotated(np.zeros((2, 2)))


@pytest.mark.parametrize("stored", [False, True])
def test_rows_are_named_by_obs_names(cells, tmp_path, stored):
    moved = cells[[2, 0, 3, 1]].copy()
    # The index of obs may have a name of its own.
    moved.obs.index.name = "well"
    sources = [cells, moved]
    if stored:
        sources = [tmp_path / "a.h5ad", tmp_path / "b.h5ad"]
        cells.write_h5ad(sources[0])
        moved.write_h5ad(sources[1])
    x, y = (open_rows(source) for source in sources)
    assert x.ids.tolist() == ["w1", "w2", "w3", "w4"] and x.name.endswith(":obsm/emb")
    pair = pair_rows(x, y)
    np.testing.assert_array_equal(*pair.read(0, 4))
    assert pair.notes == ()


@pytest.mark.parametrize("stored", [False, True])
def test_keys_and_ids_of_rows(cells, tmp_path, stored):
    cells.obsm["other"] = np.zeros((4, 2))
    cells.layers["log"] = cells.X + 1
    source = tmp_path / "cells.h5ad" if stored else cells
    cells.write_h5ad(tmp_path / "cells.h5ad")
    with pytest.raises(InputError, match=r"several embeddings in obsm: emb, other\. Name one: key='emb'"):
        open_rows(source)
    for key, wanted in (
        ("emb", cells.obsm["emb"]),
        ("obsm/emb", cells.obsm["emb"]),
        ("X", cells.X),
        ("layers/log", cells.X + 1),
    ):
        rows = open_rows(source, key=key)
        np.testing.assert_array_equal(rows.read(0, 4), wanted)
        assert rows.ids.tolist() == ["w1", "w2", "w3", "w4"]
    assert open_rows(source, key="emb", ids="obs/plate").ids.tolist() == [1, 1, 2, 2]
    assert open_rows(source, key="emb", ids=[4, 3, 2, 1]).ids.tolist() == [4, 3, 2, 1]
    for options in ({"key": "obsm/embb"}, {"key": "embb"}, {"key": "emb", "ids": "obs/plat"}):
        with pytest.raises(InputError, match=r"has nothing named .* Did you mean"):
            open_rows(source, **options)


def test_parts_that_are_not_about_the_rows_have_no_names_of_rows(cells, tmp_path):
    cells.varm["loadings"] = np.ones((3, 2))
    cells.write_h5ad(tmp_path / "cells.h5ad")
    assert open_rows(tmp_path / "cells.h5ad", key="varm/loadings").ids is None


def test_a_link_out_of_the_file_is_not_followed(cells, tmp_path):
    import h5py

    cells.write_h5ad(tmp_path / "cells.h5ad")
    with h5py.File(tmp_path / "linked.h5ad", "w") as file:
        file["obsm"] = h5py.ExternalLink(str(tmp_path / "cells.h5ad"), "obsm")
        file["obs"] = h5py.ExternalLink(str(tmp_path / "cells.h5ad"), "obs")
        file["X"] = cells.X
    assert open_rows(tmp_path / "linked.h5ad").ids is None
    with pytest.raises(InputError, match="a link to another file"):
        open_rows(tmp_path / "linked.h5ad", key="obsm/emb")


def test_a_sparse_matrix_is_refused(cells):
    from scipy.sparse import csr_matrix

    cells.X = csr_matrix(cells.X)
    with pytest.raises(InputError, match="X of AnnData is sparse"):
        open_rows(cells, key="X")
