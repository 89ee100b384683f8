"""The supervised baseline."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.encoders import mlp  # noqa: E402
from nearid.lab.models.regression import Regression  # noqa: E402


def test_mean_squared_error(rng):
    x, z = (torch.tensor(rng.normal(size=(9, 3)), dtype=torch.float32) for _ in range(2))
    model = Regression(mlp(3, 3, [4]), 3, space="box")
    expected = np.mean((model.encode(x).detach().numpy() - z.numpy()) ** 2)
    assert model(x, z).item() == pytest.approx(float(expected), rel=1e-5)


def test_latents_must_fit():
    with pytest.raises(InputError, match="as many outputs as there are latents"):
        Regression(mlp(3, 2, [4]), 2)(torch.zeros(5, 3), torch.zeros(5, 3))
