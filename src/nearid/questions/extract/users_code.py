"""Code of users: it may print, seed and change the folder, and the process is as it was afterwards."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def same_draws() -> Iterator[None]:
    """Give the random generators of Python, numpy and torch back the state that they have now."""
    python, arrays = random.getstate(), np.random.get_state()
    # Those of devices count only once they are in use; to ask would take them into use.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextmanager
def same_surroundings() -> Iterator[None]:
    """Give the process back its folder and its random generators their state."""
    folder = os.getcwd()
    try:
        with same_draws():
            yield
    finally:
        os.chdir(folder)
