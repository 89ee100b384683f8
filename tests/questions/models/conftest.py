"""Two small networks of one kind, inputs, and a cache of one's own."""

from importlib.util import find_spec

import numpy as np
import pytest

from torch_threads import one_thread  # noqa: F401

# Every test here runs a network; a conftest cannot skip, and without torch the files cannot even be imported.
collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """The folder of the cache."""
    monkeypatch.setenv("NEARID_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NEARID_CACHE_GB", raising=False)
    return tmp_path / "cache" / "extractions"


@pytest.fixture(scope="session")
def network():
    """A network with three blocks and a head, by its seed."""

    def make(seed, classes=7):
        import torch
        from torch import nn

        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(5, 6), nn.Tanh(), nn.Linear(6, 4), nn.Linear(4, classes))

    return make


@pytest.fixture(scope="session")
def inputs():
    return np.random.default_rng(3).normal(size=(240, 5)).astype(np.float32)
