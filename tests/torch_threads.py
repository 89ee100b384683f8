"""Torch in one thread: sums do not depend on how they are split, and small networks are quicker so."""

import pytest


@pytest.fixture(autouse=True)
def one_thread():
    """For every test of a folder whose conftest imports it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
