"""What can be used as rows of numbers, and what is said about the rest."""

import math
from typing import Any

import numpy as np

from nearid.base.errors import InputError


def delivered(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Dtype in which numbers stored as `dtype` reach the computations: float32 or float64."""
    small_float = dtype.kind == "f" and dtype.itemsize <= 4
    return np.dtype(np.float32 if small_float or dtype.name == "bfloat16" else np.float64)


def is_numeric(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` holds real numbers (or booleans)."""
    # bfloat16 comes from ml_dtypes, where it has the kind of a structure.
    return dtype.kind in "fiub" or dtype.name == "bfloat16"


def check_rows(name: str, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    """Refuse anything but at least 2 rows and 1 column of real numbers."""
    if not is_numeric(dtype):
        raise InputError(f"{name} has dtype {dtype}, but rows of real numbers are expected. {_dtype_advice(dtype)}")
    if any(size < 0 for size in shape):
        raise InputError(f"{name} declares the shape {shape}: a size below zero means that its header is damaged.")
    if len(shape) != 2:
        raise InputError(f"{name} has shape {shape}, but (rows, columns) is expected. {_shape_advice(shape)}")
    n, d = shape
    if n < 2:
        raise InputError(f"{name} has shape {shape}, but at least 2 rows are needed: give one row per sample.")
    if d < 1:
        raise InputError(f"{name} has shape {shape}, but at least 1 column is needed: give one column per feature.")


def _dtype_advice(dtype: np.dtype[Any]) -> str:
    if dtype.kind == "c":
        return "Save the real and imaginary parts side by side: np.hstack([x.real, x.imag])."
    if dtype.kind in "SUT":
        return "Convert the strings first, for example with x.astype(np.float64)."
    if dtype.kind == "V" and dtype.names:
        return "Stack the fields as columns with np.lib.recfunctions.structured_to_unstructured(x)."
    return "Convert it first, for example with x.astype(np.float32)."


def _shape_advice(shape: tuple[int, ...]) -> str:
    if len(shape) == 0:
        return "Give one row per sample and one column per feature."
    if len(shape) == 1:
        return f"If these are {shape[0]} samples of one feature, use x.reshape(-1, 1)."
    flat = (shape[0], math.prod(shape[1:]))
    mean = (shape[0], *shape[2:])
    return (
        f"Flatten each sample with x.reshape(len(x), -1) to {flat}, or average one axis, as x.mean(axis=1) to {mean}."
    )
