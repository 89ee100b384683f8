"""Muon: orthogonal steps for hidden matrices, Adam's own steps for all else."""

import pytest
import torch

from nearid.lab.models.encoders import mlp
from nearid.lab.models.muon import MATRIX_RATE, Muon, hidden_matrices, orthogonalised
from nearid.lab.models.objectives import CrossEntropy


@pytest.mark.parametrize("shape", [(6, 6), (4, 9), (9, 4)])
def test_orthogonalised_matrices_keep_their_singular_vectors(shape):
    torch.manual_seed(0)
    u, s, v = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    found = orthogonalised(u @ torch.diag(torch.linspace(1, 5, len(s))) @ v)
    values = torch.linalg.svdvals(found)
    assert values.min() > 0.6 and values.max() < 1.25
    inner = u.T @ found @ v.T
    torch.testing.assert_close(inner, torch.diag(torch.diag(inner)), atol=1e-4, rtol=0)
    assert (torch.diag(inner) > 0).all()


def test_a_zero_gradient_moves_nothing():
    assert not orthogonalised(torch.zeros(3, 3)).any()


def test_hidden_matrices_are_those_between_the_first_and_the_last_layer():
    model = CrossEntropy(mlp(3, 2, [5, 6, 7]), 2, 4)
    assert [tuple(w.shape) for w in hidden_matrices(model)] == [(6, 5), (7, 6)]
    assert hidden_matrices(torch.nn.Linear(2, 2)) == []


def stepped(model, optimiser, steps=3):
    x = torch.linspace(-1, 1, 12).reshape(4, 3)
    for _ in range(steps):
        optimiser.zero_grad()
        model(x).square().mean().backward()
        optimiser.step()


def made():
    torch.manual_seed(1)
    return mlp(3, 2, [5, 5])


def test_other_parameters_move_as_with_adam():
    # Without hidden layers nothing is left to orthogonalise.
    torch.manual_seed(1)
    mine, theirs = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    theirs.load_state_dict(mine.state_dict())
    stepped(mine, Muon(mine, 0.01))
    stepped(theirs, torch.optim.Adam(theirs.parameters(), 0.01))
    torch.testing.assert_close(mine.weight, theirs.weight)
    torch.testing.assert_close(mine.bias, theirs.bias)


def test_the_first_step_of_a_hidden_matrix_is_the_orthogonalised_gradient():
    model = made()
    [matrix] = hidden_matrices(model)
    before = matrix.detach().clone()
    stepped(model, Muon(model, 0.001), steps=1)
    expected = before - MATRIX_RATE * 0.001 * orthogonalised(matrix.grad)
    torch.testing.assert_close(matrix.detach(), expected, atol=1e-5, rtol=0)


def test_state_is_kept():
    model, again = made(), made()
    whole = Muon(model, 0.01)
    stepped(model, whole, steps=4)
    first = Muon(again, 0.01)
    stepped(again, first, steps=2)
    second = Muon(again, 0.01)
    second.load_state_dict(first.state_dict())
    stepped(again, second, steps=2)
    for a, b in zip(model.parameters(), again.parameters(), strict=True):
        assert torch.equal(a, b)
