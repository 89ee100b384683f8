"""Encoders of rows and of images."""

import numpy as np
import pytest
import torch

from nearid.base.errors import InputError
from nearid.lab.models.encoders import (
    BasicBlock,
    Residual,
    dense_features,
    mlp,
    published_widths,
    resnet18_features,
    small_features,
)


def kinds(encoder, kind):
    return [m for m in encoder.modules() if isinstance(m, kind)]


def test_the_contrastive_encoder():
    encoder = mlp(10, 10)
    linear = kinds(encoder, torch.nn.Linear)
    assert [m.out_features for m in linear] == [100, 500, 500, 500, 500, 100, 10]
    assert sum(p.numel() for p in encoder.parameters()) == 854_210
    assert {m.negative_slope for m in kinds(encoder, torch.nn.LeakyReLU)} == {0.01}
    assert len(kinds(encoder, torch.nn.LeakyReLU)) == 6
    assert not kinds(encoder, torch.nn.BatchNorm1d)


def test_the_cross_entropy_encoder():
    encoder = mlp(5, 5, batch_norm=True)
    assert published_widths(5) == (50, 250, 250, 250, 250, 50)
    assert [m.num_features for m in kinds(encoder, torch.nn.BatchNorm1d)] == [50, 250, 250, 250, 250, 50]


def test_residual_layers_stand_where_widths_agree():
    encoder = mlp(3, 2, [4, 4, 5, 5, 5], residual=True)
    assert len(kinds(encoder, Residual)) == 3
    layer = torch.nn.Linear(4, 4)
    x = torch.randn(6, 4)
    torch.testing.assert_close(Residual(layer)(x), x + layer(x))


def test_whitened_inputs():
    rows = (np.random.default_rng(0).normal(size=(500, 3)) @ [[7, 1, 0], [0, 2, 1], [0, 0, 0.1]] + 3).astype(np.float32)
    first = mlp(3, 2, [4], whiten=rows)[0]
    found = first(torch.as_tensor(rows))
    torch.testing.assert_close(torch.cov(found.T), torch.eye(3), rtol=0, atol=1e-2)
    torch.testing.assert_close(found.mean(dim=0), torch.zeros(3), rtol=0, atol=1e-3)
    assert not list(first.parameters()) and len(first.state_dict()) == 2


def test_activations():
    assert len(kinds(mlp(3, 2, [4, 4], activation="gelu"), torch.nn.GELU)) == 2
    assert len(kinds(mlp(3, 2, [4, 4], activation="tanh"), torch.nn.Tanh)) == 2
    with pytest.raises(InputError, match=r"no activation 'sine'; choose one of leaky_relu, .*tanh"):
        mlp(3, 2, [4], activation="sine")


def test_widths_must_be_positive():
    with pytest.raises(InputError, match=r"hidden widths \[4, 0\]"):
        mlp(3, 2, [4, 0])


@pytest.mark.parametrize(
    ("network", "width", "side"),
    [(dense_features(3, 16, 20), 20, 16), (small_features(3, 16, 20), 20, 16), (resnet18_features(3), 512, 64)],
)
def test_features_are_rows_of_nonnegative_numbers(network, width, side):
    found = network.eval()(torch.rand(2, 3, side, side))
    assert found.shape == (2, width) and found.min() >= 0 and found.std() > 0


def test_the_size_of_resnet_18():
    # The published 11,689,512 less the classifier of a thousand classes.
    assert sum(p.numel() for p in resnet18_features(3).parameters()) == 11_689_512 - 513_000


def test_a_block_adds_to_its_input():
    block = BasicBlock(4, 4, 1).eval()
    torch.nn.init.zeros_(block.body[3].weight)
    x = torch.rand(2, 4, 5, 5)
    torch.testing.assert_close(block(x), x)
    assert BasicBlock(4, 8, 2)(x).shape == (2, 8, 3, 3)


def test_sides_that_cannot_be_halved_get_a_sentence():
    with pytest.raises(InputError, match=r"halved 3 times\. Use a multiple of 8"):
        small_features(1, 20, 8)
