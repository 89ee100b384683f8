"""Small networks and inputs, and the layers of a folder as plain arrays."""

import os
from importlib.util import find_spec

import numpy as np
import pytest

# Every test here runs a network; a conftest cannot skip, and without torch the files cannot even be imported.
collect_ignore_glob = [] if find_spec("torch") else ["test_*.py"]


@pytest.fixture(autouse=True)
def one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def net():
    """A convolution, a stage of two blocks, and a head; one spare module that is never called."""
    from torch import nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 4, 3, padding=1)
            self.norm = nn.BatchNorm2d(4)
            self.act = nn.ReLU(inplace=True)
            self.stage = nn.Sequential(nn.Conv2d(4, 5, 3, stride=2), nn.Conv2d(5, 6, 1))
            self.head = nn.Linear(6, 7)
            self.spare = nn.Linear(2, 2)

        def forward(self, x):
            x = self.act(self.norm(self.conv(x)))
            return self.act(self.head(self.act(self.stage(x)).mean((2, 3))))

    model = Net()
    # Running statistics that differ from those of a batch, so that the mode matters.
    model.norm.running_mean.fill_(0.3)
    return model


@pytest.fixture
def pixels(rng):
    return rng.integers(0, 256, (37, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def contents():
    """Every file below a folder, as bytes."""

    def read(folder):
        return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}

    return read


@pytest.fixture
def payload():
    """What makes a folder when unpickled."""

    class Payload:
        def __init__(self, path):
            self.path = path

        def __reduce__(self):
            return os.mkdir, (str(self.path),)

    return Payload
