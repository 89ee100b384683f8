"""Orthogonal layers stay orthogonal, and the leak bounds how far a decoder is from an isometry."""

import numpy as np
import pytest
import torch

from nearid.base.errors import InputError, NearidError
from nearid.lab.models.autoencoders.autoencoder import Autoencoder
from nearid.lab.models.autoencoders.orthogonal import Orthogonal, OrthogonalLinear
from nearid.lab.models.trainer import (
    Training,
    seeded,
    train,
)


def weights(model):
    return [m.weight.detach() for m in model.modules() if isinstance(m, OrthogonalLinear)]


def deviation(weight):
    wide = weight if weight.shape[0] <= weight.shape[1] else weight.T
    return (wide @ wide.T - torch.eye(len(wide))).abs().max().item()


def test_layers_stay_orthogonal_while_they_learn():
    with seeded(0):
        model = Autoencoder(2, Orthogonal(9, (6, 4)), reconstruction="squared")
    before = [w.clone() for w in weights(model)]
    assert [tuple(w.shape) for w in before] == [(6, 9), (4, 6), (2, 4), (4, 2), (6, 4), (9, 6)]
    # Of rows on a line, which two latents hold: nearly all of the loss can go.
    found = train(
        model,
        lambda rng: (np.outer(rng.uniform(0, 5, size=32), np.arange(9)),),
        Training(60, 3e-2, log_every=10, score_every=10),
    )
    assert found.records[-1]["loss"] < 0.5 * found.records[0]["loss"]
    for now, then in zip(weights(model), before, strict=True):
        assert deviation(now) < 1e-5 and (now - then).abs().max() > 0.05


def test_many_large_steps_leave_them_orthogonal():
    with seeded(0):
        model = Autoencoder(4, Orthogonal(30, (20, 10), leak=0.2), reconstruction="squared")
    train(model, lambda rng: (rng.normal(size=(16, 30)),), Training(500, 0.1, log_every=100))
    assert max(map(deviation, weights(model))) < 1e-4


def layer_of(weight):
    """A layer with this matrix of parameters, in float64."""
    layer = OrthogonalLinear(*weight.shape[::-1]).double()
    tall = weight.shape[0] > weight.shape[1]
    layer.free = torch.nn.Parameter((weight.T if tall else weight).clone())
    return layer


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4)])
def test_the_weight_is_the_factor_of_a_qr_decomposition(rng, shape):
    weight = torch.tensor(rng.normal(size=shape))
    tall = weight if shape[0] > shape[1] else weight.T
    q, r = torch.linalg.qr(tall)
    # The decomposition whose triangle has a positive diagonal is the only one.
    q = q * r.diagonal().sign()
    layer, x = layer_of(weight), torch.tensor(rng.normal(size=(6, shape[1])))
    torch.testing.assert_close(layer.weight, q if shape[0] > shape[1] else q.T)
    torch.testing.assert_close(layer(x), x @ layer.weight.T)


@pytest.mark.parametrize("shape", [(3, 7), (7, 3), (4, 4)])
def test_gradients_are_those_of_finite_differences(rng, shape):
    layer, x = layer_of(torch.tensor(rng.normal(size=shape))), torch.tensor(rng.normal(size=(6, shape[1])))

    def output(x, free):
        return torch.func.functional_call(layer, {"free": free}, (x,))

    assert torch.autograd.gradcheck(
        output, (x.requires_grad_(), layer.free.detach().requires_grad_()), check_forward_ad=True
    )


def test_every_orthogonal_matrix_is_reached_and_kept():
    q = torch.linalg.qr(torch.randn(5, 3, dtype=torch.float64))[0]
    torch.testing.assert_close(layer_of(q).weight, q)


def test_a_matrix_without_full_rank_is_told_by_the_trainer():
    model = Autoencoder(2, Orthogonal(6, (4,)), reconstruction="squared")
    with torch.no_grad():
        model.encoder[0].free.zero_()
    with pytest.raises(NearidError, match="training has diverged"):
        train(model, lambda rng: (rng.normal(size=(3, 6)),), Training(1))


@pytest.mark.parametrize(("leak", "bound"), [(0.0, np.inf), (0.5, 4.0), (1.0, 1.0)])
def test_the_leak_bounds_the_jacobian_of_the_decoder(leak, bound):
    networks = Orthogonal(12, (8, 5), leak=leak)
    assert networks.bound == bound
    with seeded(0):
        decoder = networks.decoder(3)
    z = torch.randn(40, 3, generator=torch.Generator().manual_seed(0))
    jacobians = torch.func.vmap(torch.func.jacfwd(decoder))(z)
    singular = torch.linalg.svdvals(jacobians)
    assert jacobians.shape == (40, 12, 3) and singular.max() <= 1 + 1e-5
    assert singular.min() >= 1 / bound - 1e-5
    if leak < 1:
        # The bound is no triviality: directions are in fact lost.
        assert singular.min() < 0.9


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"leak": 1.5}, "leak is 1.5"),
        ({"leak": float("nan")}, "leak is nan"),
        ({"widths": (2, 5)}, r"widths \[9, 2, 5, 3\] would lose directions"),
    ],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        Orthogonal(9, **options).encoder(3)
