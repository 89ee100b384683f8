"""One thread keeps these tests quick on a shared machine."""

import pytest


@pytest.fixture(autouse=True)
def _one_thread():
    # Imported here: a conftest cannot skip, and each test file does where torch is missing.
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
