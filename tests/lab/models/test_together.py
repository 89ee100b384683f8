"""Models trained together: each as it would be alone."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.encoders import mlp  # noqa: E402
from nearid.lab.models.options import Training  # noqa: E402
from nearid.lab.models.regression import Regression  # noqa: E402
from nearid.lab.models.together import Together  # noqa: E402
from nearid.lab.models.trainer import seeded, train  # noqa: E402


def model(seed):
    with seeded(seed):
        return Regression(mlp(2, 2, [8]), 2)


def batches(rng):
    found = []
    for scale in (1.0, 3.0):
        z = rng.normal(size=(16, 2))
        found += [np.tanh(scale * z), z]
    return tuple(found)


@pytest.mark.parametrize("optimiser", ["adam", "adamw", "sgd"])
def test_each_learns_what_it_learns_alone(optimiser):
    options = Training(30, 1e-2, optimiser=optimiser, log_every=10, score_every=10)
    pair = [model(0), model(1)]
    losses = np.array([r["loss"] for r in train(Together(*pair), batches, options).records])
    for k, together in enumerate(pair):
        alone = model(k)
        run = train(alone, lambda rng, k=k: batches(rng)[2 * k : 2 * k + 2], options)
        for a, b in zip(together.parameters(), alone.parameters(), strict=True):
            assert torch.equal(a, b)
        losses -= [r["loss"] for r in run.records]
    np.testing.assert_allclose(losses, 0, atol=1e-6)


@pytest.mark.parametrize("arrays", [0, 3])
def test_a_batch_that_cannot_be_shared_out(arrays):
    with pytest.raises(InputError, match=f"{arrays} arrays cannot be shared out evenly among 2 models"):
        Together(model(0), model(1))(*[torch.zeros(4, 2)] * arrays)
