"""File formats, one module per format. Importing this package registers all of them."""

from nearid.arrays.formats import csv, hdf5, layers, npy, parquet, safetensors, torch, zarr
from nearid.arrays.formats.registry import register

for _known in (
    layers.LAYERS,
    npy.NPY,
    npy.NPZ,
    safetensors.SAFETENSORS,
    csv.CSV,
    parquet.PARQUET,
    hdf5.HDF5,
    hdf5.H5AD,
    zarr.ZARR,
    torch.TORCH,
):
    register(_known)
