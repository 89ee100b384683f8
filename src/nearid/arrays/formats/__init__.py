"""File formats, a module for each; all of them are registered here."""

from nearid.arrays.formats import csv, h5ad, hdf5, layers, npy, npz, parquet, safetensors, torch, zarr
from nearid.arrays.formats.registry import register

for _known in (
    layers.LAYERS,
    npy.NPY,
    npz.NPZ,
    safetensors.SAFETENSORS,
    csv.CSV,
    parquet.PARQUET,
    hdf5.HDF5,
    h5ad.H5AD,
    zarr.ZARR,
    torch.TORCH,
):
    register(_known)
