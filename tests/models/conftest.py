"""Tests of models need torch; one thread keeps them quick on a shared machine."""

import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
