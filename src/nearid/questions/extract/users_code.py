"""Run users' code, which may set seeds and change the folder, and restore the process afterwards."""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def same_draws() -> Iterator[None]:
    """Restore the random states of Python, numpy and torch after the `with` block."""
    python, arrays = random.getstate(), np.random.get_state()
    # Generators of devices matter only if they are in use; reading their state would initialise them.
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    try:
        with torch.random.fork_rng(devices):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextmanager
def same_surroundings() -> Iterator[None]:
    """Restore the working folder and the random states after the `with` block."""
    folder = os.getcwd()
    try:
        with same_draws():
            yield
    finally:
        os.chdir(folder)
