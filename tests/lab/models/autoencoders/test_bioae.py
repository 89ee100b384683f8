"""What BioAE adds to the error."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the extra `train` (torch) is not installed")

from nearid.base.errors import InputError  # noqa: E402
from nearid.lab.models.autoencoders.autoencoder import Autoencoder  # noqa: E402
from nearid.lab.models.autoencoders.bioae import BioAE  # noqa: E402
from dense_networks import Dense  # noqa: E402
from nearid.lab.models.options import Training  # noqa: E402
from nearid.lab.models.trainer import seeded, train  # noqa: E402


def pair():
    found = []
    for kind in (Autoencoder, BioAE):
        with seeded(0):
            found.append(kind(3, Dense(6, (5,))))
    return found


def test_the_penalty_by_hand(rng):
    plain, bio = pair()
    with torch.no_grad():
        for model in (plain, bio):
            model.encoder[-1].bias.copy_(torch.tensor([-0.5, 0.0, 0.5]))
    x = torch.tensor(rng.uniform(size=(4, 6)), dtype=torch.float32)
    z = bio.encode(x).detach().numpy()
    expected = np.maximum(-z, 0).mean() + 0.01 * (z**2).mean()
    assert (z < 0).any() and (bio(x) - plain(x)).item() == pytest.approx(expected, rel=1e-4)


def test_latents_become_nonnegative(rng):
    x = rng.uniform(size=(8, 6))
    for model, expected in zip(pair(), (False, True), strict=True):
        with torch.no_grad():
            model.encoder[-1].bias.fill_(-0.5)
        train(model, lambda rng: (x,), Training(150, 1e-2))
        with torch.no_grad():
            z = model.encode(torch.tensor(x, dtype=torch.float32))
        assert bool((z > -0.05).all()) == expected


@pytest.mark.parametrize("activity", [-0.1, float("nan")])
def test_an_activity_that_cannot_be(activity):
    with pytest.raises(InputError, match="activity is"):
        BioAE(3, Dense(6), activity=activity)
