"""Layers of two models."""

import numpy as np
import pytest


@pytest.fixture
def sides(rng):
    n = 400
    z = rng.normal(size=(n, 4))
    x = {"a": z @ rng.normal(size=(4, 5)) + 3, "b": np.tanh(z), "c": rng.normal(size=(n, 2))}
    turn = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    y = {"p": z @ turn, "q": np.hstack([z**2, z[:, :1]]).astype(np.float32), "r": rng.normal(size=(n, 6))}
    return x, y
