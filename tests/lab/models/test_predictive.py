"""The predictive objective: what it says by brute force, and that only scores matter."""

import math

import pytest
import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.lab.models.predictive import Predictive


@pytest.fixture(autouse=True)
def no_gradients():
    with torch.no_grad():
        yield


def linear(matrix):
    made = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
    made.weight.copy_(matrix)
    return made


def test_the_loss_by_brute_force():
    torch.manual_seed(0)
    f, g = nn.Linear(3, 2), nn.Linear(4, 2)
    x, y = torch.randn(5, 3), torch.randn(5, 4)
    scores = [[float(f(a) @ g(b)) for b in y] for a in x]
    expected = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(scores)) / 5
    assert float(Predictive(f, g)(x, y)) == pytest.approx(expected, rel=1e-5)


def test_equal_scores_cost_the_logarithm_of_the_batch():
    model = Predictive(nn.Linear(3, 2), linear(torch.zeros(2, 3)))
    assert float(model(torch.randn(7, 3), torch.randn(7, 3))) == pytest.approx(math.log(7))


def test_a_linear_map_and_its_inverse_change_nothing():
    torch.manual_seed(1)
    f, g, a = torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 2)
    x, y = torch.randn(6, 3), torch.randn(6, 3)
    twin = Predictive(linear(a @ f), linear(torch.linalg.inv(a).T @ g))
    assert float(Predictive(linear(f), linear(g))(x, y)) == pytest.approx(float(twin(x, y)), rel=1e-4)


def test_as_many_candidates_as_inputs():
    with pytest.raises(InputError, match="3 inputs and 4 candidates"):
        Predictive(nn.Identity(), nn.Identity())(torch.ones(3, 2), torch.ones(4, 2))
