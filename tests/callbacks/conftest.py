"""A small network to train, inputs to look at, and the features of another run for them."""

from importlib.util import find_spec

import numpy as np
import pytest

from torch_threads import one_thread  # noqa: F401

# A conftest cannot skip, and without torch the files cannot even be imported.
collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture
def network():
    """Makes a network from a seed: features at the layer "1", scores after it."""
    from torch import manual_seed, nn

    def make(seed):
        manual_seed(seed)
        return nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Dropout(0.5), nn.Linear(4, 3))

    return make


@pytest.fixture
def probe_inputs(rng):
    return rng.normal(size=(120, 6)).astype(np.float32)
