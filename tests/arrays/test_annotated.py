"""AnnData, in memory and as a file."""

import numpy as np
import pytest

from nearid import InputError
from nearid.arrays.annotated import is_annotated, open_annotated

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
