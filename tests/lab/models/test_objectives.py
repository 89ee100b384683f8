"""Objectives against their formulas, and the spaces of representations."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from nearid.base.errors import InputError
from nearid.lab.models.encoders import mlp
from nearid.lab.models.objectives import (
    Contrastive,
    CrossEntropy,
    Predictive,
    Regression,
    infonce,
    output,
)

X = torch.randn(50, 4, generator=torch.Generator().manual_seed(0)) * 5


def test_unbounded_changes_nothing():
    assert torch.equal(output("unbounded", 4)(X), X)


def test_spheres():
    torch.testing.assert_close(output("sphere", 4)(X).norm(dim=1), torch.ones(50))
    scaled = output("scaled sphere", 4)
    torch.testing.assert_close(scaled(X).norm(dim=1), torch.ones(50))
    with torch.no_grad():
        scaled.log_radius.fill_(1.0)
    torch.testing.assert_close(scaled(X).norm(dim=1), torch.full((50,), 2.7182817))
    assert not list(output("sphere", 4).parameters())


def test_box_has_sides_that_learn():
    box = output("box", 4)
    with torch.no_grad():
        box.sides.copy_(torch.tensor([1.0, 2.0, 3.0, 4.0]))
    found = box(X)
    assert (found >= 0).all() and (found <= box.sides).all()
    torch.testing.assert_close(found, torch.sigmoid(X) * torch.tensor([1.0, 2.0, 3.0, 4.0]))
    found.sum().backward()
    torch.testing.assert_close(box.sides.grad, torch.sigmoid(X).sum(dim=0))


def test_mean_squared_error(rng):
    x, z = (torch.tensor(rng.normal(size=(9, 3)), dtype=torch.float32) for _ in range(2))
    model = Regression(mlp(3, 3, [4]), 3, space="box")
    expected = np.mean((model.encode(x).detach().numpy() - z.numpy()) ** 2)
    assert model(x, z).item() == pytest.approx(float(expected), rel=1e-5)


def test_latents_must_fit():
    with pytest.raises(InputError, match="as many outputs as there are latents"):
        Regression(mlp(3, 2, [4]), 2)(torch.zeros(5, 3), torch.zeros(5, 3))


@pytest.fixture
def no_gradients():
    with torch.no_grad():
        yield


def linear(matrix):
    made = nn.Linear(matrix.shape[1], matrix.shape[0], bias=False)
    made.weight.copy_(matrix)
    return made


def test_the_loss_by_brute_force(no_gradients):
    torch.manual_seed(0)
    f, g = nn.Linear(3, 2), nn.Linear(4, 2)
    x, y = torch.randn(5, 3), torch.randn(5, 4)
    scores = [[float(f(a) @ g(b)) for b in y] for a in x]
    expected = sum(math.log(sum(map(math.exp, row))) - row[i] for i, row in enumerate(scores)) / 5
    assert float(Predictive(f, g)(x, y)) == pytest.approx(expected, rel=1e-5)


def test_equal_scores_cost_the_logarithm_of_the_batch(no_gradients):
    model = Predictive(nn.Linear(3, 2), linear(torch.zeros(2, 3)))
    assert float(model(torch.randn(7, 3), torch.randn(7, 3))) == pytest.approx(math.log(7))


def test_a_linear_map_and_its_inverse_change_nothing(no_gradients):
    torch.manual_seed(1)
    f, g, a = torch.randn(2, 3), torch.randn(2, 3), torch.randn(2, 2)
    x, y = torch.randn(6, 3), torch.randn(6, 3)
    twin = Predictive(linear(a @ f), linear(torch.linalg.inv(a).T @ g))
    assert float(Predictive(linear(f), linear(g))(x, y)) == pytest.approx(float(twin(x, y)), rel=1e-4)


def test_as_many_candidates_as_inputs():
    with pytest.raises(InputError, match="3 inputs and 4 candidates"):
        Predictive(nn.Identity(), nn.Identity())(torch.ones(3, 2), torch.ones(4, 2))


def as_published(anchors, positives, p, temperature):
    """The loss with its negatives: the batch rolled by one, against every anchor."""
    negatives = torch.roll(anchors, 1, 0)
    if p is None:
        matched, others = -(anchors * positives).sum(-1), -(anchors[:, None] * negatives).sum(-1)
    else:
        matched = (anchors - positives).abs().pow(p).sum(-1)
        others = (anchors[:, None] - negatives).abs().pow(p).sum(-1)
    everything = torch.cat([others, matched[:, None]], dim=1)
    return (matched / temperature + torch.logsumexp(-everything / temperature, dim=1)).mean()


@pytest.mark.parametrize("p", [None, 1, 2, 2.5, 3])
def test_is_the_published_loss(rng, p):
    pair = [torch.tensor(rng.normal(size=(11, 4)), requires_grad=True) for _ in range(2)]
    ours, theirs = infonce(*pair, p=p, temperature=0.3), as_published(*pair, p, 0.3)
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    for a, b in zip(torch.autograd.grad(ours, pair), torch.autograd.grad(theirs, pair), strict=True):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("p", [None, 1, 2, 3])
def test_equal_representations_give_the_log_of_all(p):
    same = torch.full((6, 3), 0.5)
    assert infonce(same, same, p=p).item() == pytest.approx(np.log(7), rel=1e-6)


def test_two_opposite_points_by_hand():
    anchors = torch.tensor([[1.0, 0.0], [-1.0, 0.0]], dtype=torch.float64)
    # Each anchor sees itself (1), the other (-1) and its positive (1), at temperature 1/2.
    expected = np.log(2 * np.exp(2) + np.exp(-2)) - 2
    assert infonce(anchors, anchors, temperature=0.5).item() == pytest.approx(expected, rel=1e-12)
    # L1: distances 0, 2, 0.
    assert infonce(anchors, anchors, p=1).item() == pytest.approx(np.log(2 + np.exp(-2)), rel=1e-12)


def test_a_model_encodes_both_sides_alike(rng):
    x, y = (torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32) for _ in range(2))
    model = Contrastive(mlp(3, 2, [5]), 2, space="box", p=1)
    assert model(x, y).item() == pytest.approx(infonce(model.encode(x), model.encode(y), p=1).item(), rel=1e-5)


def test_half_precision_stays_inside_the_encoder(rng):
    x, y = (torch.tensor(rng.normal(size=(8, 3)), dtype=torch.float32) for _ in range(2))
    model = Contrastive(mlp(3, 2, [5]), 2)
    with torch.autocast("cpu", torch.bfloat16):
        assert model.encoder(x).dtype == torch.bfloat16 and model.encode(x).dtype == torch.float32
        loss = model(x, y)
    assert loss.dtype == torch.float32 and loss.item() == pytest.approx(model(x, y).item(), abs=0.02)
    loss.backward()
    assert all(torch.isfinite(p.grad).all() and p.grad.dtype == torch.float32 for p in model.parameters())


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"space": "box"}, "needs representations on a sphere"),
        ({"space": "torus"}, "no output space 'torus'"),
        ({"p": 0.5}, "p is 0.5"),
        ({"p": float("nan")}, "p is nan"),
        ({"temperature": 0}, "temperature is 0"),
    ],
)
def test_what_cannot_be_is_told(options, told):
    with pytest.raises(InputError, match=told):
        Contrastive(mlp(3, 2, [4]), 2, **options)


def test_pairs_must_fit():
    with pytest.raises(InputError, match=r"shape \(3, 2\) and positives \(2, 2\)"):
        infonce(torch.zeros(3, 2), torch.zeros(2, 2))


def batch(rng, labels=7):
    return torch.tensor(rng.normal(size=(20, 3)), dtype=torch.float32), torch.tensor(rng.integers(0, labels, 20))


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_loss_and_gradients_are_torchs(rng, monkeypatch, features, weights, smoothing):
    monkeypatch.setattr("nearid.lab.models.similarity.BLOCK_CPU", 30)
    x, labels = batch(rng)
    model = CrossEntropy(
        mlp(3, 2, [5]),
        2,
        7,
        beta=1.7,
        normalise_features=features,
        normalise_weights=weights,
        label_smoothing=smoothing,
    )
    ours = model(x, labels)
    theirs = torch.nn.functional.cross_entropy(
        1.7 * model.encode(x) @ model.weights.T, labels, label_smoothing=smoothing
    )
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)
    parameters = list(model.parameters())
    for a, b in zip(torch.autograd.grad(ours, parameters), torch.autograd.grad(theirs, parameters), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_normalised_means_length_one(rng):
    x, labels = batch(rng)
    model = CrossEntropy(mlp(3, 2, [5]), 2, 7, normalise_features=True, normalise_weights=True)
    with torch.no_grad():
        model.weights.mul_(3)
    model(x, labels)
    torch.testing.assert_close(model.weights.norm(dim=1), torch.ones(7))
    torch.testing.assert_close(model.encode(x).norm(dim=1), torch.ones(20))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"labels": 1}, "At least 2 labels"),
        ({"labels": 3, "beta": 0}, "beta is 0"),
        ({"labels": 3, "label_smoothing": 1}, "label_smoothing is 1"),
    ],
)
def test_options_that_cannot_be(options, told):
    with pytest.raises(InputError, match=told):
        CrossEntropy(mlp(3, 2, [4]), 2, **options)


def test_labels_that_cannot_be(rng):
    x, labels = batch(rng)
    model = CrossEntropy(mlp(3, 2, [4]), 2, 7)
    with pytest.raises(InputError, match="run from 0 to 7, but the model has 7"):
        model(x, torch.arange(20) % 8)
    with pytest.raises(InputError, match="whole numbers"):
        model(x, labels.float())
    with pytest.raises(InputError, match=r"shape \(19,\)"):
        model(x, labels[1:])


def test_beta_is_learnt_where_asked():
    torch.manual_seed(0)
    model = CrossEntropy(mlp(3, 2, [4]), 2, 7, beta=2.0, learn_beta=True, normalise_features=True)
    x, labels = torch.randn(20, 3), torch.arange(20) % 7
    assert model.inverse_temperature == 2.0
    model(x, labels).backward()
    assert model.log_factor.grad.abs() > 0
    with torch.no_grad():
        model.log_factor.fill_(np.log(3.0))
        logits = 6.0 * model.encode(x) @ model.weights.T
        assert float(model(x, labels)) == pytest.approx(
            float(torch.nn.functional.cross_entropy(logits, labels)), rel=1e-5
        )
    assert model.inverse_temperature == pytest.approx(6.0)
    assert CrossEntropy(mlp(3, 2, [4]), 2, 7).log_factor is None
