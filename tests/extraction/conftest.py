"""Small networks and inputs, and the layers of a folder as plain arrays."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)
    torch.manual_seed(0)


class Net(nn.Module):
    """A convolution, a stage of two blocks, and a head; one spare module that is never called."""

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


@pytest.fixture
def net():
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
