"""One thread keeps these tests quick on a shared machine; without torch (the extra `lab`) they are left out."""

from importlib.util import find_spec

import pytest

collect_ignore_glob = [] if find_spec("torch") else ["*test_*.py"]


@pytest.fixture(autouse=True)
def _one_thread():
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
