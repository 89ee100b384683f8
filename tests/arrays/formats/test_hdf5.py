from pathlib import Path

import numpy as np
import pytest

from nearid.arrays import open_rows
from nearid.base.errors import InputError

h5py = pytest.importorskip("h5py")


def test_keys_and_ids(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.hdf5", "w") as file:
        file["a/one"], file["a/two"] = np.zeros((3, 2)), np.ones((3, 4), ">f4")
        file["names"] = ["p", "q", "r"]
    path = tmp_path / "x.hdf5"
    with pytest.raises(InputError, match=r"'a/one' \(3, 2\) float64, 'a/two' \(3, 4\) >f4.*key='a/one'"):
        open_rows(path)
    rows = open_rows(path, key="/a/two", ids="names")
    assert rows.name == "x.hdf5:a/two" and rows.dtype == np.float32
    assert rows.ids is not None and rows.ids.tolist() == ["p", "q", "r"]
    np.testing.assert_array_equal(rows.read(0, 3), np.ones((3, 4)))
    with pytest.raises(InputError, match=r"'a' in x.hdf5 is a group, not a dataset. It holds 'one', 'two'"):
        open_rows(path, key="a")
    for missing in ("a/twos", "a/two/x"):
        with pytest.raises(InputError, match=r"Did you mean 'a/two'"):
            open_rows(path, key=missing)
    with pytest.raises(InputError, match=r"x\.reshape\(-1, 1\)|dtype object"):
        open_rows(path, key="names")


def test_anndata(tmp_path: Path) -> None:
    anndata = pytest.importorskip("anndata")
    sparse = pytest.importorskip("scipy.sparse")
    cells = anndata.AnnData(sparse.csr_matrix(np.eye(4)))
    cells.obsm["X_pca"] = np.arange(8.0).reshape(4, 2)
    cells.write_h5ad(tmp_path / "cells.h5ad")
    rows = open_rows(tmp_path / "cells.h5ad", key="obsm/X_pca", ids="obs/_index")
    np.testing.assert_array_equal(rows.read(0, 4), cells.obsm["X_pca"])
    assert rows.ids is not None and rows.ids.tolist() == ["0", "1", "2", "3"]
    with pytest.raises(InputError, match=r"X of cells.h5ad is a sparse matrix.*key='X_pca' \(--key X_pca\)"):
        open_rows(tmp_path / "cells.h5ad", key="X")


@pytest.mark.parametrize(
    "chunks, message", [((4, 2), "has only 4 of its 6 chunks"), (None, "has only 0 of its 320 bytes")]
)
def test_unwritten_storage_is_refused(tmp_path: Path, chunks: object, message: str) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", (10, 4), "f8", chunks=chunks)
        if chunks:
            dataset[:8] = 1
    with pytest.raises(InputError, match=message + ".*never written and would be read as 0.0"):
        open_rows(tmp_path / "x.h5")


def test_compact_and_scalar_storage(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        creation = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        creation.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3, 2))
        dataset = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, creation)
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ones((3, 2)))
        file["nothing"], file["scalar"] = h5py.Empty("f4"), 3.0
    np.testing.assert_array_equal(open_rows(tmp_path / "x.h5").read(0, 3), np.ones((3, 2)))
    with pytest.raises(InputError, match=r"an empty dataset"):
        open_rows(tmp_path / "x.h5", key="nothing")


def test_other_files_are_never_read(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["x"] = np.ones((3, 2))
    (tmp_path / "raw.bin").write_bytes(bytes(48))
    layout = h5py.VirtualLayout((3, 2), "f8")
    layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "x", (3, 2))
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file["link"] = h5py.ExternalLink("secret.h5", "/x")
        file["groups"] = h5py.ExternalLink("secret.h5", "/")
        file["soft"] = h5py.SoftLink("/link")
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("raw", (3, 2), "f8", external=[(tmp_path / "raw.bin", 0, 48)])
    for key in ("link", "groups/x"):
        with pytest.raises(InputError, match=r"a link to another file, 'secret.h5', which nearid does not follow"):
            open_rows(tmp_path / "x.h5", key=key)
    with pytest.raises(InputError, match=r"Give its target '/link'"):
        open_rows(tmp_path / "x.h5", key="soft")
    for key in ("virtual", "raw"):
        with pytest.raises(InputError, match=f"stores the numbers of '{key}' in other files"):
            open_rows(tmp_path / "x.h5", key=key)


def test_damaged_chunks(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        dataset = file.create_dataset("x", data=np.random.default_rng(0).normal(size=(50, 4)), compression="gzip")
        offset = dataset.id.get_chunk_info(0).byte_offset
    with (tmp_path / "x.h5").open("r+b") as raw:
        raw.seek(offset)
        raw.write(bytes(100))
    with pytest.raises(InputError, match=r"cannot be read"):
        open_rows(tmp_path / "x.h5").read(0, 50)


def test_types_that_numpy_widens(tmp_path: Path) -> None:
    x = np.arange(6.0).reshape(3, 2)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        bfloat16 = h5py.h5t.IEEE_F32LE.copy()
        bfloat16.set_fields(15, 7, 8, 0, 7)
        bfloat16.set_size(2)
        bfloat16.set_ebias(127)
        space = h5py.h5s.create_simple(x.shape)
        h5py.h5d.create(file.id, b"x", bfloat16, space).write(h5py.h5s.ALL, h5py.h5s.ALL, x)
    np.testing.assert_array_equal(open_rows(tmp_path / "x.h5", key="./x").read(0, 3), x)


def test_filters_that_are_not_installed(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        made = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        made.set_chunk((3, 2))
        made.set_filter(32015, h5py.h5z.FLAG_OPTIONAL, (3,))
        space = h5py.h5s.create_simple((3, 2))
        h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_DOUBLE, space, made).write_direct_chunk((0, 0), bytes(20))
    with pytest.raises(InputError, match=r"a filter that is not installed \(pip install hdf5plugin"):
        open_rows(tmp_path / "x.h5").read(0, 3)
