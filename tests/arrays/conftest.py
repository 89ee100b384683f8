"""The same numbers as files of every format."""

from pathlib import Path

import numpy as np
import pytest

from arrays_written import WRITERS


@pytest.fixture
def matrix() -> np.ndarray:
    """Numbers that float32, float64 and decimal text all hold exactly."""
    return np.random.default_rng(0).integers(-1000, 1000, (37, 5)).astype(np.float32) / 8


@pytest.fixture(params=WRITERS, ids=lambda writer: writer.__name__.removeprefix("write_"))
def written(request: pytest.FixtureRequest, tmp_path: Path, matrix: np.ndarray) -> Path:
    """`matrix` in a file of each format."""
    return request.param(tmp_path, matrix)
