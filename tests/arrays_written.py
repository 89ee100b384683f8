"""Writers of a matrix to files of every format."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

Writer = Callable[[Path, np.ndarray], Path]


def write_npy(folder: Path, x: np.ndarray) -> Path:
    np.save(folder / "x.npy", x)
    return folder / "x.npy"


def write_fortran(folder: Path, x: np.ndarray) -> Path:
    np.save(folder / "f.npy", np.asfortranarray(x))
    return folder / "f.npy"


def write_npz(folder: Path, x: np.ndarray) -> Path:
    np.savez_compressed(folder / "x.npz", x=x, labels=np.arange(len(x)))
    return folder / "x.npz"


def write_safetensors(folder: Path, x: np.ndarray) -> Path:
    from safetensors.numpy import save_file

    save_file({"x": x, "labels": np.arange(len(x))}, folder / "x.safetensors")
    return folder / "x.safetensors"


def write_csv(folder: Path, x: np.ndarray) -> Path:
    import pandas as pd

    pd.DataFrame(x).add_prefix("c").to_csv(folder / "x.csv", index=False)
    return folder / "x.csv"


def write_tsv_gz(folder: Path, x: np.ndarray) -> Path:
    import pandas as pd

    pd.DataFrame(x).add_prefix("c").to_csv(folder / "x.tsv.gz", index=False, sep="\t")
    return folder / "x.tsv.gz"


def write_parquet(folder: Path, x: np.ndarray) -> Path:
    import pandas as pd

    pd.DataFrame(x).add_prefix("c").to_parquet(folder / "x.parquet", row_group_size=10)
    return folder / "x.parquet"


def write_embeddings(folder: Path, x: np.ndarray) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), x.shape[1])
    pq.write_table(pa.table({"embedding": column}), folder / "e.parquet", row_group_size=10)
    return folder / "e.parquet"


def write_hdf5(folder: Path, x: np.ndarray) -> Path:
    import h5py

    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("group/x", data=x, chunks=(min(8, len(x)), 3), compression="gzip")
        file["group/labels"] = np.arange(len(x))
    return folder / "x.h5"


def write_zarr(folder: Path, x: np.ndarray) -> Path:
    import zarr

    zarr.create_array(folder / "x.zarr", data=x, chunks=(8, 3))
    return folder / "x.zarr"


def write_zarr2(folder: Path, x: np.ndarray) -> Path:
    import zarr

    group = zarr.create_group(folder / "g.zarr", zarr_format=2)
    group.create_array("layer/x", data=x, chunks=(8, 3))
    return folder / "g.zarr"


def write_torch(folder: Path, x: np.ndarray) -> Path:
    torch = pytest.importorskip("torch")

    torch.save({"layer": {"x": torch.from_numpy(x)}, "labels": torch.arange(len(x))}, folder / "x.pt")
    return folder / "x.pt"


WRITERS: list[Writer] = [
    write_npy,
    write_fortran,
    write_npz,
    write_safetensors,
    write_csv,
    write_tsv_gz,
    write_parquet,
    write_embeddings,
    write_hdf5,
    write_zarr,
    write_zarr2,
    write_torch,
]
