"""Dates and times as text, so that they can be labels, batches, blocks, ids and classes in every format."""

from datetime import UTC, date, datetime, time
from typing import Any

import numpy as np

# From coarse to fine. A column is written in the first unit that loses no information, as pandas does.
UNITS = ("D", "s", "ms", "us", "ns")


def is_missing(value: Any) -> bool:
    """Return whether a value of a table means "missing"."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )


def date_texts(values: np.ndarray) -> np.ndarray | None:
    """Return dates or times as ISO text, with None for missing values; None if the values are not dates.

    Dates with a time of day are written as "2024-01-05 10:30:00". Times with a time zone are converted to UTC.
    """
    if values.dtype.kind == "O" and values.ndim == 1:
        present = np.array([not is_missing(value) for value in values], dtype=bool)
        if not present.any() or not all(isinstance(value, date | time | np.datetime64) for value in values[present]):
            return None
        texts = np.full(len(values), None, dtype=object)
        if all(isinstance(value, time) for value in values[present]):
            texts[present] = [value.isoformat() for value in values[present]]
        elif not any(isinstance(value, time) for value in values[present]):
            texts[present] = date_texts(np.array([_numpy_date(value) for value in values[present]]))
        else:
            return None
        return texts
    if values.dtype.kind != "M":
        return None
    known = ~np.isnat(values)
    coarser = (values.astype(f"M8[{unit}]") for unit in UNITS)
    shortest = next((each for each in coarser if np.all((each == values)[known])), values)
    written = np.char.replace(np.datetime_as_string(shortest), "T", " ").astype(object)
    written[~known] = None
    return np.asarray(written)


def _numpy_date(value: Any) -> np.datetime64:
    if hasattr(value, "to_datetime64"):  # a pandas Timestamp, with nanoseconds
        return np.datetime64(value.to_datetime64())
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return np.datetime64(value)
